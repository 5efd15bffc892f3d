"""The model of a stream: what it says of rows, how their cells become numbers, what is learned.

Rows of the warm-up are held back until they say how cells become numbers, and whether targets are
numbers or classes. A cell that cannot be used spoils its row, no other.
"""

from __future__ import annotations

import functools
import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from statistics import fmean
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mercer.cli.stream_rows import Parser, Row, listed
from mercer.data.encoding import ColumnCode, Encoder, Missing, fit_encoder, without_empty
from mercer.data.files import place, printable, quoted
from mercer.data.frame import (
    CODE,
    EMPTY,
    Column,
    ColumnBuilder,
    Frame,
    Origin,
    column_of_texts,
    parse_numbers,
)
from mercer.data.target import LARGEST, MAX_CLASSES, Target, Task, read_target
from mercer.errors import DataError, RowsError
from mercer.posterior.predictive import Contamination, StudentMixture, check_level

Array = NDArray[np.float64]
Fields = dict[str, Any]
Problems = dict[int, str]  # position of a row -> why it cannot be used

_BOOLEANS = {"true": True, "false": False}


def read_number(cell: str, *, has_decimal_comma: bool) -> float:
    """Read a number that can be computed with; a ValueError says why it is none."""
    found = parse_numbers([cell], has_decimal_comma)
    value = math.nan if found is None else float(found[0])
    if math.isnan(value):
        raise ValueError(f"{quoted(cell.strip())} is not a number")
    if math.isinf(value):
        raise ValueError("infinite, or too large for a float64")
    if abs(value) > LARGEST:
        raise ValueError(f"{value:g} is too large to compute with")
    return value


# What is said of a row: numbers or classes.


@dataclass(frozen=True)
class Prediction:
    """What was said of a row before it was learned; what is not known is None.

    ``fields`` is the prediction as JSON can hold it, ``score`` minus the log predictive density
    of the target in nats; ``judge`` scores it once the target is there.
    """

    fields: Fields
    score: float | None = None
    is_inside: bool | None = None  # the target in its interval
    is_right: bool | None = None  # the class
    judge: Callable[[Any], Prediction] | None = None
    law: StudentMixture | None = None  # of a number

    def scored(self, target: Any) -> Prediction:
        """Score it, now that the target is there."""
        return self if self.judge is None else self.judge(target)


def _judged(fields: Fields, score: float, y: float) -> Prediction:
    is_inside = bool(fields["lower"] <= y <= fields["upper"]) if "lower" in fields else None
    return Prediction(fields, score, is_inside)


def _foretold(fields: Fields, law: StudentMixture) -> Prediction:
    """Keep the law of a number, for when it comes."""

    def judge(y: float) -> Prediction:
        return _judged(fields, -float(law.log_density(np.array([y]))[0]), y)

    return Prediction(fields, judge=judge, law=law)


