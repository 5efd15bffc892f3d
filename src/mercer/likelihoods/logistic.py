"""The logistic likelihood of two classes, and the softmax of several.

The logistic likelihood of a binary target: p(y = 1 | f) = 1/(1 + e^-f).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit


def success_probability(f: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probability of y = 1 at the latent values f, any shape."""
    return np.asarray(expit(f))


def log_likelihood(y: NDArray[np.float64], f: NDArray[np.float64]) -> float:
    """Sum of y f - log(1 + e^f) over the rows, y in {0, 1}, in nats."""
    return float(y @ f - np.logaddexp(0.0, f).sum())


# The softmax likelihood of several classes: p(y = c | f) = e^f_c / sum_a e^f_a.

Array = NDArray[np.float64]


def one_hot(y: NDArray[np.int64], n_classes: int) -> Array:
    """Y of shape (n_classes, n): 1.0 for the class of a row, coded from 0, else 0.0."""
    return np.asarray(np.arange(n_classes)[:, np.newaxis] == y, dtype=np.float64)


def class_probabilities(f: Array) -> Array:
    """Probabilities of the classes (C, n) at the latent values f (C, n); columns sum to one."""
    powers = np.exp(f - f.max(axis=0))
    return np.asarray(powers / powers.sum(axis=0))


def softmax_log_likelihood(Y: Array, f: Array) -> float:
    """Sum of Y f - log sum_c e^f over the rows, Y one-hot and f of shape (C, n), in nats."""
    largest = f.max(axis=0)
    return float(np.sum(Y * f) - np.sum(largest + np.log(np.exp(f - largest).sum(axis=0))))
