"""Scores of several models on the same folds, each fold in a process of its own.

A model may be scored at several settings, the quick ones first: what the last complete one says
counts, so that there is a score whatever the time allows.
"""

from __future__ import annotations

import functools
import math
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.utils import get_tags
from threadpoolctl import threadpool_limits

from mercer.errors import RowsError
from mercer.estimation.splits import fit_groups, holdout
from mercer.estimation.tasks import CLASSIFICATION, TASKS, Task
from mercer.estimation.workers import Job, Outcome, run_jobs
from mercer.posterior.evaluation import AnyScores, HeldOut, joined
from mercer.posterior.positive_laws import WITH_ERRORS
from mercer.posterior.scores import find_metric

if TYPE_CHECKING:
    from mercer.data.encoding import Encoder
    from mercer.data.frame import Frame
    from mercer.estimation.inspection import Increases, Look

# Draws of the one chain that a fold is fitted with: its Monte Carlo error is far below the error
# of a score from so few rows.
FOLD_DRAWS = 250

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows to learn from and rows to predict; classes are 0, 1, ..., all of them in training.

    ``train`` holds the positions of the former in the table, where one table holds both: errors
    that name rows are then about the table. ``groups_train`` and ``groups_test`` number the groups
    of both, where rows come in groups. ``names`` are those of the inputs, ``sources`` of the
    columns of a table that they come from. Where the training rows say how cells are encoded,
    ``table`` holds their cells and what was learned, ``keys`` tells of each, as encoded here, what
    it is with all rows.
    """

    X_train: Array
    y_train: NDArray[Any]
    X_test: Array
    y_test: NDArray[Any]
    train: NDArray[np.int64] | None = None
    groups_test: NDArray[np.int64] | None = None
    groups_train: NDArray[np.int64] | None = None
    names: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    keys: Mapping[bytes, bytes] | None = None
    table: tuple[Frame, Encoder] | None = None


@dataclass(frozen=True)
class Setting:
    """One setting of a model."""

    words: str  # what it is called in tables: "250 draws"
    make: Callable[[int, int], Any]  # as that of `Contender`
    most_rows: int | None = None  # of more training rows so many are fitted, a random choice


@dataclass(frozen=True)
class Contender:
    """A model that is to be scored."""

    name: str  # in tables; different for each
    is_baseline: bool
    #: (n_rows, n_smallest) -> unfitted estimator, for a training part of so many rows, so many of
    #: them in its smallest class (of numbers: all). It and what it returns can be pickled.
    make: Callable[[int, int], Any]
    words: str = ""  # what this setting is called
    sooner: tuple[Setting, ...] = ()  # quicker ones, the quickest first: scored in any case
    most_rows: int | None = None  # as that of `Setting`

    @property
    def settings(self) -> tuple[Setting, ...]:
        """All settings, the quickest first."""
        return (*self.sooner, Setting(self.words, self.make, self.most_rows))


@dataclass(frozen=True, eq=False)
class Result:
    """What the folds said of one contender."""

    name: str
    is_baseline: bool
    parts: tuple[HeldOut, ...]  # of the test rows of each fold; empty when there is a problem
    seconds: float  # of CPU time, fitting and predicting, all folds
    task: Task = CLASSIFICATION  # says how the parts are scored
    problem: str = ""  # why there are no scores; empty when there are
    error: Exception | None = None  # what a fold raised; with scores, at a longer setting
    groups: NDArray[np.int64] | None = None  # (n,), number of the group of each row of all parts
    setting: str = ""  # at which it was scored
    is_quick: bool = False  # whether that is a quicker one than its own
    increases: tuple[Increases, ...] = ()  # of each fold, where the importance of inputs was asked
    n_cut: int = 0  # folds whose fit max_seconds ended early

    @property
    def cut_words(self) -> str:
        """Say how many fits max_seconds ended early; empty where it ended none."""
        if not self.n_cut:
            return ""
        n = len(self.parts)
        which = "the scored fit" if n == 1 else f"{self.n_cut} of {n} scored fits"
        return f"max_seconds cut {which} short"

    def output(self, k: int) -> Result:
        """Return what was said of one of several outputs."""
        parts: Any = tuple(part.output(k) for part in self.parts)  # type: ignore[union-attr]
        increases = tuple(each.output(k) for each in self.increases)
        return replace(self, parts=parts, increases=increases)

    @functools.cached_property
    def pooled(self) -> AnyScores:
        """Scores of the rows of all folds together."""
        return joined(self.parts).scores()

    def by_fold(self, metric: str) -> Array:
        """Return one score of each fold."""
        found = find_metric(self.task.metrics, metric)
        return np.array([found.of(part.scores()) for part in self.parts])

    def mean_and_error(self, metric: str) -> tuple[float, float]:
        """Return mean and standard error over the folds of one score (nan for a single fold).

        The calibration error of a few rows is mostly chance: it is that of all rows together,
        without a standard error.
        """
        found = find_metric(self.task.metrics, metric)
        if found.is_pooled:
            return found.of(self.pooled), math.nan
        values = self.by_fold(metric)
        if len(values) < 2:
            return float(values.mean()), math.nan
        return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


def for_folds(estimator: Any) -> Any:
    """Return the estimator, unfitted, as a fold fits it: one short chain, quiet, no processes."""
    params = {**estimator.get_params(deep=False), "progress": False}
    if "n_draws" in params:
        params |= {"n_chains": 1, "n_draws": min(int(params["n_draws"]), FOLD_DRAWS)}
        params["n_jobs"] = None
    return type(estimator)(**params)


def contender_of(
    name: str,
    estimator: Any,
    quicker: Sequence[Mapping[str, Any]],
    given: Collection[str],
    folds: Sequence[Fold],
    nearby: Any = None,
) -> Contender:
    """Return what scores a model of mercer, at quicker settings first.

    ``quicker`` are the arguments of these, the quickest first: it is fitted to a few hundred rows
    at most. Arguments that the user gave stay, but numbers of draws and particles, where the
    quicker are fewer, and those of the inference. ``nearby`` is what the fit to all rows has left:
    its own setting starts from that, and needs no quicker one to tell something soon.
    """
    full = for_folds(estimator)
    n_rows = min(len(fold.y_train) for fold in folds)
    n_classes = max(len(np.unique(fold.y_train)) for fold in folds)
    few: int | None = _FEW_ROWS
    if not isinstance(estimator, RegressorMixin):  # fewer where classes are many
        few = max(_FEW_ROWS * 3 // max(n_classes, 3), 150)
    if few is not None and n_rows <= 1.5 * few:
        few = None
    sooner: list[Setting] = []
    for arguments in quicker:
        params, limit = full.get_params(deep=False), None if sooner else few
        changes = {
            key: min(params[key], value) if key in _COUNTS else value
            for key, value in arguments.items()
            if key in params and (key in _COUNTS or key in _OF_INFERENCE or key not in given)
        }
        if params.get("rank") is not None:
            changes.pop("nugget", None)  # finite features have none
        if params.get("noise") in WITH_ERRORS:
            changes.pop("inference", None)  # which targets are wrong is drawn
        is_quicker = any(params[key] != value for key, value in changes.items())
        if not is_quicker and limit is None:
            break
        quick = type(full)(**{**params, **changes, "checkpoint": None})
        limits = [limit]
        if limit is not None and limit < _FEW_ROWS and n_rows > 1.5 * _FEW_ROWS:
            limits.append(_FEW_ROWS)  # fewer of many classes say little of a model
        for most in limits:
            words = _words_of(quick) + ("" if most is None else f", {most} rows")
            sooner.append(Setting(words, maker_of(quick), most))
    return Contender(name, False, maker_of(full, nearby), _words_of(full), tuple(sooner))


_FEW_ROWS = 500
_COUNTS = ("n_draws", "n_warmup", "n_particles")
# Of these a fit at the maximum takes its own.
_OF_INFERENCE = ("inference", "integration", "n_leapfrog", "step_size")


def _words_of(estimator: Any) -> str:
    params = estimator.get_params()
    if params.get("inference") == "map":
        return "maximum"
    if "n_folds" in params:  # of a mixture of models
        return f"weights by {params['n_folds']} folds"
    if "n_draws" in params:
        return f"{params['n_draws']} draws"
    return f"{params['n_particles']} particles"


def cross_validate(
    contenders: Sequence[Contender],
    folds: Sequence[Fold],
    *,
    n_jobs: int,
    task: Task = CLASSIFICATION,
    seconds_per_contender: float | None = None,
    on_begin: Callable[[str], None] | None = None,
    on_fold: Callable[[str], None] | None = None,
    on_result: Callable[[Result], None] | None = None,
    name_rows: Callable[[Sequence[int]], str] | None = None,
    look: Look | None = None,
) -> tuple[Result, ...]:
    """Fit every contender on every fold and predict the rows left out.

    A contender that has quicker settings is scored at each, the quickest first, and its last
    complete score counts. ``seconds_per_contender`` are CPU seconds, summed over folds and
    settings: one that would take longer is ended or not begun, but for the quickest of several.
    ``on_begin`` and ``on_fold`` are called with a contender's name when one of its folds is begun
    and when it is finished, ``on_result`` when all are, at each setting. ``name_rows`` says what
    rows are called, given their positions in the table, in problems that are about rows. ``look``
    says how the importance of inputs is measured, of contenders that are no baselines at their own
    setting; None for not. ``n_jobs`` processes run at a time. Results come in the contenders'
    order.
    """
    jobs: list[Job] = []
    for stage in range(max(len(contender.settings) for contender in contenders)):
        for contender in contenders:
            for setting in contender.settings[stage : stage + 1]:
                is_seen = stage == len(contender.sooner) and not contender.is_baseline
                calls = [
                    functools.partial(
                        _run_fold,
                        task.name,
                        setting,
                        fold,
                        look if is_seen else None,
                        len(folds),
                        k,
                    )
                    for k, fold in enumerate(folds)
                ]
                is_due = stage == 0 and len(contender.sooner) > 0
                jobs += [Job(contender.name, call, stage, is_due=is_due) for call in calls]
    known = {contender.name: contender for contender in contenders}
    judge = functools.partial(_result, folds, task, seconds_per_contender, name_rows)
    finished: dict[tuple[str, int], list[Outcome]] = {(job.group, job.stage): [] for job in jobs}
    results: dict[str, Result] = {}

    def hear(outcome: Outcome) -> None:
        name, stage = outcome.job.group, outcome.job.stage
        own = finished[name, stage]
        own.append(outcome)
        if on_fold is not None and not outcome.is_out_of_time:
            on_fold(name)
        if len(own) < len(folds):
            return
        own.sort(key=lambda each: position[id(each.job)])
        result = judge(known[name], stage, own)
        if result.problem and name in results:  # what a quicker setting said stands
            results[name] = replace(results[name], error=result.error)
            return
        results[name] = result
        if on_result is not None:
            on_result(result)

    position = {id(job): k for k, job in enumerate(jobs)}
    run_jobs(
        jobs,
        n_jobs,
        seconds_per_group=seconds_per_contender,
        on_begin=None if on_begin is None else lambda job: on_begin(job.group),
        on_outcome=hear,
    )
    return tuple(results[contender.name] for contender in contenders)


def maker_of(estimator: Any, nearby: Any = None) -> Callable[[int, int], Any]:
    """Return what makes unfitted copies of an estimator, for a `Contender`.

    ``nearby`` is what a fit to nearly the same rows has left for them.
    """
    return functools.partial(_copy, estimator, nearby)


def _copy(estimator: Any, nearby: Any, n_rows: int, n_smallest: int) -> Any:
    copy = clone(estimator)
    if nearby is not None:
        copy._nearby = nearby
    return copy


def _run_fold(
    task_name: str, setting: Setting, fold: Fold, look: Look | None, n_folds: int, k: int
) -> tuple[HeldOut, float, Increases | None, bool]:
    """Fit on one part, predict the other; return what was said of it, and CPU seconds.

    The importance of inputs, which takes no part in the seconds, is measured if ``look`` says how.
    Last comes whether ``max_seconds`` ended the fit early. A model that takes no NaN gets medians
    in its place, and a column for each input that says where.
    """
    started = time.process_time()
    task = TASKS[task_name]
    rows = _some_rows(fold.y_train, setting.most_rows, is_classification=task.is_stratified)
    X, X_test, y = fold.X_train[rows], fold.X_test, fold.y_train[rows]
    model = setting.make(len(y), task.n_smallest(y))
    from mercer.estimation.base import KernelEstimator

    has_gap = bool(np.isnan(X).any() or np.isnan(X_test).any())
    is_filled = has_gap and not get_tags(model).input_tags.allow_nan
    if is_filled:
        from sklearn.impute import SimpleImputer

        filler = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        X, X_test = filler.fit_transform(X), filler.transform(X_test)
    if isinstance(model, KernelEstimator) and fold.names and not is_filled:
        model._names_of_columns, model._sources_of_columns = fold.names, fold.sources
        if fold.table is not None and fold.keys is not None:
            model._keys_of_rows = fold.keys
            model._table_of_rows = fold.table[0].take(rows), fold.table[1]
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")  # of convergence, say: the scores tell
        try:
            groups = None if fold.groups_train is None else fold.groups_train[rows]
            model.fit(X, y, **fit_groups(model, groups))
        except RowsError as error:
            if fold.train is None:
                raise
            names = fold.train[rows][list(error.rows)].tolist()
            raise RowsError(names, error.words) from None
        held = task.answer(model, X_test, fold.y_test, task.variance(fold.y_train))
        seconds, increases = time.process_time() - started, None
        if look is not None and len(fold.y_test) > 1:
            from mercer.estimation.inspection import permuted_losses

            increases = permuted_losses(
                model, X_test, fold.y_test, look,
                n_parts=n_folds, part=k, groups=fold.groups_test, sources=fold.sources,
            )  # fmt: skip
    return held, seconds, increases, is_cut_short(model)


def is_cut_short(model: Any) -> bool:
    """Whether a fit, of which its notes tell, was ended early by ``max_seconds``."""
    return any("max_seconds" in note for note in getattr(model, "notes_", ()))


def _some_rows(y: NDArray[Any], limit: int | None, *, is_classification: bool) -> NDArray[np.int64]:
    """Choose at most so many rows, every class among them; the same for the same targets."""
    if limit is None or len(y) <= limit:
        return np.arange(len(y))
    rng = np.random.default_rng(len(y))
    return holdout(y, 1.0 - limit / len(y), rng, is_classification=is_classification)[0]


def _result(
    folds: Sequence[Fold],
    task: Task,
    limit: float | None,
    name_rows: Callable[[Sequence[int]], str] | None,
    contender: Contender,
    stage: int,
    outcomes: Sequence[Outcome],
) -> Result:
    error = next((outcome.error for outcome in outcomes if outcome.error is not None), None)
    problem = ""
    if isinstance(error, RowsError) and name_rows is not None:
        problem = f"failed: {name_rows(error.rows)}{error.words}"
    elif error is not None:
        problem = f"failed: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
    elif any(outcome.is_out_of_time for outcome in outcomes):
        problem = f"out of time ({limit:g} CPU s)"
    name, is_baseline = contender.name, contender.is_baseline
    if problem:
        return Result(name, is_baseline, (), math.nan, task, problem, error)
    parts = tuple(outcome.value[0] for outcome in outcomes)
    seconds = sum(outcome.value[1] for outcome in outcomes)
    own = [fold.groups_test for fold in folds if fold.groups_test is not None]
    return Result(
        name,
        is_baseline,
        parts,
        seconds,
        task,
        groups=np.concatenate(own) if own else None,
        setting=contender.settings[stage].words,
        is_quick=stage < len(contender.sooner),
        increases=tuple(outcome.value[2] for outcome in outcomes if outcome.value[2] is not None),
        n_cut=sum(outcome.value[3] for outcome in outcomes),
    )
