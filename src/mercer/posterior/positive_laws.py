"""Laws of targets that are not negative: noise that is a factor, with others; counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, gammaincinv, gammaln, logsumexp

from mercer.errors import DataError
from mercer.likelihoods.logistic import count_log_mass
from mercer.posterior.predictive import (
    StudentMixture,
    check_level,
    one_value_per_row,
    sample_of_laws,
    search_quantiles,
)

__all__ = ["CountMixture", "LogNormalMixture", "MixedLaws"]

Array = NDArray[np.float64]

# The predictive law of targets above 0 whose noise is a factor: a mixture of log-normals.

# Names of noise, and of the first two together.
LOGNORMAL, CONTAMINATED = "lognormal", "contaminated"
STUDENT, VARYING = "student_t", "heteroscedastic"
CONTAMINATED_LOGNORMAL = "contaminated_lognormal"
#: Of which the function is that of the logarithm, and of which some targets are wrong.
OF_LOGARITHMS = (LOGNORMAL, CONTAMINATED_LOGNORMAL)
SUITING = ("normal", LOGNORMAL)  # of which "auto" chooses
WITH_ERRORS = (CONTAMINATED, CONTAMINATED_LOGNORMAL)
NOT_POSITIVE = f"noise={LOGNORMAL!r} is for numbers above 0"
_LARGEST_LOG = 340.0  # of a mean: its square, too, is a number


def noise_of(estimator: Any) -> str | None:
    """Name the noise of an estimator, fitted or not; None if it has no choice of it."""
    return getattr(estimator, "noise_", getattr(estimator, "noise", None))


@dataclass(frozen=True, eq=False)
class LogNormalMixture:
    """The law of a target above 0 for each of m rows whose logarithm is a mixture of normals.

    Parameters
    ----------
    of_log : StudentMixture
        Law of the natural logarithm; all degrees of freedom are infinite.
    centre : ndarray of shape (m,), optional
        What `mean` says, where the law comes from a function whose median is known: the mean of the
        mixture is that of the few draws by which a target may be largest, and of a row far from all
        others larger than any target.

    Examples
    --------
    >>> from mercer.posterior.predictive import NormalMixture
    >>> law = LogNormalMixture(NormalMixture(np.array([[0.0]]), np.array([0.5])))
    >>> round(float(law.mean[0]), 4), round(float(law.std[0]), 4), float(law.cdf([1.0])[0])
    (1.1331, 0.6039, 0.5)
    """

    of_log: StudentMixture
    centre: Array | None = None

    @cached_property
    def _means(self) -> tuple[Array, Array]:
        """Mean of each component, and its variance over the square of that: (m, C)."""
        squares = np.square(np.broadcast_to(self.of_log.scales, self.of_log.locations.shape))
        logs = self.of_log.locations + 0.5 * squares
        return np.exp(np.minimum(logs, _LARGEST_LOG)), np.expm1(np.minimum(squares, _LARGEST_LOG))

    @cached_property
    def mean(self) -> Array:
        """The centre where it is given, else the mean of the mixture: above its median."""
        return self._average if self.centre is None else self.centre

    @cached_property
    def _average(self) -> Array:
        return np.asarray(self._means[0] @ self.of_log.weights)

    @cached_property
    def std(self) -> Array:
        """Standard deviation of the mixture, by the law of total variance."""
        means, ratios = self._means
        relative = means / self._average[:, np.newaxis]
        squares = np.square(relative) * ratios + np.square(relative - 1.0)
        return np.asarray(self._average * np.sqrt(squares @ self.of_log.weights))

    def log_density(self, y: ArrayLike) -> Array:
        """Return the log density of one value above 0 per row, in nats; finite."""
        values = one_value_per_row(y, len(self.of_log.locations))
        if np.any(values <= 0.0):
            raise DataError(f"a target of {values.min():g} has no density: {NOT_POSITIVE}")
        return self.log_density_of_any(values)

    def log_density_of_any(self, y: Array) -> Array:
        """Return the same, which is -inf for values that are not above 0."""
        logs = _logs(y)
        return np.where(y > 0.0, self.of_log.log_density(logs) - logs, -np.inf)

    def cdf(self, y: ArrayLike) -> Array:
        """Return the probability of values up to y, one per row."""
        values = one_value_per_row(y, len(self.of_log.locations))
        return np.where(values > 0.0, self.of_log.cdf(_logs(values)), 0.0)

    def pit(self, y: ArrayLike) -> Array:
        """Return the same."""
        return self.cdf(y)

    def interval(self, level: float) -> tuple[Array, Array]:
        """Return the ends, above 0, of the central interval: see `StudentMixture.interval`."""
        lower, upper = self.of_log.interval(level)
        return exp_within(lower), exp_within(upper)

    def sample(
        self, rng: np.random.Generator, n: int, chosen: NDArray[np.integer] | None = None
    ) -> Array:
        """Draw new targets, (n, m): see `StudentMixture.sample`."""
        return exp_within(self.of_log.sample(rng, n, chosen))


def exp_within(logs: Array) -> Array:
    """Exponentials, cut where numbers end."""
    return np.asarray(np.exp(np.minimum(logs, 2.0 * _LARGEST_LOG)))


def _logs(y: Array) -> Array:
    """Logarithms of values above 0, and 0 of others."""
    return np.log(np.where(y > 0.0, y, 1.0))


class MixedLaws:
    """A weighted mixture of laws of the same m rows, log-normal ones and others with densities.

    Parameters
    ----------
    laws : sequence of StudentMixture and LogNormalMixture
    weights : ndarray of shape (K,)
        Positive, with sum 1.

    Examples
    --------
    >>> from mercer.posterior.predictive import NormalMixture
    >>> one = NormalMixture(np.array([[1.0]]), np.array([1.0]))
    >>> law = MixedLaws([one, LogNormalMixture(one)], np.array([0.5, 0.5]))
    >>> round(float(law.cdf([-1.0])[0]), 4), round(float(law.interval(0.9)[1][0]), 3)
    (0.0114, 9.792)
    """

    def __init__(self, laws: Sequence[StudentMixture | LogNormalMixture], weights: Array) -> None:
        self.laws, self.weights = tuple(laws), np.asarray(weights)

    @cached_property
    def mean(self) -> Array:
        """Mean of the mixture."""
        return np.asarray(self.weights @ np.stack([law.mean for law in self.laws]))

    @cached_property
    def std(self) -> Array:
        """Standard deviation of the mixture, by the law of total variance; inf where none is."""
        each = [np.hypot(law.std, law.mean - self.mean) for law in self.laws]
        return np.asarray(np.sqrt(self.weights @ np.square(np.stack(each))))

    def log_density(self, y: ArrayLike) -> Array:
        """Return the log density of one finite value per row, in nats."""
        values = one_value_per_row(y, len(self.mean))
        logs = [
            law.log_density_of_any(values)
            if isinstance(law, LogNormalMixture)
            else law.log_density(values)
            for law in self.laws
        ]
        return np.asarray(logsumexp(logs, axis=0, b=self.weights[:, np.newaxis]))

    def cdf(self, y: ArrayLike) -> Array:
        """Return the probability of values up to y, one per row."""
        return np.asarray(self.weights @ np.stack([law.cdf(y) for law in self.laws]))

    def pit(self, y: ArrayLike) -> Array:
        """Return the same."""
        return self.cdf(y)

    def interval(self, level: float) -> tuple[Array, Array]:
        """Return the ends of the central interval, to 1e-8 of the shortest of a law."""
        pairs = [law.interval(level) for law in self.laws]
        lower, upper = (np.stack(ends) for ends in zip(*pairs, strict=True))
        near = 1e-8 * (upper - lower).min(axis=0)  # one law may be wider than any number
        ends = []
        for p, each in ((0.5 - 0.5 * level, lower), (0.5 + 0.5 * level, upper)):
            start, at = self.weights @ each, np.zeros(each.shape[1])

            def gap_and_slope(
                points: Array, rows: NDArray[np.intp], p: float = p, at: Array = at
            ) -> tuple[Array, Array]:
                at[rows] = points  # all rows are asked: the others are not looked at
                return (self.cdf(at) - p)[rows], np.exp(self.log_density(at))[rows]

            low, high = each.min(axis=0) - near, each.max(axis=0) + near
            ends.append(search_quantiles(start, low, high, gap_and_slope, near))
        return ends[0], ends[1]

    def sample(
        self, rng: np.random.Generator, n: int, chosen: NDArray[np.integer] | None = None
    ) -> Array:
        """Draw new targets, (n, m), each draw from one law: that ``chosen`` (n,), or by weight."""
        return sample_of_laws(self.laws, self.weights, len(self.mean), rng, n, chosen)


# The predictive law of counts: a mixture of negative binomials.

# Means are cut here: beyond, whole numbers are not numbers of their own any more.
_LARGEST_MEAN, _SMALLEST_MEAN = 1e15, 1e-300
_LARGEST_RATE = 1e18  # of a Poisson law that can be drawn from


@dataclass(frozen=True, eq=False)
class CountMixture:
    """A mixture of negative binomials with equal weights for each of m rows.

    Parameters
    ----------
    means : ndarray of shape (m, C)
        Of each component, not negative; cut at 1e15.
    dispersions : ndarray of shape (C,)
        r, positive: the variance of a component is mean + mean^2 / r.

    Raises
    ------
    DataError
        When shapes do not fit, or a number is none of those above.

    Examples
    --------
    >>> law = CountMixture(np.array([[2.0, 4.0]]), np.array([5.0, 5.0]))
    >>> float(law.mean[0]), round(float(law.std[0]), 3), law.interval(0.9)[1].tolist()
    (3.0, 2.449, [8.0])
    """

    means: Array
    dispersions: Array

    def __post_init__(self) -> None:
        means, r = self.means, self.dispersions
        if means.ndim != 2 or means.shape[1:] != r.shape or not len(r):
            raise DataError(
                f"need means of shape (m, C) and dispersions of (C,), got {means.shape} and "
                f"{r.shape}"
            )
        if np.isnan(means).any() or np.any(means < 0.0) or not np.all((r > 0.0) & (r < np.inf)):
            raise DataError("means must not be negative, dispersions positive and finite")
        object.__setattr__(self, "means", np.clip(means, _SMALLEST_MEAN, _LARGEST_MEAN))

    @cached_property
    def mean(self) -> Array:
        """Mean of the mixture."""
        return np.asarray(self.means.mean(axis=1))

    @cached_property
    def std(self) -> Array:
        """Standard deviation of the mixture, by the law of total variance."""
        within = self.means * (1.0 + self.means / self.dispersions)
        return np.asarray(np.sqrt(within.mean(axis=1) + self.means.var(axis=1)))

    def log_density(self, y: ArrayLike) -> Array:
        """Return the log probability of one count per row, in nats; finite."""
        values = self._counts(y)[:, np.newaxis]
        f = np.log(self.means) - np.log(self.dispersions)
        logs = logsumexp(count_log_mass(values, f, self.dispersions), axis=1)
        return np.asarray(logs - math.log(len(self.dispersions)))

    def cdf(self, y: ArrayLike) -> Array:
        """Return the probability of counts up to y, one per row."""
        return self._below(self._counts(y), np.arange(len(self.means)))

    def pit(self, y: ArrayLike) -> Array:
        """Return the probability of counts below y, and half of that of y."""
        return self.cdf(y) - 0.5 * np.exp(self.log_density(y))

    def interval(self, level: float) -> tuple[Array, Array]:
        """Return the ends of the central interval, whole numbers; it holds the level or more.

        Parameters
        ----------
        level : float
            Probability inside, in (0, 1); as much outside on either side at most.

        Returns
        -------
        lower, upper : ndarray of shape (m,)
        """
        check_level(level)
        return self._quantiles((1.0 - level) / 2.0), self._quantiles((1.0 + level) / 2.0)

    def sample(
        self, rng: np.random.Generator, n: int, chosen: NDArray[np.integer] | None = None
    ) -> Array:
        """Draw new counts, (n, m); the rows of a draw share their component (n,)."""
        if chosen is None:
            chosen = rng.integers(len(self.dispersions), size=n)
        r = self.dispersions[chosen][:, np.newaxis]
        rates = rng.standard_gamma(r, (n, len(self.means))) / r * self.means[:, chosen].T
        return rng.poisson(np.minimum(rates, _LARGEST_RATE)).astype(np.float64)

    def _counts(self, y: ArrayLike) -> Array:
        values = one_value_per_row(y, len(self.means))
        if np.any(values < 0.0) or np.any(values != np.rint(values)):
            raise DataError("only whole numbers from 0 on have a probability as counts")
        return values

    def _below(self, y: Array, rows: NDArray[np.intp]) -> Array:
        """Probability of counts up to y (k,) of some rows; y between counts joins them smoothly."""
        means, r = self.means[rows], self.dispersions
        below = betainc(r, np.maximum(y + 1.0, 1e-9)[:, np.newaxis], r / (r + means))
        return np.asarray(np.where(y > -1.0, below.mean(axis=1), 0.0))

    def _quantiles(self, p: float) -> Array:
        """Return the least counts up to which the probability is p or more."""
        mean, std = self.mean, self.std
        low = np.maximum(mean - math.sqrt((1.0 - p) / p) * std - 1.0, -1.0)
        high = mean + math.sqrt(p / (1.0 - p)) * std + 1.0
        shape = np.square(mean / std)
        start = np.clip(gammaincinv(shape, p) * mean / shape - 0.5, low, high)

        def gap_and_slope(points: Array, rows: NDArray[np.intp]) -> tuple[Array, Array]:
            # The slope is that of a gamma law with the same mean and standard deviation.
            own, rate = shape[rows], (shape / mean)[rows]
            x = np.maximum(points + 0.5, 0.1 / rate)
            slope = np.exp(own * np.log(rate) + (own - 1.0) * np.log(x) - rate * x - gammaln(own))
            return self._below(points, rows) - p, slope

        near = np.maximum(0.25, 4.0 * np.spacing(high))
        found = search_quantiles(start, low, high, gap_and_slope, near)
        count = np.maximum(np.ceil(found - near), 0.0)
        all_rows = np.arange(len(mean))
        return np.where(self._below(count, all_rows) < p, count + 1.0, count)
