"""Boosting of few trees: with all of them it is a fifth of the time that a command takes.

For tests in which it is one model beside others. How well it does is no matter of theirs.
"""

from __future__ import annotations

import functools
import importlib

import pytest


@pytest.fixture(autouse=True)
def quick_boosting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a module has its own name of it."""
    homes = [
        importlib.import_module(name) for name in ("mercer.baselines.peers", "sklearn.ensemble")
    ]
    for name in ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"):
        few = functools.partial(getattr(homes[1], name), max_iter=5)
        for home in homes:
            monkeypatch.setattr(home, name, few)
