"""What a stream does with its rows: plain rows, a series with lags, the choice of a model.

Rows that wait for their target, by name; the oldest is forgotten when there are too many.
"""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mercer import models
from mercer.cli.fitting import always, make_estimator, parse_settings
from mercer.cli.prediction import encoder_of
from mercer.cli.stream_model import (
    Fields,
    Labels,
    Learner,
    Numbers,
    Prediction,
    Predictor,
    Tally,
    Undecided,
    named,
)
from mercer.cli.stream_rows import Row
from mercer.data.encoding import Encoder, Missing
from mercer.data.files import nearest, printable, quoted
from mercer.data.frame import parse_number
from mercer.data.target import Target
from mercer.errors import ModelFileError, UsageError
from mercer.estimation.model_file import Extra, Savable, TableModel, read_parts, write_model
from mercer.estimation.tasks import CLASSIFICATION, REGRESSION, task_of
from mercer.posterior import schema
from mercer.posterior.predictive import check_level

Array = NDArray[np.float64]
Answer = dict[str, Any]
Kept = TypeVar("Kept")

# What a stream needs beside its model to go on: the past of a series, rows without target.

_NAME = "stream"  # in the file


@dataclass(frozen=True, eq=False)
class StreamState:
    """The end of a stream: a series where ``n_lags`` inputs are earlier targets.

    ``past`` are the last of these, the latest first; ``waiting`` the inputs of the last ``horizon``
    rows, the oldest first, None where one is not known; ``foretold`` what was said of these, but of
    the last, of which the model itself says it; ``later`` names and inputs of rows whose target has
    not come, the oldest first.
    """

    n_lags: int = 0
    horizon: int = 1
    past: tuple[float | None, ...] = ()
    waiting: tuple[Array | None, ...] = ()
    later: tuple[tuple[str, Array], ...] = ()
    foretold: tuple[Array | None, ...] = ()


def write_stream_model(
    path: Path, estimator: Savable, table: TableModel, state: StreamState
) -> None:
    """Write a model file that `mercer.models.read_model` and `read_state` read.

    Where nothing is to be kept beside the model, it is the file of the model.
    """
    known = [x for x in state.waiting if x is not None]
    fields = {
        "n_lags": state.n_lags,
        "horizon": state.horizon,
        "past": list(state.past),
        "is_waiting": [x is not None for x in state.waiting],
        "names": [name for name, _ in state.later],
        "is_foretold": [x is not None for x in state.foretold],
    }
    rows = _stacked([*known, *(x for _, x in state.later)])
    foretold = _stacked([x for x in state.foretold if x is not None])
    arrays = {"rows": rows, "foretold": foretold}
    extra = Extra(_NAME, fields, arrays) if state.n_lags or state.later else None
    write_model(path, estimator, table, extra)


def _stacked(rows: list[Array]) -> Array:
    return np.array(rows).reshape(len(rows), -1) if rows else np.empty((0, 0))


def read_state(path: Path) -> StreamState:
    """Read what a stream has left in a model file; of another model, nothing."""
    manifest, arrays = read_parts(path)
    if _NAME not in manifest:
        return StreamState()
    try:
        none = np.empty((0, 0))  # of an older file
        foretold = arrays.get(f"{_NAME}/foretold", none)
        return _state_from(manifest[_NAME], arrays[f"{_NAME}/rows"], foretold)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path}: inconsistent state of a stream: {error}") from None


_STATE = schema.Fields(
    {
        "n_lags": schema.Whole(),
        "horizon": schema.Whole(),
        "past": schema.ListOf(schema.Maybe(schema.Number())),
        "is_waiting": schema.ListOf(schema.Flag()),
        "names": schema.ListOf(schema.Text()),
        "is_foretold": schema.ListOf(schema.Flag()),
    },
    optional=frozenset({"is_foretold"}),
)


