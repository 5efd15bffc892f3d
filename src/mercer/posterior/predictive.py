"""What a regressor says of new rows: a law of each row's target, in the user's units."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, ndtr, ndtri, poch, stdtr, stdtrit

from mercer.errors import DataError, UsageError

__all__ = ["NormalMixture", "StudentMixture"]

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


# What predictive laws that are mixtures refuse.


def one_value_per_row(y: ArrayLike, n_rows: int) -> Array:
    """Return the values as an array of shape (n_rows,), all of them finite; else a `DataError`."""
    values = np.asarray(y, dtype=np.float64)
    if values.shape != (n_rows,) or not np.isfinite(values).all():
        raise DataError(
            f"need one finite value for each of {n_rows} rows, got shape {values.shape}"
        )
    return values


def check_level(level: float) -> None:
    """Refuse a probability of an interval that is not between 0 and 1."""
    is_real = isinstance(level, numbers.Real)
    if not (is_real and 0.0 < level < 1.0):
        raise UsageError(f"level must be between 0 and 1, and is {level!r}")


# The predictive law of a weighted population of particles: a mixture of Student's t.

# Larger locations and scales could carry moments and the ends of intervals over the largest number.
_LARGEST = 1e300
# Scales are not taken for thinner than this part of the row's spread, far below the tolerance.
_THINNEST = 1e-200
_SUM_TOLERANCE = 1e-8


@dataclass(frozen=True)
class Contamination:
    """A share of outliers, in [0, 1), whose law is a Cauchy."""

    share: float
    location: float
    scale: float

    def log_density(self, y: Array) -> Array:
        """Log density of values under the Cauchy law, in nats."""
        z = np.abs(y - self.location) / self.scale
        return np.asarray(-np.log(np.pi * self.scale) - 2.0 * np.log(np.hypot(1.0, z)))

    def joined(self, y: Array, log_density: Array) -> Array:
        """Log density of values that are outliers or follow another law, in nats."""
        own = np.log(self.share) + self.log_density(y)
        return np.asarray(np.logaddexp(np.log1p(-self.share) + log_density, own))


@dataclass(frozen=True, eq=False)
class StudentMixture:
    """A weighted mixture of Student's t for each of m rows: one component a particle.

    Parameters
    ----------
    locations : ndarray of shape (m, N)
        Centres of the components, up to 1e300.
    scales : ndarray of shape (N,) or (m, N)
        Their scales, positive, up to 1e300. A standard deviation is sqrt(df / (df - 2)) of them.
    weights : ndarray of shape (N,)
        Weights of the particles: not negative, with sum 1.
    df : float or ndarray of shape (N,)
        Degrees of freedom, positive; inf is a normal. Up to 2 there is no standard deviation: it is
        inf.
    centre : ndarray of shape (m,), optional
        The mean that is reported, where a better one than that of the mixture is known.
    outliers : Contamination, optional
        How often targets are outliers: this counts in the log density, and in nothing else. Mean,
        spread, intervals and draws are those of a target that is no outlier.
    has_own_variances : bool, default=False
        Whether rows that share a component have variances of their own in `sample`, as where the
        noise itself is Student's t.
    n_kinds : int, default=1
        Where the noise is a mixture itself: so many components that follow each other are of one
        draw of the function. In `sample` rows share these, and have each a component of their own.

    Raises
    ------
    DataError
        When shapes do not fit, or a number is none of those above.

    Examples
    --------
    >>> locations, scales = np.array([[-1.0, 1.0]]), np.array([1.0, 1.0])
    >>> law = StudentMixture(locations, scales, np.array([0.25, 0.75]), 4.0)
    >>> float(law.mean[0]), round(float(law.std[0]), 4)
    (0.5, 1.6583)
    """

    locations: Array
    scales: Array
    weights: Array
    df: float | Array
    centre: Array | None = None
    outliers: Contamination | None = None
    has_own_variances: bool = False
    n_kinds: int = 1

    @classmethod
    def of_functions(
        cls, means: Array, variances: Array, noise: Array, shares: Array, weights: Array
    ) -> StudentMixture:
        """Return the law of targets around C functions whose noise is a mixture of normals.

        Parameters
        ----------
        means : ndarray of shape (m, C)
            Of each function at the rows.
        variances : ndarray of shape (m, C) or (C,)
            Of the same.
        noise, shares : ndarray of shape (C, K)
            Variance and share of each kind of noise; shares of a function have sum 1.
        weights : ndarray of shape (C,)
            Of the functions, sum 1.
        """
        n_kinds = noise.shape[1]
        scales = np.sqrt(variances[..., np.newaxis] + noise).reshape(*variances.shape[:-1], -1)
        weights = (weights[:, np.newaxis] * shares).ravel()
        means = np.repeat(means, n_kinds, axis=1)
        return cls(means, scales, weights, np.inf, n_kinds=n_kinds)

    def __post_init__(self) -> None:
        shape, scales = self.locations.shape, self.scales
        centre = None if self.centre is None else self.centre.shape
        is_right = len(shape) == 2 and shape[1] > 0 and scales.shape in (shape[1:], shape)
        if not is_right or centre not in (None, shape[:1]):
            raise DataError(
                "need locations of shape (m, C), scales of (C,) or (m, C) and a centre of (m,), "
                f"got {shape}, {scales.shape} and {centre}"
            )
        is_finite = np.isfinite(self.locations).all() and np.isfinite(scales).all()
        if not is_finite or np.any(scales <= 0):
            raise DataError("locations must be finite, and scales finite and positive")
        largest = max(np.abs(self.locations).max(initial=0.0), self.scales.max(initial=0.0))
        if largest > _LARGEST and not np.all(np.isinf(self.df)):
            raise DataError(f"locations and scales must be up to {_LARGEST:g}")
        shape = shape[1:]
        if self.weights.shape != shape or np.shape(self.df) not in ((), shape):
            raise DataError(
                f"need weights of shape {shape} and df of the same or a number, got "
                f"{self.weights.shape} and {np.shape(self.df)}"
            )
        if self.n_kinds < 1 or shape[0] % self.n_kinds:
            raise DataError(f"{shape[0]} components are not a multiple of {self.n_kinds} kinds")
        if not (np.all(self.weights >= 0) and abs(self.weights.sum() - 1.0) <= _SUM_TOLERANCE):
            raise DataError("weights must not be negative, and must have sum 1")
        if not np.all(np.asarray(self.df) > 0):
            raise DataError("df must be above 0")

    def in_units(self, scale: float, shift: float, centre: Array | None = None) -> StudentMixture:
        """Return the law of ``scale`` times the target plus ``shift``, with a centre of its own."""
        outliers = self.outliers
        if outliers is not None:
            location = outliers.location * scale + shift
            outliers = Contamination(outliers.share, location, outliers.scale * scale)
        return StudentMixture(
            self.locations * scale + shift, self.scales * scale, self.weights, self.df, centre,
            outliers, self.has_own_variances, self.n_kinds,
        )  # fmt: skip

    @cached_property
    def _parts(self) -> tuple[Array, Array, Array, Array]:
        """Locations, scales, weights and df of the components that have weight."""
        scales = np.broadcast_to(self.scales, self.locations.shape)
        has_weight = self.weights > 0
        kept = slice(None) if has_weight.all() else np.flatnonzero(has_weight)
        weights = self.weights[kept] / self.weights[kept].sum()
        df = np.broadcast_to(np.asarray(self.df, dtype=np.float64), self.weights.shape)[kept]
        if np.all(df == df[0]):
            df = df[:1]
        # Rows that lie together in memory: sums over components then depend on their row only.
        return (
            np.ascontiguousarray(self.locations[:, kept]),
            np.ascontiguousarray(scales[:, kept]),
            weights,
            df,
        )

    @cached_property
    def _average(self) -> Array:
        """Mean of the mixture itself."""
        locations, _, weights, _ = self._parts
        average = (weights * locations).sum(axis=1)
        return np.asarray(np.clip(average, locations.min(axis=1), locations.max(axis=1)))

    @property
    def mean(self) -> Array:
        """The centre where it is given, else the mean of the mixture."""
        return self._average if self.centre is None else self.centre

    @cached_property
    def std(self) -> Array:
        """Standard deviation of the mixture, by the law of total variance; inf where none is."""
        _, scales, _, df = self._parts
        if np.any(df <= 2.0):
            return np.full(len(self.locations), np.inf)
        # df / (df - 2), which is 1 where df is infinite.
        return self._spread(scales / np.sqrt(1.0 - 2.0 / df))

    @cached_property
    def _unit(self) -> Array:
        """The same with the scales as they are: where df is near 2, the std says little."""
        return self._spread(self._parts[1])

    def _spread(self, scales: Array) -> Array:
        """Root of the mean square of the deviations from the mean plus that of the scales."""
        locations, _, weights, _ = self._parts
        deviations = locations - self._average[:, np.newaxis]
        # The largest is taken out, so that no square underflows or overflows.
        largest = np.maximum(np.abs(deviations).max(axis=1), scales.max(axis=1))[:, np.newaxis]
        squares = (deviations / largest) ** 2 + (scales / largest) ** 2
        return np.asarray(largest[:, 0] * np.sqrt((weights * squares).sum(axis=1)))

    def log_density(self, y: ArrayLike) -> Array:
        """Return the log density of one finite value per row, in nats; finite."""
        values = one_value_per_row(y, len(self.locations))
        logs = student_log_density(values, *self._parts)
        return logs if self.outliers is None else self.outliers.joined(values, logs)

    def cdf(self, y: ArrayLike) -> Array:
        """Return the probability of values up to y, one per row."""
        return student_cdf(one_value_per_row(y, len(self.locations)), *self._parts)

    def pit(self, y: ArrayLike) -> Array:
        """Return the same, which of whole numbers is the middle of a step."""
        return self.cdf(y)

    def interval(self, level: float) -> tuple[Array, Array]:
        """Return the ends of the central interval, with equal probability on both sides.

        Parameters
        ----------
        level : float
            Probability inside, in (0, 1).

        Returns
        -------
        lower, upper : ndarray of shape (m,)
            To 1e-8 of the row's standard deviation.
        """
        check_level(level)
        # Centred and scaled, so that an offset costs no digits and the tolerance is relative.
        average, unit = self._average[:, np.newaxis], self._unit[:, np.newaxis]
        locations, scales, weights, df = self._parts
        locations = (locations - average) / unit
        scales = np.maximum(scales / unit, _THINNEST)
        tail = (1.0 - level) / 2.0
        lower = student_quantiles(tail, locations, scales, weights, df)
        upper = -student_quantiles(tail, -locations, scales, weights, df)
        return self._average + self._unit * lower, self._average + self._unit * upper

    def sample(
        self, rng: np.random.Generator, n: int, chosen: NDArray[np.integer] | None = None
    ) -> Array:
        """Draw new targets.

        Parameters
        ----------
        rng : numpy.random.Generator
        n : int
            Number of draws.
        chosen : ndarray of shape (n,), int, optional
            The component of each draw (with ``n_kinds`` its function, from 0), where other rows are
            to share it.

        Returns
        -------
        ndarray of shape (n, m)
            The rows of one draw share their component and its variance, as they share the
            posterior draw that these stand for, and have normal noise of their own; the variance,
            too, with ``has_own_variances``, and the kind of noise.
        """
        m, shares = len(self.locations), self.weights.reshape(-1, self.n_kinds)
        if chosen is None:
            of_functions = shares.sum(axis=1)
            chosen = rng.choice(len(shares), size=n, p=of_functions / of_functions.sum())
        component = chosen[:, np.newaxis] * self.n_kinds
        if self.n_kinds > 1:
            component = component + draw_kinds(rng, shares[chosen], m)
        df = np.broadcast_to(self.df, self.weights.shape)[component]
        stretch: float | Array = 1.0  # of normals
        if not np.isinf(df).all():
            df = np.minimum(df, _LARGEST)
            size = (n, m if self.has_own_variances else df.shape[1])
            stretch = np.sqrt(df / rng.chisquare(df, size))
        scales = np.broadcast_to(self.scales, self.locations.shape)
        noise, rows = stretch * rng.standard_normal((n, m)), np.arange(m)
        return np.asarray(self.locations[rows, component] + scales[rows, component] * noise)


def draw_kinds(rng: np.random.Generator, shares: Array, m: int) -> NDArray[np.int64]:
    """Draw a kind for each of m rows, (n, m), with chances in proportion to ``shares`` (n, K)."""
    below = np.cumsum(shares, axis=1)[:, np.newaxis]
    level = rng.random((len(shares), m, 1)) * below[..., -1:]
    return np.asarray((below[..., :-1] <= level).sum(axis=2))


class NormalMixture(StudentMixture):
    """A mixture of normals with equal weights for each of m rows: one normal a posterior draw.

    Parameters
    ----------
    locations : ndarray of shape (m, C)
        Means of the components.
    scales : ndarray of shape (C,) or (m, C)
        Their standard deviations, positive.
    centre : ndarray of shape (m,), optional
        The mean that is reported, where a better one than the average of the locations is known:
        one with draws integrated out.

    Raises
    ------
    DataError
        When shapes do not fit, a value is not finite, or a scale is not positive.

    Examples
    --------
    >>> law = NormalMixture(np.array([[-1.0, 1.0]]), np.array([1.0, 1.0]))
    >>> float(law.mean[0]), round(float(law.std[0]), 4), float(law.cdf([0.0])[0])
    (0.0, 1.4142, 0.5)
    """

    def __init__(self, locations: Array, scales: Array, centre: Array | None = None) -> None:
        n = max(np.shape(locations)[-1:], default=0)
        super().__init__(locations, scales, np.full(n, 1.0 / max(n, 1)), np.inf, centre)


class LawMixture(StudentMixture):
    """A weighted mixture of several laws of the same m rows.

    Its log density is log sum_k w_k exp(l_k), of laws with outliers as they have it, and rows of a
    draw are one of a law; all else is that of the mixture of the components of all.

    Parameters
    ----------
    laws : sequence of StudentMixture
    weights : ndarray of shape (K,)
        Not negative, with sum 1.

    Examples
    --------
    >>> one, other = (NormalMixture(np.array([[x]]), np.array([1.0])) for x in (0.0, 3.0))
    >>> law = LawMixture([one, other], np.array([0.25, 0.75]))
    >>> float(law.mean[0]), law.weights.tolist()
    (2.25, [0.25, 0.75])
    """

    def __init__(self, laws: Sequence[StudentMixture], weights: Array) -> None:
        shares = np.concatenate([w * each.weights for w, each in zip(weights, laws, strict=True)])
        df = np.concatenate([np.broadcast_to(each.df, each.weights.shape) for each in laws])
        super().__init__(
            np.hstack([each.locations for each in laws]),
            np.hstack([np.broadcast_to(each.scales, each.locations.shape) for each in laws]),
            shares / shares.sum(),
            df,
            np.asarray(sum(w * each.mean for w, each in zip(weights, laws, strict=True))),
        )
        object.__setattr__(self, "_mixed", (tuple(laws), weights))

    def log_density(self, y: ArrayLike) -> Array:
        """Return the log density of one finite value per row, in nats; finite."""
        laws, weights = self._mixed
        logs = np.stack([each.log_density(y) for each in laws])
        return np.asarray(logsumexp(logs, axis=0, b=weights[:, np.newaxis]))

    def sample(
        self, rng: np.random.Generator, n: int, chosen: NDArray[np.integer] | None = None
    ) -> Array:
        """Draw new targets, (n, m), each draw from one law: that ``chosen`` (n,), or by weight."""
        return sample_of_laws(*self._mixed, len(self.locations), rng, n, chosen)

    _mixed: tuple[tuple[StudentMixture, ...], Array]


def sample_of_laws(
    laws: Sequence[Any],
    weights: Array,
    m: int,
    rng: np.random.Generator,
    n: int,
    chosen: NDArray[np.integer] | None,
) -> Array:
    """Draw new targets of m rows, (n, m), each draw from the law ``chosen`` (n,), or by weight."""
    if chosen is None:
        chosen = rng.choice(len(laws), size=n, p=weights / weights.sum())
    drawn = np.empty((n, m))
    for k, law in enumerate(laws):
        mine = chosen == k
        drawn[mine] = law.sample(rng, int(mine.sum()))
    return drawn
