"""Scores of predictions: of class probabilities, and of predictive laws of numbers."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from scipy.stats import binom

from mercer.errors import DataError

__all__ = ["RegressionScores", "error_coverage_curve", "gains_curve"]

# The scores by which models are compared: what tables and sentences call them.


@dataclass(frozen=True)
class Metric:
    """One score; lower is better, if there is a better, unless it says otherwise."""

    name: str  # field of `Scores` or `RegressionScores`
    heading: str  # heading of a column of a table
    words: str  # in a sentence
    brief: str = ""  # in a list of scores; empty where lists leave it out
    is_shown: bool = True  # tables have a column for it though they are not sorted by it
    #: Whether the lowest is the best: a calibration error alone is no contest, as a model that says
    #: the same of every row can have 0, and coverage has a level to meet.
    has_winner: bool = True
    #: Whether it is that of all rows together, without a standard error over folds: of a few rows
    #: it is mostly chance.
    is_pooled: bool = False
    #: Whether tables may be sorted by it: their first row is the lowest.
    is_lower_better: bool = True
    #: Decimals of its standard error in tables; None where its size depends on the units of the
    #: target.
    error_decimals: int | None = 3

    def of(self, scores: Any) -> float:
        """Return the score; nan where it is not known."""
        value = getattr(scores, self.name)
        return math.nan if value is None else float(value)


def _calibration(heading: str) -> Metric:
    words = "calibration error"
    return Metric(
        "calibration_error", heading, words, brief=words, has_winner=False, is_pooled=True
    )


CLASSIFICATION_METRICS: Final = (
    Metric("error_rate", "error", "error rate", brief="error"),
    Metric("log_score", "log score", "log score", brief="log score"),
    Metric("brier_score", "Brier", "Brier score", brief="Brier"),
    _calibration("calibration"),
    Metric(
        "average_precision",
        "avg prec",
        "average precision of the rare class",
        brief="average precision",
        has_winner=False,
        is_pooled=True,
        is_lower_better=False,
    ),
)

REGRESSION_METRICS: Final = (
    Metric("rmse", "RMSE", "root mean squared error", brief="RMSE", error_decimals=None),
    Metric("mse", "MSE", "mean squared error", is_shown=False, error_decimals=None),
    Metric(
        "standardized_mse",
        "MSE/var",
        "mean squared error over the variance of the target",
        brief="MSE/variance",
        error_decimals=None,
    ),
    Metric("mae", "MAE", "mean absolute error", is_shown=False, error_decimals=None),
    Metric("log_score", "log score", "log score", brief="log score"),
    Metric(
        "coverage_90",
        "in 90 %",
        "share of rows inside 90 % intervals",
        brief="share inside 90 % intervals",
        has_winner=False,
    ),
    _calibration("calibr."),
)


def find_metric(metrics: tuple[Metric, ...], name: str) -> Metric:
    """Return the metric of that name; a KeyError if there is none."""
    for metric in metrics:
        if metric.name == name:
            return metric
    raise KeyError(name)


FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

N_BINS = 10
INTERVAL_LEVEL = 0.9
PROBA_FLOOR = float(np.finfo(float).eps)  # as in scikit-learn's log_loss


@dataclass(frozen=True)
class Scores:
    """The scores of one set of rows, as the functions of the same names return them."""

    n_rows: int
    error_rate: float
    log_score: float
    brier_score: float
    calibration_error: float
    #: Of the class that `rare_class` names, of which the share of the rows is what chance gives; 1
    #: where each of its rows comes before all others. None where no class is rare.
    average_precision: float | None = None

    def to_dict(self) -> dict[str, int | float | None]:
        """Return the scores by name."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Predicted and observed frequencies in k bins; bins without rows are left out."""

    mean_predicted: FloatArray  # mean predicted probability in each bin, ascending
    observed: FloatArray  # fraction of rows of the class
    n_rows: IntArray
    lower: FloatArray  # ends of the 90 % interval (Wilson's) for the true frequency
    upper: FloatArray


