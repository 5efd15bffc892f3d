"""The linear covariance, which has as many features as there are inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.kernels.base import VARIANCE, Array, Kernel, Parameter

__all__ = ["Linear"]


@dataclass(frozen=True)
class Linear(Kernel):
    """C(x, x') = v0 x.x', theta = [log v0]: linear functions through the origin.

    Notes
    -----
    Its rank is the number of inputs: `features` has the same products without a Gram matrix.
    """

    def parameters(self) -> tuple[Parameter, ...]:
        """One variance."""
        return (VARIANCE,)

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

    def gradient(self, theta: Array, X: Array, K: Array, A: Array) -> Array:
        """d/dlog v0 is the sum of A * K."""
        return np.array([np.vdot(A, K)])

    def features(self, theta: Array, X: Array) -> Array:
        """Exact features sqrt(v0) X of shape (n, d): their products are the Gram matrix."""
        return np.asarray(np.exp(0.5 * theta[0]) * X)
