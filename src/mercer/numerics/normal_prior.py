"""Independent normal distributions over a vector of unconstrained parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

__all__ = ["NormalPrior"]


@dataclass(frozen=True)
class NormalPrior:
    """Independent normals: ``mean`` and ``std`` of shape (p,)."""

    mean: NDArray[np.float64]
    std: NDArray[np.float64]

    def log_density(self, theta: NDArray[np.float64]) -> float:
        """Log density without its constant: -1/2 sum ((theta - mean)/std)^2."""
        z = (theta - self.mean) / self.std
        return float(-0.5 * (z @ z))

    def gradient(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Gradient of the log density, shape (p,)."""
        return (self.mean - theta) / self.std**2

    def interval(self, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Central interval of probability ``level``: lower and upper ends of shape (p,)."""
        half = float(ndtri(0.5 + 0.5 * level)) * self.std
        return self.mean - half, self.mean + half
