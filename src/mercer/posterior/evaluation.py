"""What held-out rows said of a fitted model, and where the fit came from; model files keep it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Final, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, stdtrit

from mercer.errors import DataError
from mercer.posterior.draws import IN_WARMUP
from mercer.posterior.schema import (
    CLASS_EVALUATION,
    EVALUATION_CLASSES,
    EVALUATION_NUMBERS,
    NUMBER_EVALUATION,
    PROVENANCE,
    Sizes,
    check_arrays,
)
from mercer.posterior.scores import (
    CLASSIFICATION_METRICS,
    LEVEL,
    LEVELS,
    REGRESSION_METRICS,
    Gains,
    Metric,
    RegressionScores,
    Scores,
    class_losses,
    gains_curve,
    judged_class,
    pit_distance,
    r_squared,
    rare_class,
    score_classification,
)

# Numbers of any size in sentences.


def digits(value: float, n: int = 3) -> str:
    """Write a number with so many significant digits; those before the point are all kept.

    Examples
    --------
    >>> [digits(x) for x in (0.12345, 1234.56, -2.0, 0.0, 2.3e-7, 1e9)]
    ['0.123', '1235', '-2.00', '0', '2.30e-07', '1.00e+09']
    """
    size = abs(value)
    if size == 0:
        return "0"
    if not 1e-4 <= size < 1e7:
        return f"{value:.{n - 1}e}"
    return f"{value:.{max(0, n - 1 - math.floor(math.log10(size)))}f}"


# What a model said of held-out rows beside what came: classes or numbers.

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HeldClasses:
    """Class probabilities of n rows, and the positions of the classes that came."""

    y_index: NDArray[np.int64]  # (n,)
    proba: Array  # (n, C)

    def scores(self) -> Scores:
        """Score the rows."""
        return score_classification(self.y_index, self.proba)

    @property
    def judged(self) -> tuple[Array, Array]:
        """Whether the class came that `judged_class` names, and its probability, (n,)."""
        return judged_class(self.y_index, self.proba)

    @property
    def residuals(self) -> Array:
        """Whether the class that is `judged` came less its probability, (k, n)."""
        came, proba = self.judged
        return np.asarray(came - proba)[np.newaxis]

    @property
    def losses(self) -> Mapping[str, Array]:
        """The scores that are means over rows, row by row: ndarrays of shape (n,)."""
        return class_losses(self.y_index, self.proba)


@dataclass(frozen=True, eq=False)
class HeldTargets:
    """Predictive laws of n numbers in brief, and the numbers that came; in the user's units.

    All fields have shape (n,), or (n, q) of several outputs, of which one is scored at a time.
    """

    y: Array
    mean: Array
    std: Array  # standard deviation of a new observation
    lower: Array  # ends of the central 90 % interval
    upper: Array
    log_density: Array  # log predictive density at y, nats
    pit: Array  # predictive probability of values up to y; of counts, of half of y itself
    #: Variance of the targets that the row's model was trained on (divisor: their number); nan
    #: where it is not known.
    variance: Array

    def at(self, rows: NDArray[np.int64]) -> HeldTargets:
        """Return what was said of some of the rows."""
        return HeldTargets(**{name: values[rows] for name, values in vars(self).items()})

    def output(self, k: int) -> HeldTargets:
        """Return what was said of one of several outputs."""
        return HeldTargets(**{name: values[:, k] for name, values in vars(self).items()})

    def scores(self) -> RegressionScores:
        """Score the rows."""
        if len(self.y) == 0:
            raise DataError("need at least one row to score")
        squares = self.squared_errors
        mse = float(squares.mean())
        standardized = None
        if np.all(self.variance > 0):
            standardized = mse / float(self.variance.mean())
        return RegressionScores(
            n_rows=len(self.y),
            mse=mse,
            rmse=math.sqrt(mse),
            standardized_mse=standardized,
            mae=float(np.mean(np.abs(self.y - self.mean))),
            r2=r_squared(self.y, self.mean),
            log_score=float(-np.mean(self.log_density)),
            coverage_90=float(np.mean((self.lower <= self.y) & (self.y <= self.upper))),
            width_90=float(np.mean(self.upper - self.lower)),
            calibration_error=pit_distance(self.pit),
        )

    @property
    def residuals(self) -> Array:
        """Whether the target is in its central interval less the level, (k, n), at k levels."""
        distance = np.abs(2.0 * self.pit - 1.0)
        return (distance <= LEVELS[:, np.newaxis] + 1e-12) - LEVELS[:, np.newaxis]

    @property
    def losses(self) -> Mapping[str, Array]:
        """The scores that are means over rows, row by row; of the root, the influence of each row.

        The influence of a row on the root mean squared error is, to first order, its squared error
        over twice the root, up to a constant: means of such differences have the standard error of
        a difference of roots.
        """
        squares = self.squared_errors
        root = float(np.sqrt(squares.mean()))
        return {
            "mse": squares,
            "rmse": squares / (2.0 * root) + 0.5 * root if root > 0 else squares,
            "standardized_mse": squares / self.variance.mean(),
            "mae": np.abs(self.y - self.mean),
            "log_score": -self.log_density,
        }

    @property
    def squared_errors(self) -> Array:
        """Squared error of each row."""
        return np.square(self.y - self.mean)


HeldOut: TypeAlias = HeldClasses | HeldTargets
Kind = TypeVar("Kind", bound=HeldOut)
AnyScores: TypeAlias = Scores | RegressionScores
ScoresT = TypeVar("ScoresT", Scores, RegressionScores)


class TargetLaw(Protocol):
    """A law of the target of each of m rows."""

    @property
    def mean(self) -> Array:
        """Mean, shape (m,)."""

    @property
    def std(self) -> Array:
        """Standard deviation, shape (m,)."""

    def log_density(self, y: ArrayLike) -> Array:
        """Log density of one value per row, of whole numbers log probability, in nats."""

    def pit(self, y: ArrayLike) -> Array:
        """Probability of values below y and, if y itself has a probability, of half of that."""

    def interval(self, level: float) -> tuple[Array, Array]:
        """Ends of the central interval, both (m,)."""

    def sample(
        self, rng: np.random.Generator, n: int, chosen: NDArray[np.integer] | None = None
    ) -> Array:
        """Draw new targets, (n, m)."""


def hold(law: TargetLaw, y: Array, variance: Any) -> HeldTargets:
    """Keep in brief what a predictive law says of targets (n,) or (n, q) that are known."""
    lower, upper = law.interval(LEVEL)
    return HeldTargets(
        y=y,
        mean=law.mean,
        std=law.std,
        lower=lower,
        upper=upper,
        log_density=law.log_density(y),
        pit=law.pit(y),
        variance=np.full(y.shape, variance),
    )


def joined(parts: Sequence[Kind]) -> Kind:
    """Put the rows of several parts, one at least, into one."""
    columns: dict[str, Any] = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts])
        for field in fields(parts[0])
    }
    return replace(parts[0], **columns)


# Scores of rows that come block by block and are not kept.


class RunningScores:
    """Means over rows, by running sums.

    The calibration error, the average precision and r2 need all rows at once, and are left out.
    """

    def __init__(self) -> None:
        self._n_rows = 0
        self._sums: dict[str, float] = {}
        self._last: AnyScores | None = None

    def add(self, held: HeldOut) -> None:
        """Score some rows, one at least; always of the same task."""
        self._last = held.scores()
        values = self._last.to_dict()
        n = self._last.n_rows
        self._n_rows += n
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, 0.0) + n * (
                math.nan if value is None else value
            )

    def scores(self) -> AnyScores | None:
        """Return the scores of all rows so far; None before the first."""
        if self._last is None:
            return None
        means: dict[str, Any] = {name: total / self._n_rows for name, total in self._sums.items()}
        means |= {"n_rows": self._n_rows, "calibration_error": math.nan}
        if isinstance(self._last, Scores):
            means["average_precision"] = None
        else:
            means |= {"rmse": math.sqrt(means["mse"]), "r2": None}
            if math.isnan(means["standardized_mse"]):
                means["standardized_mse"] = None
        return replace(self._last, **means)


@dataclass(frozen=True)
class ModelScore(Generic[ScoresT]):
    """The held-out scores of one model or baseline on the rows of an evaluation.

    Errors are wrong classes, or squared errors. Standard errors of differences from the model are
    over paired rows, those of a group together; None for the model itself, of a single row or
    group, and in files that do not hold it.
    """

    name: str
    is_baseline: bool
    scores: ScoresT
    seconds: float
    gap_error: float | None = None  # of the difference of mean errors
    log_score_gap_error: float | None = None  # of the difference of log scores
    n_groups: int | None = None  # how many groups the rows come in; None where they are independent
    own_error: float | None = None  # standard error of the mean error from several groups
    n_worth: float | None = None  # how many independent rows those of the groups are worth


@dataclass(frozen=True, eq=False)
class RareClass:
    """The rare class of held-out rows, and how well these are found."""

    name: str  # in quotation marks
    n_rare: int  # its rows
    gains: Gains

    @property
    def share(self) -> float:
        """Share of its rows, which is its average precision by chance."""
        return self.n_rare / len(self.gains.found)

    @property
    def n_found(self) -> float:
        """How many of its rows are among the first, of which as many are looked at."""
        return float(self.gains.found[self.n_rare - 1])


@dataclass(frozen=True)
class Evaluation:
    """Held-out class probabilities of the model, with the scores of the baselines beside it."""

    how: str  # "10-fold cross-validation", "25 % of the rows held out", "test file x.csv"
    classes: tuple[str, ...]  # labels, in the order of the columns of `proba`
    y_index: NDArray[np.int64]  # (n,), position of the class of each held-out row
    proba: NDArray[np.float64]  # (n, C), of the model
    #: the model itself first, then the baselines, on the same rows and folds
    entries: tuple[ModelScore[Scores], ...]
    metrics: ClassVar[tuple[Metric, ...]] = CLASSIFICATION_METRICS
    main_error: ClassVar[str] = "error_rate"

    @cached_property
    def rare(self) -> RareClass | None:
        """The class that is rare among the rows, if one is."""
        found = rare_class(self.y_index, len(self.classes))
        if found is None:
            return None
        came = self.y_index == found
        curve = gains_curve(came, self.proba[:, found])
        return RareClass(f"“{self.classes[found]}”", int(came.sum()), curve)


@dataclass(frozen=True)
class RegressionEvaluation:
    """Held-out predictive laws of the model, with the scores of the baselines beside it."""

    how: str  # as in `Evaluation`
    rows: HeldTargets  # held-out rows, as the model predicts them
    #: the model itself first, then the baselines, on the same rows and folds
    entries: tuple[ModelScore[RegressionScores], ...]
    metrics: ClassVar[tuple[Metric, ...]] = REGRESSION_METRICS
    main_error: ClassVar[str] = "mse"


AnyEvaluation: TypeAlias = Evaluation | RegressionEvaluation


@dataclass(frozen=True)
class Provenance:
    """What was fitted on what, and how to do it again."""

    source: str  # file or data set, as the user named it
    target: str
    n_rows: int
    n_inputs: int
    input_names: tuple[str, ...]
    notes: tuple[str, ...]  # encodings, standardisation, rows left out: one line each
    command: str  # how to reproduce, as typed
    seed: int
    seconds: float  # of the final fit
    created: str  # ISO date
    versions: tuple[tuple[str, str], ...]  # package, version


def is_warning(note: str) -> bool:
    """Whether a note says that chains had no time to come to the posterior."""
    return IN_WARMUP in note


# Where a model stands beside its baselines, said cautiously.

COMPARED: Final = {
    "level": "level with",
    "ahead": "ahead of",
    "behind": "behind",
    "unknown": "not judged against",
}
#: With fewer held-out rows nothing is judged: right on all, a model may err on 10 % of others.
FEW_ROWS = 30
_CHANCE: Final = {
    "level": "so the gap may well be chance.",
    "ahead": "so the gap is hardly chance.",
    "behind": "so the gap is hardly chance: prefer the baseline, or find out why.",
}


def error_rate_se(entry: ModelScore[Scores]) -> float:
    """Return the standard error of an error rate; infinite for a single group.

    For k errors in n independent rows, the binomial standard error at (k + 1) / (n + 2), so that
    it is not 0 for a model without errors.
    """
    if entry.n_groups is not None:
        return math.inf if entry.own_error is None else entry.own_error
    n = entry.scores.n_rows
    rate = (entry.scores.error_rate * n + 1) / (n + 2)
    return math.sqrt(rate * (1 - rate) / n)


def paired_gap(
    first: HeldOut, second: HeldOut, metric: str, groups: NDArray[np.int64] | None = None
) -> tuple[float, float | None] | None:
    """Return how much larger a score of ``first`` is than ``second``'s, and the standard error.

    Both predict the same rows, in the same order. Rows of one group may be alike, groups are
    independent. None for a score that is no mean over rows; the standard error is that of the
    difference, since what one finds hard the other finds hard, and None of a single row or group.

    For error rates only rows that one alone misses count. With few of them their spread is too
    small an estimate (none at all: 0), so the standard error is Bonett and Price's [1]_: one more
    such row on either side, each in a group of its own. With groups the standard error is that of a
    mean of clusters [2]_. From few groups it is uncertain itself.

    References
    ----------
    .. [1] D. G. Bonett and R. M. Price (2012), "Adjusted Wald confidence interval for a difference
       of binomial proportions based on paired data", J. Educ. Behav. Stat. 37, 479-488.
    .. [2] K.-Y. Liang and S. L. Zeger (1986), "Longitudinal data analysis using generalized linear
       models", Biometrika 73, 13-22.
    """
    mine, other = first.losses.get(metric), second.losses.get(metric)
    if mine is None or other is None:
        return None
    gaps = mine - other
    n, gap = len(gaps), float(gaps.mean())
    groups = np.arange(n) if groups is None else groups
    if n < 2 or len(np.unique(groups)) < 2:
        return gap, None
    if metric != "error_rate":
        return gap, clustered_error(gaps, groups)
    more = groups.max() + np.array([1, 2])
    augmented, own = np.append(gaps, [1.0, -1.0]), np.append(groups, more)
    return gap, math.sqrt((n + 1) / (n + 2)) * clustered_error(augmented, own)


def clustered_error(values: Array, groups: NDArray[np.int64]) -> float:
    """Standard error of the mean of values (n,), given the number of the group of each.

    Infinite of a single group. Where each value is a group it is their standard deviation over the
    root of n.
    """
    sizes, sums = np.bincount(groups), np.bincount(groups, values)
    n, n_groups = len(values), np.count_nonzero(sizes)
    if n_groups < 2:
        return math.inf
    deviations = sums - sizes * values.mean()
    return math.sqrt(n_groups / (n_groups - 1) * float(deviations @ deviations)) / n


def paired_error(increases: Array, units: NDArray[np.int64]) -> float:
    """Standard error of the mean of increases (R, n), each of a row and of another.

    The same rows are both: with a_u the sum of deviations of rows of ``units`` (1 + R, n) u, and
    b_u of those whose other row is of u, the variance of the sum is that of all a_u + b_u, less
    what single pairs add to both. Infinite of a single unit.
    """
    codes = np.unique(units, return_inverse=True)[1].reshape(units.shape)
    n_units, deviations = len(np.unique(units[0])), increases - increases.mean()
    if n_units < 2:
        return math.inf
    own = np.bincount(codes[0], deviations.sum(axis=0), codes.max() + 1)
    other = np.bincount(codes[1:].ravel(), deviations.ravel(), codes.max() + 1)
    both = np.square(own + other).sum() - np.square(deviations).sum()
    variance = max(both, np.square(own).sum()) * n_units / (n_units - 1)
    return math.sqrt(variance) / increases.size


def rows_worth(residuals: Array, groups: NDArray[np.int64]) -> float:
    """How many independent rows the rows of groups are worth, from 1 (a single group) to n.

    ``residuals`` (k, n) are, of k quantities, what came less what was predicted, whose expectation
    is 0. Divides n by the design effect [1]_: the variance of a sum over rows, by groups, over that
    of independent rows, averaged over the quantities.

    References
    ----------
    .. [1] L. Kish (1965), Survey Sampling, Wiley, section 5.4.
    """
    n, n_groups = len(groups), len(np.unique(groups))
    if n_groups < 2:
        return 1.0
    sums = np.stack([np.bincount(groups, each) for each in residuals])
    alone = np.square(residuals).sum(axis=1)
    if not alone.all():
        return float(n_groups)  # nothing says how alike the rows of a group are
    effect = np.mean(np.square(sums).sum(axis=1) / alone)
    return float(np.clip(n / effect, 1.0, n))


def compared(gap: float, error: float | None, n_groups: int | None = None) -> str:
    """Say where a model stands whose score is larger by ``gap``: "ahead", "level" or "behind".

    Level is a gap within two standard errors of the gap; "unknown", where there is none. A standard
    error from G groups is uncertain itself: it has G - 1 degrees of freedom, and in place of two
    counts the quantile of Student's t of the same probability, 14 for G = 2 and 3.3 for G = 4.
    """
    if error is None:
        return "unknown"
    if abs(gap) <= _most_by_chance(n_groups) * error:
        return "level"
    return "ahead" if gap < 0 else "behind"


def _most_by_chance(n_groups: int | None) -> float:
    """Return how many standard errors a gap may be by chance."""
    return 2.0 if n_groups is None else float(stdtrit(max(1, n_groups - 1), ndtr(2.0)))


def standing(evaluation: AnyEvaluation) -> tuple[str, ModelScore[Any]] | None:
    """Compare the model's errors with the best baseline's: the word of `compared`, and the latter.

    None without baselines.
    """
    entries: tuple[ModelScore[Any], ...] = evaluation.entries
    model, *others = entries
    if not others:
        return None

    def error(entry: ModelScore[Any]) -> float:
        return float(getattr(entry.scores, evaluation.main_error))

    best = min(others, key=error)
    return compared(error(model) - error(best), best.gap_error, model.n_groups), best


def log_score_words(evaluation: AnyEvaluation) -> str:
    """Say how the model's log score compares with that of the best baseline, on the same rows."""
    entries: tuple[ModelScore[Any], ...] = evaluation.entries
    model, *others = entries
    if not others:
        return ""
    best = min(others, key=lambda entry: entry.scores.log_score)
    mine, theirs = model.scores.log_score, best.scores.log_score
    place = sum(entry.scores.log_score < mine for entry in others) + 1
    word = compared(mine - theirs, best.log_score_gap_error, model.n_groups)
    return (
        f"In log score (nats a row) the model takes place {place} of {len(others) + 1}, "
        f"{COMPARED[word]} {best.name}, the best baseline: {_nats(mine)} beside {_nats(theirs)}. "
        f"{_gap_words(word, _nats(abs(mine - theirs)), _nats(best.log_score_gap_error), model)}"
    )