class Numbers:
    """Mean and standard deviation of a new observation, and the ends of its interval.

    The model is a regressor with ``partial_fit``, ``prequential`` and ``predictive``; ``level`` is
    the probability inside the interval, None for no interval.
    """

    def __init__(self, model: Any, level: float | None) -> None:
        if level is not None:
            check_level(level)
        self.model = model
        self.level = level
        self.unknown: Fields = dict.fromkeys(
            ("prediction", "std") if level is None else ("prediction", "std", "lower", "upper")
        )

    def target(self, cell: str, *, has_decimal_comma: bool) -> float:
        """Read a number; a ValueError says why it is none."""
        return read_number(cell, has_decimal_comma=has_decimal_comma)

    def ahead(self, X: Array, y: Sequence[float | None]) -> list[Prediction]:
        """Predict each row, then learn it where its target is there, one after the other."""
        targets = np.array([math.nan if value is None else value for value in y])
        rows = self.model.prequential(X, targets, level=self.level)
        said = []
        for k, value in enumerate(y):
            fields = {"prediction": float(rows.mean[k]), "std": float(rows.std[k])}
            if self.level is not None:
                fields |= {"lower": float(rows.lower[k]), "upper": float(rows.upper[k])}
            fields["n_centres"] = float(rows.n_centres[k])
            score, law = -float(rows.log_density[k]), rows.laws[k]
            if value is None:
                said.append(_foretold(fields, law))
            else:
                said.append(_judged(fields, score, value))
        return said

    def learn(self, X: Array, y: Sequence[float]) -> None:
        """Learn rows, one after the other."""
        self.model.partial_fit(X, np.asarray(y, dtype=np.float64))

    def lag_code(self, name: str) -> ColumnCode:
        """Say how an earlier target is an input: as it is."""
        return ColumnCode(name, "number")

    def lag_inputs(self, lags: Sequence[Sequence[float]]) -> Array:
        """Return earlier targets of rows (m, n_lags) as inputs (m, k)."""
        return np.array(lags)

    def kept(self, said: Prediction) -> Array:
        """Return what was foretold as numbers to keep in a file."""
        law = said.law
        assert law is not None
        parts = np.broadcast_arrays(law.locations, law.scales, law.weights, law.df)
        outliers = (0.0, 0.0, 1.0) if law.outliers is None else astuple(law.outliers)
        return np.concatenate([[said.fields["n_centres"], *outliers], *(part[0] for part in parts)])

    def again(self, numbers: Array) -> Prediction:
        """Read back what `kept` gave, with the interval of this level; a ValueError if it fails."""
        n_centres, *outliers = numbers[:4].tolist()
        location, scale, weights, df = numbers[4:].reshape(4, -1)
        found = Contamination(*outliers) if outliers[0] else None
        law = StudentMixture(location[None], scale[None], weights, df, outliers=found)
        fields = {"prediction": float(law.mean[0]), "std": float(law.std[0])}
        if self.level is not None:
            lower, upper = law.interval(self.level)
            fields |= {"lower": float(lower[0]), "upper": float(upper[0])}
        return _foretold({**fields, "n_centres": n_centres}, law)

    def stored(self, target: float) -> float:
        """Return an earlier target as a number to keep in a file."""
        return target

    def restored(self, value: float) -> float:
        """Read back what `stored` gave."""
        return value


