"""The logistic likelihood of a binary target: p(y = 1 | f) = 1/(1 + e^-f)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

__all__ = ["log_likelihood", "success_probability"]


def success_probability(f: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probability of y = 1 at the latent values f, any shape."""
    return np.asarray(expit(f))


def log_likelihood(y: NDArray[np.float64], f: NDArray[np.float64]) -> float:
    """Sum of y f - log(1 + e^f) over the rows, y in {0, 1}, in nats."""
    return float(y @ f - np.logaddexp(0.0, f).sum())
