"""What a stream does with its rows: plain rows, a series with lags, the choice of a model.

Rows that wait for their target, by name; the oldest is forgotten when there are too many.
"""

from __future__ import annotations

import functools
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mercer import models
from mercer.cli.fitting import always, make_estimator, parse_settings
from mercer.cli.prediction import encoder_of
from mercer.cli.stream_answers import Answers, Foretold, Labels, Numbers, Said, Undecided, named
from mercer.cli.stream_keeping import Interval, StreamState, read_state
from mercer.cli.stream_learner import Learner
from mercer.cli.stream_rows import Example, Row, present
from mercer.data.encoding import Encoder
from mercer.data.files import nearest, printable, quoted
from mercer.data.target import Target
from mercer.errors import ModelFileError, UsageError
from mercer.estimation.tasks import CLASSIFICATION, REGRESSION, task_of

__all__ = [
    "MOST", "STREAMING", "Remembered", "RowStream", "SeriesStream", "StreamOptions", "StreamPlan",
    "answers_of", "lag_names", "plan_stream",
]  # fmt: skip


MOST = 10_000
Kept = TypeVar("Kept")


class Remembered(Generic[Kept]):
    """Keep the last rows by their names, which are the same as numbers and as text.

    Examples
    --------
    >>> rows = Remembered()
    >>> rows.add(7, "a row")
    >>> rows.pop("7"), rows.pop(7)
    ('a row', None)
    """

    def __init__(self) -> None:
        self._rows: OrderedDict[str, Kept] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, name: Any, row: Kept) -> None:
        """Keep a row in place of an earlier one of that name; one without a name is not kept."""
        if name is None:
            return
        self._rows.pop(str(name), None)
        self._rows[str(name)] = row
        if len(self._rows) > MOST:
            self._rows.popitem(last=False)

    def pop(self, name: Any) -> Kept | None:
        """Give a row away; None if there is none of that name."""
        return self._rows.pop(str(name), None)

    def items(self) -> Iterable[tuple[str, Kept]]:
        """Names and rows, the oldest first."""
        return self._rows.items()


# A stream of rows that stand for themselves: each is predicted, then learned.

Array = NDArray[np.float64]
Answer = dict[str, Any]
_Waiting = tuple[Row, Array, Any]  # with its inputs and its target