def mse_error(evaluation: RegressionEvaluation) -> float:
    """Standard error of the model's mean squared error; infinite for a single row or group."""
    model = evaluation.entries[0]
    if model.n_groups is not None:
        return math.inf if model.own_error is None else model.own_error
    squares = evaluation.rows.squared_errors
    if len(squares) < 2:
        return math.inf
    return float(squares.std(ddof=1)) / math.sqrt(len(squares))


#: In place of a verdict.
NO_VERDICT = "none: where no input varies, no model tells one row from another"


def verdict(evaluation: AnyEvaluation) -> str:
    """Say honestly, in a sentence or two, how the model compares in errors."""
    if isinstance(evaluation, RegressionEvaluation):
        return _regression_verdict(evaluation)
    return _classification_verdict(evaluation)


def _classification_verdict(evaluation: Evaluation) -> str:
    model = evaluation.entries[0]
    error = model.scores.error_rate
    place = standing(evaluation)
    if place is None:
        spread = 100.0 * error_rate_se(model)
        known = f", with a standard error of {spread:.1f} percentage points"
        return (
            f"{_rare_words(evaluation)}The model errs on {_percent(error)} of these rows"
            f"{known if np.isfinite(spread) else ', of one group, which says nothing of others'}. "
            "No baseline was run, so there is nothing to compare it with."
        )
    word, best = place
    gap = _points(error - best.scores.error_rate)
    return (
        f"{_rare_words(evaluation)}In errors the model is {_place_words(evaluation)}: it errs on "
        f"{_percent(error)} of these rows, the baseline on {_percent(best.scores.error_rate)}. "
        f"{_gap_words(word, gap, _points(best.gap_error), model)}"
    )


