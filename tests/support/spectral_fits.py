"""Tiny fits of `BaNKRegressor`."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.spectral.estimator import BaNKRegressor

TINY: dict[str, Any] = {
    "n_frequencies": 6,
    "n_draws": 20,
    "n_warmup": 10,
    "n_chains": 1,
    "random_state": 0,
    "progress": False,
}
# As the paper has it, in little.
PAPER: dict[str, Any] = {
    "concentration": 1.0,
    "proposals": "prior",
    "base_measure": "full",
    "frequency_scale": 1.0,
    "ridge_precision": 0.5,
    "linear_part": False,
    "standardize": "std",
}


def tiny(**own: Any) -> BaNKRegressor:
    """An unfitted regressor of few frequencies and draws."""
    return BaNKRegressor(**{**TINY, **own})


def waves(n: int = 60, d: int = 3, seed: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """Rows and targets that wave along the first input, with noise of a tenth."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * X[:, -1] + 0.1 * rng.standard_normal(n)
    return X, y
