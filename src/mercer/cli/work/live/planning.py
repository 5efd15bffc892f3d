"""What `mercer stream` is to do, from its options: a new model, or one that goes on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from mercer import models
from mercer.cli.work.live.answering import Answers, Numbers
from mercer.cli.work.live.choosing import STREAMING, StreamOptions, answers_of
from mercer.cli.work.live.labels import Labels
from mercer.cli.work.live.series import lag_names
from mercer.cli.work.live.state import StreamState, read_state
from mercer.cli.work.live.undecided import Undecided
from mercer.cli.work.prediction import encoder_of
from mercer.data.encoding import Encoder
from mercer.data.wording import printable
from mercer.errors import ModelFileError, UsageError
from mercer.estimation.tasks import CLASSIFICATION, task_of

__all__ = ["StreamOptions", "StreamPlan", "plan_stream"]


@dataclass(frozen=True)
class StreamPlan:
    """A model and how rows are given to it.

    Parameters
    ----------
    answers : Numbers, Labels or Undecided
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

    answers: Answers | Undecided
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
    return _new_plan(options, tell) if options.load is None else _loaded_plan(options, tell)


def _new_plan(options: StreamOptions, tell: Callable[[str, str], None]) -> StreamPlan:
    if options.target is None:
        raise UsageError("--target COLUMN is needed: the column to predict")
    answers = answers_of(options, tell)
    n_lags, horizon = options.lags or 0, options.horizon or 1
    return StreamPlan(answers, options.target, n_lags, horizon, options.warmup, options.seed)


def _loaded_plan(options: StreamOptions, tell: Callable[[str, str], None]) -> StreamPlan:
    assert options.load is not None
    if options.settings:
        raise UsageError("--set has no effect on a model that is loaded; leave it out")
    name = printable(str(options.load))
    saved = models.read_model(options.load)
    model = saved.estimator
    task = task_of(model)
    if not hasattr(model, "prequential"):
        raise UsageError(
            f"{name}: a model of {models.name_of(model)}, which `mercer stream` cannot go on with; "
            f"it needs one of {STREAMING}"
        )
    if options.task not in ("auto", task.name):
        raise UsageError(f"--task {options.task}: {name} was learned for {task.name}")
    if task is CLASSIFICATION and options.level is not None:
        raise UsageError("--interval needs a target of numbers")
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
    answers: Answers = Numbers(model, options.level)
    if task is CLASSIFICATION:
        answers = Labels(model, model.classes_)
    plan = StreamPlan(answers, target, *lags, 0, seed, encoder_of(saved), state)
    _check_state(plan, name)
    next(e for e in models.MODELS if e.estimator == type(model).__name__).compile_loops(
        functools.partial(tell, "")
    )
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
    is_right = is_right and (plan.n_lags == 0 or isinstance(plan.answers, Numbers))
    if not is_right:
        raise ModelFileError(
            f"{name}: inconsistent state of a stream: its inputs are not the model's"
        )