def _rare_words(evaluation: Evaluation) -> str:
    """Say, where a class is rare, that errors tell little, and how well its rows are found."""
    model, *others = evaluation.entries
    rare, mine = evaluation.rare, model.scores.average_precision
    if rare is None or mine is None:
        return ""
    found = f"Of the {rare.n_rare} rows where it is most likely {rare.n_found:.0f} are {rare.name}"
    if rare.n_rare == 1:
        is_found = "is" if rare.n_found >= 0.5 else "is not"
        found = f"The row where it is most likely {is_found} {rare.name}"
    words = (
        f"{rare.name} is rare, {rare.n_rare} of {model.scores.n_rows} rows, so that errors say "
        f"little of it: never to name it costs errors on {_percent(rare.share)}. {found}; average "
        f"precision {mine:.3f}, by chance {rare.share:.3f}"
    )
    if others:
        best = max(others, key=lambda each: each.scores.average_precision or 0.0)
        words += f", of {best.name}, the best baseline in this, {best.scores.average_precision:.3f}"
    return f"{words}. "


def _regression_verdict(evaluation: RegressionEvaluation) -> str:
    scores = evaluation.entries[0].scores
    rmse = digits(scores.rmse, 4)
    place = standing(evaluation)
    if place is None:
        return (
            f"The root mean squared error of the model is {rmse} on these rows, in the units of "
            f"the target{_of_variance(scores.standardized_mse)}. No baseline was run, so there is "
            "nothing to compare it with."
        )
    word, best = place
    gap = f"{digits(abs(scores.mse - best.scores.mse))} in mean squared error"
    error = "" if best.gap_error is None else digits(best.gap_error, 2)
    n_better = sum(entry.scores.mse < scores.mse for entry in evaluation.entries[1:])
    return (
        f"In squared error the model is {_place_words(evaluation)}: its root mean squared error is "
        f"{rmse} (in the units of the target), the baseline's "
        f"{digits(best.scores.rmse, 4)}; it takes place {n_better + 1} of "
        f"{len(evaluation.entries)}. "
        f"{_gap_words(word, gap, error, evaluation.entries[0])}"
    )


