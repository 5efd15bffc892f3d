"""Tiny fitted sequential regressors, for reports and plots."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from mercer import SequentialKernelRegressor

__all__ = ["bumps", "followed"]


def bumps(n: int = 120, d: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Targets that wave along the first input, in units of their own."""
    rng = np.random.default_rng(6)
    X = rng.uniform(-3.0, 3.0, (n, d)) * 10.0 ** np.arange(d)
    return X, 50.0 + 10.0 * np.sin(2.0 * X[:, 0]) + rng.standard_normal(n)


@functools.cache
def followed(
    *, n: int = 120, d: int = 1, names: tuple[str, ...] | None = None, **settings: Any
) -> SequentialKernelRegressor:
    """Fit once for each set of settings; read only."""
    tiny = {"n_particles": 20, "expected_centres": 8.0, "max_centres": 12, "random_state": 0}
    model = SequentialKernelRegressor(**{**tiny, "progress": False, **settings})
    if names is not None:
        model._names_of_columns = names
    return model.fit(*bumps(n, d))
