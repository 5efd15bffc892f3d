"""Scores of predictive laws of numbers: squared error, log score, coverage, calibration."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from mercer.errors import DataError

__all__ = [
    "LEVEL",
    "LEVELS",
    "IntervalCoverage",
    "PitHistogram",
    "RegressionScores",
    "interval_coverage",
    "pit_distance",
    "pit_histogram",
    "r_squared",
]


FloatArray = NDArray[np.float64]

#: Probability inside the intervals that are scored.
LEVEL: Final = 0.9


@dataclass(frozen=True)
class RegressionScores:
    """The scores of one set of rows; those of errors and widths are in the units of the target.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    mse, rmse, mae : float
        Mean squared error, its root, and the mean absolute error of the predicted mean.
    standardized_mse : float or None
        Mean over rows of the squared error divided by the variance (divisor n) of the targets that
        the row's model was trained on: 1 is no better than their mean. None where that variance is
        not known.
    r2 : float or None
        1 - (sum of squared errors) / (sum of squared distances from the mean of these rows); None
        where all targets are equal.
    log_score : float
        Mean of -log predictive density, nats; lower is better, and it depends on the unit.
    coverage_90 : float
        Share of rows inside their central 90 % interval.
    width_90 : float
        Mean length of these intervals.
    calibration_error : float
        As `pit_distance` returns it.
    """

    n_rows: int
    mse: float
    rmse: float
    standardized_mse: float | None
    mae: float
    r2: float | None
    log_score: float
    coverage_90: float
    width_90: float
    calibration_error: float

    def to_dict(self) -> dict[str, int | float | None]:
        """Return the scores by name."""
        return asdict(self)


def r_squared(y: FloatArray, mean: FloatArray) -> float | None:
    """Return the share of the variance of y that the predictions explain, or None without any.

    Examples
    --------
    >>> r_squared(np.array([0.0, 2.0]), np.array([0.0, 1.0]))
    0.5
    """
    total = float(np.sum(np.square(y - y.mean())))
    return None if total == 0.0 else 1.0 - float(np.sum(np.square(y - mean))) / total


def pit_distance(pit: ArrayLike) -> float:
    """Return how far probability integral transforms (n,) in [0, 1] are from uniform.

    This is the integral over [0, 1] of |F_n(u) - u|, F_n their empirical distribution function: the
    mean distance of a quantile's nominal from its observed level. It lies in [0, 1/2]; of perfect
    predictive laws it is about 0.31 / sqrt(n). It equals the integral of |quantile function of the
    sample - u|: with c the i-th smallest value, on [(i-1)/n, i/n] = [a, b] it is ((c - a)|c - a| +
    (b - c)|b - c|) / 2. Cost O(n log n).

    Examples
    --------
    >>> pit_distance([0.5])
    0.25
    """
    c = np.sort(np.asarray(pit, dtype=float))
    edges = np.arange(len(c) + 1) / len(c)
    from_left, to_right = c - edges[:-1], edges[1:] - c
    pieces = from_left * np.abs(from_left) + to_right * np.abs(to_right)
    return float(pieces.sum() / 2.0)


# Whether predictive laws of numbers are right: coverage of their intervals, histogram of the PIT.
#
# The probability integral transform (PIT) of a row is the predictive probability of values up to
# the one that came. Of laws that are right it is uniform.

Array = NDArray[np.float64]

LEVELS = np.arange(1, 20) / 20.0
BAND = 0.9  # of what chance does to perfect laws
N_BINS, FEWEST = 10, 5  # rows in a bin


@dataclass(frozen=True, eq=False)
class IntervalCoverage:
    """Share of rows inside central intervals of rising level; arrays of shape (k,)."""

    level: Array  # probability inside, as the laws say
    observed: Array  # share of the rows
    #: The share lies from `lower` to `upper` with probability 0.9 at least if the laws are right
    #: (binomial).
    lower: Array
    upper: Array


@dataclass(frozen=True, eq=False)
class PitHistogram:
    """Rows by their PIT, in k bins of equal width."""

    edges: Array  # (k + 1,), from 0 to 1
    share: Array  # (k,), share of the rows in each bin
    #: The share of a bin lies from `lower` to `upper` with probability 0.9 at least if the laws are
    #: right.
    lower: float
    upper: float


def interval_coverage(pit: ArrayLike, n_worth: float | None = None) -> IntervalCoverage:
    """Count how many rows central intervals hold, at levels of 5, 10, .., 95 %.

    A row of PIT p, in [0, 1], is inside the interval of level l where |2 p - 1| <= l.
    ``n_worth`` is how many independent rows these are worth, by default all.

    Examples
    --------
    >>> curve = interval_coverage([0.5, 0.1, 0.98])
    >>> [float(curve.observed[np.searchsorted(curve.level, level)]) for level in (0.4, 0.85)]
    [0.3333333333333333, 0.6666666666666666]
    """
    u = _checked(pit)
    distance = np.sort(np.abs(2.0 * u - 1.0))
    # A value at the very end of an interval is inside, whatever rounding made of it.
    inside = np.searchsorted(distance, LEVELS + 1e-12, side="right") / len(u)
    tail = (1.0 - BAND) / 2.0
    n = len(u) if n_worth is None else max(round(n_worth), 1)
    lower, upper = (binom.ppf(p, n, LEVELS) / n for p in (tail, 1.0 - tail))
    return IntervalCoverage(LEVELS.copy(), inside, lower, upper)


def pit_histogram(pit: ArrayLike, n_worth: float | None = None) -> PitHistogram:
    """Count rows by their PIT (n,), in ten bins; of less than 50 rows in fewer."""
    u = _checked(pit)
    n_bins = min(N_BINS, max(2, len(u) // FEWEST))
    counts, edges = np.histogram(u, bins=n_bins, range=(0.0, 1.0))
    tail = (1.0 - BAND) / 2.0
    n = len(u) if n_worth is None else max(round(n_worth), 1)
    lower, upper = (float(binom.ppf(p, n, 1.0 / n_bins)) / n for p in (tail, 1.0 - tail))
    return PitHistogram(edges, counts / len(u), lower, upper)


def _checked(pit: ArrayLike) -> Array:
    u = np.asarray(pit, dtype=np.float64)
    if u.ndim != 1 or len(u) == 0 or not np.all((u >= 0.0) & (u <= 1.0)):
        raise DataError("need one number in [0, 1] for each of one or more rows")
    return u