def _place_words(evaluation: AnyEvaluation) -> str:
    """Say where the model stands among the baselines; last of several though the gap be chance."""
    entries: tuple[ModelScore[Any], ...] = evaluation.entries
    place = standing(evaluation)
    assert place is not None
    word, best = place
    mine, *others = (getattr(entry.scores, evaluation.main_error) for entry in entries)
    if word == "level" and len(others) > 1 and mine > max(others):
        return f"behind all {len(others)} baselines, of which {best.name} is the best"
    gap = mine - getattr(best.scores, evaluation.main_error)
    if word == "level" and best.gap_error is not None and abs(gap) > 2.0 * best.gap_error:
        side = COMPARED["ahead" if gap < 0 else "behind"]
        return f"{side}, though that may be chance, the best baseline, {best.name}"
    return f"{COMPARED[word]} the best baseline, {best.name}"


def _gap_words(word: str, gap: str, error: str, model: ModelScore[Any]) -> str:
    """Say whether a gap is chance; ``gap`` and ``error`` are written out, with their unit."""
    if word == "unknown":
        if model.scores.n_rows == 1:
            return "One row says nothing of a difference."
        if model.n_groups == 1:
            return "One group says nothing of a difference."
        return (
            "Whether they differ by chance is not known: the file does not hold the standard error "
            "of the difference."
        )
    chance = _CHANCE[word]
    if model.scores.n_rows < FEW_ROWS:
        chance = f"but {model.scores.n_rows} rows are too few to say what is chance."
    of_groups = "" if model.n_groups is None else f", {model.n_groups} groups taken whole"
    if word == "level" and (most := _most_by_chance(model.n_groups)) > 2.05:
        chance = f"{chance[:-1]}: of {model.n_groups} groups one below {most:.1f} of these may be."
    return (
        f"On the same rows the two differ by {gap} with a standard error of {error} (of the "
        f"difference, rows paired{of_groups}), {chance}"
    )