class RowStream:
    """Answer rows in their order; rows whose target comes later are remembered by their names."""

    def __init__(self, learner: Learner, state: StreamState | None = None) -> None:
        self._learner = learner
        self._tally = learner.tally
        self._reporter = learner.reporter
        self._early: Remembered[Row] = (
            Remembered()
        )  # rows without target, until they can be encoded
        self._later: Remembered[Array] = Remembered()  # the same, encoded
        for name, x in () if state is None else state.later:
            self._later.add(name, x)

    def take(self, rows: Sequence[Row]) -> Iterator[Answer]:
        """Answer rows; the answers do not depend on how rows are put together."""
        for answer in self._take(rows):
            self._tally.n_rows += 1
            yield answer

    def _take(self, rows: Sequence[Row]) -> Iterator[Answer]:
        for position, row in enumerate(rows):
            if self._learner.is_ready:
                yield from self._take_ready(rows[position:])
                return
            yield self._take_early(row)

    def finish(self) -> None:
        """Learn what was held back."""
        if self._learner.held_rows:
            self._learner.begin()
            self._encode_early()

    def state(self) -> StreamState:
        """Return what a later stream needs beside the model."""
        return StreamState(later=tuple(self._later.items()))

    def _take_early(self, row: Row) -> Answer:
        """Answer a row before anything can be predicted."""
        learner = self._learner
        try:
            target = self._target(row)
        except ValueError as error:
            return self._reporter.bad(row, str(error))
        if row.is_late:
            earlier = self._early.pop(row.id)
            if earlier is None:
                return self._reporter.bad(row, _unknown(row))
            learner.hold(Example(earlier, target))
            self._encode_early()
            return {**named(row), "learned": True}
        for name, cell in zip(self._learner.inputs, row.cells, strict=True):
            if present(cell) is None:
                return self._reporter.bad(row, f"column {quoted(name)}: missing value")
        if learner.warmup == 0:
            learner.begin([row])
            return next(self._take_ready([row]))
        self._tally.last_row = row.number
        answer = self._answer(row, target, Said(learner.answers.unknown))
        if target is None:
            self._early.add(row.id, row)
        else:
            self._early.pop(row.id)
            learner.hold(Example(row, target))
            self._encode_early()
        return answer

    def _encode_early(self) -> None:
        """Encode the rows without target, once that is possible."""
        if not self._learner.is_ready or not len(self._early):
            return
        names, rows = zip(*self._early.items(), strict=True)
        X, problems = self._learner.encode(rows)
        for position, name in enumerate(names):
            if position in problems:
                self._reporter.bad(rows[position], problems[position])
            else:
                self._later.add(name, X[position])
        self._early = Remembered()

    def _take_ready(self, rows: Sequence[Row]) -> Iterator[Answer]:
        """Answer rows that can be predicted, as many at once as follow each other."""
        whole = [k for k, row in enumerate(rows) if not row.problem and not row.is_late]
        X, unusable = self._learner.encode([rows[k] for k in whole])
        places = {k: position for position, k in enumerate(whole)}
        waiting: list[_Waiting] = []
        for k, row in enumerate(rows):
            try:
                target = self._target(row)
                if k in places and places[k] in unusable:
                    raise ValueError(unusable[places[k]])
            except ValueError as error:
                yield from self._ahead(waiting)
                yield self._reporter.bad(row, str(error))
                continue
            if row.is_late:
                yield from self._ahead(waiting)
                yield self._learn_late(row, target)
                continue
            x = X[places[k]]
            waiting.append((row, x, target))
            if target is None:
                self._later.add(row.id, x)
            else:
                self._later.pop(row.id)
        yield from self._ahead(waiting)

    def _ahead(self, waiting: list[_Waiting]) -> Iterator[Answer]:
        """Predict rows, then learn them; none is waiting then."""
        examples = list(waiting)
        waiting.clear()
        if not examples:
            return
        X, y = np.array([x for _, x, _ in examples]), [target for _, _, target in examples]
        n_before = self._learner.n_rows_of_model
        try:
            all_said = self._learner.ahead(X, y)
        except BaseException:
            learned = [row.number for row, _, target in examples if target is not None]
            n_learned = self._learner.n_rows_of_model - n_before
            self._tally.last_row = max([self._tally.last_row, *learned[:n_learned]])
            raise
        # Of rows after one that ends the stream nothing is said.
        for (row, _, target), said in zip(examples, all_said, strict=False):
            if isinstance(said, str):
                yield self._reporter.bad(row, said)
            else:
                self._tally.last_row = row.number
                yield self._answer(row, target, said)

    def _learn_late(self, row: Row, target: Any) -> Answer:
        """Learn an earlier row, now that its target is there."""
        x = self._later.pop(row.id)
        if x is None:
            return self._reporter.bad(row, _unknown(row))
        (words,) = self._learner.learn_encoded(x[np.newaxis], [target])
        if words:
            return self._reporter.bad(row, words)
        self._tally.last_row = row.number
        return {**named(row), "learned": True}

    def _target(self, row: Row) -> Any:
        """Read the target of a row; a ValueError says what is wrong with the row."""
        if row.problem:
            raise ValueError(row.problem)
        target = self._learner.target(row)
        if row.is_late and target is None:
            raise ValueError("brings no input and no target")
        return target

    def _answer(self, row: Row, target: Any, said: Said) -> Answer:
        self._tally.add(said)
        fields = dict(said.fields)
        n_centres = fields.pop("n_centres", None)
        shown = None if target is None else self._learner.answers.shown(target)
        scores = {"target": shown, "score": said.score, "mean_score": self._tally.mean_score}
        return {**named(row), **fields, **scores, "n_centres": n_centres}


def _unknown(row: Row) -> str:
    return (
        f"no row {quoted(row.id)} without a target was there before (rows are remembered by the "
        "column that --id names)"
    )


# A stream that is a series: a row's target is predicted from earlier targets.


def lag_names(target: str, n_lags: int, horizon: int) -> tuple[str, ...]:
    """Name the inputs that are earlier targets, by their distance from the one predicted.

    Examples
    --------
    >>> lag_names("y", 2, 3)
    ('y[t-3]', 'y[t-4]')
    """
    return tuple(f"{target}[t-{horizon + k}]" for k in range(n_lags))


@dataclass(frozen=True)
class _Origin:
    """What was known when a later row was predicted."""

    example: Example | None = None  # of this row, with the lags; its target comes later
    x: Array | None = None
    foretold: Foretold | None = None


