"""A fitted GP as parts of a model file, and what is checked of those that come back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.estimation.model_file import ModelParts, json_params
from mercer.estimation.saved import Common, common_parts, is_finite, require, restore_common
from mercer.gp.hyperparameters import LARGEST_LOG
from mercer.gp.priors import plain_prior
from mercer.kernels.names import name_of_kernel
from mercer.posterior.draws import Draws

__all__ = ["check_draws", "parts_of", "restore_rows"]

Array = NDArray[np.float64]

_LARGEST = 1e100  # standardised values are within this: their squares are finite


def parts_of(model: Any, X: Array, y: Array) -> ModelParts:
    """Split a fitted estimator, with its standardised rows and targets, into parts."""
    values, arrays = common_parts(model)
    params = json_params(model.get_params())
    params |= {"kernel": name_of_kernel(model.kernel_), "prior": plain_prior(model.prior)}
    return ModelParts(params, values, arrays | {"X": X, "y": y})


def restore_rows(parts: ModelParts) -> tuple[Common, Array, Array]:
    """Put together what all GP models have: what is common, standardised rows, targets."""
    common, X, y = restore_common(parts), parts.arrays["X"], parts.arrays["y"]
    require(X.ndim == 2 and X.size > 0 and X.dtype == np.float64, "rows")
    n, d = X.shape
    require(len(common.feature_labels) == d, "names of columns")
    require(y.shape == (n,) and y.dtype == np.float64, "targets")
    require(bool((np.abs(X) <= _LARGEST).all()) and is_finite(y), "values of rows")
    return common, X, y


def check_draws(
    draws: Draws, shapes: Mapping[str, tuple[int, ...]], log_parameters: tuple[str, ...]
) -> None:
    """Raise ValueError unless these are all, finite, of their shapes, log parameters in range."""
    require(set(draws.variables) <= {*shapes, "latent"}, "names of draws")
    for name, shape in shapes.items():
        values = draws.variables.get(name)
        if values is None:
            raise ValueError(f"no draws of {name}")
        is_right = values.shape[2:] == shape and values.dtype == np.float64
        require(is_right and is_finite(values), f"draws of {name}")
    for name in log_parameters:
        require(bool((np.abs(draws.variables[name]) <= LARGEST_LOG).all()), f"draws of {name}")
