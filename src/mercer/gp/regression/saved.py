"""A fitted GP regressor back from the parts of a model file."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mercer.estimation.model_file import ModelParts
from mercer.estimation.saved import Common, require
from mercer.estimation.target_scale import TargetScale
from mercer.gp.parameters import shapes_of_parameters
from mercer.gp.regression.model import NOISE_FLOOR
from mercer.gp.regression.predict import function_draws
from mercer.gp.saved import check_draws, restore_rows
from mercer.kernels.base import Kernel
from mercer.posterior.schema import TARGET

__all__ = ["restore"]

Array = NDArray[np.float64]


def restore(parts: ModelParts, kernel: Kernel) -> tuple[Common, Array, Array, TargetScale, float]:
    """Put a regressor together again.

    Returns
    -------
    common : Common
    X, y : ndarray
        Standardised rows and targets.
    target : TargetScale
    intercept_variance : float
        0 in files of versions that had no intercept.

    Raises
    ------
    ValueError, KeyError, TypeError
        If something is missing or does not fit; the reader of the file names it.
    """
    common, X, y = restore_rows(parts)
    n, d = X.shape
    TARGET.check(parts.fields, "fields", {})
    centre, scale = parts.fields["target_centre"], parts.fields["target_scale"]
    require(bool((np.abs(y) <= 1.01 * math.sqrt(n)).all()), "targets")  # they are standardised
    intercept = float(parts.fields.get("intercept_variance", 0.0))
    require(0.0 <= intercept <= 1.0, "variance of the intercept")
    log_parameters = {**shapes_of_parameters(kernel, d), "log_noise_variance": ()}
    shapes = {**log_parameters, "log_density": (), "log_evidence": (), "dual_coef": (n,)}
    check_draws(common.draws, shapes, tuple(log_parameters))
    # |a| = |C^-1 y| is at most |y| over the floor of the noise: so no prediction overflows.
    functions = function_draws(common.draws, X, kernel, intercept)
    signal = np.array([kernel.diagonal(theta, X).mean() for theta in functions.theta])
    largest = (np.abs(functions.dual_coef).max(axis=1) * (1.0 + signal)).max()
    require(bool(largest <= 1.01 * np.linalg.norm(y) / NOISE_FLOOR), "draws of dual_coef")
    return common, X, y, TargetScale(centre, scale), intercept
