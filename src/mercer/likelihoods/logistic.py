"""The logistic likelihood of two classes, its average over a Gaussian, softmax, and counts.

The logistic likelihood of a binary target: p(y = 1 | f) = 1/(1 + e^-f); that of counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, expit, ndtr

Array = NDArray[np.float64]


def success_probability(f: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probability of y = 1 at the latent values f, any shape."""
    return np.asarray(expit(f))


def log_likelihood(y: Array, totals: Array, f: Array) -> float:
    """Sum of y f - t log(1 + e^f) over the rows, in nats: y of ``totals`` t are of class 1."""
    return float(y @ f - np.sum(totals * np.logaddexp(0.0, f)))


def targets_and_totals(y: Array, n_functions: int) -> tuple[Array, Array]:
    """Return targets of the shape of latent values, and how often each row counts, (n,).

    ``y`` are classes (n,), 0 to C - 1, of rows that count once, or (C, n) how often each class was
    seen at each row. One latent function: (n,), of class 1; several: (C, n).
    """
    if y.ndim == 2:
        return (y[1] if n_functions == 1 else y), y.sum(axis=0)
    return (y if n_functions == 1 else one_hot(y.astype(np.int64), n_functions)), np.ones(len(y))


# The logistic function averaged over a Gaussian, by a mixture of five normal distributions.

# 1/(1 + e^-x) is an infinite scale mixture of normal distribution functions Phi(s x) (Monahan &
# Stefanski). These are the five terms that minimise the largest error over x >= 0: least squares
# of the 2nd, 4th, .., 32nd power of the error on 8001 points of [0, 40], weights on the simplex.
# Largest error 6.7e-7, also after averaging, since the average of an error is no larger than it.
_WEIGHTS = np.array([0.02299041, 0.20525222, 0.42781738, 0.29813601, 0.04580398])
_SCALES = np.array([0.29114786, 0.41007301, 0.57439343, 0.80096749, 1.11900281])
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_ROOT_TWO_PI = np.sqrt(2.0 * np.pi)


class LogisticMoments(NamedTuple):
    """Averages over f ~ N(mean, variance), arrays of the same shape."""

    softplus: Array
    logistic: Array
    slope: Array
    curvature: Array


def expected_logistic(
    mean: NDArray[np.float64], variance: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Average 1/(1 + e^-f) over f ~ N(mean, variance); the absolute error is at most 7e-7.

    The integral of Phi(s f) over N(m, v) is Phi(s m / sqrt(1 + s^2 v)), so no quadrature is needed;
    the source uses five error functions too.
    """
    z = mean[..., np.newaxis] * _SCALES
    z /= np.sqrt(1.0 + variance[..., np.newaxis] * _SCALES**2)
    return np.asarray(ndtr(z) @ _WEIGHTS)


def logistic_moments(mean: Array, variance: Array) -> LogisticMoments:
    """Average log(1 + e^f), 1/(1 + e^-f) and two derivatives over f ~ N(mean, variance).

    Each is the derivative of the one before with respect to the mean, to rounding: a search can
    rely on it. The largest absolute errors are 2.1e-6, 7e-7, 3.1e-6 and 2e-5. By the mixture of
    `expected_logistic`, with Phi(m/c) integrated and differentiated, c^2 = 1/s^2 + v.
    """
    spread = np.sqrt(1.0 / _SCALES**2 + variance[..., np.newaxis])
    z = mean[..., np.newaxis] / spread
    proba = ndtr(z)
    density = np.exp(-0.5 * z * z) / _ROOT_TWO_PI
    softplus = (mean[..., np.newaxis] * proba + spread * density) @ _WEIGHTS
    slope = density / spread
    curvature = -(z / spread) * slope
    return LogisticMoments(softplus, proba @ _WEIGHTS, slope @ _WEIGHTS, curvature @ _WEIGHTS)


# The softmax likelihood of several classes: p(y = c | f) = e^f_c / sum_a e^f_a.


def one_hot(y: NDArray[np.int64], n_classes: int) -> Array:
    """Y of shape (n_classes, n): 1.0 for the class of a row, coded from 0, else 0.0."""
    return np.asarray(np.arange(n_classes)[:, np.newaxis] == y, dtype=np.float64)


def class_probabilities(f: Array) -> Array:
    """Probabilities of the classes (C, n) at the latent values f (C, n); columns sum to one."""
    powers = np.exp(f - f.max(axis=0))
    return np.asarray(powers / powers.sum(axis=0))


def softmax_log_likelihood(Y: Array, f: Array) -> float:
    """Sum of Y f - t log sum_c e^f over the rows, t the sums of columns of Y (C, n), in nats."""
    largest = f.max(axis=0)
    of_rows = largest + np.log(np.exp(f - largest).sum(axis=0))
    return float(np.sum(Y * f) - np.sum(Y.sum(axis=0) * of_rows))


# Counts y = 0, 1, 2, ..: negative binomial with dispersion r and logit p = f, of mean r e^f.


def count_log_factor(y: Array, dispersion: Array | float) -> Array:
    """Log of Gamma(y + r) / (Gamma(r) y!), which f is not in, in nats; shapes as NumPy joins."""
    one_or_more = np.maximum(y, 1.0)
    logs = -np.log(one_or_more) - betaln(one_or_more, dispersion)
    return np.asarray(np.where(y > 0.0, logs, 0.0))


def count_log_mass(y: Array, f: Array, dispersion: Array | float) -> Array:
    """Log probability of counts, in nats; finite wherever f is; shapes as NumPy joins them."""
    tails = y * np.logaddexp(0.0, -f) + dispersion * np.logaddexp(0.0, f)
    return np.asarray(count_log_factor(y, dispersion) - tails)