def _state_from(fields: Any, rows: NDArray[Any], foretold: NDArray[Any]) -> StreamState:
    _STATE.check(fields, _NAME, {})
    past, is_waiting, names = (fields[name] for name in ("past", "is_waiting", "names"))
    schema.Array(("n", "d")).check(rows, f"{_NAME}/rows", {"n": sum(is_waiting) + len(names)})
    is_foretold = fields.get("is_foretold", [])
    schema.Array(("k", "p"), most=np.inf).check(
        foretold, f"{_NAME}/foretold", {"k": sum(is_foretold)}
    )
    if len(past) > fields["n_lags"] or len(is_waiting) > fields["horizon"]:
        raise ValueError("it holds more than a series can need")
    if len(is_foretold) > max(len(is_waiting) - 1, 0):
        raise ValueError("it holds more than was foretold")
    known = iter(rows)
    waiting = tuple(next(known) if is_known else None for is_known in is_waiting)
    later = tuple(zip(names, known, strict=True))
    said = iter(foretold)
    earlier = tuple(next(said) if is_known else None for is_known in is_foretold)
    return StreamState(fields["n_lags"], fields["horizon"], tuple(past), waiting, later, earlier)


MOST = 10_000
_SLICE = 100  # rows of the warm-up learned in one call


class Remembered(dict[str, Kept]):
    """The last rows by their names, which are the same as numbers and as text; oldest first.

    Examples
    --------
    >>> rows = Remembered()
    >>> rows.add(7, "a row")
    >>> rows.take("7"), rows.take(7)
    ('a row', None)
    """

    def add(self, name: Any, row: Kept) -> None:
        """Keep a row in place of an earlier one of that name; one without a name is not kept."""
        if name is None:
            return
        self.take(name)
        self[str(name)] = row
        if len(self) > MOST:
            del self[next(iter(self))]

    def take(self, name: Any) -> Kept | None:
        """Give a row away; None if there is none of that name."""
        return None if name is None else self.pop(str(name), None)


def _answer(row: Row, target: Any, said: Prediction, tally: Tally, **first: int | bool) -> Answer:
    """Make the answer of a row: what was predicted of it, its target, and how that was scored."""
    tally.add(said)
    scores = {"target": target, "log_score": said.score, "mean_log_score": tally.mean_score}
    n_centres = {"n_centres": said.fields.get("n_centres")}
    return {**named(row), **first, **_shown(said.fields), **scores, **n_centres}


def _shown(fields: Fields) -> Fields:
    return {name: value for name, value in fields.items() if name != "n_centres"}


# A stream of rows that stand for themselves: each is predicted, then learned.


@dataclass(frozen=True)
class _Later:
    """A row whose target comes later: its inputs, its number, and what was predicted of it."""

    x: Array
    row: int = 0
    said: Prediction | None = None  # None: nothing, in the warm-up or in an earlier stream


