"""Predictions from exact draws, and Laplace's from the same draws.

**Exact.** Given theta and the latent values f of the training rows, the function at a new row is
normal: mean k'K^-1 f, variance k** - k'K^-1 k, the nugget in K. The logistic is averaged over that
normal distribution, then over draws of (theta, f).

**Laplace's, reweighted.** A draw of the exact chain comes with its estimate Zhat(theta, u), u the
random numbers that the estimate was made of; its law is p(theta) Zhat(theta, u) g(u) up to a
constant. With weights exp(-rho) = Z_LA(theta)/Zhat(theta, u) the average of h(theta) tends to

    int p(theta) Z_LA(theta) h(theta) int g(u) du dtheta / int p(theta) Z_LA(theta) dtheta:

Laplace's posterior itself, whatever the noise of the estimates. So two predictions can be compared
without a second chain, and chance changes both in the same direction.

**Cost.** A factor of n x n a draw, and O(n^2) a draw and new row, for each of the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer.gp.binary.predict import FunctionMoments
from mercer.gp.exact.nugget import add_nugget, lower_factor
from mercer.kernels.base import Kernel
from mercer.numerics.cholesky import solve_lower
from mercer.numerics.logistic_normal import expected_logistic
from mercer.numerics.workspace import Workspace

__all__ = [
    "ExactDraws",
    "draw_probabilities",
    "laplace_weights",
]

Array = NDArray[np.float64]

_BLOCK = 512  # rows predicted at a time


@dataclass(frozen=True, eq=False)
class ExactDraws:
    """Draws of hyperparameters and latent values from the exact posterior.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Standardised training inputs.
    kernel : Kernel
    theta : ndarray of shape (S, p)
        Log parameters of the kernel, one row a draw.
    coef : ndarray of shape (S, n)
        "exact_coef": K^-1 f, nugget in K.
    """

    X: Array
    kernel: Kernel
    theta: Array
    coef: Array

    def moments(self, X: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Yield (rows, mean, variance) of f at rows of X (m, d), for every draw and block.

        One BLAS thread, so that the bits do not depend on the machine's load.
        """
        with threadpool_limits(limits=1, user_api="blas"):
            yield from self._moments(X)

    def _moments(self, X: Array) -> Iterator[tuple[slice, Array, Array]]:
        scratch = Workspace()
        for theta, coef in zip(self.theta, self.coef, strict=True):
            K = self.kernel.gram(theta, self.X, out=scratch.take("gram", len(self.X)))
            add_nugget(K)
            L = lower_factor(K)
            for begin in range(0, len(X), _BLOCK):
                rows = slice(begin, begin + _BLOCK)
                cross = self.kernel.cross_gram(theta, X[rows], self.X)
                V = solve_lower(L, cross.T)
                explained = np.einsum("ij,ij->j", V, V)
                variance = self.kernel.diagonal(theta, X[rows]) - explained
                yield rows, cross @ coef, np.maximum(variance, 0.0)


def draw_probabilities(draws: FunctionMoments, X: Array) -> Iterator[Array]:
    """Yield the probabilities of target 1 at rows X (m, d), shape (m,), draw after draw."""
    proba = np.empty(len(X))
    for rows, mean, variance in draws.moments(X):
        proba[rows] = expected_logistic(mean, variance)
        if rows.start + len(mean) == len(X):
            yield proba.copy()


def laplace_weights(log_errors: Array) -> Array:
    """Turn Laplace's errors rho (S,), in nats, into weights exp(-rho) with mean 1."""
    weights = np.exp(log_errors.min() - log_errors)
    return np.asarray(weights / weights.mean())
