"""Mixtures of Student's t, and so of normals: densities and quantiles of many at once.

Quantiles of many laws at once, by a safeguarded Newton iteration.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, poch, stdtr, stdtrit

Array = NDArray[np.float64]
GapAndSlope = Callable[[Array, NDArray[np.intp]], tuple[Array, Array]]

# Every so many steps the bracket is halved, so that it shrinks whatever Newton does.
_HALVE_EVERY = 4
_HALVE_EVERY_PATIENT = 6
_MOST_STEPS = 400


def search_quantiles(
    start: Array,
    low: Array,
    high: Array,
    gap_and_slope: GapAndSlope,
    tolerance: float | Array,
    is_patient: bool = False,
) -> Array:
    """Return where each row's gap, which grows, passes through 0; arrays have shape (m,).

    First guesses ``start`` lie inside the brackets: the gap is not positive at ``low`` and not
    negative at ``high``. ``gap_and_slope`` takes points and the rows that they belong to; returns
    the gaps there, which may be infinite, and their derivatives. Where a derivative leads nowhere
    the bracket is halved. ``tolerance`` is half the length of a bracket at the end, in the units of
    ``low``.

    Near the end Newton's step is lengthened by the tolerance, so that the bracket closes from both
    sides. A step from afar that meets the root to the last digit leaves the other side open; if the
    bracket is halved next, Newton cannot come back to that end, and halving finishes the row in
    about 20 evaluations in place of 5. ``is_patient``, which lengthens all of Newton's steps and
    halves the bracket more rarely, avoids this. Rows that are found are not evaluated any more.
    """
    x, low, high = start.copy(), low.copy(), high.copy()
    near = np.broadcast_to(tolerance, x.shape)
    halve_every = _HALVE_EVERY_PATIENT if is_patient else _HALVE_EVERY
    active = np.flatnonzero(high - low > 2.0 * near)
    for step in range(1, _MOST_STEPS):
        if not len(active):
            break
        here = x[active]
        gap, slope = gap_and_slope(here, active)
        low[active] = np.where(gap < 0.0, here, low[active])
        high[active] = np.where(gap < 0.0, high[active], here)
        if step % halve_every == 0:
            x[active] = 0.5 * (low[active] + high[active])
        else:
            least = np.inf if is_patient else near[active]
            move = _newton_move(gap, slope, near[active], least)
            x[active] = _inside(here + move, low[active], high[active])
        active = active[high[active] - low[active] > 2.0 * near[active]]
    return x


def _newton_move(gap: Array, slope: Array, near: Array, least: float | Array) -> Array:
    """Return Newton's steps, those shorter than ``least`` lengthened."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        move = -gap / slope
    return np.where(np.abs(move) < least, move + np.copysign(near, -gap), move)


def _inside(proposed: Array, low: Array, high: Array) -> Array:
    """Return the points proposed, or the middle of the bracket where they are outside."""
    is_inside = (proposed > low) & (proposed < high)
    return np.where(is_inside, proposed, 0.5 * (low + high))


# Weighted mixtures of Student's t, one for each row: log density, cdf and quantiles. With infinite
# degrees of freedom they are normals.

_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
# Student's t of so many degrees of freedom is a normal to the last digit up to 1e7 of its scales,
# and no product with them overflows: it stands for infinitely many. Where all components have so
# many, they are taken for normals.
_MOST_DF = 1e30
# Farther out the square overflows: 1 + u^2 is taken as u^2, in logs, and a normal as level.
_FARTHEST = 1e150
# Student's quantiles of smaller probabilities may overflow; the search goes without them.
_LEAST_PROBABILITY = 1e-200
# From here on Hill's normal score gives probabilities above 5e-17 to 1e-8 of themselves, and from
# there on those in the middle to 1e-9.
_MANY_DF, _MANY_DF_IN_THE_MIDDLE, _MIDDLE = 100.0, 20.0, 0.004
# Beyond so many scales nothing is left of them: 1e6^-20 = 1e-120.
_NO_TAIL = 1e6
# Half the length of a bracket at the end.
_TOLERANCE = 1e-9
# Brackets are so much wider than rounding of the components' quantiles asks for.
_SLACK = 1e-6


def student_log_density(
    y: Array, locations: Array, scales: Array, weights: Array, df: float | Array
) -> Array:
    """Return the log density, nats, of each row's mixture at one finite value: y is (m,).

    Locations and scales of the components are (m, N), weights (N,) sum to 1. Degrees of freedom are
    one number or (N,); inf is a normal.
    """
    offsets = np.log(weights) - np.log(scales)
    with np.errstate(over="ignore"):
        logs = _log_standard(y[:, np.newaxis] - locations, scales, np.minimum(df, _MOST_DF))
    logs += offsets
    peaks = logs.max(axis=1)
    return np.asarray(peaks + np.log(np.exp(logs - peaks[:, np.newaxis]).sum(axis=1)))


def student_cdf(
    y: Array, locations: Array, scales: Array, weights: Array, df: float | Array
) -> Array:
    """Return the probability that each row's mixture gives to values up to y.

    Shapes are as in `student_log_density`.
    """
    with np.errstate(over="ignore"):
        z = (y[:, np.newaxis] - locations) / scales
    shares = weights * (ndtr(z) if _are_normal(df) else stdtr(np.minimum(df, _MOST_DF), z))
    return np.asarray(np.minimum(shares.sum(axis=1), 1.0))


def _are_normal(df: float | Array) -> bool:
    return bool(np.min(df) >= _MOST_DF)


def _inverse(df: float | Array, p: float | Array) -> Array:
    """Return standard quantiles of Student's t."""
    return np.asarray(ndtri(p) if _are_normal(df) else stdtrit(df, p))


