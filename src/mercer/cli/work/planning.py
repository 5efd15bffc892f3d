"""From the options of `mercer fit` to what is fitted, each choice said in one line."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from joblib import cpu_count

from mercer.cli.options import TableOptions
from mercer.cli.terminal.session import Session
from mercer.cli.work.conflicts import refuse_conflicts
from mercer.cli.work.fitting import Plan, constant_columns
from mercer.cli.work.resuming import claim_folder
from mercer.cli.work.settings import always, make_estimator, parse_settings
from mercer.cli.work.splitting import UNSCORED, ScoringOptions, Split, split_rows
from mercer.cli.work.table import TrainingTable, read_training
from mercer.data.wording import printable
from mercer.errors import UsageError
from mercer.estimation.cross_validate import for_folds
from mercer.models import ModelEntry, able_models, check_name, choose_model

__all__ = ["FitOptions", "describe_table", "make_plan"]

_LARGE = 2000  # rows, above which an n x n method is slow


@dataclass(frozen=True)
class FitOptions:
    """The options of `mercer fit` that decide what is fitted; `audit` has no scoring."""

    data: str
    table: TableOptions
    scoring: ScoringOptions | None
    model: str
    settings: tuple[str, ...]
    seed: int
    jobs: int | None
    checkpoint: Path | None


def make_plan(options: FitOptions, session: Session) -> Plan:
    """Read the table, choose the model and the split, and say so."""
    settings = parse_settings(options.settings)
    if options.model != "auto":
        check_name(options.model)  # before any reading
    table = read_training(options.data, options.table)
    describe_table(table, session)
    if options.scoring is None:
        refuse_numbers(table)
    n_rows = len(table.labels)
    entry = choose_model(options.model, table.task.name, len(table.classes), n_rows)
    n_jobs = options.jobs or cpu_count()
    checkpoint = options.checkpoint
    common: dict[str, Any] = {**always(options.seed), "n_jobs": n_jobs}
    if session.is_json:
        common["progress"] = False
    if checkpoint is not None:
        common["checkpoint"] = str(checkpoint / "fit")
    estimator = make_estimator(entry.estimator_class(), settings, common)
    refuse_conflicts(table, estimator)
    _describe_model(options, entry, table, session)
    _warn_of_size(entry, estimator, n_rows, session)
    entry.compile_loops(functools.partial(session.note, ""))
    split = UNSCORED
    if options.scoring is not None:
        split = split_rows(table, options.table.target, options.scoring, options.seed)
        _describe_split(split, estimator, session)
    if checkpoint is not None:
        is_resumed = claim_folder(checkpoint, table, _identity(options, entry, settings, split))
        verb = "going on from" if is_resumed else "the state is kept in"
        session.say("resume", f"{verb} {checkpoint}")
    session.say("seed", str(options.seed))
    return Plan(entry, table, split, estimator, options.seed, n_jobs, checkpoint)


def refuse_numbers(table: TrainingTable) -> None:
    """Refuse to audit numbers.

    Raises
    ------
    UsageError
        Saying why they are taken for numbers, and what to do.
    """
    if not table.classes:
        raise UsageError(
            f"{printable(table.source)}: {table.reason}; audit finds wrong labels of classes: name "
            "another target, or use --task classification if these are classes"
        )


def describe_table(table: TrainingTable, session: Session) -> None:
    """Say what was read, the task, and what was done to columns and rows."""
    n, d = table.X.shape
    n_columns = len(table.inputs.names)
    inputs = f"{d} input{'s' * (d != 1)}"
    if d != n_columns:
        inputs += f" from {n_columns} column{'s' * (n_columns != 1)}"
    session.say("data", f"{table.source}: {n} rows, {inputs}")
    session.say("task", table.reason)
    for note in table.notes:
        session.say("columns", note)
    constant = constant_columns(table)
    if constant:
        session.note("warning", constant)


def _describe_model(
    options: FitOptions, entry: ModelEntry, table: TrainingTable, session: Session
) -> None:
    why = "as asked" if options.scoring is not None else "the one that audits"
    if options.model == "auto":
        first = able_models(table.task.name, 0)[0]
        why = "auto"
        n_classes = len(table.classes or ())
        if entry is not first and n_classes > first.max_classes:
            why = f"auto: {first.name} tells at most {first.max_classes} classes apart"
        elif entry is not first:
            why = f"auto: above {first.most_rows(n_classes)} rows {first.name} takes too long"
    session.say("model", f"{entry.name}, {entry.summary} ({why})")


def _warn_of_size(entry: ModelEntry, estimator: Any, n: int, session: Session) -> None:
    """Warn where matrices of n x n numbers make a run long: where there is a kernel, in full."""
    params = estimator.get_params()
    is_finite = params.get("kernel", "linear") == "linear" or params.get("rank") is not None
    if n <= _LARGE or is_finite:
        return
    finite = ", or --set rank=512 (finite features)" if "rank" in params else ""
    session.note(
        "warning",
        f"{n} rows: the time of {entry.name} grows with their cube, and above {_LARGE} it is "
        f"long; fewer rows, or --set n_draws and --set n_chains{finite}, shorten it",
    )


def _describe_split(split: Split, estimator: Any, session: Session) -> None:
    words = split.how
    params = estimator.get_params()
    if split.train is None and "n_chains" in params and params.get("inference") != "map":
        n_chains, n_draws = estimator.n_chains, estimator.n_draws
        short = for_folds(estimator)
        fits = "each fold" if len(split.folds) > 1 else "the scored fit"
        words += (
            f"; {fits} has {short.n_chains} chain of {short.n_draws} draws, the saved model "
            f"{n_chains} of {n_draws}, on all rows"
        )
    session.say("scoring", words)
    for note in split.notes:
        session.say("", note)


def _identity(
    options: FitOptions, entry: ModelEntry, settings: dict[str, Any], split: Split
) -> dict[str, Any]:
    """Return every option that the result depends on, as JSON can hold it."""
    scored = hashlib.sha256()
    for fold in split.folds:
        scored.update(fold.X_test.tobytes() + fold.y_test.tobytes())
    return {
        "model": entry.name,
        "settings": settings,
        "seed": options.seed,
        "scoring": split.how,
        "scored rows": scored.hexdigest(),
        "is_refitted": options.scoring is None or options.scoring.is_refitted,
        **asdict(options.table),
    }
