"""A fitted GP as parts of a model file, and what is checked of those that come back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.estimation.model_file import ModelParts, json_params
from mercer.estimation.saved import Common, check_constant, common_parts, require, restore_common
from mercer.gp.hyperparameters import LARGEST_LOG
from mercer.gp.priors import plain_prior
from mercer.kernels.names import name_of_kernel
from mercer.posterior.draws import Draws
from mercer.posterior.schema import Array as Rule
from mercer.posterior.schema import check_arrays, draws_of

__all__ = ["check_draws", "parts_of", "restore_rows"]

Array = NDArray[np.float64]

_LARGEST = 1e100  # standardised values are within this: their squares are finite
_ROWS = {
    "X": Rule(("n", "d"), least=-_LARGEST, most=_LARGEST),
    "y": Rule(("n",), least=-_LARGEST, most=_LARGEST),
}


def parts_of(model: Any, X: Array, y: Array) -> ModelParts:
    """Split a fitted estimator, with its standardised rows and targets, into parts."""
    values, arrays = common_parts(model)
    params = json_params(model.get_params())
    params |= {"kernel": name_of_kernel(model.kernel_), "prior": plain_prior(model.prior)}
    return ModelParts(params, values, arrays | {"X": X, "y": y})


def restore_rows(parts: ModelParts) -> tuple[Common, Array, Array]:
    """Put together what all GP models have: what is common, standardised rows, targets."""
    common = restore_common(parts)
    check_arrays(parts.arrays, _ROWS, {"d": len(common.feature_labels)})
    X, y = parts.arrays["X"], parts.arrays["y"]
    require(len(X) > 0, "X")
    check_constant(common.standardizer, X)
    return common, X, y


def check_draws(
    draws: Draws, shapes: Mapping[str, tuple[int, ...]], log_parameters: tuple[str, ...]
) -> None:
    """Raise ValueError unless these are all, finite, of their shapes, log parameters in range."""
    require(set(draws.variables) <= {*shapes, "latent"}, "names of draws")
    own = {name: shape for name, shape in shapes.items() if name in log_parameters}
    arrays = {f"draws/{name}": values for name, values in draws.variables.items()}
    check_arrays(arrays, draws_of(shapes) | draws_of(own, -LARGEST_LOG, LARGEST_LOG), {})
