"""Whether predictive laws of numbers are right: coverage of their intervals, histogram of the PIT.

The probability integral transform (PIT) of a row is the predictive probability of values up to the
one that came. Of laws that are right it is uniform.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from mercer.errors import DataError

__all__ = ["IntervalCoverage", "PitHistogram", "interval_coverage", "pit_histogram"]

Array = NDArray[np.float64]

LEVELS = np.arange(1, 20) / 20.0
BAND = 0.9  # of what chance does to perfect laws
N_BINS, FEWEST = 10, 5  # rows in a bin


@dataclass(frozen=True, eq=False)
class IntervalCoverage:
    """Share of rows inside central intervals of rising level.

    Parameters
    ----------
    level : ndarray of shape (k,)
        Probability inside, as the laws say.
    observed : ndarray of shape (k,)
        Share of the rows.
    lower, upper : ndarray of shape (k,)
        Where the share lies with probability 0.9 at least if the laws are right (binomial).
    """

    level: Array
    observed: Array
    lower: Array
    upper: Array


@dataclass(frozen=True, eq=False)
class PitHistogram:
    """Rows by their PIT, in bins of equal width.

    Parameters
    ----------
    edges : ndarray of shape (k + 1,)
        From 0 to 1.
    share : ndarray of shape (k,)
        Of the rows, in each bin.
    lower, upper : float
        Where the share of a bin lies with probability 0.9 at least if the laws are right.
    """

    edges: Array
    share: Array
    lower: float
    upper: float


def interval_coverage(pit: ArrayLike) -> IntervalCoverage:
    """Count how many rows central intervals hold, at levels of 5, 10, .., 95 %.

    Parameters
    ----------
    pit : array_like of shape (n,)
        In [0, 1]; a row is inside the interval of level l where |2 pit - 1| <= l.

    Returns
    -------
    IntervalCoverage

    Raises
    ------
    DataError
        When there are no rows, or numbers outside [0, 1].

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
    lower, upper = (binom.ppf(p, len(u), LEVELS) / len(u) for p in (tail, 1.0 - tail))
    return IntervalCoverage(LEVELS.copy(), inside, lower, upper)


def pit_histogram(pit: ArrayLike) -> PitHistogram:
    """Count rows by their PIT, in ten bins; of less than 50 rows in fewer.

    Parameters
    ----------
    pit : array_like of shape (n,)
        In [0, 1].

    Returns
    -------
    PitHistogram

    Raises
    ------
    DataError
        When there are no rows, or numbers outside [0, 1].
    """
    u = _checked(pit)
    n_bins = min(N_BINS, max(2, len(u) // FEWEST))
    counts, edges = np.histogram(u, bins=n_bins, range=(0.0, 1.0))
    tail = (1.0 - BAND) / 2.0
    lower, upper = (float(binom.ppf(p, len(u), 1.0 / n_bins)) / len(u) for p in (tail, 1.0 - tail))
    return PitHistogram(edges, counts / len(u), lower, upper)


def _checked(pit: ArrayLike) -> Array:
    u = np.asarray(pit, dtype=np.float64)
    if u.ndim != 1 or len(u) == 0 or not np.all((u >= 0.0) & (u <= 1.0)):
        raise DataError("need one number in [0, 1] for each of one or more rows")
    return u
