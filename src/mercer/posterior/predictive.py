"""What a regressor says of new rows: a law of each row's target, in the user's units."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from mercer.errors import DataError, UsageError
from mercer.numerics.mixtures import (
    student_cdf,
    student_log_density,
    student_quantiles,
)

__all__ = [
    "Contamination",
    "LawMixture",
    "NormalMixture",
    "StudentMixture",
    "check_level",
    "one_value_per_row",
]


# What predictive laws that are mixtures refuse.

Array = NDArray[np.float64]


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
        if not (np.all(self.weights >= 0) and abs(self.weights.sum() - 1.0) <= _SUM_TOLERANCE):
            raise DataError("weights must not be negative, and must have sum 1")
        if not np.all(np.asarray(self.df) > 0):
            raise DataError("df must be above 0")

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
            The component of each draw, where other rows are to share it.

        Returns
        -------
        ndarray of shape (n, m)
            The rows of one draw share their component and its variance, as they share the
            posterior draw that these stand for, and have normal noise of their own.
        """
        if chosen is None:
            chosen = rng.choice(len(self.weights), size=n, p=self.weights / self.weights.sum())
        df = np.broadcast_to(self.df, self.weights.shape)[chosen, np.newaxis]
        stretch: float | Array = 1.0  # of normals
        if not np.isinf(df).all():
            df = np.minimum(df, _LARGEST)
            stretch = np.sqrt(df / rng.chisquare(df))
        scales = np.broadcast_to(self.scales, self.locations.shape)
        noise = stretch * rng.standard_normal((n, len(self.locations)))
        return np.asarray(self.locations[:, chosen].T + scales[:, chosen].T * noise)


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

    Its log density is log sum_k w_k exp(l_k), of laws with outliers as they have it; all else is
    that of the mixture of the components of all.

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

    _mixed: tuple[tuple[StudentMixture, ...], Array]
