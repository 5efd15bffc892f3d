"""Losses of linear functions of features, with their gradients.

Each takes functions f (n, q) and targets t (n, q) and returns the loss, summed over rows, and its
derivatives with respect to f.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

__all__ = ["Loss", "logistic", "softmax", "squared"]

Array = NDArray[np.float64]
Loss = Callable[[Array, Array], tuple[float, Array]]


def squared(f: Array, t: Array) -> tuple[float, Array]:
    """Half the sum of squares."""
    residuals = f - t
    return 0.5 * float(np.vdot(residuals, residuals)), residuals


def logistic(f: Array, t: Array) -> tuple[float, Array]:
    """Negative log likelihood of two classes, t being 0 or 1: q = 1."""
    return float(np.logaddexp(0.0, f).sum() - np.vdot(t, f)), expit(f) - t


def softmax(f: Array, t: Array) -> tuple[float, Array]:
    """Negative log likelihood of q classes; t is 1 in the column of a row's class."""
    log_total = logsumexp(f, axis=1, keepdims=True)
    return float(log_total.sum() - np.vdot(t, f)), np.exp(f - log_total) - t
