"""The work of `mercer fit`: score on held-out rows, then fit what is saved."""

from __future__ import annotations

import functools
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mercer.baselines.by_task import peers_of
from mercer.cli.terminal.session import Session
from mercer.cli.work.splitting import Split
from mercer.cli.work.table import TrainingTable
from mercer.data.row_names import RowNames
from mercer.data.wording import printable, quoted
from mercer.errors import DataError, MercerError, NumericalError, RowsError, UsageError
from mercer.estimation.cross_validate import Contender, Result, cross_validate, for_folds, maker_of
from mercer.models import ModelEntry
from mercer.posterior.evaluation import AnyEvaluation

__all__ = ["Fitted", "Plan", "constant_columns", "fit_final", "refuse_unconverged", "score"]


@dataclass(frozen=True, eq=False)
class Plan:
    """What is to be fitted, and with which resources."""

    entry: ModelEntry
    table: TrainingTable
    split: Split
    estimator: Any  # unfitted, as it will be saved
    seed: int
    n_jobs: int
    checkpoint: Path | None

    @property
    def label(self) -> str:
        """Name of the model in tables."""
        return f"mercer {self.entry.name}"

    @property
    def is_scored_itself(self) -> bool:
        """Whether the saved model is the one that is scored."""
        return self.split.train is not None


@dataclass(frozen=True, eq=False)
class Fitted:
    """The model that is saved."""

    estimator: Any
    n_rows: int
    seconds: float
    variance: float | None  # of the targets of these rows; None of classes


def fit_final(plan: Plan, session: Session) -> Fitted:
    """Fit the model that is saved, with all its chains and its own progress bar."""
    table, train = plan.table, plan.split.train
    rows = np.arange(len(table.labels)) if train is None else train
    started = time.perf_counter()
    estimator = plan.estimator
    # Without a data frame scikit-learn has no way to pass the names of columns to `fit`.
    estimator._names_of_columns = table.encoder.feature_names
    names = table.names.take(rows)
    estimator._names_of_rows = names.without_ids()
    try:
        with session.warnings_as_lines():
            estimator.fit(table.X[rows], _native(table.labels[rows]))
    except RowsError as error:
        raise _about_file(error, names, table) from error
    except (MercerError, TimeoutError):
        raise
    except ValueError as error:
        raise DataError(f"{printable(table.source)}: {error}") from error
    seconds = time.perf_counter() - started
    # How it was run is no part of the model: the file is the same for any number of processes.
    estimator.set_params(progress="auto", checkpoint=None)
    if "n_jobs" in estimator.get_params():
        estimator.set_params(n_jobs=None)
    variance = table.task.variance(table.y[rows])
    return Fitted(estimator, len(rows), seconds, None if math.isnan(variance) else variance)


def refuse_unconverged(fitted: Fitted) -> None:
    """Raise `NumericalError` with what the diagnostics warn of, if they do: ``--strict``."""
    warnings = fitted.estimator.diagnostics_.warnings
    if warnings:
        raise NumericalError(f"--strict: {' '.join(warnings)}")


def score(plan: Plan, session: Session, fitted: Fitted | None) -> tuple[AnyEvaluation, list[str]]:
    """Score the model and the baselines on the same rows.

    Parameters
    ----------
    plan : Plan
    session : Session
    fitted : Fitted or None
        The saved model, where it is itself the one that is scored.

    Returns
    -------
    Evaluation or RegressionEvaluation
    notes : list of str
        Baselines that could not be scored.
    """
    contenders = [
        Contender(peer.label, True, functools.partial(peer.make, plan.seed))
        for peer in peers_of(plan.table.task.name)
        if peer.is_brief
    ]
    if fitted is None:
        contenders.insert(0, Contender(plan.label, False, maker_of(_for_folds(plan))))
    with session.progress() as bar:
        n_fits = len(contenders) * len(plan.split.folds)
        task = bar.add_task("scoring", total=n_fits, detail="")
        results = cross_validate(
            contenders,
            plan.split.folds,
            n_jobs=plan.n_jobs,
            task=plan.table.task,
            on_fold=lambda name: bar.update(task, advance=1, detail=name),
        )
    if fitted is not None:
        results = (_score_itself(plan, fitted), *results)
    model, *peers = results
    if model.problem:
        raise _typed(model, plan)
    scored = [result for result in results if not result.problem]
    evaluation = plan.table.task.evaluate(plan.split.how, plan.table.classes, scored)
    return evaluation, [f"{each.name}: {each.problem}" for each in peers if each.problem]


def _for_folds(plan: Plan) -> Any:
    """Return the estimator that a fold fits, its state in its own folder."""
    checkpoint = None if plan.checkpoint is None else str(plan.checkpoint / "folds")
    return for_folds(plan.estimator).set_params(checkpoint=checkpoint)


def _score_itself(plan: Plan, fitted: Fitted) -> Result:
    (fold,) = plan.split.folds
    task = plan.table.task
    started = time.perf_counter()
    held = task.answer(fitted.estimator, fold.X_test, fold.y_test, task.variance(fold.y_train))
    seconds = fitted.seconds + time.perf_counter() - started
    return Result(plan.label, False, (held,), seconds, task)


def _typed(result: Result, plan: Plan) -> Exception:
    """Return the error of a fold of the model, typed as a fit of all rows would raise it."""
    error = result.error
    if isinstance(error, RowsError):  # positions in the table: see `Fold.train`
        return _about_file(error, plan.table.names, plan.table)
    if isinstance(error, (MercerError, TimeoutError)):
        return error
    if isinstance(error, ValueError):
        return DataError(f"{printable(plan.table.source)}: {error}")
    return error or UsageError(result.problem)


def _about_file(error: RowsError, names: RowNames, table: TrainingTable) -> DataError:
    """Return an error about rows of an array as one about rows of the user's file."""
    return DataError(f"{printable(table.source)}: {names.listed(error.rows)}{error.words}")


def _native(labels: Any) -> Any:
    """Labels of text as fixed-width strings, which model files keep as such."""
    return labels.astype(str) if labels.dtype == object else labels


def constant_columns(table: TrainingTable) -> str:
    """Say which inputs are constant; empty if none is."""
    names = [
        quoted(name)
        for name, spread in zip(table.encoder.feature_names, np.ptp(table.X, axis=0), strict=True)
        if spread == 0
    ]
    if not names:
        return ""
    if len(names) == table.X.shape[1]:
        return "all inputs are constant: the predictions are the prior's and say nothing of a row"
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"constant, so without effect: {', '.join(names[:5])}{more}"
