"""Reports without their drawings, for the tests of a folder."""

from __future__ import annotations

import importlib

import pytest

_HOMES = ("section", "gp", "spectral", "held_out", "sphere", "chains", "basis", "answers")


@pytest.fixture(autouse=True)
def plain_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawings take a second, and are tested where they are made."""
    for name in _HOMES:
        home = importlib.import_module(f"mercer.report.{name}")
        monkeypatch.setattr(home, "svg", lambda *_, **__: '<svg viewBox="0 0 9 9"></svg>')
