"""Squared exponential covariance with one weight per input (automatic relevance determination)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.kernels.base import VARIANCE, WEIGHTS, Array, Kernel, Parameter
from mercer.kernels.compiled import exponent_from_products
from mercer.kernels.rows import half_scatter, scaled_rows

__all__ = ["SquaredExponentialARD"]


@dataclass(frozen=True)
class SquaredExponentialARD(Kernel):
    """C(x, x') = v0 exp(-1/2 sum_l w_l (x_l - x'_l)^2), theta = log(v0, w_1, .., w_d).

    Notes
    -----
    Eq. (8) of Barber & Williams. w_l is an inverse squared length scale, in units of the input.
    The first row is subtracted before products are formed: a common offset costs no digits.
    """

    def parameters(self) -> tuple[Parameter, ...]:
        """One variance and one weight per input."""
        return VARIANCE, WEIGHTS

    def gram(self, theta: Array, X: Array, out: Array | None = None) -> Array:
        """Eq. (8) for all pairs of rows; cost O(n^2 d), one product."""
        Xs = scaled_rows(theta[1:], X, X)
        K = np.matmul(Xs, Xs.T, out=out)
        half_norms = 0.5 * K.diagonal()
        exponent_from_products(K, half_norms, half_norms, theta[0])
        return np.asarray(np.exp(K, out=K))

    def cross_gram(self, theta: Array, X: Array, Z: Array) -> Array:
        """Eq. (8) for the rows of X against those of Z; cost O(n m d)."""
        Xs, Zs = scaled_rows(theta[1:], X, Z), scaled_rows(theta[1:], Z, Z)
        K = Xs @ Zs.T
        x = 0.5 * np.einsum("ij,ij->i", Xs, Xs)
        z = 0.5 * np.einsum("ij,ij->i", Zs, Zs)
        exponent_from_products(K, x, z, theta[0])
        return np.exp(K, out=K)

    def diagonal(self, theta: Array, X: Array) -> Array:
        """The variance v0, the same for every row."""
        return np.full(len(X), np.exp(theta[0]))

    def gradient(self, theta: Array, X: Array, K: Array, A: Array) -> Array:
        """With H = A * K, h = H 1: d/dlog v0 is sum h, others -w_l `half_scatter`(H, h, X)_l."""
        H = np.multiply(A, K, out=A)
        h = H @ np.ones(len(H))
        return np.concatenate(([h.sum()], -np.exp(theta[1:]) * half_scatter(H, h, X)))
