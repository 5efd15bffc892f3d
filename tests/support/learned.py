"""Tiny fitted BaNK regressors, for reports and plots."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
from sklearn.utils import check_array

from mercer import BaNKRegressor
from mercer.errors import MercerWarning

__all__ = ["PERIOD", "learned", "waves"]

PERIOD = 4.0
_TINY: dict[str, Any] = {
    "n_frequencies": 16,
    "n_draws": 12,
    "n_warmup": 20,
    "n_chains": 2,
    "progress": False,
    "random_state": 0,
}


def waves(n: int = 120, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Targets that rise and fall with the first input, and rise with the last; the rest is idle.

    The units of the inputs differ: 1, 10, 100, ...
    """
    rng = np.random.default_rng(8)
    X = rng.uniform(-4.0, 4.0, (n, d)) * 10.0 ** np.arange(d)
    y = 3.0 * np.sin(2.0 * np.pi / PERIOD * X[:, 0]) + 0.3 * X[:, -1] / 10.0 ** (d - 1)
    return X, 20.0 + y + 0.3 * rng.standard_normal(n)


@functools.cache
def learned(
    *, n: int = 120, d: int = 3, names: tuple[str, ...] | None = None, **settings: Any
) -> BaNKRegressor:
    """Fit once for each set of settings; read only. Names make the inputs a frame."""
    X, y = waves(n, d)
    model = BaNKRegressor(**{**_TINY, **settings})
    if names is not None:
        model._names_of_columns = names
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        return model.fit(check_array(X), y)