class RowStream:
    """Answer rows in their order; rows whose target comes later are remembered by their names."""

    def __init__(self, learner: Learner, state: StreamState | None = None) -> None:
        self._learner = learner
        self._tally = learner.tally
        self._reporter = learner.reporter
        self._held: list[Row] = []  # rows of the warm-up, which are learned when it is over
        self._early: Remembered[Row] = Remembered()  # those without target
        later = () if state is None else state.later
        self._later = Remembered((name, _Later(x)) for name, x in later)  # later ones, encoded

    def take(self, rows: Sequence[Row]) -> Iterator[Answer]:
        """Answer rows; the answers do not depend on how rows are put together."""
        answers = self._take_ready(rows) if self._learner.is_ready else self._take_early(rows)
        for answer in answers:
            self._tally.n_rows += 1
            yield answer

    def finish(self) -> None:
        """Learn what was held back."""
        if self._learner.held:
            self._learner.begin()
            held, self._held = self._held, []
            for begin in range(0, len(held), _SLICE):
                list(self._take_ready(held[begin : begin + _SLICE], is_new=False))

    def state(self) -> StreamState:
        """Return what a later stream needs beside the model."""
        return StreamState(later=tuple((name, each.x) for name, each in self._later.items()))

    def _take_early(self, rows: Sequence[Row]) -> Iterator[Answer]:
        """Answer rows before anything can be predicted; the last may be ready for it."""
        learner = self._learner
        for position, each in enumerate(rows):
            row = _settled(each, self._early)
            try:
                target = self._target(row)
                example = _found(row, self._early.take(row.id)) if row.is_late else row
                if words := learner.gap(example):
                    raise ValueError(words)
            except ValueError as error:
                yield self._reporter.bad(row, str(error))
                continue
            if learner.warmup == 0:
                learner.begin([row])
                yield from self._take_ready(rows[position:])
                return
            self._tally.last_row = row.number
            self._held.append(row)
            if target is None:
                self._early.add(row.id, row)
            else:
                self._early.take(row.id)
                learner.held.append(replace(example, target=row.target))
            unknown = Prediction(learner.predictor.unknown)
            answer = _learned(row) if row.is_late else _answer(row, target, unknown, self._tally)
            if learner.is_full:
                self.finish()
                learner.settle()
            yield answer
            if learner.is_ready:
                yield from self._take_ready(rows[position + 1 :])
                return

    def _take_ready(self, rows: Sequence[Row], *, is_new: bool = True) -> Iterator[Answer]:
        """Answer rows that can be predicted, as many at once as follow each other.

        Rows that are not new had their answer, and are learned only.
        """
        whole = [
            k for k, row in enumerate(rows) if not row.problem and (row.cells or not row.is_late)
        ]
        X, unusable = self._learner.encode([rows[k] for k in whole])
        places = {k: position for position, k in enumerate(whole)}
        waiting: list[tuple[Row, Array, Any]] = []  # with inputs and target
        for k, each in enumerate(rows):
            row = _settled(each, self._later)
            if row.is_late:  # what was said of the row that it is of may be among these
                yield from self._ahead(waiting, is_new=is_new)
            try:
                target = self._target(row)
                if not row.is_late and places.get(k) in unusable:
                    raise ValueError(unusable[places[k]])
                earlier = _found(row, self._later.take(row.id)) if row.is_late else None
            except ValueError as error:
                yield from self._ahead(waiting, is_new=is_new)
                yield self._reporter.bad(row, str(error))
                continue
            if earlier is not None:
                yield from self._ahead([(row, earlier.x, target)], earlier, is_new=False)
                continue
            x = X[places[k]]
            if target is None:
                self._later.add(row.id, _Later(x))
            else:
                self._later.take(row.id)
            if is_new or target is not None:
                waiting.append((row, x, target))
        yield from self._ahead(waiting, is_new=is_new)

    def _ahead(
        self, waiting: list[tuple[Row, Array, Any]], earlier: _Later | None = None, *, is_new: bool
    ) -> Iterator[Answer]:
        """Predict rows if they are new, then learn them; none is waiting then.

        One that brings the target of an ``earlier`` row is scored by what was said of that.
        """
        examples = list(waiting)
        waiting.clear()
        if not examples:
            return
        X, y = np.array([x for _, x, _ in examples]), [target for _, _, target in examples]
        n_before = self._learner.n_rows_of_model
        try:
            all_said = self._learner.ahead(X, y) if is_new else self._learner.learn(X, y)
        except BaseException:
            learned = [row.number for row, _, target in examples if target is not None]
            n_learned = self._learner.n_rows_of_model - n_before
            self._tally.last_row = max([self._tally.last_row, *learned[:n_learned]])
            raise
        # Of rows after one that ends the stream nothing is said.
        for (row, x, target), said in zip(examples, all_said, strict=False):
            if isinstance(said, str):
                yield self._reporter.bad(row, said)
                continue
            self._tally.last_row = max(self._tally.last_row, row.number)
            if said is not None:
                self._keep(row, x, said)
                yield _answer(row, target, said, self._tally)
            elif earlier is None or earlier.said is None:
                yield _learned(row)
            else:
                judged = earlier.said.scored(target)
                yield _answer(row, target, judged, self._tally, of_row=earlier.row, learned=True)

    def _keep(self, row: Row, x: Array, said: Prediction) -> None:
        """Keep what was said of a row without target, unless it was forgotten since."""
        kept = self._later.get(str(row.id))
        if said.judge is not None and kept is not None and kept.x is x:
            self._later[str(row.id)] = replace(kept, row=row.number, said=said)

    def _target(self, row: Row) -> Any:
        """Read the target of a row; a ValueError says what is wrong with the row."""
        target = self._learner.target(row)
        if row.is_late and target is None:
            raise ValueError("brings no input and no target")
        return target


