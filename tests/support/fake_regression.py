"""A stand-in for the evaluation of a regressor: laws that are right, too narrow or too wide."""

from __future__ import annotations

import math

import numpy as np

from mercer.estimation.cross_validate import Result
from mercer.estimation.tasks import REGRESSION
from mercer.posterior.evaluation import HeldTargets, RegressionEvaluation, hold
from mercer.posterior.predictive import NormalMixture

__all__ = ["fake_regression", "held_rows"]

_VARIANCE = 5.0


def held_rows(
    *, n_rows: int = 400, spread: float = 1.0, shift: float = 0.0, noise: float = 0.0, seed: int = 7
) -> HeldTargets:
    """Rows y = f + e, e ~ N(0, 1), predicted as N(f + shift + noise, spread^2 + noise^2)."""
    rng = np.random.default_rng(seed)
    f = 10.0 + 2.0 * rng.standard_normal(n_rows)
    y = f + rng.standard_normal(n_rows)
    means = f + shift + noise * np.random.default_rng(seed + 1).standard_normal(n_rows)
    scale = math.hypot(spread, noise)
    return hold(NormalMixture(means[:, np.newaxis], np.array([scale])), y, _VARIANCE)


def fake_regression(
    *, n_rows: int = 400, baselines: tuple[float, ...] = (0.5, 1.0), **model: float
) -> RegressionEvaluation:
    """An evaluation of such rows beside baselines, whose predictions are off by so much noise."""
    rows = held_rows(n_rows=n_rows, **model)
    results = [Result("mercer spectral", False, (rows,), 4.2, REGRESSION)]
    for noise in baselines:
        other = held_rows(n_rows=n_rows, noise=noise)
        results.append(Result(f"baseline {noise:g}", True, (other,), 0.1, REGRESSION))
    found = REGRESSION.evaluate("4-fold cross-validation", (), results)
    assert isinstance(found, RegressionEvaluation)
    return found