class Labels:
    """The most probable class, and the probability of each.

    The model is a classifier with ``partial_fit``, ``prequential`` and ``predict_proba``; the
    classes, sorted, are text, booleans or whole numbers. ``level`` is that of the posterior
    intervals of the probabilities, None for none.
    """

    def __init__(self, model: Any, classes: NDArray[Any], level: float | None = None) -> None:
        self.model = model
        self.level = level
        self.unknown: Fields = {"prediction": None, "proba": None}
        if level is not None:
            self.unknown |= {"lower": None, "upper": None}
        self._classes = classes
        self._labels = classes.tolist()
        self._values = {value: value for value in self._labels}
        self._names = [str(v).lower() if isinstance(v, bool) else str(v) for v in self._labels]
        self._as_inputs = self.lag_code("").encode(np.array(self._names, dtype=object))

    def target(self, cell: str, *, has_decimal_comma: bool) -> Any:
        """Read a class; a ValueError says why it is none."""
        label: Any = cell.strip()
        kind = self._classes.dtype.kind
        if kind == "b" and label.lower() in _BOOLEANS:
            label = _BOOLEANS[label.lower()]
        elif kind in "biuf":
            label = read_number(cell, has_decimal_comma=has_decimal_comma)
        if label not in self._values:
            numbers = ", and --task regression predicts numbers" if kind in "iuf" else ""
            raise ValueError(
                f"{quoted(cell.strip())} is none of the classes that the model was begun with, "
                f"{listed(self._names)}: a longer --warmup meets more{numbers}"
            )
        return self._values[label]

    def ahead(self, X: Array, y: Sequence[Any]) -> list[Prediction]:
        """Predict each row, then learn it where its class is there, one after the other."""
        targets = np.empty(len(y), dtype=object)
        targets[:] = y
        rows = self.model.prequential(X, targets, classes=self._classes, level=self.level)
        said = []
        for k, value in enumerate(y):
            each = (
                [rows.proba[k]]
                if self.level is None
                else [rows.proba[k], rows.lower[k], rows.upper[k]]
            )
            foretold = self._foretold(float(rows.n_centres[k]), each)
            if value is None:
                said.append(foretold)
            else:
                is_right = bool(foretold.fields["prediction"] == value)
                score = -float(rows.log_density[k])
                said.append(Prediction(foretold.fields, score, is_right=is_right))
        return said

    def _foretold(self, n_centres: float, each: Iterable[Array]) -> Prediction:
        """Predict a class from the probabilities of all, and the ends of their intervals."""
        fields = self.unknown.copy()
        for name, values in zip(("proba", "lower", "upper"), each, strict=False):
            fields[name] = dict(zip(self._names, values.tolist(), strict=True))
        proba = list(fields["proba"].values())
        fields["prediction"] = self._labels[proba.index(max(proba))]
        fields["n_centres"] = n_centres
        return Prediction(fields, judge=functools.partial(self._judged, fields))

    def kept(self, said: Prediction) -> Array:
        """Return what was foretold as numbers to keep in a file."""
        each = [said.fields.get(name) for name in ("proba", "lower", "upper")]
        numbers = [value for values in each if values is not None for value in values.values()]
        return np.array([self.level or 0.0, said.fields["n_centres"], *numbers])

    def again(self, numbers: Array) -> Prediction:
        """Read back what `kept` gave, intervals if of this level; a ValueError if it fails."""
        level, n_centres = numbers[:2].tolist()
        each = numbers[2:].reshape(-1, len(self._labels))
        if not (each[0] > 0.0).all():
            raise ValueError("a probability is not above 0")
        return self._foretold(n_centres, each if level == self.level else each[:1])

    def _judged(self, fields: Fields, label: Any) -> Prediction:
        """Score what was said of a row, now that its class is there."""
        proba = fields["proba"][self._names[self._labels.index(label)]]
        return Prediction(fields, -math.log(proba), is_right=bool(label == fields["prediction"]))

    def learn(self, X: Array, y: Sequence[Any]) -> None:
        """Learn rows, one after the other."""
        self.model.partial_fit(X, np.array(y, dtype=self._classes.dtype), classes=self._classes)

    def lag_code(self, name: str) -> ColumnCode:
        """Say how an earlier class is an input: as the levels of a column of text are."""
        return ColumnCode(name, "levels", tuple(self._names))

    def lag_inputs(self, lags: Sequence[Sequence[Any]]) -> Array:
        """Return earlier classes of rows (m, n_lags) as inputs (m, k)."""
        positions = [[self._labels.index(label) for label in row] for row in lags]
        return np.asarray(self._as_inputs[np.array(positions)].reshape(len(lags), -1))

    def stored(self, target: Any) -> float:
        """Return an earlier class as a number to keep in a file: its position."""
        return float(self._labels.index(target))

    def restored(self, value: float) -> Any:
        """Read back what `stored` gave; a ValueError where there is no such class."""
        if value not in range(len(self._labels)):
            raise ValueError(f"{value:g} is the position of no class")
        return self._labels[int(value)]


Predictor: TypeAlias = Numbers | Labels


