"""What `mercer stream` is to do, from its options: a new model, or one that goes on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mercer import models
from mercer.cli.work.live.series import lag_names
from mercer.cli.work.live.state import StreamState, read_state
from mercer.cli.work.prediction import encoder_of
from mercer.cli.work.settings import always, make_estimator, parse_settings
from mercer.data.encoding import Encoder
from mercer.data.wording import nearest, printable, quoted
from mercer.errors import ModelFileError, UsageError
from mercer.estimation.tasks import REGRESSION, task_of

__all__ = ["StreamOptions", "StreamPlan", "plan_stream"]

_STREAMING = "basis"  # the model that learns row by row
_SCALES = ("input_scale", "target_scale")


@dataclass(frozen=True)
class StreamOptions:
    """The options of the command, as typed."""

    target: str | None
    model: str
    load: Path | None
    save: Path | None
    save_every: float
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


@dataclass(frozen=True)
class StreamPlan:
    """A model and how rows are given to it.

    Parameters
    ----------
    model : estimator
    target : str
    n_lags : int
        0: the rows are no series.
    horizon : int
    warmup : int
    seed : int
    encoder : Encoder or None
        Of a model that was loaded.
    state : StreamState or None
        Where the stream of that model ended.
    """

    model: Any
    target: str
    n_lags: int
    horizon: int
    warmup: int
    seed: int
    encoder: Encoder | None = None
    state: StreamState | None = None

    @property
    def lag_names(self) -> tuple[str, ...]:
        """Inputs that are earlier targets."""
        return lag_names(self.target, self.n_lags, self.horizon)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns that a loaded model needs; None: not known yet."""
        return None if self.encoder is None else self.encoder.input_names[self.n_lags :]


def plan_stream(options: StreamOptions, tell: Callable[[str, str], None]) -> StreamPlan:
    """Make or load the model, and compile what it needs.

    Raises
    ------
    UsageError
        The options do not go together, or the model does not learn row by row.
    ModelFileError, StorageError
        The file cannot be read or used.
    """
    if options.horizon is not None and options.lags is None and options.load is None:
        raise UsageError("--horizon needs --lags: how many earlier values to predict from")
    plan = _new_plan(options, tell) if options.load is None else _loaded_plan(options, tell)
    kind = type(plan.model).__name__
    for entry in models.MODELS:
        if entry.estimator == kind:
            entry.compile_loops(functools.partial(tell, ""))
    return plan


def _new_plan(options: StreamOptions, tell: Callable[[str, str], None]) -> StreamPlan:
    if options.target is None:
        raise UsageError("--target COLUMN is needed: the column to predict")
    entries = [entry for entry in models.MODELS if entry.name == _STREAMING]
    able = [entry for entry in entries if entry.task == REGRESSION.name]
    if options.model not in ("auto", _STREAMING):
        known = ("auto", _STREAMING)
        why = "does not learn row by row" if options.model in models.model_names() else "is unknown"
        raise UsageError(
            f"model {quoted(options.model)} {why}; there is: {', '.join(known)}"
            f"{nearest(options.model, known)}"
        )
    if not able:
        raise UsageError("no model here learns numbers row by row yet")
    entry = able[0]
    reason = " (auto)" if options.model == "auto" else ""
    tell("model", f"{entry.name}, {entry.summary}{reason}")
    common = {**always(options.seed), "progress": False}
    model = make_estimator(entry.estimator_class(), parse_settings(options.settings), common)
    if options.warmup == 0 and any(model.get_params()[name] is None for name in _SCALES):
        raise UsageError(
            "--warmup 0 needs scales that are known: --set input_scale=... --set target_scale=..."
        )
    n_lags, horizon = options.lags or 0, options.horizon or 1
    return StreamPlan(model, options.target, n_lags, horizon, options.warmup, options.seed)


def _loaded_plan(options: StreamOptions, tell: Callable[[str, str], None]) -> StreamPlan:
    assert options.load is not None
    if options.settings:
        raise UsageError("--set has no effect on a model that is loaded; leave it out")
    name = printable(str(options.load))
    saved = models.read_model(options.load)
    model = saved.estimator
    if not hasattr(model, "prequential") or task_of(model) is not REGRESSION:
        raise UsageError(
            f"{name}: a model of {models.name_of(model)}, which `mercer stream` cannot go on with; "
            f"it needs one of {_STREAMING} for regression"
        )
    state = read_state(options.load)
    own = None if saved.table is None else saved.table.target
    target = options.target or own
    if target is None:
        raise UsageError("--target COLUMN is needed: the model was saved without its name")
    for given, stored, option in (
        (options.target, own, "--target"),
        (options.lags, state.n_lags, "--lags"),
        (options.horizon, state.horizon, "--horizon"),
    ):
        if given is not None and stored is not None and given != stored:
            raise UsageError(f"{option} {given}: {name} was learned with {stored}")
    model.set_params(progress=False)
    seed = options.seed if saved.table is None else saved.table.provenance.seed
    lags = (state.n_lags, state.horizon)
    plan = StreamPlan(model, target, *lags, 0, seed, encoder_of(saved), state)
    _check_state(plan, name)
    tell("model", f"{name}, {model.n_rows_seen_} rows learned")
    return plan


def _check_state(plan: StreamPlan, name: str) -> None:
    """Refuse a file whose stream does not belong to its model."""
    assert plan.encoder is not None
    assert plan.state is not None
    rows = [*plan.state.waiting, *(x for _, x in plan.state.later)]
    n_features = len(plan.encoder.feature_names)
    is_right = plan.encoder.input_names[: plan.n_lags] == plan.lag_names and all(
        x is None or len(x) == n_features for x in rows
    )
    if not is_right:
        raise ModelFileError(
            f"{name}: inconsistent state of a stream: its inputs are not the model's"
        )
