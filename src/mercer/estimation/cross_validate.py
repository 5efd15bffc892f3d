"""Scores of several models on the same folds, each fold in a process of its own."""

from __future__ import annotations

import functools
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from mercer.errors import RowsError
from mercer.estimation.tasks import CLASSIFICATION, TASKS, Task
from mercer.estimation.workers import Job, Outcome, run_jobs
from mercer.posterior.evaluation import HeldOut
from mercer.posterior.regression_scores import RegressionScores
from mercer.posterior.scores import Scores, find_metric

# Draws of the one chain that a fold is fitted with: its Monte Carlo error is far below the error
# of a score from so few rows.
FOLD_DRAWS = 250

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows to learn from and rows to predict; classes are 0, 1, ..., all of them in training.

    ``train`` holds the positions of the former in the table, where one table holds both: errors
    that name rows are then about the table. ``groups_test`` numbers the groups of the latter, where
    rows come in groups.
    """

    X_train: Array
    y_train: NDArray[Any]
    X_test: Array
    y_test: NDArray[Any]
    train: NDArray[np.int64] | None = None
    groups_test: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Contender:
    """A model that is to be scored."""

    name: str  # in tables; different for each
    is_baseline: bool
    #: (n_rows, n_smallest) -> unfitted estimator, for a training part of so many rows, so many of
    #: them in its smallest class (of numbers: all). It and what it returns can be pickled.
    make: Callable[[int, int], Any]


@dataclass(frozen=True, eq=False)
class Result:
    """What the folds said of one contender."""

    name: str
    is_baseline: bool
    parts: tuple[HeldOut, ...]  # of the test rows of each fold; empty when there is a problem
    seconds: float  # fitting and predicting, all folds
    task: Task = CLASSIFICATION  # says how the parts are scored
    problem: str = ""  # why there are no scores; empty when there are
    error: Exception | None = None  # what a fold raised
    groups: NDArray[np.int64] | None = None  # (n,), number of the group of each row of all parts

    @property
    def pooled(self) -> Scores | RegressionScores:
        """Scores of the rows of all folds together."""
        return self.task.score(self.parts)

    def by_fold(self, metric: str) -> Array:
        """Return one score of each fold."""
        found = find_metric(self.task.metrics, metric)
        return np.array([found.of(self.task.score([part])) for part in self.parts])

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
    params = {**estimator.get_params(), "progress": False}
    if "n_draws" in params:
        params |= {"n_chains": 1, "n_draws": min(int(params["n_draws"]), FOLD_DRAWS)}
        params["n_jobs"] = None
    return type(estimator)(**params)


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
) -> tuple[Result, ...]:
    """Fit every contender on every fold and predict the rows left out.

    Results come in the contenders' order. A contender that takes longer than
    ``seconds_per_contender``, summed over its folds, is ended and gets no scores. ``on_begin`` and
    ``on_fold`` are called with its name when one of its folds is begun and when it is finished,
    ``on_result`` when all are. ``name_rows`` says what rows are called, given their positions in
    the table, in problems that are about rows. ``n_jobs`` processes run at a time.
    """
    jobs = [
        Job(contender.name, functools.partial(_run_fold, task.name, contender.make, fold))
        for contender in contenders
        for fold in folds
    ]
    known = {contender.name: contender for contender in contenders}
    tell = functools.partial(_result, folds, task, seconds_per_contender, name_rows)
    finished: dict[str, list[Outcome]] = {name: [] for name in known}

    def hear(outcome: Outcome) -> None:
        name = outcome.job.group
        finished[name].append(outcome)
        if on_fold is not None:
            on_fold(name)
        if on_result is not None and len(finished[name]) == len(folds):
            by_job = {id(each.job): each for each in finished[name]}
            ordered = [by_job[id(job)] for job in jobs if job.group == name]
            on_result(tell(known[name], ordered))

    outcomes = run_jobs(
        jobs,
        n_jobs,
        seconds_per_group=seconds_per_contender,
        on_begin=None if on_begin is None else lambda job: on_begin(job.group),
        on_outcome=hear,
    )
    k = len(folds)
    return tuple(
        tell(contender, outcomes[i * k : (i + 1) * k]) for i, contender in enumerate(contenders)
    )


def maker_of(estimator: Any) -> Callable[[int, int], Any]:
    """Return what makes unfitted copies of an estimator, for a `Contender`."""
    return functools.partial(_copy, estimator)


def _copy(estimator: Any, n_rows: int, n_smallest: int) -> Any:
    return clone(estimator)


def _run_fold(task_name: str, make: Callable[[int, int], Any], fold: Fold) -> tuple[HeldOut, float]:
    """Fit on one part, predict the other; return what was said of it, and seconds."""
    started = time.perf_counter()
    task = TASKS[task_name]
    model = make(len(fold.y_train), task.n_smallest(fold.y_train))
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")  # of convergence, say: the scores tell
        try:
            model.fit(fold.X_train, fold.y_train)
        except RowsError as error:
            if fold.train is None:
                raise
            raise RowsError(fold.train[list(error.rows)].tolist(), error.words) from None
        held = task.answer(model, fold.X_test, fold.y_test, task.variance(fold.y_train))
    return held, time.perf_counter() - started


def _result(
    folds: Sequence[Fold],
    task: Task,
    limit: float | None,
    name_rows: Callable[[Sequence[int]], str] | None,
    contender: Contender,
    outcomes: Sequence[Outcome],
) -> Result:
    error = next((outcome.error for outcome in outcomes if outcome.error is not None), None)
    problem = ""
    if isinstance(error, RowsError) and name_rows is not None:
        problem = f"failed: {name_rows(error.rows)}{error.words}"
    elif error is not None:
        problem = f"failed: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
    elif any(outcome.is_out_of_time for outcome in outcomes):
        problem = f"out of time ({limit:g} s)"
    name, is_baseline = contender.name, contender.is_baseline
    if problem:
        return Result(name, is_baseline, (), math.nan, task, problem, error)
    parts = tuple(outcome.value[0] for outcome in outcomes)
    seconds = sum(outcome.value[1] for outcome in outcomes)
    own = [fold.groups_test for fold in folds if fold.groups_test is not None]
    groups = np.concatenate(own) if own else None
    return Result(name, is_baseline, parts, seconds, task, groups=groups)
