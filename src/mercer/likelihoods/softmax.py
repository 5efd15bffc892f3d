"""The softmax likelihood of several classes: p(y = c | f) = e^f_c / sum_a e^f_a."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["class_probabilities", "log_likelihood", "one_hot"]

Array = NDArray[np.float64]


def one_hot(y: NDArray[np.int64], n_classes: int) -> Array:
    """Y of shape (n_classes, n): 1.0 for the class of a row, coded from 0, else 0.0."""
    return np.asarray(np.arange(n_classes)[:, np.newaxis] == y, dtype=np.float64)


def class_probabilities(f: Array) -> Array:
    """Probabilities of the classes (C, n) at the latent values f (C, n); columns sum to one."""
    powers = np.exp(f - f.max(axis=0))
    return np.asarray(powers / powers.sum(axis=0))


def log_likelihood(Y: Array, f: Array) -> float:
    """Sum of Y f - log sum_c e^f over the rows, Y one-hot and f of shape (C, n), in nats."""
    largest = f.max(axis=0)
    return float(np.sum(Y * f) - np.sum(largest + np.log(np.exp(f - largest).sum(axis=0))))
