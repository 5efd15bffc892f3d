"""A fitted GP classifier as parts of a model file and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.estimation.model_file import ModelParts, json_params
from mercer.estimation.saved import Common, common_parts, is_finite, require, restore_common
from mercer.gp.model import LARGEST_LOG

__all__ = ["parts_of", "restore"]

Array = NDArray[np.float64]


def parts_of(model: Any, X: Array, y: Array) -> ModelParts:
    """Split a fitted classifier, with its standardised rows and targets, into parts."""
    values, arrays = common_parts(model)
    return ModelParts(json_params(model.get_params()), values, arrays | {"X": X, "y": y})


def restore(parts: ModelParts) -> tuple[Common, Array, Array]:
    """Put the parts together again: what is common, standardised rows, targets in {0, 1}.

    Raises
    ------
    ValueError, KeyError, TypeError
        If something is missing or does not fit; the reader of the file names it.
    """
    common, X, y = restore_common(parts), parts.arrays["X"], parts.arrays["y"]
    require(X.ndim == 2 and X.size > 0 and X.dtype == np.float64, "rows")
    n, d = X.shape
    require(len(common.feature_labels) == d, "names of columns")
    require(y.shape == (n,) and y.dtype == np.float64, "targets")
    require(bool(np.isin(y, (0.0, 1.0)).all()) and is_finite(X), "values of rows")
    require(common.classes.shape == (2,), "classes")
    _check_draws(common, y, d)
    return common, X, y


def _check_draws(common: Common, y: Array, d: int) -> None:
    draws, n = common.draws, len(y)
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
        require(is_right and is_finite(values), f"draws of {name}")
    for name in ("log_signal_variance", "log_weight"):
        require(bool((np.abs(draws.variables[name]) <= LARGEST_LOG).all()), f"draws of {name}")
    require(bool((np.abs(y - draws.flat("dual_coef")) <= 1.0).all()), "draws of dual_coef")
