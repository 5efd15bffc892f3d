"""Checks of what a model file holds: a bad file fails when read, not at a prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.estimation.standardize import Standardizer
from mercer.posterior.draws import Draws

__all__ = ["check_restored"]

_LARGEST_LOG = 40.0


def check_restored(
    X: NDArray[Any],
    y: NDArray[Any],
    classes: NDArray[Any],
    standardizer: Standardizer,
    draws: Draws,
) -> None:
    """Raise ValueError unless shapes, types and ranges fit together."""
    _require(X.ndim == 2 and X.size > 0 and X.dtype == np.float64, "rows")
    n, d = X.shape
    _require(y.shape == (n,) and y.dtype == np.float64, "targets")
    _require(bool(np.isin(y, (0.0, 1.0)).all()) and bool(np.isfinite(X).all()), "values of rows")
    _require(classes.shape == (2,) and classes[0] != classes[1], "classes")
    for name, values in vars(standardizer).items():
        is_number = values.dtype == (np.int64 if name == "kind" else np.float64)
        _require(is_number and values.shape == (d,) and _is_finite(values), f"standardizer/{name}")
    _require(bool((standardizer.after_scale > 0.0).all()), "standardizer/after_scale")
    _require(bool(((standardizer.kind >= 0) & (standardizer.kind <= 3)).all()), "standardizer/kind")
    shapes = {
        "log_signal_variance": (),
        "log_weight": (d,),
        "log_density": (),
        "dual_coef": (n,),
        "dual_correction": (n,),
    }
    for name, shape in shapes.items():
        values = draws.variables.get(name)
        if values is None:
            raise ValueError(f"no draws of {name}")
        is_right = values.shape[2:] == shape and values.dtype == np.float64
        _require(is_right and _is_finite(values), f"draws of {name}")
    for name in ("log_signal_variance", "log_weight"):
        _require(bool((np.abs(draws.variables[name]) <= _LARGEST_LOG).all()), f"draws of {name}")
    _require(bool((np.abs(y - draws.flat("dual_coef")) <= 1.0).all()), "draws of dual_coef")


def _is_finite(values: NDArray[Any]) -> bool:
    return bool(np.isfinite(values).all())


def _require(is_right: bool, what: str) -> None:
    if not is_right:
        raise ValueError(f"{what} are not of the right shape, type or range")