def _settled(row: Row, waiting: Remembered[Any]) -> Row:
    """Take a late row with gaps to be filled in for a plain one, unless a row of its name waits."""
    if row.is_late and row.cells and str(row.id) not in waiting:
        return replace(row, is_late=False)
    return row


def _learned(row: Row) -> Answer:
    return {**named(row), "learned": True}


def _found(row: Row, earlier: Kept | None) -> Kept:
    if earlier is None:
        raise ValueError(
            f"no row {quoted(row.id)} without a target was there before (rows are remembered by "
            "the column that --id names)"
        )
    return earlier


# A stream that is a series: a row's target is predicted from earlier targets.

_BREAKS = (
    "a target is missing: rows that would need it are neither learned nor predicted (--missing "
    "impute: what was foretold takes its place)"
)
_FILLS_GAP = "a target is missing: what was foretold of it takes its place among the earlier values"


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
    """What was known when a later row was predicted; in the warm-up its row alone."""

    row: Row | None = None
    x: Array | None = None
    foretold: Prediction | None = None


class SeriesStream:
    """Answer rows in their order: what was foretold of each, and of the row ``horizon`` rows ahead.

    A row is met in three steps: what was foretold of it is scored; it is learned, with the inputs
    that were known ``horizon`` rows ago; the row so many rows ahead is foretold. A value that is
    missing breaks the series: rows that would need it are neither learned nor predicted. With
    ``fills_gaps`` what was foretold of it takes its place there, before that the last value.
    """

    def __init__(
        self, learner: Learner, n_lags: int, horizon: int, state: StreamState | None = None, *,
        fills_gaps: bool = False,
    ) -> None:  # fmt: skip
        self._learner, self._fills_gaps = learner, fills_gaps
        self._n_lags, self._horizon = n_lags, horizon
        self._past: deque[Any] = deque(maxlen=n_lags)  # targets, None where one is missing
        self._waiting: deque[_Origin] = deque(maxlen=horizon)
        self._held: list[Row | None] = []  # rows of the warm-up, None where it broke
        if state is not None:
            predictor = learner.decided
            self._past.extend(_each_known(predictor.restored, state.past))
            for x, said in zip_longest(state.waiting, _each_known(predictor.again, state.foretold)):
                self._waiting.append(_Origin(x=x, foretold=said))
            if self._waiting and (x := self._waiting[-1].x) is not None:
                self._waiting[-1] = _Origin(x=x, foretold=_foretold(predictor, x))

    def take(self, rows: Sequence[Row]) -> Iterator[Answer]:
        """Answer rows."""
        return map(self._take, rows)

    def finish(self) -> None:
        """Learn what was held back."""
        if not self._learner.held:
            return
        self._learner.begin()
        held, self._held = self._held, []
        self._past.clear()
        self._waiting.clear()
        for row in held:
            if row is None:
                self._advance(None, None)
                continue
            try:
                target = self._read(row)
            except ValueError as error:
                self._learner.reporter.bad(row, str(error))
                self._advance(None, None)
            else:
                self._advance(row, target, is_new=False)

    def state(self) -> StreamState:
        """Return what a later stream needs beside the model."""
        waiting = tuple(origin.x for origin in self._waiting)
        decided = self._learner.decided
        past = _each_known(decided.stored, self._past)
        foretold = _each_known(decided.kept, [origin.foretold for origin in self._waiting][:-1])
        return StreamState(self._n_lags, self._horizon, past, waiting, foretold=foretold)

    def _take(self, row: Row) -> Answer:
        learner, tally = self._learner, self._learner.tally
        tally.n_rows += 1
        try:
            target = self._read(row)
        except ValueError as error:
            answer = learner.reporter.bad(row, str(error))  # before anything changes: it may raise
            self._advance(None, None)
            return answer
        if target is None:
            learner.reporter.once(_FILLS_GAP if self._fills_gaps else _BREAKS)
        said = self._advance(row, target)
        tally.last_row = row.number
        unknown = Prediction(learner.predictor.unknown)
        ahead = _shown((self._waiting[-1].foretold or unknown).fields)
        answer = _answer(row, target, said or unknown, tally)
        return {**answer, "ahead": {"row": row.number + self._horizon, **ahead}}

    def _read(self, row: Row) -> Any:
        """Read the target of a row; a ValueError says what is wrong with the row."""
        target = self._learner.target(row)
        if words := self._learner.problem(row):
            raise ValueError(words)
        return target

    def _advance(self, row: Row | None, target: Any, *, is_new: bool = True) -> Prediction | None:
        """Learn a row, None where the series breaks, and foretell one if it is new.

        Returned is what was foretold of the row, scored if its target is there. The inputs of the
        row so many rows ahead wait for its target, in the place of those of the row in hand.
        """
        learner, origin = self._learner, self._origin
        if row is not None and target is not None and origin.row is not None:
            learner.held.append(replace(origin.row, target=row.target))
            if learner.is_full:
                self.finish()
                origin, target = self._origin, learner.target(row)  # now as a class, if it is one
        if not learner.is_ready:
            self._held.append(row)
        elif row is not None and target is not None and origin.x is not None:
            (words,) = learner.learn(origin.x[np.newaxis], [target])
            if words:
                learner.reporter.bad(row, words)
            elif not origin.foretold and is_new:
                learner.settle()
        said = origin.foretold
        if said is not None and target is not None:
            said = said.scored(target)
        if target is None and self._fills_gaps:
            target = said.fields["prediction"] if said else next(iter(self._past), None)
        self._past.appendleft(target)
        lags = tuple(value for value in self._past if value is not None)
        if row is None or len(lags) < self._n_lags:
            self._waiting.append(_Origin())
        elif not learner.is_ready:
            self._waiting.append(_Origin(row))
        else:
            X, _ = learner.encode([row], [lags])
            self._waiting.append(_Origin(x=X[0]))  # whatever the prediction comes to
            if is_new:
                self._waiting[-1] = _Origin(x=X[0], foretold=_foretold(learner.decided, X[0]))
        return said

    @property
    def _origin(self) -> _Origin:
        """What was known when the row in hand was predicted."""
        return self._waiting[0] if len(self._waiting) == self._horizon else _Origin()


