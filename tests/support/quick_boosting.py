"""Gradient boosting of a few trees: as a baseline or a member of a stack it is no matter here."""

from __future__ import annotations

import functools
import importlib

import pytest


@pytest.fixture
def all_trees() -> None:
    """For a test that needs boosting as it is."""


@pytest.fixture(autouse=True)
def quick_boosting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five trees, wherever a module has its own name of boosting."""
    if "all_trees" in request.fixturenames:
        return
    homes = [
        importlib.import_module(name) for name in ("mercer.baselines.peers", "sklearn.ensemble")
    ]
    for name in ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"):
        few = functools.partial(getattr(homes[1], name), max_iter=5)
        for home in homes:
            monkeypatch.setattr(home, name, few)