class SeriesStream:
    """Answer rows in their order; the answer of a row predicts one that is ``horizon`` rows ahead.

    A row is met in three steps: what was foretold of it is scored; it is learned, with the inputs
    that were known ``horizon`` rows ago; the row so many rows ahead is foretold. A value that is
    missing breaks the series: rows that would need it are neither learned nor predicted.
    """

    def __init__(
        self,
        learner: Learner,
        numbers: Numbers,
        n_lags: int,
        horizon: int,
        state: StreamState | None = None,
    ) -> None:
        self._learner = learner
        self._numbers = numbers
        self._tally = learner.tally
        self._reporter = learner.reporter
        self._horizon = horizon
        self._past: deque[float | None] = deque(maxlen=n_lags)
        self._waiting: deque[_Origin] = deque(maxlen=horizon)
        if state is not None:
            self._past.extend(state.past)
            self._waiting.extend(_Origin(x=x) for x in state.waiting)
            if self._waiting and self._waiting[-1].x is not None:
                x = self._waiting[-1].x
                foretold = numbers.foretell(x[np.newaxis])
                self._waiting[-1] = _Origin(x=x, foretold=foretold)

    def take(self, rows: Sequence[Row]) -> Iterator[Answer]:
        """Answer rows."""
        return map(self._take, rows)

    def finish(self) -> None:
        """Learn what was held back."""
        if self._learner.held_rows:
            self._learner.begin()
            self._encode_waiting()

    def state(self) -> StreamState:
        """Return what a later stream needs beside the model."""
        return StreamState(
            n_lags=self._past.maxlen or 0,
            horizon=self._horizon,
            past=tuple(self._past),
            waiting=tuple(origin.x for origin in self._waiting),
        )

    def _take(self, row: Row) -> Answer:
        self._tally.n_rows += 1
        try:
            target = self._read(row)
        except ValueError as error:
            answer = self._reporter.bad(row, str(error))  # before anything changes: it may raise
            self._past.appendleft(None)
            self._waiting.append(_Origin())
            return answer
        said = Said({})
        if target is not None:
            said = self._learn(row, target)
        else:
            self._reporter.once(
                "a target is missing: rows that would need it are neither learned nor predicted"
            )
        self._past.appendleft(target)
        self._tally.last_row = row.number
        ahead = self._foretell(row)
        self._tally.add(said)
        fields = self._numbers.unknown if ahead.foretold is None else ahead.foretold.fields
        fields = dict(fields)
        n_centres = fields.pop("n_centres", None)
        return {
            **named(row),
            "for_row": row.number + self._horizon,
            **fields,
            "target": target,
            "score": said.score,
            "mean_score": self._tally.mean_score,
            "n_centres": n_centres,
        }

    def _read(self, row: Row) -> Any:
        """Read the target of a row; a ValueError says what is wrong with the row."""
        if row.problem:
            raise ValueError(row.problem)
        for name, cell in zip(self._learner.inputs, row.cells, strict=True):
            if present(cell) is None:
                raise ValueError(f"column {quoted(name)}: missing value")
        if self._learner.is_ready:
            _, problems = self._learner.encode([row], [(0.0,) * (self._past.maxlen or 0)])
            if problems:
                raise ValueError(problems[0])
        return self._learner.target(row)

    def _learn(self, row: Row, target: Any) -> Said:
        """Learn a row from what was known before it, and score what was foretold of it."""
        origin = self._waiting[0] if len(self._waiting) == self._horizon else _Origin()
        said = Said({}) if origin.foretold is None else origin.foretold.scored(target)
        if origin.x is not None:
            (words,) = self._learner.learn_encoded(origin.x[np.newaxis], [target])
            if words:
                self._reporter.bad(row, words)
        elif origin.example is not None:
            example = origin.example
            self._waiting.popleft()
            self._learner.hold(Example(example.row, target, example.lags))
            self._encode_waiting()
        return said

    def _foretell(self, row: Row) -> _Origin:
        """Predict the row that is so many rows ahead, if all that it needs is known.

        Its inputs wait for its target, in the place of those of the row in hand.
        """
        lags = tuple(value for value in self._past if value is not None)
        if len(lags) < (self._past.maxlen or 0):
            self._waiting.append(_Origin())
        elif not self._learner.is_ready:
            self._waiting.append(_Origin(Example(row, None, lags)))
        else:
            X, _ = self._learner.encode([row], [lags])
            self._waiting.append(_Origin(x=X[0]))  # whatever the prediction comes to
            self._waiting[-1] = _Origin(x=X[0], foretold=self._numbers.foretell(X))
        return self._waiting[-1]

    def _encode_waiting(self) -> None:
        """Encode the rows whose successors are not there yet, once that is possible."""
        if not self._learner.is_ready:
            return
        origins = list(self._waiting)
        self._waiting.clear()
        for origin in origins:
            example = origin.example
            if example is None:
                self._waiting.append(origin)
                continue
            X, problems = self._learner.encode([example.row], [example.lags])
            if problems:
                self._reporter.bad(example.row, problems[0])
            self._waiting.append(_Origin() if problems else _Origin(x=X[0]))


# Which model a new stream gets: for numbers or for classes, as asked or as its first rows say.

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


# What `mercer stream` is to do, from its options: a new model, or one that goes on.


@dataclass(frozen=True)
class StreamPlan:
    """A model and how rows are given to it: a series where ``n_lags`` is not 0.

    Of a model that was loaded there is its encoder, and where its stream ended.
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
