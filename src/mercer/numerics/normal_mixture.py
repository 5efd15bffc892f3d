"""Equally weighted mixtures of normals, one for each row: log density, cdf and quantiles."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr, ndtri

from mercer.numerics.quantile_search import search_quantiles

__all__ = ["mixture_cdf", "mixture_log_density", "mixture_quantiles"]

Array = NDArray[np.float64]

_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
# Beyond so many standard deviations the square overflows; the log density stays finite instead.
_FARTHEST = 1e150


def mixture_log_density(y: Array, locations: Array, scales: Array) -> Array:
    """Return the log density of each row's mixture at one value.

    Parameters
    ----------
    y : ndarray of shape (m,)
        Finite.
    locations : ndarray of shape (m, C)
    scales : ndarray of shape (C,) or (m, C)
        Standard deviations, positive.

    Returns
    -------
    ndarray of shape (m,)
        Nats; finite.
    """
    with np.errstate(over="ignore"):
        z = np.clip((y[:, np.newaxis] - locations) / scales, -_FARTHEST, _FARTHEST)
    logs = -0.5 * z * z - np.log(scales) - _LOG_ROOT_2PI
    return np.asarray(logsumexp(logs, axis=1) - math.log(locations.shape[1]))


def mixture_cdf(y: Array, locations: Array, scales: Array) -> Array:
    """Return the probability that each row's mixture gives to values up to y.

    Parameters
    ----------
    y, locations, scales
        As in `mixture_log_density`.

    Returns
    -------
    ndarray of shape (m,)
        In [0, 1].
    """
    with np.errstate(over="ignore"):
        return np.asarray(ndtr((y[:, np.newaxis] - locations) / scales).mean(axis=1))


def mixture_quantiles(p: float, locations: Array, scales: Array, tolerance: float = 1e-9) -> Array:
    """Return the quantile of each row's mixture, by a safeguarded Newton iteration.

    Parameters
    ----------
    p : float
        In (0, 1).
    locations, scales
        As in `mixture_log_density`.
    tolerance : float, default 1e-9
        Half the length of the bracket at the end, in the units of ``locations``.

    Returns
    -------
    ndarray of shape (m,)

    Notes
    -----
    The equation solved is Phi^-1(F(x)) = Phi^-1(p), which is straight where the mixture is a
    normal. The quantile lies between the smallest and the largest of its components' quantiles.
    Upper quantiles are the lower ones of the reflected mixture: small tails are not lost to
    1 - p. Cost about 5 evaluations of all components.
    """
    if p > 0.5:
        return -mixture_quantiles(1.0 - p, -locations, scales, tolerance)
    goal = float(ndtri(p))
    scales = np.broadcast_to(scales, locations.shape)
    ends = locations + goal * scales
    low, high = ends.min(axis=1), ends.max(axis=1)
    mean = locations.mean(axis=1)
    spread = np.sqrt(np.mean(scales**2 + (locations - mean[:, np.newaxis]) ** 2, axis=1))
    x = np.clip(mean + goal * spread, low, high)

    def gap_and_slope(points: Array, rows: NDArray[np.intp]) -> tuple[Array, Array]:
        return _gap_and_slope(points, goal, locations[rows], scales[rows])

    return search_quantiles(x, low, high, gap_and_slope, tolerance)


def _gap_and_slope(x: Array, goal: float, locations: Array, scales: Array) -> tuple[Array, Array]:
    """Return Phi^-1(F(x)) - goal and its derivative f(x) / phi(Phi^-1(F(x)))."""
    z = (x[:, np.newaxis] - locations) / scales
    score = ndtri(ndtr(z).mean(axis=1))
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        heights = np.exp(0.5 * (score**2)[:, np.newaxis] - 0.5 * z * z) / scales
    return score - goal, heights.mean(axis=1)
