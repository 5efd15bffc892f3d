"""Exponents of times."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["slope"]

Array = NDArray[np.float64]


def slope(sizes: Array, values: Array) -> float:
    """Exponent of the power law that fits best, by least squares on logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])
