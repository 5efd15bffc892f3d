"""The constant covariance: a level that all rows share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.kernels.base import VARIANCE, Array, Kernel, Parameter

__all__ = ["Constant"]


@dataclass(frozen=True)
class Constant(Kernel):
    """C(x, x') = v0, theta = [log v0]: an unknown level, normal with variance v0."""

    def parameters(self) -> tuple[Parameter, ...]:
        """One variance."""
        return (VARIANCE,)

    def gram(self, theta: Array, X: Array, out: Array | None = None) -> Array:
        """The variance v0 for all pairs of rows."""
        K = np.empty((len(X), len(X))) if out is None else out
        K[:] = np.exp(theta[0])
        return K

    def cross_gram(self, theta: Array, X: Array, Z: Array) -> Array:
        """The variance v0 for all pairs of rows."""
        return np.full((len(X), len(Z)), np.exp(theta[0]))

    def diagonal(self, theta: Array, X: Array) -> Array:
        """The variance v0, the same for every row."""
        return np.full(len(X), np.exp(theta[0]))

    def gradient(self, theta: Array, X: Array, K: Array, A: Array) -> Array:
        """d/dlog v0 is the sum of A * K."""
        return np.array([np.vdot(A, K)])
