"""Matern covariances of half-integer smoothness with one weight per input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from mercer.errors import UsageError
from mercer.kernels.base import VARIANCE, WEIGHTS, Array, Kernel, Parameter
from mercer.kernels.rows import row_blocks, scaled_rows

__all__ = ["MaternARD"]

_SMOOTHNESS = (0.5, 1.5, 2.5)
_FAR = 800.0  # exp(-_FAR) is 0 in double precision; keeps a polynomial times 0 finite


@dataclass(frozen=True)
class MaternARD(Kernel):
    """Matern covariance of r = sqrt(sum_l w_l (x_l - x'_l)^2), theta = log(v0, w_1, .., w_d).

    With a = sqrt(2 nu) r and nu the smoothness:

    ====  ================================
    nu    C(x, x')
    ====  ================================
    1/2   v0 exp(-a)
    3/2   v0 (1 + a) exp(-a)
    5/2   v0 (1 + a + a^2 / 3) exp(-a)
    ====  ================================

    Attributes
    ----------
    smoothness : {0.5, 1.5, 2.5}
        nu; functions are differentiable ceil(nu) - 1 times.

    Notes
    -----
    w_l is an inverse squared length scale, in units of the input. Distances come from differences,
    not from products, and the first row is subtracted before scaling: a common offset costs no
    digits. Cost O(n m d); memory beyond the result is one block of rows.
    """

    smoothness: float

    def __post_init__(self) -> None:
        if self.smoothness not in _SMOOTHNESS:
            raise UsageError(f"smoothness must be 0.5, 1.5 or 2.5; got {self.smoothness!r}")

    def parameters(self) -> tuple[Parameter, ...]:
        """One variance and one weight per input."""
        return VARIANCE, WEIGHTS

    def gram(self, theta: Array, X: Array, out: Array | None = None) -> Array:
        """Covariances of all pairs of rows."""
        Xs = scaled_rows(theta[1:], X, X)
        return self._covariances(theta, Xs, Xs, out)

    def cross_gram(self, theta: Array, X: Array, Z: Array) -> Array:
        """Covariances of the rows of X with those of Z."""
        return self._covariances(
            theta, scaled_rows(theta[1:], X, Z), scaled_rows(theta[1:], Z, Z), None
        )

    def diagonal(self, theta: Array, X: Array) -> Array:
        """The variance v0, the same for every row."""
        return np.full(len(X), np.exp(theta[0]))

    def gradient(self, theta: Array, X: Array, K: Array, A: Array) -> Array:
        """With H = A * (-C'(r) / r): d/dlog w_l is -1/2 sum_ij H_ij w_l (x_il - x_jl)^2.

        Notes
        -----
        The squared differences are formed one input at a time and not from products: at
        smoothness 1/2 the factor 1/r of rows that almost repeat would lift their rounding errors.
        """
        Xs = scaled_rows(theta[1:], X, X)
        gradient = np.zeros(len(theta))
        gradient[0] = np.vdot(A, K)
        for rows in row_blocks(len(Xs), len(Xs)):
            H = self._minus_slope(cdist(Xs[rows], Xs))
            H *= A[rows]
            for k, column in enumerate(Xs.T, start=1):
                D = column[rows, np.newaxis] - column
                D *= D
                gradient[k] -= np.vdot(H, D)
        gradient[1:] *= 0.5 * np.exp(theta[0])
        return gradient

    def _covariances(self, theta: Array, Xs: Array, Zs: Array, out: Array | None) -> Array:
        """Fill ``out``, or a new array, from rows in units of the length scales."""
        K = np.empty((len(Xs), len(Zs))) if out is None else out
        variance = np.exp(theta[0])
        for rows in row_blocks(*K.shape):
            K[rows] = self._correlation(cdist(Xs[rows], Zs))
            K[rows] *= variance
        return K

    def _correlation(self, r: Array) -> Array:
        """C(r) / v0; r is overwritten."""
        a = self._rate_times(r)
        decay = np.exp(-a)
        if self.smoothness == 1.5:
            decay *= 1.0 + a
        elif self.smoothness == 2.5:
            decay *= 1.0 + a * (1.0 + a / 3.0)
        return np.asarray(decay)

    def _minus_slope(self, r: Array) -> Array:
        """-C'(r) / (r v0), and 0 for r = 0, where it is multiplied by 0; r is overwritten."""
        nu = self.smoothness
        if nu == 0.5:
            slope = np.exp(-r)
            return np.divide(slope, r, out=np.zeros_like(r), where=r > 0.0)
        a = self._rate_times(r)
        slope = np.exp(-a)
        if nu == 2.5:
            slope *= 1.0 + a
        slope *= nu / (nu - 1.0)  # 3 for 3/2, 5/3 for 5/2
        return np.asarray(slope)

    def _rate_times(self, r: Array) -> Array:
        """Overwrite r by a = sqrt(2 nu) r, at most `_FAR`."""
        r *= np.sqrt(2.0 * self.smoothness)
        return np.minimum(r, _FAR, out=r)
