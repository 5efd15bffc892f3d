"""Predictions of a GP classifier: one draw after the other, blocks of rows within.

Memory is a few n x n arrays and one block of rows, however many draws and rows there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer.gp.binary.laplace import curvature_factor
from mercer.kernels.base import Kernel
from mercer.numerics.cholesky import solve_lower
from mercer.numerics.logistic_normal import expected_logistic
from mercer.numerics.workspace import Workspace

__all__ = ["FunctionMoments", "LatentDraws", "latent_moments", "success_probability"]

Array = NDArray[np.float64]

_BLOCK = 512  # rows predicted at a time


class FunctionMoments(Protocol):
    """Draws that say how f is distributed at new rows: `LatentDraws`, or draws of f itself."""

    def moments(self, X: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Yield (rows, mean, variance) of f at rows of X, for every draw and block of rows."""
        ...


@dataclass(frozen=True)
class LatentDraws:
    """What the latent function of each draw is computed from.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Standardised training inputs.
    y : ndarray of shape (n,)
        Training targets, 0.0 or 1.0.
    kernel : Kernel
    theta : ndarray of shape (n_total, p)
        Log parameters of the kernel, one row a draw.
    dual_coef : ndarray of shape (n_total, n)
        y - pi at the mode.
    mean_coef : ndarray of shape (n_total, n)
        Coefficients of the predictive mean: ``dual_coef``, or that plus its correction.
    """

    X: Array
    y: Array
    kernel: Kernel
    theta: Array
    dual_coef: Array
    mean_coef: Array

    def moments(self, X: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Yield (rows, mean, variance) of f at rows of X, for every draw and block.

        Notes
        -----
        Mean k'(a + t q), variance k** - |L^-1 W^.5 k|^2: k'R k with R = W^.5 B^-1 W^.5, which is
        safe where W vanishes. The paper's mean is k'a. One BLAS thread, so that the bits do not
        depend on the machine's load.
        """
        with threadpool_limits(limits=1, user_api="blas"):
            yield from self._moments(X)

    def _moments(self, X: Array) -> Iterator[tuple[slice, Array, Array]]:
        n = len(self.y)
        scratch = Workspace()
        for theta, a, mean_coef in zip(self.theta, self.dual_coef, self.mean_coef, strict=True):
            K = self.kernel.gram(theta, self.X, out=scratch.take("gram", n))
            L, root_weights = curvature_factor(K, a, self.y, scratch.take("factor", n))
            for begin in range(0, len(X), _BLOCK):
                rows = slice(begin, begin + _BLOCK)
                cross = self.kernel.cross_gram(theta, X[rows], self.X)
                V = solve_lower(L, (cross * root_weights).T)
                explained = np.einsum("ij,ij->j", V, V)
                variance = self.kernel.diagonal(theta, X[rows]) - explained
                yield rows, cross @ mean_coef, np.maximum(variance, 0.0)


def success_probability(draws: FunctionMoments, X: Array) -> Array:
    """Probability of target 1, averaged over the latent value and over draws (eq. 9)."""
    count, total = np.zeros(len(X)), np.zeros(len(X))
    for rows, mean, variance in draws.moments(X):
        count[rows] += 1.0
        total[rows] += expected_logistic(mean, variance)
    return total / count


def latent_moments(draws: FunctionMoments, X: Array) -> tuple[Array, Array]:
    """Posterior mean and variance of f: mean of variances plus variance of means."""
    count = np.zeros(len(X))
    mean, spread, variance = np.zeros(len(X)), np.zeros(len(X)), np.zeros(len(X))
    for rows, m, v in draws.moments(X):
        count[rows] += 1.0
        step = m - mean[rows]
        mean[rows] += step / count[rows]
        spread[rows] += step * (m - mean[rows])
        variance[rows] += v
    return mean, (variance + spread) / count