def student_quantiles(
    p: float, locations: Array, scales: Array, weights: Array, df: float | Array
) -> Array:
    """Return the quantile, p in (0, 1), of each row's mixture.

    Shapes are as in `student_log_density`. It is right to 2e-9 in the units of ``locations``, which
    should be about their spread; where the ends of the first bracket are so large that numbers are
    coarser, to four of their steps.

    The equation solved is T^-1(F(x)) = T^-1(p) with T the heaviest-tailed of the components,
    straight where all are alike. The quantile lies between the components' quantiles and, where
    there is a variance, by Cantelli's inequality within sqrt((1-p)/p) standard deviations below the
    mean and sqrt(p/(1-p)) above it. Upper quantiles are the lower ones of the reflected mixture:
    small tails are not lost to 1 - p. Cost about 5 evaluations of all components; with many degrees
    of freedom cheap ones.
    """
    if p > 0.5:
        return -student_quantiles(1.0 - p, -locations, scales, weights, df)
    df = np.minimum(df, _MOST_DF)
    heaviest = float(np.min(df))
    goal = float(_inverse(heaviest, p))
    low, high, start = _first_bracket(p, goal, locations, scales, weights, df)
    coarsest = np.spacing(np.maximum(np.abs(low), np.abs(high)))

    def gap_and_slope(points: Array, rows: NDArray[np.intp]) -> tuple[Array, Array]:
        distances = points[:, np.newaxis] - locations[rows]
        return _student_gap_and_slope(p, goal, heaviest, distances, scales[rows], weights, df)

    near = np.maximum(_TOLERANCE, 2.0 * coarsest)
    return search_quantiles(start, low, high, gap_and_slope, near, is_patient=True)


def _first_bracket(
    p: float, goal: float, locations: Array, scales: Array, weights: Array, df: Array
) -> tuple[Array, Array, Array]:
    """Return two ends that hold the quantile, and a guess between them."""
    quantiles = _inverse(df, p)
    ends = locations + quantiles * scales
    slack = _SLACK * np.abs(quantiles) * scales
    mean = (weights * locations).sum(axis=1)
    deviations = locations - mean[:, np.newaxis]
    # Roots of the weights first: a far component of little weight does not overflow.
    roots = np.sqrt(weights)
    between, within = (roots * deviations) ** 2, (roots * scales) ** 2
    spread = np.sqrt((between + within).sum(axis=1))
    low, high = (ends - slack).min(axis=1), (ends + slack).max(axis=1)
    if np.min(df) > 2.0:
        std = (1.0 + _SLACK) * np.sqrt((between + within * (df / (df - 2.0))).sum(axis=1))
        low = np.maximum(low, mean - math.sqrt((1.0 - p) / p) * std)
        high = np.minimum(high, mean + math.sqrt(p / (1.0 - p)) * std)
    return low, high, np.clip(mean + goal * spread, low, high)


def _student_gap_and_slope(
    p: float,
    goal: float,
    heaviest: float,
    distances: Array,
    scales: Array,
    weights: Array,
    df: Array,
) -> tuple[Array, Array]:
    """Return T^-1(F(x)) - goal and its derivative f(x) / t(T^-1(F(x))), T with ``heaviest``."""
    many = _MANY_DF_IN_THE_MIDDLE if p > _MIDDLE else _MANY_DF
    z = distances / scales
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        if _are_normal(heaviest):
            shares = ndtr(z)
        else:
            shares = stdtr(df, z) if heaviest < many else _cdf_of_many_df(df, z)
        below = (weights * shares).sum(axis=1)
        density = (weights / scales * np.exp(_log_standard(distances, scales, df))).sum(axis=1)
        score = np.where(below > _LEAST_PROBABILITY, _inverse(heaviest, below), -np.inf)
        height = np.exp(_log_standard(score, np.ones(1), np.asarray(heaviest)))
        slope = density / height
    # The sign is that of the probabilities, whatever the inverse is rounded to.
    return np.copysign(score - goal, below - p), slope


def _cdf_of_many_df(df: Array, z: Array) -> Array:
    """Return Student's distribution function by the normal score of [1]_, four times as fast.

    References
    ----------
    .. [1] G. W. Hill, "Algorithm 395: Student's t-distribution", Comm. ACM 13 (1970).
    """
    z = np.clip(z, -_NO_TAIL, _NO_TAIL)
    a = df - 0.5
    b = 48.0 * a * a
    s = a * np.log1p(z * z / df)
    last = (((-0.4 * s - 3.3) * s - 24.0) * s - 85.5) / (0.8 * s * s + 100.0 + b)
    return np.asarray(ndtr(np.copysign((1.0 + (last + s + 3.0) / b) * np.sqrt(s), z)))


def _log_standard(distances: Array, scales: Array, df: Array) -> Array:
    """Return the log density of Student's t at distances / scales, up to 1e30 df; finite.

    The factor 1 / scales is left out.
    """
    if _are_normal(df):
        z = np.clip(distances / scales, -_FARTHEST, _FARTHEST)
        return np.asarray(-0.5 * z * z - _LOG_ROOT_2PI)
    root = np.sqrt(df)
    u = distances / scales / root
    penalties = np.log1p(u * u)
    is_far = np.abs(u) > _FARTHEST
    if is_far.any():
        most = np.finfo(np.float64).max
        logs = np.log(np.minimum(np.abs(distances), most)) - np.log(scales) - np.log(root)
        penalties = np.where(is_far, 2.0 * logs, penalties)
    heights = np.log(poch(0.5 * df, 0.5)) - 0.5 * np.log(np.pi * df)
    return np.asarray(heights - 0.5 * (df + 1.0) * penalties)
