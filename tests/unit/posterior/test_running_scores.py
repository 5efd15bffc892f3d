"""Running sums give the scores of all rows together, without those that need them at once."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from itertools import pairwise

import numpy as np
import pytest

from mercer.posterior.evaluation import HeldClasses, HeldTargets, RunningScores
from support.fake_regression import held_rows

CUTS = (0, 1, 30, 400)


def test_numbers() -> None:
    whole = held_rows(n_rows=400, noise=0.5)
    running = RunningScores()
    assert running.scores() is None
    for begin, end in pairwise(CUTS):
        part = {k: v[begin:end] for k, v in vars(whole).items()}
        running.add(HeldTargets(**part))
    found, wanted = asdict(running.scores()), asdict(whole.scores())
    assert found["r2"] is None
    assert math.isnan(found["calibration_error"])
    for name in wanted.keys() - {"r2", "calibration_error"}:
        assert found[name] == pytest.approx(wanted[name], rel=1e-12), name


def test_numbers_of_which_the_variance_is_not_known() -> None:
    rows = held_rows(n_rows=5)
    running = RunningScores()
    running.add(replace(rows, variance=np.full(5, np.nan)))
    assert running.scores().standardized_mse is None


def test_classes() -> None:
    rng = np.random.default_rng(2)
    y, proba = rng.integers(3, size=400), rng.dirichlet(np.ones(3), size=400)
    running = RunningScores()
    for begin, end in pairwise(CUTS):
        running.add(HeldClasses(y[begin:end], proba[begin:end]))
    found, wanted = asdict(running.scores()), asdict(HeldClasses(y, proba).scores())
    assert math.isnan(found["calibration_error"])
    for name in wanted.keys() - {"calibration_error"}:
        assert found[name] == pytest.approx(wanted[name], rel=1e-12), name
