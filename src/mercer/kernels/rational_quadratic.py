"""Rational quadratic covariance with one weight per input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from mercer.kernels.base import VARIANCE, WEIGHTS, Array, Kernel, Parameter
from mercer.kernels.rows import half_scatter, row_blocks, scaled_rows

__all__ = ["RationalQuadraticARD"]

_SHAPE = Parameter("log_shape", "shape", per_input=False)


@dataclass(frozen=True)
class RationalQuadraticARD(Kernel):
    """C(x, x') = v0 (1 + s / alpha)^-alpha, s = 1/2 sum_l w_l (x_l - x'_l)^2.

    ==========================  =======================================
    theta                       log(v0, w_1, .., w_d, alpha)
    d log C / d log w_l         -w_l (x_l - x'_l)^2 / (2 (1 + s / alpha))
    d log C / d log alpha       -alpha log(1 + s / alpha) + s / (1 + s / alpha)
    ==========================  =======================================

    Notes
    -----
    Eq. (4.19) of [1]_: squared exponentials of many length scales, those of the inverse squares
    w tau with tau from a gamma law of shape alpha and mean 1. It tends to the squared exponential
    for large alpha, without loss of digits. Cost O(n m d); memory beyond the result is one block
    of rows, and in `gradient` a copy of the rows.

    References
    ----------
    .. [1] Rasmussen & Williams, Gaussian Processes for Machine Learning, MIT Press 2006.
    """

    def parameters(self) -> tuple[Parameter, ...]:
        """One variance, one weight per input, and alpha."""
        return VARIANCE, WEIGHTS, _SHAPE

    def gram(self, theta: Array, X: Array, out: Array | None = None) -> Array:
        """Covariances of all pairs of rows."""
        Xs = scaled_rows(theta[1:-1], X, X)
        return _covariances(theta, Xs, Xs, out)

    def cross_gram(self, theta: Array, X: Array, Z: Array) -> Array:
        """Covariances of the rows of X with those of Z."""
        Xs, Zs = scaled_rows(theta[1:-1], X, Z), scaled_rows(theta[1:-1], Z, Z)
        return _covariances(theta, Xs, Zs, None)

    def diagonal(self, theta: Array, X: Array) -> Array:
        """The variance v0, the same for every row."""
        return np.full(len(X), np.exp(theta[0]))

    def gradient(self, theta: Array, X: Array, K: Array, A: Array) -> Array:
        """With H = A * K / (1 + s / alpha): d/dlog w_l is -w_l `half_scatter`(H, H 1, X)_l."""
        Xs, alpha = scaled_rows(theta[1:-1], X, X), np.exp(theta[-1])
        H = np.multiply(A, K, out=A)
        gradient = np.empty(len(theta))
        gradient[0], gradient[-1] = H.sum(), 0.0
        for rows in row_blocks(len(Xs), len(Xs)):
            ratio = _ratio(alpha, Xs[rows], Xs)
            log_rate = np.log1p(ratio)
            ratio /= 1.0 + ratio
            log_rate -= ratio
            gradient[-1] -= alpha * np.vdot(H[rows], log_rate)
            H[rows] -= ratio * H[rows]  # 1 / (1 + r) = 1 - r / (1 + r)
        gradient[1:-1] = -np.exp(theta[1:-1]) * half_scatter(H, H @ np.ones(len(H)), X)
        return gradient


def _covariances(theta: Array, Xs: Array, Zs: Array, out: Array | None) -> Array:
    """Fill ``out``, or a new array, from rows in units of the length scales."""
    K = np.empty((len(Xs), len(Zs))) if out is None else out
    alpha = np.exp(theta[-1])
    for rows in row_blocks(*K.shape):
        exponent = np.log1p(_ratio(alpha, Xs[rows], Zs))
        exponent *= -alpha
        exponent += theta[0]
        np.exp(exponent, out=K[rows])
    return K


def _ratio(alpha: float, Xs: Array, Zs: Array) -> Array:
    """s / alpha: half the squared distances over alpha."""
    return np.asarray(cdist(Xs, Zs, "sqeuclidean") / (2.0 * alpha))
