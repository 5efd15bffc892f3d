"""Kernels of every kind, and their covariances written out pair by pair."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mercer.kernels.base import Kernel

__all__ = ["difference_gradient", "gradient_error", "plain_covariances"]


def plain_covariances(
    formula: Callable[[np.ndarray, np.ndarray], float], X: np.ndarray, Z: np.ndarray
) -> np.ndarray:
    """One call of the formula for each pair of rows."""
    return np.array([[formula(x, z) for z in Z] for x in X])


def difference_gradient(
    kernel: Kernel, theta: np.ndarray, X: np.ndarray, A: np.ndarray, h: float = 1e-3
) -> np.ndarray:
    """Derivatives of the sum of A * gram by differences of five points."""
    result = np.empty(len(theta))
    for k in range(len(theta)):
        shift = h * (np.arange(len(theta)) == k)
        g = [math.fsum((A * kernel.gram(theta + m * shift, X)).ravel()) for m in (-2, -1, 1, 2)]
        result[k] = (g[0] - 8.0 * g[1] + 8.0 * g[2] - g[3]) / (12.0 * h)
    return result


def gradient_error(kernel: Kernel, theta: np.ndarray, X: np.ndarray, A: np.ndarray) -> float:
    """Largest error of the gradient, relative to the largest derivative."""
    expected = difference_gradient(kernel, theta, X, A)
    seen = kernel.gradient(theta, X, kernel.gram(theta, X), A.copy())
    assert seen.shape == theta.shape
    return float(np.abs(seen - expected).max() / np.abs(expected).max())
