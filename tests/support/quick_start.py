"""Fits that look for their start with few frequencies, which takes a fifth of the time.

Where chains start decides what short chains have found, not what they are; how it is found is
tested in `unit/spectral/test_start.py`. A file whose tests are about it, or about the bits of a
fit in other processes, defines a fixture of the same name.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mercer.spectral import model, settings

HOMES = (model, settings)
WHOLE = model.N_FREQUENCIES


@pytest.fixture(scope="module", autouse=True)
def quick_start() -> Iterator[None]:
    """Before what a module fits once."""
    with pytest.MonkeyPatch.context() as patch:
        for home in HOMES:
            patch.setattr(home, "N_FREQUENCIES", 24)
        yield


@pytest.fixture
def whole_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for a start as it is, for one test."""
    for home in HOMES:
        monkeypatch.setattr(home, "N_FREQUENCIES", WHOLE)
