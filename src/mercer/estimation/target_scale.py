"""Centre and scale of a regressor's targets, learned on the training rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.errors import DataError, MercerWarning

__all__ = ["TargetScale", "scale_target"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TargetScale:
    """y -> (y - centre) / scale, in units of the target."""

    centre: float
    scale: float

    def transform(self, y: Array) -> Array:
        """Standardise targets."""
        return (y - self.centre) / self.scale


def scale_target(y: Array) -> TargetScale:
    """Learn mean and standard deviation of finite targets.

    Warns
    -----
    MercerWarning
        If all targets are the same.

    Raises
    ------
    DataError
        If the targets are too large to compute with.
    """
    if np.ptp(y) == 0.0:
        warnings.warn(
            "the target is constant, and so is the prediction", MercerWarning, stacklevel=4
        )
        return TargetScale(float(y[0]), 1.0)
    largest = float(np.abs(y).max())
    centre = float((y / largest).mean()) * largest
    deviations = y / largest - centre / largest
    scale = float(deviations.std()) * largest
    if not (np.isfinite(scale) and scale > 1e-150) or largest > 1e150:
        raise DataError("the target's values are too large or too small; rescale them")
    return TargetScale(centre, scale)