def score_classification(y_index: ArrayLike, proba: ArrayLike) -> Scores:
    """Compute all scores of predicted probabilities (n, C), given the class of each row: 0, 1, ...

    A `DataError` when shapes do not fit, there are no rows, a class is out of range, or a row is
    not a distribution.

    Examples
    --------
    >>> score_classification([0, 1], [[0.75, 0.25], [0.5, 0.5]]).brier_score
    0.15625
    """
    y, p = checked_classes(y_index, proba)
    means = {name: float(np.mean(each)) for name, each in class_losses(y, p).items()}
    return Scores(
        n_rows=len(y),
        calibration_error=calibration_error(y, p),
        average_precision=_average_precision(y, p),
        **means,
    )


def _average_precision(y: IntArray, p: FloatArray) -> float | None:
    """Return the mean, over rows of the rare class, of its share among rows as likely or more."""
    rare = rare_class(y, p.shape[1])
    if rare is None:
        return None
    _, place, counts = np.unique(-p[:, rare], return_inverse=True, return_counts=True)
    found = np.bincount(place, weights=y == rare)
    return float(found @ (np.cumsum(found) / np.cumsum(counts)) / found.sum())


def class_losses(y: IntArray, p: FloatArray) -> dict[str, FloatArray]:
    """Return the scores that are means over rows, row by row, of checked classes: ndarrays (n,).

    * "error_rate": 1 where the most probable class (first of equals) is not what came.
    * "log_score": -log p of the observed class, in nats. A probability below 2.2e-16 counts as
      2.2e-16, as in scikit-learn, so that the score is finite.
    * "brier_score": squared distance of the probabilities from the outcome. For two classes this is
      (p - y)^2 of the second class, in [0, 1]; for more the sum over classes, in [0, 2], as in
      scikit-learn.
    """
    observed = p[np.arange(len(y)), y]
    squares = np.square(p - np.eye(p.shape[1])[y])
    return {
        "error_rate": (p.argmax(axis=1) != y).astype(np.float64),
        "log_score": -np.log(np.clip(observed, PROBA_FLOOR, 1.0)),
        "brier_score": squares[:, 1] if p.shape[1] == 2 else squares.sum(axis=1),
    }