def _points(share: float | None) -> str:
    return "" if share is None else f"{points(abs(share))} percentage points"


def points(share: float) -> str:
    """Write a share in percentage points: one decimal, of less than a tenth its first two digits.

    Examples
    --------
    >>> [points(x) for x in (0.1234, 0.0, -0.00012)]
    ['12.3', '0.0', '-0.012']
    """
    value = 100.0 * share
    return f"{value:.1f}" if value == 0.0 or abs(value) >= 0.1 else f"{value:.2g}"


def _nats(value: float | None) -> str:
    """Write nats with three decimals, and with three digits where decimals would all be 0."""
    if value is None:
        return ""
    is_small = 1e-12 < abs(value) < 0.001  # below that is rounding
    return f"{value:.3g}" if is_small else f"{value:.3f}"


def _of_variance(share: float | None) -> str:
    return "" if share is None else f", its square {_percent(share)} of the variance"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\u00a0%"


# Evaluations as parts of a model file: JSON values and arrays, and back again with checks.

Arrays = dict[str, NDArray[Any]]
_COLUMNS = tuple(field.name for field in fields(HeldTargets))


def evaluation_parts(evaluation: AnyEvaluation) -> tuple[dict[str, Any], Arrays]:
    """Split an evaluation into JSON values and arrays."""
    values: dict[str, Any] = {"how": evaluation.how}
    entries = {"entries": [asdict(entry) for entry in evaluation.entries]}
    if isinstance(evaluation, RegressionEvaluation):
        columns = {f"evaluation/{name}": getattr(evaluation.rows, name) for name in _COLUMNS}
        return {**values, "kind": "regression", **entries}, columns
    arrays: Arrays = {
        "evaluation/y_index": evaluation.y_index,
        "evaluation/proba": evaluation.proba,
    }
    return {**values, "classes": list(evaluation.classes), **entries}, arrays


