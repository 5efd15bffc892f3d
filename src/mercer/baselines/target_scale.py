"""Mean and spread of the numbers that a baseline predicts, for targets of any size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["TargetScale"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TargetScale:
    """y = largest (mean + std u), with u of mean 0 and standard deviation 1."""

    largest: float
    mean: float
    std: float

    @classmethod
    def of(cls, y: Array) -> TargetScale:
        """Learn the scale; that of a constant target is 0, so that its prediction is exact."""
        largest = float(np.abs(y).max()) or 1.0
        u = y / largest
        if np.ptp(u) == 0.0:
            return cls(largest, float(u[0]), 0.0)
        return cls(largest, float(u.mean()), float(u.std()))

    def standardise(self, y: Array) -> Array:
        """From the user's units to u."""
        return np.asarray((y / self.largest - self.mean) / (self.std or 1.0))

    def restore(self, u: Array) -> Array:
        """Back to the user's units, kept finite."""
        with np.errstate(over="ignore"):
            y = self.largest * (self.mean + self.std * u)
        return np.nan_to_num(y)
