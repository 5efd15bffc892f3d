"""The Chinese restaurant process, and the concentration given how many components there are.

References: Escobar & West, Bayesian density estimation and inference using mixtures (1995).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from mercer.spectral.mixture.base import Labels, require_positive

__all__ = [
    "ConcentrationPrior",
    "draw_concentration",
    "draw_partition",
    "expected_components",
    "log_partition_probability",
]


def log_partition_probability(counts: NDArray[np.generic], concentration: float) -> float:
    """Log probability of one partition, given the sizes (K,) of its parts.

    alpha^K prod_k (m_k - 1)! Gamma(alpha) / Gamma(alpha + M).
    """
    n = float(np.sum(counts))
    normaliser = gammaln(concentration) - gammaln(concentration + n)
    return float(len(counts) * math.log(concentration) + gammaln(counts).sum() + normaliser)


def expected_components(n_frequencies: int, concentration: float) -> float:
    """Mean number of parts, sum over i < M of alpha / (alpha + i)."""
    return float(concentration * (digamma(concentration + n_frequencies) - digamma(concentration)))


def draw_partition(rng: np.random.Generator, n_frequencies: int, concentration: float) -> Labels:
    """Draw the component of each frequency, numbered in the order of their first members."""
    assignment = np.zeros(n_frequencies, dtype=np.int64)
    for i in range(1, n_frequencies):
        # Each of those before is worth 1, and i joins the part of one of them; a new part, alpha.
        place = rng.random() * (i + concentration)
        assignment[i] = assignment[int(place)] if place < i else assignment[:i].max() + 1
    return assignment


@dataclass(frozen=True)
class ConcentrationPrior:
    """Gamma(shape, rate) prior of the concentration; both positive.

    Raises
    ------
    UsageError
        If one of them is not positive.
    """

    shape: float
    rate: float

    def __post_init__(self) -> None:
        require_positive("shape of the prior of the concentration", self.shape)
        require_positive("rate of the prior of the concentration", self.rate)

    def draw(self, rng: np.random.Generator) -> float:
        """Draw from the prior."""
        return _above_zero(rng.gamma(self.shape, 1.0 / self.rate))


def draw_concentration(
    rng: np.random.Generator,
    concentration: float,
    n_components: int,
    n_frequencies: int,
    prior: ConcentrationPrior,
) -> float:
    """Take one Gibbs step of the concentration; it needs K and M only.

    x ~ Beta(alpha + 1, M), then alpha from a mixture of Gamma(a + K, b - log x) and
    Gamma(a + K - 1, b - log x) with odds (a + K - 1) / (M (b - log x)) for the first.
    """
    x = _above_zero(rng.beta(concentration + 1.0, n_frequencies))
    rate = prior.rate - math.log(x)
    shape = prior.shape + n_components - 1.0
    odds = shape / (n_frequencies * rate)
    if rng.random() * (1.0 + odds) < odds:
        shape += 1.0
    return _above_zero(rng.gamma(shape, 1.0 / rate))


def _above_zero(x: float) -> float:
    """Undo an underflow: gamma draws of a small shape may be 0, whose logarithm is not finite."""
    return max(float(x), float(np.finfo(np.float64).tiny))
