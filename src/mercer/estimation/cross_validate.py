"""Scores of several classifiers on the same folds, each fold in a process of its own."""

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

from mercer.estimation.workers import Job, Outcome, run_jobs
from mercer.posterior.scores import Scores, score_classification

__all__ = ["FOLD_DRAWS", "Contender", "Fold", "Result", "cross_validate", "for_folds", "maker_of"]

# Draws of the one chain that a fold is fitted with: its Monte Carlo error is far below the error
# of a score from so few rows.
FOLD_DRAWS = 250

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows to learn from and rows to predict; classes are 0, 1, ..., all of them in training."""

    X_train: Array
    y_train: Rows
    X_test: Array
    y_test: Rows


@dataclass(frozen=True)
class Contender:
    """A classifier that is to be scored.

    Attributes
    ----------
    name : str
        In tables; different for each.
    is_baseline : bool
    make : callable
        (n_rows, n_smallest) -> unfitted classifier, for a training part of so many rows, so many
        of them in its smallest class. It and what it returns can be pickled.
    """

    name: str
    is_baseline: bool
    make: Callable[[int, int], Any]


@dataclass(frozen=True, eq=False)
class Result:
    """What the folds said of one contender.

    Attributes
    ----------
    name, is_baseline
        Of the contender.
    probas : tuple of ndarray
        Class probabilities of the test rows of each fold; empty when there is a problem.
    y : tuple of ndarray
        Their observed classes.
    seconds : float
        Fitting and predicting, all folds.
    problem : str
        Why there are no scores; empty when there are.
    """

    name: str
    is_baseline: bool
    probas: tuple[Array, ...]
    y: tuple[Rows, ...]
    seconds: float
    problem: str = ""
    error: Exception | None = None

    @property
    def pooled(self) -> Scores:
        """Scores of the rows of all folds together."""
        return score_classification(np.concatenate(self.y), np.concatenate(self.probas))

    def mean_and_error(self, metric: str) -> tuple[float, float]:
        """Return mean and standard error over the folds of one score (nan for a single fold).

        The calibration error of a few rows is mostly chance: it is that of all rows together,
        without a standard error.
        """
        if metric == "calibration_error":
            return self.pooled.calibration_error, math.nan
        pairs = zip(self.y, self.probas, strict=True)
        values = np.array([getattr(score_classification(y, p), metric) for y, p in pairs])
        if len(values) < 2:
            return float(values.mean()), math.nan
        return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


def for_folds(estimator: Any) -> Any:
    """Return the estimator, unfitted, as a fold fits it: one short chain, quiet, no processes."""
    params = estimator.get_params()
    short = {"n_chains": 1, "n_draws": min(int(params["n_draws"]), FOLD_DRAWS)}
    return type(estimator)(**{**params, **short, "n_jobs": None, "progress": False})


def cross_validate(
    contenders: Sequence[Contender],
    folds: Sequence[Fold],
    *,
    n_jobs: int,
    seconds_per_contender: float | None = None,
    on_begin: Callable[[str], None] | None = None,
    on_fold: Callable[[str], None] | None = None,
    on_result: Callable[[Result], None] | None = None,
) -> tuple[Result, ...]:
    """Fit every contender on every fold and predict the rows left out.

    Parameters
    ----------
    contenders : sequence of Contender
    folds : sequence of Fold
    n_jobs : int
        Processes at a time.
    seconds_per_contender : float, optional
        One that takes longer, summed over its folds, is ended and gets no scores.
    on_begin, on_fold : callable, optional
        Called with a contender's name when one of its folds is begun, and when it is finished.
    on_result : callable, optional
        Called when all folds of a contender are finished.

    Returns
    -------
    tuple of Result
        In the order of ``contenders``.
    """
    jobs = [
        Job(contender.name, functools.partial(_run_fold, contender.make, fold))
        for contender in contenders
        for fold in folds
    ]
    known = {contender.name: contender for contender in contenders}
    finished: dict[str, list[Outcome]] = {name: [] for name in known}

    def hear(outcome: Outcome) -> None:
        name = outcome.job.group
        finished[name].append(outcome)
        if on_fold is not None:
            on_fold(name)
        if on_result is not None and len(finished[name]) == len(folds):
            by_job = {id(each.job): each for each in finished[name]}
            ordered = [by_job[id(job)] for job in jobs if job.group == name]
            on_result(_result(known[name], ordered, folds, seconds_per_contender))

    outcomes = run_jobs(
        jobs,
        n_jobs,
        seconds_per_group=seconds_per_contender,
        on_begin=None if on_begin is None else lambda job: on_begin(job.group),
        on_outcome=hear,
    )
    k = len(folds)
    return tuple(
        _result(contender, outcomes[i * k : (i + 1) * k], folds, seconds_per_contender)
        for i, contender in enumerate(contenders)
    )


def maker_of(estimator: Any) -> Callable[[int, int], Any]:
    """Return what makes unfitted copies of an estimator, for a `Contender`."""
    return functools.partial(_copy, estimator)


def _copy(estimator: Any, n_rows: int, n_smallest: int) -> Any:
    return clone(estimator)


def _run_fold(make: Callable[[int, int], Any], fold: Fold) -> tuple[Array, float]:
    """Fit on one part, predict the other; return class probabilities and seconds."""
    started = time.perf_counter()
    classifier = make(len(fold.y_train), int(np.bincount(fold.y_train).min()))
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")  # of convergence, say: the scores tell
        classifier.fit(fold.X_train, fold.y_train)
        predicted = classifier.predict_proba(fold.X_test)
    return np.asarray(predicted, dtype=np.float64), time.perf_counter() - started


def _result(
    contender: Contender, outcomes: Sequence[Outcome], folds: Sequence[Fold], limit: float | None
) -> Result:
    error = next((outcome.error for outcome in outcomes if outcome.error is not None), None)
    problem = ""
    if error is not None:
        problem = f"failed: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
    elif any(outcome.is_out_of_time for outcome in outcomes):
        problem = f"out of time ({limit:g} s)"
    name, is_baseline = contender.name, contender.is_baseline
    if problem:
        return Result(name, is_baseline, (), (), math.nan, problem, error)
    probas = tuple(outcome.value[0] for outcome in outcomes)
    seconds = sum(outcome.value[1] for outcome in outcomes)
    return Result(name, is_baseline, probas, tuple(fold.y_test for fold in folds), seconds)
