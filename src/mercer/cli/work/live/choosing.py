"""Which model a new stream gets: for numbers or for classes, as asked or as its first rows say."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mercer import models
from mercer.cli.work.live.answering import Answers, Numbers
from mercer.cli.work.live.keeping import Interval
from mercer.cli.work.live.labels import Labels
from mercer.cli.work.live.undecided import Undecided
from mercer.cli.work.settings import always, make_estimator, parse_settings
from mercer.data.target import Target
from mercer.data.wording import nearest, quoted
from mercer.errors import UsageError
from mercer.estimation.tasks import CLASSIFICATION, REGRESSION

__all__ = ["STREAMING", "StreamOptions", "answers_of"]

#: The model that learns row by row.
STREAMING = "basis"
# Inputs that may be centres: half of what a table has; the sums take a quarter of the memory.
_CANDIDATES = 256
_SCALES = ("input_scale", "target_scale")


@dataclass(frozen=True)
class StreamOptions:
    """The options of the command, as typed."""

    target: str | None
    task: str
    model: str
    load: Path | None
    save: Path | None
    save_every: Interval
    lags: int | None
    horizon: int | None
    warmup: int
    id_column: str | None
    drop: tuple[str, ...]
    settings: tuple[str, ...]
    seed: int
    level: float | None
    is_strict: bool
    form: str


def answers_of(options: StreamOptions, tell: Callable[[str, str], None]) -> Answers | Undecided:
    """Make a new model, or leave it to the first rows which.

    Raises
    ------
    UsageError
        The options do not go together, or the model does not learn row by row.
    """
    assert options.target is not None
    if options.model not in ("auto", STREAMING):
        known = ("auto", STREAMING)
        why = "does not learn row by row" if options.model in models.model_names() else "is unknown"
        raise UsageError(
            f"model {quoted(options.model)} {why}; there is: {', '.join(known)}"
            f"{nearest(options.model, known)}"
        )
    task = _asked_task(options)
    if task == REGRESSION.name:
        return Numbers(_made(options, task, 0, tell), options.level)
    _check_settings(options, task)
    which = "numbers or classes, whichever" if task == "auto" else "the classes that"
    tell("model", f"{STREAMING}, for {which} the first rows have")
    make = functools.partial(_answers_for, options, tell)
    return Undecided(options.target, is_auto=task == "auto", make=make)


def _asked_task(options: StreamOptions) -> str:
    """Return the task that the options leave; "auto" if the first rows are to decide.

    Raises
    ------
    UsageError
        An option is for numbers, and the task is not.
    """
    for is_given, words in (
        (options.lags, "--lags needs a target of numbers"),
        (options.level is not None, "--interval needs a target of numbers"),
        (options.warmup == 0, "--warmup 0 needs a target of numbers: classes are learned from it"),
    ):
        if is_given and options.task == CLASSIFICATION.name:
            raise UsageError(words)
        if is_given:
            return REGRESSION.name
    return options.task


def _answers_for(
    options: StreamOptions, tell: Callable[[str, str], None], target: Target
) -> Answers:
    """Make a model for the targets of the first rows, and say so."""
    tell("task", target.reason)
    if target.task == REGRESSION.name:
        return Numbers(_made(options, target.task, 0, tell), options.level)
    classes = np.unique(target.values)
    return Labels(_made(options, target.task, len(classes), tell), classes)


def _made(
    options: StreamOptions, task: str, n_classes: int, tell: Callable[[str, str], None]
) -> Any:
    """Make an unfitted model, and compile what it needs."""
    entry = models.choose_model(STREAMING, task, n_classes, 0)
    reason = " (auto)" if options.model == "auto" else ""
    tell("model", f"{entry.name}, {entry.summary}{reason}")
    model = _estimator(entry, options)
    params = model.get_params()
    if options.warmup == 0 and any(params[name] is None for name in _SCALES):
        raise UsageError(
            "--warmup 0 needs scales that are known: --set input_scale=... --set target_scale=..."
        )
    entry.compile_loops(functools.partial(tell, ""))
    return model


def _estimator(entry: models.ModelEntry, options: StreamOptions) -> Any:
    common = {**always(options.seed), "progress": False}
    if entry.task == REGRESSION.name:
        common["max_candidates"] = _CANDIDATES
    return make_estimator(entry.estimator_class(), parse_settings(options.settings), common)


def _check_settings(options: StreamOptions, task: str) -> None:
    """Refuse settings that no model takes, before the first rows say which it is.

    Raises
    ------
    UsageError
    """
    problems = []
    entries = [entry for entry in models.MODELS if entry.name == STREAMING]
    for entry in entries:
        if task in ("auto", entry.task):
            try:
                _estimator(entry, options)
            except UsageError as error:
                problems.append(error)
            else:
                return
    if problems:
        raise problems[0]
