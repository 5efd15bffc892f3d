"""The log likelihood of all labels and its gradient in frequencies and coefficients: one pass.

With functions f_k = F beta_k, F = [Phi, H], signs s = 1 for rows of the class that function k tells
and -1 for the other rows of its stick, and residuals r_k = s / (1 + e^{s f_k}),

    d / dbeta_k = F'r_k
    d / dW_j    = sum_i x_i sum_k r_ki (beta_k,sin_j C_ij - beta_k,cos_j S_ij)

where C_ij and S_ij are the scaled cosine and sine of frequency j at row i. O(n M (K + d)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from mercer.spectral.classes.compiled import pull_of_phases
from mercer.spectral.classes.labels import signs_of
from mercer.spectral.classes.products import fill_design, parts
from mercer.spectral.rows import TrainingRows

__all__ = ["LikelihoodGradient", "likelihood_gradient"]

Array = NDArray[np.float64]

# Rows whose features stand in memory at a time: they are read three times, from the cache.
_ROWS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class LikelihoodGradient:
    """Log likelihood in nats, and its gradient in frequencies (M, d) and in coef (K, 2 M + p)."""

    value: float
    frequencies: Array
    coef: Array


def likelihood_gradient(rows: TrainingRows, frequencies: Array, coef: Array) -> LikelihoodGradient:
    """Evaluate at frequencies (M, d) and coefficients (K, 2 M + p)."""
    value, m2 = 0.0, 2 * len(frequencies)
    by_frequencies, by_coef = np.zeros_like(frequencies), np.zeros_like(coef)
    room = np.empty(coef.shape[1] * _ROWS_AT_ONCE)
    for X, codes in (part for block in rows.blocks() for part in parts(*block, _ROWS_AT_ONCE)):
        F = room[: coef.shape[1] * len(X)].reshape(coef.shape[1], len(X))
        fill_design(rows, frequencies, X, F)
        sign = signs_of(codes, len(coef))
        margin = sign * (coef @ F)
        residual = sign * expit(-margin)
        value -= float(np.logaddexp(0.0, -margin)[sign != 0.0].sum())
        by_coef += residual @ F.T
        pull = np.empty((len(frequencies), len(X)))
        pull_of_phases(F[:m2], residual, coef, pull)
        by_frequencies += pull @ X
    return LikelihoodGradient(value, by_frequencies, by_coef)