def judged_class(y: IntArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return whether a class came, 1 or 0, and its probability, (n,): of two classes the second.

    Of several it is the most probable one of each row.
    """
    if p.shape[1] == 2:
        return y.astype(np.float64), p[:, 1]
    return (p.argmax(axis=1) == y).astype(np.float64), p.max(axis=1)


def error_rate(y_index: ArrayLike, proba: ArrayLike) -> float:
    """Return the fraction of rows whose most probable class (first of equals) is not what came."""
    return score_classification(y_index, proba).error_rate


def log_score(y_index: ArrayLike, proba: ArrayLike) -> float:
    """Return the mean of -log p of the observed class, in nats; lower is better."""
    return score_classification(y_index, proba).log_score


def calibration_error(y_index: ArrayLike, proba: ArrayLike) -> float:
    """Return the expected calibration error over ten bins of equally many rows.

    This is the mean over rows of the distance between predicted and observed frequency in the row's
    bin. For two classes the probability of the second is judged, for more the probability of the
    predicted class against its being right. It is positive even for perfect probabilities, of order
    sqrt(10 / n) times 0.3.
    """
    y, p = checked_classes(y_index, proba)
    curve = _curve(*judged_class(y, p), N_BINS)
    gaps = np.abs(curve.observed - curve.mean_predicted)
    return float(np.sum(gaps * curve.n_rows) / len(y))


def reliability_curve(
    y01: ArrayLike, p: ArrayLike, n_bins: int = N_BINS, *, share_worth: float = 1.0
) -> ReliabilityCurve:
    """Compare probabilities (n,) of a class with its frequency in bins of equally many rows.

    ``y01`` is 1 where the row is of the class. Rows of equal probability share a bin, so there may
    be fewer bins than ``n_bins``. A row is worth ``share_worth``
    independent ones, in the intervals.
    """
    if n_bins < 1:
        raise DataError(f"n_bins must be at least 1, got {n_bins}")
    second = np.asarray(p, dtype=float)
    if second.ndim != 1:
        raise DataError(f"p must have shape (n,), got {second.shape}")
    y, proba = checked_classes(y01, np.column_stack([1.0 - second, second]))
    return _curve(y, proba[:, 1], n_bins, share_worth)


def _curve(
    came: NDArray[Any], p: FloatArray, n_bins: int, share_worth: float = 1.0
) -> ReliabilityCurve:
    """Bin rows by the rank of their probability; ties go where the first of them goes."""
    bins = np.searchsorted(np.sort(p), p, side="left") * n_bins // len(p)
    _, bins, counts = np.unique(bins, return_inverse=True, return_counts=True)
    mean = np.bincount(bins, weights=p) / counts
    observed = np.bincount(bins, weights=came) / counts
    # Wilson (1927): the frequencies q with |observed - q| <= z sqrt(q (1 - q) / count)
    z2 = float(ndtri(0.5 + INTERVAL_LEVEL / 2)) ** 2
    n = counts * share_worth
    center = (observed + z2 / (2 * n)) / (1 + z2 / n)
    spread = observed * (1 - observed) / n + z2 / (4 * n**2)
    half = np.sqrt(z2 * spread) / (1 + z2 / n)
    return ReliabilityCurve(
        mean_predicted=mean,
        observed=observed,
        n_rows=counts.astype(np.int64),
        lower=np.clip(center - half, 0.0, 1.0),
        upper=np.clip(center + half, 0.0, 1.0),
    )


def checked_classes(y_index: ArrayLike, proba: ArrayLike) -> tuple[IntArray, FloatArray]:
    """Return classes as integers and probabilities as floats, or say what is wrong with them."""
    y, p = np.asarray(y_index), np.asarray(proba, dtype=float)
    if y.ndim != 1 or p.ndim != 2 or len(y) != len(p):
        raise DataError(f"need shapes (n,) and (n, C), got {y.shape} and {p.shape}")
    if len(y) == 0 or p.shape[1] < 2:
        raise DataError(f"need at least one row and two classes, got probabilities {p.shape}")
    classes = y.astype(np.int64) if y.dtype.kind in "biuf" else None
    if classes is None or np.any(classes != y) or np.any((classes < 0) | (classes >= p.shape[1])):
        raise DataError(f"classes must be whole numbers from 0 to {p.shape[1] - 1}")
    is_bad = ~(np.all((p >= 0) & (p <= 1), axis=1) & (np.abs(p.sum(axis=1) - 1) < 1e-6))
    if np.any(is_bad):
        raise DataError(f"row {int(np.argmax(is_bad))}: probabilities must be in [0, 1], sum 1")
    return classes, p


# A rare class: that hardly any row errs says little where one that never names it errs as little.

#: A class with a smaller share of the rows is rare, of many classes one with less than the
#: second times its equal share.
RARE: Final = (0.1, 0.3)


def rare_class(y: IntArray, n_classes: int) -> int | None:
    """Return the class with the fewest rows, one at least, if it is rare; else None."""
    fewest = fewest_class(y, n_classes)
    share = np.count_nonzero(y == fewest) / max(1, len(y))
    return fewest if 0.0 < share < min(RARE[0], RARE[1] / n_classes) else None


def fewest_class(y: IntArray, n_classes: int) -> int:
    """Return which of the classes that have a row has the fewest."""
    counts = np.bincount(y, minlength=n_classes)
    return int(np.where(counts > 0, counts, len(y) + 1).argmin())


@dataclass(frozen=True, eq=False)
class Gains:
    """Rows of a class among the k to which the model gives it most, for k = 1..n: (n,)."""

    found: FloatArray  # rows that are of the class; expected where rows tie
    expected: FloatArray  # rows that should be, by the model: the sum of their probabilities
    spread: FloatArray  # standard deviation of that number, of independent rows

    @property
    def share(self) -> FloatArray:
        """Share of all rows that is looked at, k / n."""
        return np.arange(1, len(self.found) + 1) / len(self.found)

    def n_looked_at(self, share: float) -> int:
        """Return how many rows a share of them is, to the nearest; at least one.

        Examples
        --------
        >>> p = np.array([0.1, 0.8, 0.6, 0.5])
        >>> curve = gains_curve([0, 1, 0, 1], p)
        >>> k = curve.n_looked_at(0.5)
        >>> k, float(curve.found[k - 1]), float(curve.expected[k - 1])
        (2, 1.0, 1.4)
        """
        return max(1, round(share * len(self.found)))


def gains_curve(y01: ArrayLike, p: ArrayLike) -> Gains:
    """Count how many rows of a class are found, those with the largest probability of it first.

    Parameters
    ----------
    y01, p : array_like of shape (n,)
        Whether a row is of the class, 1 or 0, and its probability.

    Returns
    -------
    Gains

    Raises
    ------
    DataError
        Unless there are rows, 0 and 1, and probabilities.
    """
    second = np.asarray(p, dtype=float)
    if second.ndim != 1:
        raise DataError(f"p must have shape (n,), got {second.shape}")
    came, proba = checked_classes(y01, np.column_stack([1.0 - second, second]))
    order = np.argsort(-proba[:, 1], kind="stable")
    found, falling = _averaged_over_ties(came[order], proba[order, 1]), proba[order, 1]
    spread = np.sqrt(np.cumsum(falling * (1.0 - falling)))
    return Gains(np.cumsum(found), np.cumsum(falling), spread)


def _averaged_over_ties(values: NDArray[Any], falling: FloatArray) -> FloatArray:
    """Return the mean of the values of rows that are alike in what orders them."""
    _, tie, sizes = np.unique(-falling, return_inverse=True, return_counts=True)
    return np.asarray((np.bincount(tie, weights=values) / sizes)[tie])


# Error against coverage: what is gained by leaving the least certain rows undecided.
#
# References
# ----------
# .. [1] T. Graepel, R. Herbrich. The Kernel Gibbs Sampler. NIPS 13, 2001: section 4, rejection of
#    the test points with the closest decision.

#: Shares of the rows at which reports give the error.
COVERAGES = (1.0, 0.9, 0.75, 0.5)

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ErrorCoverage:
    """Error among the k most certain of n rows, for k = 1..n."""

    coverage: Array  # (n,), k / n, ascending
    #: (n,), share of wrong decisions among those rows; expected where equally certain rows tie
    error: Array
    area: float  # mean of `error`: lower is better, and 0 is without errors

    def n_decided(self, coverage: float) -> int:
        """Return how many rows a share of them is, rounded up; at least one."""
        return max(1, math.ceil(coverage * len(self.error) - 1e-9))

    def error_at(self, coverage: float) -> float:
        """Return the error among a share of the rows.

        Examples
        --------
        >>> p = np.array([0.1, 0.8, 0.6, 0.55])
        >>> curve = error_coverage_curve([0, 1, 1, 0], np.column_stack([1 - p, p]))
        >>> [curve.error_at(share) for share in (1.0, 0.75, 0.5)]
        [0.25, 0.0, 0.0]
        """
        return float(self.error[self.n_decided(coverage) - 1])


def error_coverage_curve(y_index: ArrayLike, proba: ArrayLike) -> ErrorCoverage:
    """Measure the error among the rows with the largest top probability.

    Parameters
    ----------
    y_index, proba : array_like of shape (n,) and (n, C)
        As in `mercer.posterior.scores.score_classification`.

    Returns
    -------
    ErrorCoverage

    Raises
    ------
    DataError
        As `mercer.posterior.scores.score_classification`.

    Notes
    -----
    The most probable class is chosen, of equal ones the first. For two classes the order is that
    of the distance from the boundary, which [1]_ rejects by. Cost O(n log n).

    References
    ----------
    .. [1] T. Graepel, R. Herbrich. The Kernel Gibbs Sampler. NIPS 13, 2001, section 4.
    """
    y, p = checked_classes(y_index, proba)
    top = p.max(axis=1)
    order = np.argsort(-top, kind="stable")
    is_wrong = (p.argmax(axis=1) != y)[order].astype(np.float64)
    expected = _averaged_over_ties(is_wrong, top[order])
    k = np.arange(1, len(y) + 1)
    error = np.cumsum(expected) / k
    return ErrorCoverage(k / len(y), error, float(error.mean()))


# Scores of predictive laws of numbers: squared error, log score, coverage, calibration.


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
        Mean squared error over the variance (divisor n) of the targets that the row's model was
        trained on, averaged over rows: 1 is no better than their mean. None where that variance is
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