def _foretold(predictor: Predictor, x: Array) -> Prediction:
    """Predict the row x (d,), whose target comes later."""
    (said,) = predictor.ahead(x[np.newaxis], [None])
    return said


def _each_known(change: Callable[[Any], Any], past: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(None if value is None else change(value) for value in past)


# What `mercer stream` is to do, from its options: a new model, or one that goes on.

#: The model that learns row by row.
STREAMING = "basis"
# Inputs that may be centres: half of what a table has; the sums take a quarter of the memory.
_CANDIDATES = 256
# Lags that the mean is linear in: a series that drifts is beyond all kernels. More overfit.
_LINEAR_LAGS = 3
_SCALES = ("input_scale", "target_scale")
_SECONDS = 60.0
Tell = Callable[[str, str], None]


class Interval(NamedTuple):
    """Between two files: at most so many seconds, and so many rows; None: any number of rows."""

    seconds: float = _SECONDS
    rows: int | None = None


def read_interval(text: str) -> Interval:
    """Read "500" as rows and "20s" as seconds.

    Examples
    --------
    >>> read_interval("500"), read_interval("0.5s")
    (Interval(seconds=60.0, rows=500), Interval(seconds=0.5, rows=None))
    """
    words = text.strip()
    if words.isdecimal() and int(words) > 0:
        return Interval(rows=int(words))
    seconds = parse_number(words.removesuffix("s")) if words.endswith("s") else None
    if seconds is None or not 0.0 < seconds < threading.TIMEOUT_MAX:
        raise UsageError(
            f"--save-every {quoted(text)}: must be a number of rows, such as 500, or of seconds "
            "with an s, such as 20s"
        )
    return Interval(seconds=seconds)


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
    missing: Missing | None
    settings: tuple[str, ...]
    seed: int
    level: float | None
    is_strict: bool
    form: str
    encoding: str | None = None
    null_values: str | None = None

    def __post_init__(self) -> None:
        if self.encoding is None:
            return
        try:
            is_of_bytes = "\n".encode(self.encoding) == b"\n"
        except LookupError:
            raise UsageError(
                f"there is no encoding {quoted(self.encoding)}; latin-1 and cp1252 are some"
            ) from None
        if not is_of_bytes:
            raise UsageError(f"--encoding {self.encoding}: a stream is cut at bytes of line ends")

    @property
    def asked_task(self) -> str:
        """The task that the options leave; "auto" if the first rows are to decide."""
        if self.warmup == 0 and self.task == CLASSIFICATION.name:
            raise UsageError(
                "--warmup 0 needs a target of numbers: classes are learned from the first rows"
            )
        is_of_numbers = self.lags is not None or self.warmup == 0
        return REGRESSION.name if is_of_numbers and self.task == "auto" else self.task


@dataclass(frozen=True)
class StreamPlan:
    """A model and how rows are given to it: a series where ``n_lags`` is not 0.

    Of a model that was loaded there is its encoder, and where its stream ended.
    """

    predictor: Predictor | Undecided
    target: str
    n_lags: int
    horizon: int
    warmup: int
    seed: int
    encoder: Encoder | None = None
    state: StreamState | None = None
    missing: Missing = "error"
    id_column: str | None = None

    @property
    def lag_names(self) -> tuple[str, ...]:
        """Inputs that are earlier targets."""
        return lag_names(self.target, self.n_lags, self.horizon)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns that a loaded model needs; None: not known yet."""
        return None if self.encoder is None else self.encoder.input_names[self.n_lags :]


def plan_stream(options: StreamOptions, tell: Tell) -> StreamPlan:
    """Make or load the model, and compile what it needs."""
    if options.level is not None:
        check_level(options.level)
    if options.load is not None:
        return _loaded_plan(options, options.load, tell)
    if options.horizon is not None and options.lags is None:
        raise UsageError("--horizon needs --lags: how many earlier values to predict from")
    if options.target is None:
        raise UsageError("--target COLUMN is needed: the column to predict")
    if options.warmup == 0 and options.missing not in (None, "error"):
        raise UsageError(
            f"--missing {options.missing} needs --warmup above 0, which says with what"
        )
    predictor = _new_predictor(options, options.target, tell)
    n_lags, horizon = options.lags or 0, options.horizon or 1
    return StreamPlan(
        predictor, options.target, n_lags, horizon, options.warmup, options.seed,
        missing=options.missing or "error", id_column=options.id_column,
    )  # fmt: skip


def _new_predictor(options: StreamOptions, target: str, tell: Tell) -> Predictor | Undecided:
    """Make a new model, or leave it to the first rows which."""
    if options.model not in ("auto", STREAMING):
        known = ("auto", STREAMING)
        why = "does not learn row by row" if options.model in models.model_names() else "is unknown"
        raise UsageError(
            f"model {quoted(options.model)} {why}; there is: {', '.join(known)}"
            f"{nearest(options.model, known)}"
        )
    task = options.asked_task
    if task == REGRESSION.name:
        return Numbers(_made(options, task, 0, tell), options.level)
    _check_settings(options, task)
    which = "numbers or classes, whichever" if task == "auto" else "the classes that"
    tell("model", f"{STREAMING}, for {which} the first rows have")

    def make(first: Target) -> Predictor:
        tell("task", first.reason)
        if first.task == REGRESSION.name:
            return Numbers(_made(options, first.task, 0, tell), options.level)
        classes = np.unique(first.values)
        return Labels(_made(options, first.task, len(classes), tell), classes, options.level)

    return Undecided(target, is_auto=task == "auto", make=make)


def _made(options: StreamOptions, task: str, n_classes: int, tell: Tell) -> Any:
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
        common["linear_part"] = min(options.lags or 0, _LINEAR_LAGS) or False
    return make_estimator(entry.estimator_class(), parse_settings(options.settings), common)


def _check_settings(options: StreamOptions, task: str) -> None:
    """Refuse settings that no model takes, before the first rows say which it is."""
    problems = []
    for entry in models.MODELS:
        if entry.name == STREAMING and task in ("auto", entry.task):
            try:
                _estimator(entry, options)
            except UsageError as error:
                problems.append(error)
            else:
                return
    if problems:
        raise problems[0]


def _loaded_plan(options: StreamOptions, path: Path, tell: Tell) -> StreamPlan:
    """Go on from a file."""
    for is_given, option in (
        (options.settings, "--set"),
        (options.missing, "--missing"),
        (options.null_values is not None, "--null-values"),
    ):
        if is_given:
            raise UsageError(f"{option} has no effect on a model that is loaded; leave it out")
    name = printable(str(path))
    saved = models.read_model(path)
    model = saved.estimator
    task = task_of(model)
    if not hasattr(model, "prequential"):
        raise UsageError(
            f"{name}: a model of {models.name_of(model)}, which `mercer stream` cannot go on with; "
            f"it needs one of {STREAMING}"
        )
    if options.task not in ("auto", task.name):
        raise UsageError(f"--task {options.task}: {name} was learned for {task.name}")
    state = read_state(path)
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
    is_number = task is not CLASSIFICATION
    level = options.level
    predictor = Numbers(model, level) if is_number else Labels(model, model.classes_, level)
    encoder = encoder_of(saved)
    try:
        _each_known(predictor.restored, state.past)
        _each_known(predictor.again, state.foretold)
        lag_codes = tuple(map(predictor.lag_code, lag_names(target, state.n_lags, state.horizon)))
        is_consistent = encoder.codes[: state.n_lags] == lag_codes
    except (IndexError, ValueError):
        is_consistent = False
    known = None if saved.table is None else saved.table.id_column
    plan = StreamPlan(
        predictor, target, state.n_lags, state.horizon, 0, seed, encoder, state,
        id_column=options.id_column or known,
    )  # fmt: skip
    rows = [*state.waiting, *(x for _, x in state.later)]
    width = len(encoder.feature_names)
    if not is_consistent or any(x is not None and len(x) != width for x in rows):
        raise ModelFileError(
            f"{name}: inconsistent state of a stream: its inputs are not the model's"
        )
    entry = next(each for each in models.MODELS if each.estimator == type(model).__name__)
    entry.compile_loops(functools.partial(tell, ""))
    tell("model", f"{name}, {model.n_rows_seen_} rows learned")
    return plan
