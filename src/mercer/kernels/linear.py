"""Kernels with finitely many features: constant, linear, polynomial.

The linear covariance, which has as many features as there are inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.errors import UsageError
from mercer.kernels.base import VARIANCE, Array, Kernel, Parameter, Stationary, shortened_rows

__all__ = ["Constant", "Linear", "Polynomial"]


class _VarianceOnly(Kernel):
    """Base of kernels whose theta is the log variance and nothing else."""

    def parameters(self) -> tuple[Parameter, ...]:
        """One variance."""
        return (VARIANCE,)

    def gradient(self, theta: Array, X: Array, K: Array, A: Array) -> Array:
        """d/dlog v0 is the sum of A * K."""
        return np.array([np.vdot(A, K)])


# The constant covariance: a level that all rows share.


@dataclass(frozen=True)
class Constant(_VarianceOnly, Stationary):
    """C(x, x') = v0, theta = [log v0]: an unknown level, normal with variance v0."""

    def gram(self, theta: Array, X: Array, out: Array | None = None) -> Array:
        """The variance v0 for all pairs of rows."""
        K = np.empty((len(X), len(X))) if out is None else out
        K[:] = np.exp(theta[0])
        return K

    def cross_gram(self, theta: Array, X: Array, Z: Array) -> Array:
        """The variance v0 for all pairs of rows."""
        return np.full((len(X), len(Z)), np.exp(theta[0]))


@dataclass(frozen=True)
class Linear(_VarianceOnly):
    """C(x, x') = v0 x.x', theta = [log v0]: linear functions through the origin.

    Notes
    -----
    Its rank is the number of inputs: `features` has the same products without a Gram matrix.
    """

    @property
    def growth(self) -> int:
        """The degree of the polynomial."""
        return 1

    def gram(self, theta: Array, X: Array, out: Array | None = None) -> Array:
        """All pairs of rows; cost O(n^2 d), one product."""
        K = np.matmul(X, X.T, out=out)
        K *= np.exp(theta[0])
        return np.asarray(K)

    def cross_gram(self, theta: Array, X: Array, Z: Array) -> Array:
        """Rows of X against those of Z; cost O(n m d)."""
        K = X @ Z.T
        K *= np.exp(theta[0])
        return np.asarray(K)

    def diagonal(self, theta: Array, X: Array) -> Array:
        """v0 times the squared norms of the rows."""
        return np.asarray(np.exp(theta[0]) * np.einsum("ij,ij->i", X, X))

    def features(self, theta: Array, X: Array) -> Array:
        """Exact features sqrt(v0) X of shape (n, d): their products are the Gram matrix."""
        return np.asarray(np.exp(0.5 * theta[0]) * X)


# The polynomial covariance.

_LARGEST_DEGREE = 20


@dataclass(frozen=True)
class Polynomial(_VarianceOnly):
    """C(x, x') = v0 (1 + x.x' / d)^degree, theta = [log v0], d the number of inputs.

    Attributes
    ----------
    degree : int, default 2
        From 1 to 20.

    Notes
    -----
    Division by d keeps the variance of a standardised row near v0 2^degree for any number of
    inputs. A row longer than sqrt(d) 10^(100 / degree) is shortened to that length before
    anything is computed: covariances stay finite, and the matrix positive semidefinite.
    """

    degree: int = 2

    def __post_init__(self) -> None:
        is_whole = isinstance(self.degree, int) and not isinstance(self.degree, bool)
        if not is_whole or not 1 <= self.degree <= _LARGEST_DEGREE:
            raise UsageError(
                f"degree must be an integer from 1 to {_LARGEST_DEGREE}; got {self.degree!r}"
            )

    @property
    def growth(self) -> int:
        """The degree of the polynomial."""
        return self.degree

    def gram(self, theta: Array, X: Array, out: Array | None = None) -> Array:
        """All pairs of rows; cost O(n^2 d), one product."""
        C = shortened_rows(X, self.degree)
        return self._raised(theta, np.matmul(C, C.T, out=out), X.shape[1])

    def cross_gram(self, theta: Array, X: Array, Z: Array) -> Array:
        """Rows of X against those of Z; cost O(n m d)."""
        S = shortened_rows(X, self.degree) @ shortened_rows(Z, self.degree).T
        return self._raised(theta, S, X.shape[1])

    def diagonal(self, theta: Array, X: Array) -> Array:
        """Variances v0 (1 + |x|^2 / d)^degree."""
        C = shortened_rows(X, self.degree)
        return self._raised(theta, np.einsum("ij,ij->i", C, C), X.shape[1])

    def _raised(self, theta: Array, S: Array, d: int) -> Array:
        """Overwrite the products S by the covariances."""
        S /= d
        S += 1.0
        S **= self.degree
        S *= np.exp(theta[0])
        return S
