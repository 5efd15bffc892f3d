"""One BLAS thread for all tests of this folder; which of the mutants the first tier runs.

Of several tests that show the same of a sampler (the joint law of its sweep and moments against a
grid, one case after another) the first tier runs the cheapest, and the second tier all.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.one_thread import one_blas_thread

__all__ = ["one_blas_thread"]

_MUTANT = re.compile(r"_sees?(_|$)|_seen$")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the mutants of a file run the first in the first tier, and the others in the second.

    That a test can fail is shown by one; all of them are a fifth of the time of all tests. Those
    that are marked slow, for their long chains, stay in the second tier.
    """
    shown: set[Path] = set()
    for item in items:
        name, text = getattr(item, "originalname", item.name), item.obj.__doc__ or ""
        is_here = item.path.parent == Path(__file__).parent
        is_mutant = _MUTANT.search(name) or text.startswith("Mutant: ")
        if not is_here or not is_mutant or item.get_closest_marker("slow"):
            continue
        if item.path in shown:
            item.add_marker(pytest.mark.slow)
        shown.add(item.path)
