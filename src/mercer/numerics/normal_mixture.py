"""Equally weighted mixtures of normals, one for each row: log density, cdf and quantiles."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr, ndtri

__all__ = ["mixture_cdf", "mixture_log_density", "mixture_quantiles"]

Array = NDArray[np.float64]

_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
# Beyond so many standard deviations the square overflows; the log density stays finite instead.
_FARTHEST = 1e150
# Every so many steps the bracket is halved, so that it shrinks whatever Newton does.
_HALVE_EVERY = 4
_MOST_STEPS = 400


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
    Near the end Newton's step is lengthened by the tolerance, so that the bracket closes from both
    sides. Upper quantiles are the lower ones of the reflected mixture: small tails are not lost to
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
    x: Array = np.clip(mean + goal * spread, low, high)
    active = np.flatnonzero(high - low > 2.0 * tolerance)
    for step in range(1, _MOST_STEPS):
        if not len(active):
            break
        here = x[active]
        gap, slope = _gap_and_slope(here, goal, locations[active], scales[active])
        low[active] = np.where(gap < 0.0, here, low[active])
        high[active] = np.where(gap < 0.0, high[active], here)
        x[active] = _next(here, gap, slope, low[active], high[active], tolerance, step)
        active = active[high[active] - low[active] > 2.0 * tolerance]
    return x


def _gap_and_slope(x: Array, goal: float, locations: Array, scales: Array) -> tuple[Array, Array]:
    """Return Phi^-1(F(x)) - goal and its derivative f(x) / phi(Phi^-1(F(x)))."""
    z = (x[:, np.newaxis] - locations) / scales
    score = ndtri(ndtr(z).mean(axis=1))
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        heights = np.exp(0.5 * (score**2)[:, np.newaxis] - 0.5 * z * z) / scales
    return score - goal, heights.mean(axis=1)


def _next(
    x: Array, gap: Array, slope: Array, low: Array, high: Array, tolerance: float, step: int
) -> Array:
    """Return Newton's next point, or the middle of the bracket where it leads outside."""
    middle = 0.5 * (low + high)
    if step % _HALVE_EVERY == 0:
        return middle
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        move = -gap / slope
    move = np.where(np.abs(move) < tolerance, move + np.copysign(tolerance, -gap), move)
    proposed = x + move
    is_inside = (proposed > low) & (proposed < high)
    return np.asarray(np.where(is_inside, proposed, middle))
