"""The covariance of a classifier: a kernel by name, object, callable or matrix, plus a constant.

The scale makes the mean variance of the training rows 1, so that the nugget and the constant mean
the same for every kernel. The constant is what an intercept with a unit normal prior adds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from mercer.errors import DataError
from mercer.kernels.base import Kernel

__all__ = ["Covariance", "fit_covariance", "kernel_parameters", "median_distance", "precomputed"]

Array = NDArray[np.float64]
Callable2 = Callable[[Array, Array], Any]

# Pairs of rows that the median distance is taken from: a subset of the rows has so many.
_MEDIAN_ROWS = 1000


@dataclass(frozen=True)
class Covariance:
    """C(x, z) = kernel(x, z) / scale + constant.

    Attributes
    ----------
    kernel : Kernel, callable or None
        A callable takes two matrices of rows and returns the matrix of all pairs; None where
        Gram matrices take the place of rows.
    theta : ndarray of shape (p,)
        Log parameters of a Kernel.
    scale, constant : float
    """

    kernel: Kernel | Callable2 | None
    theta: Array
    scale: float
    constant: float

    def gram(self, X: Array) -> Array:
        """All pairs of rows of X: shape (n, n)."""
        K = self.kernel.gram(self.theta, X) if isinstance(self.kernel, Kernel) else self._raw(X, X)
        return np.asarray(K / self.scale + self.constant)

    def cross(self, X: Array, Z: Array) -> Array:
        """Rows of X with those of Z: shape (n, m)."""
        if isinstance(self.kernel, Kernel):
            K = self.kernel.cross_gram(self.theta, X, Z)
        else:
            K = self._raw(X, Z)
        return np.asarray(K / self.scale + self.constant)

    def diagonal(self, X: Array) -> Array | None:
        """Variances of rows, shape (n,); None for a Gram matrix of new rows, which has none."""
        if self.kernel is None:
            return None
        if isinstance(self.kernel, Kernel):
            raw = self.kernel.diagonal(self.theta, X)
        elif hasattr(self.kernel, "diag"):  # as the kernels of scikit-learn
            raw = np.asarray(self.kernel.diag(X), dtype=np.float64)
        else:
            raw = np.array([self._raw(x[np.newaxis], x[np.newaxis])[0, 0] for x in X])
        return np.asarray(raw / self.scale + self.constant)

    def _raw(self, X: Array, Z: Array) -> Array:
        if self.kernel is None:
            return X
        assert callable(self.kernel)
        K = np.asarray(self.kernel(X, Z), dtype=np.float64)
        if K.shape != (len(X), len(Z)):
            raise DataError(
                f"the kernel returned shape {K.shape} for {len(X)} and {len(Z)} rows; a callable "
                "takes two matrices of rows and returns the matrix of all pairs"
            )
        return K


def fit_covariance(
    kernel: Kernel | Callable2, lengthscale: float | None, X: Array, constant: float
) -> Covariance:
    """Scale a kernel so that the training rows X have mean variance 1.

    Parameters
    ----------
    kernel : Kernel or callable
    lengthscale : float or None
        In units of X; only a Kernel that has one takes it.
    X : ndarray of shape (n, d)
    constant : float
        Variance of the intercept.

    Raises
    ------
    DataError
        If no row has a variance above 0.
    """
    theta = np.empty(0)
    if isinstance(kernel, Kernel):
        theta = kernel_parameters(kernel, lengthscale, X.shape[1])
    plain = Covariance(kernel, theta, 1.0, 0.0)
    variances = plain.diagonal(X)
    assert variances is not None
    scale = float(np.mean(variances))
    if not (np.isfinite(scale) and scale > 0.0):
        if constant > 0.0 and scale == 0.0:
            return Covariance(kernel, theta, 1.0, constant)
        raise DataError(f"the kernel gives the rows a mean variance of {scale}: it must be above 0")
    return Covariance(kernel, theta, scale, constant)


def kernel_parameters(kernel: Kernel, lengthscale: float | None, n_inputs: int) -> Array:
    """Log parameters of unit variance and one length scale for all inputs, where it has one."""
    theta = np.zeros(kernel.n_parameters(n_inputs))
    if kernel.has_lengthscale:
        assert lengthscale is not None
        theta[1:] = -2.0 * np.log(lengthscale)
    return theta


def precomputed(G: Array) -> Covariance:
    """Take rows of a Gram matrix in the place of inputs.

    Raises
    ------
    DataError
        If G, shape (n, n), is not symmetric or has no variance above 0.
    """
    if G.ndim != 2 or G.shape[0] != G.shape[1]:
        raise DataError(f"a precomputed Gram matrix is square; got shape {G.shape}")
    if not np.allclose(G, G.T, rtol=1e-6, atol=1e-8 * np.abs(G).max()):
        raise DataError("a precomputed Gram matrix is symmetric; this one is not")
    scale = float(np.mean(np.diagonal(G)))
    if not scale > 0.0:
        raise DataError(f"the Gram matrix has a mean diagonal of {scale}: it must be above 0")
    return Covariance(None, np.empty(0), scale, 0.0)


def median_distance(X: Array) -> float:
    """Median of the distances between rows, evenly spaced ones where there are many; 1 if 0."""
    positions = np.linspace(0, len(X) - 1, min(len(X), _MEDIAN_ROWS)).round().astype(int)
    distances = pdist(X[positions])
    distances = distances[distances > 0.0]
    return float(np.median(distances)) if len(distances) else 1.0
