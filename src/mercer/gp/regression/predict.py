"""Predictions of a GP regressor: one draw after the other, blocks of rows within.

Given a draw of the hyperparameters the function at new rows is normal: mean k'a, variance
k** - |L^-1 k|^2 with L L' = K + s2 I, every covariance with the prior variance of the intercept
added. The mean is averaged over all draws, whose a are kept; of the spread, which takes a
factorisation for each draw, over 256 draws at most, evenly spaced.

Cost, n training and m new rows: the mean O(n m) a draw, the spread O(n^3 + n^2 m) a draw. Memory
is two n x n arrays and a block of rows, however many draws there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer.gp.parameters import stacked_parameters
from mercer.gp.regression.evidence import noisy_factor
from mercer.gp.regression.model import whole_noise_variance
from mercer.kernels.base import Kernel
from mercer.numerics.cholesky import solve_lower
from mercer.numerics.workspace import Workspace
from mercer.posterior.draws import Draws

__all__ = ["FunctionDraws", "function_draws"]

Array = NDArray[np.float64]

_BLOCK = 512  # rows predicted at a time
_SPREAD_DRAWS = 256


@dataclass(frozen=True, eq=False)
class FunctionDraws:
    """Draws of the law of the function, on standardised inputs and targets.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Training inputs.
    kernel : Kernel
    theta : ndarray of shape (S, p)
        Log parameters of the kernel, one row a draw.
    noise_variance : ndarray of shape (S,)
        With its floor.
    dual_coef : ndarray of shape (S, n)
    intercept_variance : float
        Prior variance of the intercept, which is part of the function; 0: there is none.
    """

    X: Array
    kernel: Kernel
    theta: Array
    noise_variance: Array
    dual_coef: Array
    intercept_variance: float = 0.0

    @cached_property
    def of_spread(self) -> NDArray[np.int64]:
        """Positions of the draws that the spread is averaged over."""
        n_total = len(self.theta)
        return np.unique(np.linspace(0, n_total - 1, min(n_total, _SPREAD_DRAWS)).astype(np.int64))

    def expected(self, X: Array) -> Array:
        """Posterior mean of the function at rows X (m, d), shape (m,)."""
        total = np.zeros(len(X))
        with threadpool_limits(limits=1, user_api="blas"):
            for theta, a in zip(self.theta, self.dual_coef, strict=True):
                for rows in _blocks(len(X)):
                    total[rows] += self._cross(theta, X[rows]) @ a
        return total / len(self.theta)

    def moments(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the function at rows X (m, d), both (m, C), for C draws."""
        n, chosen = len(self.X), self.of_spread
        means, variances = np.empty((len(chosen), len(X))), np.empty((len(chosen), len(X)))
        scratch = Workspace()
        with threadpool_limits(limits=1, user_api="blas"):
            for c, i in enumerate(chosen):
                theta = self.theta[i]
                K = self.kernel.gram(theta, self.X, out=scratch.take("gram", n))
                L = self._factor(i, K, scratch)
                for rows in _blocks(len(X)):
                    cross = self._cross(theta, X[rows])
                    V = solve_lower(L, cross.T)
                    explained = np.einsum("ij,ij->j", V, V)
                    means[c, rows] = cross @ self.dual_coef[i]
                    prior = self.kernel.diagonal(theta, X[rows]) + self.intercept_variance
                    variances[c, rows] = prior - explained
        np.maximum(variances, 0.0, out=variances)
        return np.ascontiguousarray(means.T), np.ascontiguousarray(variances.T)

    def sample(self, rng: np.random.Generator, X: Array, n_draws: int) -> Array:
        """Draw new targets at rows X (m, d) from one function a draw, shape (n_draws, m).

        The joint covariance of old and new targets is factorised: with L22 the last block of its
        factor, L22 L22' is the covariance of the new ones given the old. Cost O((n + m)^3) for
        each draw of the hyperparameters that is met.
        """
        chosen = rng.integers(len(self.theta), size=n_draws)
        noise = rng.standard_normal((n_draws, len(X)))
        n, together, scratch = len(self.X), np.vstack([self.X, X]), Workspace()
        drawn = np.empty((n_draws, len(X)))
        with threadpool_limits(limits=1, user_api="blas"):
            for i in np.unique(chosen):
                theta = self.theta[i]
                K = self.kernel.gram(theta, together, out=scratch.take("gram", len(together)))
                mean = (K[n:, :n] + self.intercept_variance) @ self.dual_coef[i]
                L = np.tril(self._factor(i, K, scratch)[n:, n:])
                mine = chosen == i
                drawn[mine] = mean + noise[mine] @ L.T
        return drawn

    def _cross(self, theta: Array, X: Array) -> Array:
        """Covariance of the function at rows X (m, d) and at the training rows, (m, n)."""
        cross = self.kernel.cross_gram(theta, X, self.X)
        cross += self.intercept_variance
        return cross

    def _factor(self, i: int, K: Array, scratch: Workspace) -> Array:
        room = scratch.take("factor", len(K))
        return noisy_factor(K, self.noise_variance[i], room, self.intercept_variance)


def function_draws(
    draws: Draws, X: Array, kernel: Kernel, intercept_variance: float = 0.0
) -> FunctionDraws:
    """Take what predictions need out of the draws of a fit to standardised rows X (n, d)."""
    values = {name: draws.flat(name) for name in draws.variables}
    theta = stacked_parameters(kernel, values)
    signal = np.array([kernel.diagonal(each, X).mean() for each in theta])
    noise = whole_noise_variance(signal, values["log_noise_variance"])
    return FunctionDraws(X, kernel, theta, noise, draws.flat("dual_coef"), intercept_variance)


def _blocks(n: int) -> list[slice]:
    return [slice(begin, begin + _BLOCK) for begin in range(0, n, _BLOCK)]
