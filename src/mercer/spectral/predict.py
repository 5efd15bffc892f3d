"""Predictions of BaNK: one draw after the other, all rows of a block at a time.

Each kept draw stores the mean mu_n of its coefficients and k deviations e drawn from their
posterior; mu_n + e and mu_n - e are draws of the coefficients, so that

    y* ~ N(phi(x)'(mu_n +- e), s2)

mixed over draws and signs is the posterior predictive law: 2 k normals a draw. Its mean is that of
phi(x)'mu_n, with the coefficients integrated out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.posterior.draws import Draws
from mercer.spectral.probe import design

__all__ = ["FunctionDraws", "function_draws"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FunctionDraws:
    """Draws of the regression function, on standardised inputs and targets.

    Attributes
    ----------
    frequencies : ndarray of shape (S, M, d)
    mean : ndarray of shape (S, 2 M + p)
    deviations : ndarray of shape (S, k, 2 M + p)
    noise_std : ndarray of shape (S,)
    """

    frequencies: Array
    mean: Array
    deviations: Array
    noise_std: Array

    @property
    def has_linear_part(self) -> bool:
        """Whether there are coefficients beyond those of the features."""
        return bool(self.mean.shape[1] > 2 * self.frequencies.shape[1])

    @property
    def scales(self) -> Array:
        """Standard deviation of each component of the predictive mixture, shape (2 k S,)."""
        return np.repeat(self.noise_std, 2 * self.deviations.shape[1])

    def expected(self, X: Array) -> Array:
        """Posterior mean at rows X (m, d), shape (m,)."""
        total = np.zeros(len(X))
        for i in range(len(self.mean)):
            total += self.mean[i] @ self._design(i, X)
        return total / len(self.mean)

    def locations(self, X: Array) -> tuple[Array, Array]:
        """Return the posterior mean (m,) and the components' means (m, 2 k S) at rows X (m, d)."""
        k = self.deviations.shape[1]
        total, parts = np.zeros(len(X)), np.empty((len(self.mean), 2 * k, len(X)))
        for i in range(len(self.mean)):
            F = self._design(i, X)
            mean = self.mean[i] @ F
            spread = self.deviations[i] @ F
            total += mean
            parts[i, :k] = mean + spread
            parts[i, k:] = mean - spread
        return total / len(self.mean), np.ascontiguousarray(parts.reshape(-1, len(X)).T)

    def _design(self, i: int, X: Array) -> Array:
        return design(self.frequencies[i], X, self.has_linear_part)


def function_draws(draws: Draws) -> FunctionDraws:
    """Take what predictions need out of the draws of a fit."""
    return FunctionDraws(
        draws.flat("frequencies"),
        draws.flat("coef_mean"),
        draws.flat("coef_deviation"),
        draws.flat("noise_std"),
    )