class Undecided:
    """Targets of the first rows, until these say whether they are numbers or classes.

    With ``is_auto`` text, booleans or few distinct whole numbers are classes, as for a table, if
    these look like all that there are; else all are. ``make`` makes the predictor for the target
    that was read.
    """

    model: Any = None
    is_text = False  # in a source with types: then it is no number, whatever it looks like

    def __init__(self, name: str, *, is_auto: bool, make: Callable[[Target], Predictor]) -> None:
        self.unknown: Fields = {"prediction": None}
        self._name = name
        self._is_auto = is_auto
        self._make = make

    def target(self, cell: str, *, has_decimal_comma: bool) -> float | str:
        """Read a target as JSON has it: a number if it is one."""
        text = cell.strip()
        if self.is_text or CODE.fullmatch(text):
            return text
        try:
            number = read_number(cell, has_decimal_comma=has_decimal_comma)
        except ValueError:
            return text
        return int(number) if number.is_integer() else number

    def decide(self, cells: Sequence[str], source: str, *, has_decimal_comma: bool) -> Predictor:
        """Decide by the first rows; dates are refused, and targets of one class only."""
        targets = [self.target(cell, has_decimal_comma=has_decimal_comma) for cell in cells]
        numbers = [float(target) for target in targets if not isinstance(target, str)]
        if self._is_text(targets):
            texts = [cell.strip() for cell in cells]
            column = column_of_texts(self._name, texts, is_text=self.is_text)
        else:  # a few that are no numbers are mistakes
            column = Column(self._name, np.array(numbers), "number")
        frame = Frame.from_columns([column], source)
        task: Task = "auto" if self._is_auto else "classification"
        target = read_target(frame, self._name, task, allow_one_class=True)
        is_number = self._is_auto and column.kind == "number"
        if is_number and target.task == "classification" and _more_may_come(column.values):
            words = (
                f"target {quoted(self._name)}: {len(set(numbers))} distinct whole numbers in the "
                f"first {len(numbers)} rows, of which more may come, so regression; "
                "--task classification takes them for all classes"
            )
            numeric = read_target(frame, self._name, "regression", allow_one_class=True)
            target = replace(numeric, reason=words)
        if target.task == "classification" and len(set(target.values.tolist())) == 1:
            other = ", or use --task regression" * (column.kind == "number")
            raise DataError(
                f"{printable(source)}: target {quoted(self._name)} has one class only, "
                f"{quoted(target.values[0])}, in the first {len(column.values)} rows; wait for "
                f"others with a longer --warmup{other}"
            )
        return self._make(target)

    def _is_text(self, targets: Sequence[float | str]) -> bool:
        texts = [target for target in targets if isinstance(target, str)]
        if not texts or not self._is_auto or any(map(CODE.fullmatch, texts)):
            return bool(texts)
        is_whole = all(isinstance(target, str | int) for target in targets)
        return 2 * len(texts) >= len(targets) or (is_whole and len(set(targets)) <= MAX_CLASSES)


def _more_may_come(values: Array) -> bool:
    """Whether later rows may have other whole numbers: counts and prices do, codes seldom.

    Codes are two, or go up from 0 or 1 and have no rare tail: the largest came more than once.
    """
    distinct, counts = np.unique(values, return_counts=True)
    is_coded = distinct[0] in (0.0, 1.0) and distinct[-1] - distinct[0] == len(distinct) - 1
    return len(distinct) > 2 and not (is_coded and counts[-1] > 1)


# Counts, running scores, and what is said of single rows.

RECENT = 1000


