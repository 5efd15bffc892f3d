"""Probabilities of classes: one draw after the other, all rows of a block at a time.

Each kept draw stores the means of its coefficients given Polya-Gamma variables and k deviations e
from them; mean + e and mean - e are draws of the coefficients, and probabilities are averaged over
draws, deviations and signs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from mercer.posterior.draws import Draws
from mercer.spectral.probe import design

__all__ = ["ClassDraws", "class_draws"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClassDraws:
    """Draws of the K functions that tell classes apart, on standardised inputs.

    Attributes
    ----------
    frequencies : ndarray of shape (S, M, d)
    mean : ndarray of shape (S, K, 2 M + p)
    deviations : ndarray of shape (S, K, k, 2 M + p)
    """

    frequencies: Array
    mean: Array
    deviations: Array

    @property
    def has_linear_part(self) -> bool:
        """Whether there are coefficients beyond those of the features."""
        return bool(self.mean.shape[2] > 2 * self.frequencies.shape[1])

    def probabilities(self, X: Array) -> Array:
        """Of the classes in the order of the sticks, at rows X (m, d): shape (m, K + 1)."""
        n_draws, n_sticks = self.mean.shape[:2]
        total = np.zeros((n_sticks + 1, len(X)))
        for i in range(n_draws):
            centre, spread = self._functions(i, X)
            left = np.ones((2 * spread.shape[1], len(X)))
            for k in range(n_sticks):
                f = np.concatenate([centre[k] + spread[k], centre[k] - spread[k]])
                total[k] += (left * expit(f)).mean(axis=0)
                left *= expit(-f)
            total[-1] += left.mean(axis=0)
        return np.ascontiguousarray(total.T / n_draws)

    def moments(self, X: Array) -> tuple[Array, Array]:
        """Posterior mean and variance of the functions at rows X (m, d): both (m, K)."""
        n_draws, n_sticks = self.mean.shape[:2]
        first, second = np.zeros((n_sticks, len(X))), np.zeros((n_sticks, len(X)))
        for i in range(n_draws):
            centre, spread = self._functions(i, X)
            step = centre - first
            first += step / (i + 1)
            second += step * (centre - first) + np.square(spread).mean(axis=1)
        return first.T, second.T / n_draws

    def _functions(self, i: int, X: Array) -> tuple[Array, Array]:
        """Means (K, m) and deviations (K, k, m) of the functions of one draw."""
        F = design(self.frequencies[i], X, self.has_linear_part)
        return self.mean[i] @ F, self.deviations[i] @ F


def class_draws(draws: Draws) -> ClassDraws:
    """Take what predictions need out of the draws of a fit."""
    return ClassDraws(
        draws.flat("frequencies"), draws.flat("coef_mean"), draws.flat("coef_deviation")
    )