def evaluation_from(values: Mapping[str, Any], arrays: Mapping[str, Any]) -> AnyEvaluation:
    """Put an evaluation together again, once it is what `mercer.posterior.schema` says.

    A ValueError names the field that is missing or does not fit.
    """
    sizes: Sizes = {}
    if isinstance(values, dict) and values.get("kind") == "regression":
        EVALUATION_NUMBERS.check(values, "evaluation", sizes)
        check_arrays(arrays, NUMBER_EVALUATION, sizes)
        rows = HeldTargets(**{name: arrays[f"evaluation/{name}"] for name in _COLUMNS})
        if np.any(rows.lower > rows.upper):
            raise ValueError("evaluation/lower is above evaluation/upper")
        return RegressionEvaluation(values["how"], rows, _entries(values, RegressionScores))
    EVALUATION_CLASSES.check(values, "evaluation", sizes)
    check_arrays(arrays, CLASS_EVALUATION, sizes)
    found = arrays["evaluation/y_index"], arrays["evaluation/proba"]
    return Evaluation(values["how"], tuple(values["classes"]), *found, _entries(values, Scores))


def _entries(values: Mapping[str, Any], kind: type[ScoresT]) -> tuple[ModelScore[ScoresT], ...]:
    return tuple(
        ModelScore(**{**each, "scores": kind(**each["scores"])}) for each in values["entries"]
    )


def provenance_from(values: Any) -> Provenance:
    """Rebuild where a model came from, once it is what `mercer.posterior.schema` says."""
    PROVENANCE.check(values, "provenance", {})
    lists = {"input_names": tuple(values["input_names"]), "notes": tuple(values["notes"])}
    versions = tuple((name, version) for name, version in values["versions"])
    return Provenance(**{**values, **lists, "versions": versions})