class Tally:
    """Rows read, learned and skipped, and the mean log score: of all, and of the last 1000.

    Means are None before the first row that counts: one with a score.

    Examples
    --------
    >>> tally = Tally()
    >>> for score in (1.0, 2.0):
    ...     tally.add(Prediction({}, score, score < 1.5))
    >>> tally.mean_score, tally.recent_score, tally.recent_coverage
    (1.5, 1.5, 0.5)
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self.last_row = 0  # number of the last one that was learned, or skipped
        self.n_learned = 0
        self.n_bad = 0
        self._n_scored = 0
        self._sum = 0.0
        self._last: deque[Prediction] = deque(maxlen=RECENT)
        self._n_judged = self._n_wrong = 0

    def add(self, said: Prediction) -> None:
        """Take in what was said of a row; without a score it does not count."""
        if said.score is None:
            return
        self._n_scored += 1
        self._sum += said.score
        self._last.append(Prediction({}, said.score, said.is_inside, said.is_right))
        if said.is_right is not None:
            self._n_judged += 1
            self._n_wrong += not said.is_right

    @property
    def mean_score(self) -> float | None:
        """Mean over all rows scored."""
        return self._sum / self._n_scored if self._n_scored else None

    @property
    def recent_score(self) -> float | None:
        """Mean over the last 1000 rows scored."""
        return _mean([said.score for said in self._last])

    @property
    def recent_coverage(self) -> float | None:
        """Share, of the last 1000 rows scored, of those inside their interval."""
        return _mean([said.is_inside for said in self._last])

    @property
    def error_rate(self) -> float | None:
        """Share, of all classes predicted, of those that were wrong."""
        return self._n_wrong / self._n_judged if self._n_judged else None

    @property
    def recent_error_rate(self) -> float | None:
        """The same of the last 1000."""
        share = _mean([said.is_right for said in self._last])
        return None if share is None else 1.0 - share


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


@dataclass
class Reporter:
    """Say what happens to rows, and count those that cannot be used."""

    tell: Callable[[str, str], None]  # takes a label and words
    source: str
    is_fatal: bool  # whether a row that cannot be used ends the stream
    tally: Tally = field(default_factory=Tally)
    _said: set[str] = field(default_factory=set)

    def note(self, words: str) -> None:
        """Say something of all rows."""
        self.tell("note", words)

    def once(self, words: str, about: str = "") -> None:
        """Say something the first time only; with ``about`` once of this."""
        if (about or words) not in self._said:
            self._said.add(about or words)
            self.note(words)

    def bad(self, row: Row, words: str) -> dict[str, Any]:
        """Say that a row cannot be used; return its answer, unless that ends the stream."""
        self.tally.n_bad += 1
        joint = ", " if words.startswith("column ") else ": "
        sentence = f"{place(self.source, row.number, row.line)}{joint}{words}"
        if self.is_fatal:
            self.tally.last_row = row.number - 1
            raise DataError(sentence)
        self.tell("bad row", f"{sentence}; skipped")
        self.tally.last_row = max(self.tally.last_row, row.number)
        return {**named(row), "error": words}


def named(row: Row) -> dict[str, Any]:
    """Return the first fields of an answer: number and name of the row."""
    return {"row": row.number} if row.id is None else {"row": row.number, "id": row.id}


# How cells become numbers: by the parser and the encoder of tables.

_MANY = 10  # rows that each have a text of their own, so that the column may name them


def frame_of(
    rows: Sequence[Row],
    names: Sequence[str],
    source: str,
    *,
    as_text: Sequence[str] = (),
    has_decimal_comma: bool = False,
) -> Frame:
    """Read the cells of rows as those of a table are read."""
    columns = []
    for k, name in enumerate(names):
        builder = ColumnBuilder(
            name, is_text=name in as_text, has_decimal_comma=has_decimal_comma, null_values=EMPTY
        )
        builder.add([row.cells[k] for row in rows])
        columns.append(builder.finish())
    places = np.array([(row.number, row.line) for row in rows], dtype=np.int64).T
    origin = Origin((source,), np.zeros(len(rows), np.int32), *places)
    return Frame(tuple(columns), source, origin)


def gap(row: Row, names: Sequence[str], has_fill: Collection[str] = ()) -> str:
    """Say which of the named cells is missing, if nothing takes its place; else nothing."""
    for name, cell in zip(names, row.cells, strict=True):
        if name not in has_fill and not cell:
            return f"column {quoted(name)}: missing value"
    return ""


SKIPS_GAPS = (
    "rows with a missing input are skipped; a new stream with --missing impute, or indicator, "
    "fills it in"
)


class Coder:
    """Encode rows as tables are encoded; a cell that is wrong spoils its row only."""

    def __init__(self, encoder: Encoder, parser: Parser, reporter: Reporter) -> None:
        self._encoder = encoder
        self._parser = parser
        self._reporter = reporter
        self._as_text = encoder.texts()
        needed = {code.name for code in encoder.codes if code.fill is None}
        self._has_fill = set(parser.inputs) - needed  # or were left out

    def encode(self, rows: Sequence[Row]) -> tuple[Array, Problems]:
        """Encode rows that have cells; one that cannot be used is zero, and has a problem.

        It is found by halves.
        """
        X = np.zeros((len(rows), len(self._encoder.feature_names)))
        if not X.size:
            return X, {}
        frame = frame_of(
            rows, self._parser.inputs, self._reporter.source, as_text=self._as_text,
            has_decimal_comma=self._parser.has_decimal_comma,
        )  # fmt: skip
        try:
            encoded = self._encoder.transform(frame)
            X = encoded.X
            problem = self._too_large(X)
        except DataError as error:
            problem = str(error).removeprefix(frame.place(0)).lstrip(",: ")
        if not problem:
            self._note_unseen(encoded.unseen)
            return X, {}
        if len(rows) == 1:
            missing = gap(rows[0], self._parser.inputs, self._has_fill)
            if missing:
                self._reporter.once(SKIPS_GAPS)
            return np.zeros((1, X.shape[1])), {0: missing or problem}
        half = len(rows) // 2
        (first, problems), (second, more) = self.encode(rows[:half]), self.encode(rows[half:])
        return np.concatenate([first, second]), problems | {half + k: w for k, w in more.items()}

    def _too_large(self, X: Array) -> str:
        odd = np.argwhere(np.abs(X) > LARGEST)
        if not len(odd):
            return ""
        name, value = self._encoder.feature_names[odd[0, 1]], X[tuple(odd[0])]
        return f"column {quoted(name)}: {value:g} is too large to compute with"

    def _note_unseen(self, unseen: Mapping[str, tuple[str, ...]]) -> None:
        for name, texts in unseen.items():
            if texts:
                column = f"column {quoted(name)}"
                self._reporter.once(
                    f"{column}: {quoted(texts[0])} was not there when its encoding was learned; "
                    "it and others are one more level: predictions may be too sure",
                    about=column,
                )


def learn_encoder(
    parser: Parser, rows: Sequence[Row], source: str, missing: Missing = "error"
) -> Encoder:
    """Learn from the first rows how cells become numbers, and what takes the place of gaps.

    A column that holds more numbers than other texts is one of numbers; rows with these texts do
    not count. One without any value, if gaps are filled, is left out.
    """
    strays: set[int] = set()
    comma = parser.has_decimal_comma
    for k in np.flatnonzero([name not in parser.texts for name in parser.inputs]):
        cells = {n: row.cells[k] for n, row in enumerate(rows) if row.cells[k]}
        own = {n for n, cell in cells.items() if not _is_number(cell, comma)}
        strays |= own if 2 * len(own) < len(cells) else set()
    kept = [row for n, row in enumerate(rows) if n not in strays]
    if not kept:
        raise DataError(f"{printable(source)}: none of the first {len(rows)} rows can be used")
    frame = frame_of(kept, parser.inputs, source, as_text=parser.texts, has_decimal_comma=comma)
    if missing != "error":
        frame, _ = without_empty(frame, ())
    encoder = fit_encoder(frame, missing=missing)
    return replace(encoder, codes=tuple(map(_recurring, encoder.codes)))


def _recurring(code: ColumnCode) -> ColumnCode:
    """Keep what comes again of a date: how much time has passed is beyond all that was learned."""
    if code.kind != "date":
        return code
    return replace(code, parts=("weekday", "hour") if "hour" in code.parts else ("weekday",))


def _is_number(cell: str, has_decimal_comma: bool) -> bool:
    try:
        read_number(cell, has_decimal_comma=has_decimal_comma)
    except ValueError:
        return False
    return True


def encoding_notes(encoder: Encoder, n_rows: int, *, has_lags: bool = False) -> list[str]:
    """Say of columns of text what may surprise, when the encoding was learned from ``n_rows``."""
    remedy = "" if has_lags else "; where the target drifts, --lags 24 tells its last values"
    running = [
        f"column {quoted(code.name)}: how much time has passed is no input, since new rows are "
        f"always beyond all that was learned{remedy}"
        for code in encoder.codes
        if code.kind == "date"
    ]
    return [*encoder.notes, *running] + [
        f"column {quoted(code.name)}: another text in each of the first {n_rows} rows; if it names "
        "the rows, use --id"
        for code in encoder.codes
        if code.kind == "levels" and len(code.levels) == n_rows >= _MANY
    ]


def refuse_text(encoder: Encoder, source: str) -> None:
    """Refuse columns of text, if their levels would be those of a single row."""
    for code in encoder.codes:
        if code.kind in ("levels", "frequency", "date") or code.written is not None:
            raise DataError(
                f"{printable(source)}: column {quoted(code.name)} holds text, which is read as "
                "the first rows have it; use --warmup above 0, or --drop it"
            )


# The model of a stream: what is learned of it, and of its first rows.


class Learner:
    """Learn rows, from the first ``warmup`` also how their cells become numbers.

    With the encoder of a model that was loaded it is ready at once; else ``missing`` says what
    becomes of gaps. ``lag_names`` are inputs that are no columns, before all others. ``held`` are
    rows with a target that say what cells are.
    """

    def __init__(
        self, predictor: Predictor | Undecided, parser: Parser, reporter: Reporter, *, warmup: int,
        encoder: Encoder | None, lag_names: tuple[str, ...] = (), missing: Missing = "error",
    ) -> None:  # fmt: skip
        self.predictor: Predictor | Undecided = predictor
        self.reporter = reporter
        self.tally = reporter.tally
        self.warmup = warmup
        self.encoder = encoder
        self.held: list[Row] = []
        self._parser = parser
        self._lag_names = lag_names
        self._missing = missing
        self._coder: Coder | None = None
        self._n_set_aside_before = 0
        if encoder is not None:
            self._take_encoder(encoder)
            self.settle()
            self._n_set_aside_before = self.n_set_aside

    @property
    def is_ready(self) -> bool:
        """Whether rows can be encoded and predicted."""
        return self._coder is not None

    @property
    def is_full(self) -> bool:
        """Whether the warm-up is over."""
        return len(self.held) >= max(self.warmup, 1)

    @property
    def decided(self) -> Predictor:
        """The predictor, once numbers or classes are to be learned."""
        assert not isinstance(self.predictor, Undecided)
        return self.predictor

    @property
    def n_rows_of_model(self) -> int:
        """Rows that the model has learned, or holds back."""
        return int(getattr(self.predictor.model, "n_rows_seen_", 0))

    @property
    def n_set_aside(self) -> int:
        """Rows of this stream that the model did not learn, since their targets are outliers."""
        return int(getattr(self.predictor.model, "n_outliers_", 0)) - self._n_set_aside_before

    def target(self, row: Row) -> Any:
        """Read the target of a row, None where it is missing; a ValueError says what is wrong."""
        if row.problem:
            raise ValueError(row.problem)
        if row.target is None:
            return None
        comma = self._parser.has_decimal_comma
        try:
            return self.predictor.target(row.target, has_decimal_comma=comma)
        except ValueError as error:
            raise ValueError(f"the target: {error}") from None

    def gap(self, row: Row) -> str:
        """Say which cell of a row is missing, if nothing takes its place; else nothing."""
        words = gap(row, self._parser.inputs) if self._missing == "error" else ""
        if words:
            self.reporter.once(SKIPS_GAPS)
        return words

    def problem(self, row: Row) -> str:
        """Say what is wrong with the cells of a row; nothing if they can be used."""
        words = self.gap(row)
        return words if words or self._coder is None else self._coder.encode([row])[1].get(0, "")

    def begin(self, seen: Sequence[Row] = ()) -> None:
        """Learn the encoding from the rows that are held, or those seen; then none is held."""
        rows, source = self.held or list(seen), self.reporter.source
        if isinstance(self.predictor, Undecided):
            cells = [str(row.target) for row in rows]
            comma = self._parser.has_decimal_comma
            self.predictor = self.predictor.decide(cells, source, has_decimal_comma=comma)
        codes: tuple[ColumnCode, ...] = ()
        if self._parser.inputs:
            encoder = learn_encoder(self._parser, rows, source, self._missing)
            codes = encoder.codes
            names = {code.name for code in codes}
            if empty := [name for name in self._parser.inputs if name not in names]:
                words = f"columns without a value in the first {len(rows)} rows, left out: "
                self.reporter.note(words + listed(empty))
            if self.warmup == 0:
                refuse_text(encoder, source)
            for note in encoding_notes(encoder, len(rows), has_lags=bool(self._lag_names)):
                self.reporter.note(note)
        lags = (self.decided.lag_code(name) for name in self._lag_names)
        nulls = self._parser.null_values
        encoder = Encoder((*lags, *codes), self._missing, null_values=nulls)
        self._take_encoder(encoder)
        # Without a data frame scikit-learn has no way to pass the names of columns on.
        self.predictor.model._names_of_columns = encoder.feature_names
        self.held = []

    def _take_encoder(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.decided.model._n_scores = RECENT  # however many rows come together
        codes = encoder.codes[len(self._lag_names) :]
        self._missing = "error" if encoder.missing == "drop" else encoder.missing
        self._coder = Coder(Encoder(codes, self._missing), self._parser, self.reporter)

    def settle(self) -> None:
        """Ask for a prediction: rows that the model holds back are learned before.

        Else the scales would depend on how many rows come together after these.
        """
        if self.n_rows_of_model and self.encoder is not None:
            self.decided.model.predict(np.zeros((1, len(self.encoder.feature_names))))

    def encode(
        self, rows: Sequence[Row], lags: Sequence[tuple[Any, ...]] = ()
    ) -> tuple[Array, Problems]:
        """Encode rows, in a series with the earlier targets of each."""
        assert self._coder is not None
        X, problems = self._coder.encode(rows)
        if lags:
            X = np.hstack([self.decided.lag_inputs(lags), X])
        return X, problems

    def learn(self, X: Array, y: Sequence[Any]) -> list[str | None]:
        """Learn rows in their order; a text says what is wrong with one.

        Where such a row ends the stream, it is the last of which something is said.
        """

        def learn(X: Array, y: Sequence[Any]) -> list[None]:
            self.decided.learn(X, y)
            return [None] * len(y)

        return self._each(learn, X, y)

    def ahead(self, X: Array, y: Sequence[Any]) -> list[Prediction | str]:
        """Predict rows, then learn those with a target; else as `learn`."""
        return self._each(self.decided.ahead, X, y)

    def _each(self, learn: Callable[..., list[Any]], X: Array, y: Sequence[Any]) -> list[Any]:
        try:
            said = learn(X, y)
        except ValueError as error:
            if len(y) == 1:
                words = error.words if isinstance(error, RowsError) else str(error)
                return [words.removeprefix(": ")]
            said = []  # a call that fails has learned nothing
            for k in range(len(y)):
                said += self._each(learn, X[k : k + 1], y[k : k + 1])
                if isinstance(said[-1], str) and self.reporter.is_fatal:
                    break
            return said
        self.tally.n_learned += sum(value is not None for value in y)
        return said
