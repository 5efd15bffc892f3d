"""What a stream says of rows: numbers or classes, running scores, reports, the output."""

from __future__ import annotations

import json
import math
import os
import select
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mercer.cli.stream_rows import Example, Row, Stopping, StreamStoppedError, listed
from mercer.data.files import place, printable, quoted
from mercer.data.frame import Column, Frame, Origin, column_of_texts, parse_number
from mercer.data.target import LARGEST, MAX_CLASSES, Target, Task, read_target
from mercer.errors import DataError, StorageError
from mercer.posterior.predictive import StudentMixture, check_level

__all__ = [
    "BOOLEANS", "Answers", "Fields", "Foretold", "Labels", "Numbers", "Output", "Reporter", "Said",
    "Tally", "Undecided", "named", "read_number",
]  # fmt: skip


Array = NDArray[np.float64]
Fields = dict[str, Any]


#: What cells of true and false are.
BOOLEANS = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0}


def read_number(cell: str, *, has_decimal_comma: bool) -> float:
    """Read a number that can be computed with.

    Raises
    ------
    ValueError
        Saying why it is none.
    """
    text = cell.strip()
    if has_decimal_comma and "." not in text:
        text = text.replace(",", ".")
    value = parse_number(text)
    if value is None or math.isnan(value):
        raise ValueError(f"{quoted(cell.strip())} is not a number")
    if math.isinf(value):
        raise ValueError("infinite, or too large for a float64")
    if abs(value) > LARGEST:
        raise ValueError(f"{value:g} is too large to compute with")
    return value


@dataclass(frozen=True)
class Said:
    """What was said of a row before it was learned.

    Parameters
    ----------
    fields : dict
        The prediction, as JSON can hold it.
    score : float or None
        Log predictive density of the target, nats; None where the target is not known.
    is_inside : bool or None
        Whether the target lies in its interval.
    is_right : bool or None
        Whether the class is the one predicted.
    """

    fields: Fields
    score: float | None = None
    is_inside: bool | None = None
    is_right: bool | None = None


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

    @property
    def unknown(self) -> Fields:
        """No number at all."""
        return dict.fromkeys(("prediction", "std", *self._ends))

    @property
    def _ends(self) -> tuple[str, ...]:
        return () if self.level is None else ("lower", "upper")

    def target(self, cell: str, *, has_decimal_comma: bool) -> float:
        """Read a number; a ValueError says why it is none."""
        return read_number(cell, has_decimal_comma=has_decimal_comma)

    def shown(self, target: float) -> float:
        """Return a target as JSON has it."""
        return target

    def ahead(self, X: Array, y: Sequence[float | None]) -> list[Said]:
        """Predict each row, then learn it where its target is there, one after the other."""
        targets = np.array([math.nan if value is None else value for value in y])
        rows = self.model.prequential(X, targets, level=self.level)
        said = []
        for k, value in enumerate(y):
            fields: Fields = {"prediction": float(rows.mean[k]), "std": float(rows.std[k])}
            if self.level is not None:
                fields |= {"lower": float(rows.lower[k]), "upper": float(rows.upper[k])}
            fields["n_centres"] = float(rows.n_centres[k])
            score = None if value is None else float(rows.log_density[k])
            said.append(Said(fields, score, _is_inside(fields, value)))
        return said

    def learn(self, X: Array, y: Sequence[float]) -> None:
        """Learn rows, one after the other."""
        self.model.partial_fit(X, np.asarray(y, dtype=np.float64))

    def foretell(self, x: Array) -> Foretold:
        """Predict the row x, of shape (1, d), whose target comes later."""
        law = self.model.predictive(x)
        fields: Fields = {"prediction": float(law.mean[0]), "std": float(law.std[0])}
        if self.level is not None:
            lower, upper = law.interval(self.level)
            fields |= {"lower": float(lower[0]), "upper": float(upper[0])}
        fields["n_centres"] = float(self.model.n_centres_)
        return Foretold(fields, law)

    def settle(self, n_features: int) -> None:
        """Ask for a prediction: rows that the model holds back are learned before.

        Else the scales would depend on how many rows come together after these.
        """
        self.model.predictive(np.zeros((1, n_features)))


@dataclass(frozen=True)
class Foretold:
    """What was said of a row whose target comes later."""

    fields: Fields
    law: StudentMixture

    def scored(self, y: float) -> Said:
        """Score it, now that the target is there."""
        score = float(self.law.log_density(np.array([y]))[0])
        return Said(self.fields, score, _is_inside(self.fields, y))


def _is_inside(fields: Fields, y: float | None) -> bool | None:
    if y is None or "lower" not in fields:
        return None
    return bool(fields["lower"] <= y <= fields["upper"])


class Labels:
    """The most probable class, and the probability of each.

    The model is a classifier with ``partial_fit``, ``prequential`` and ``predict_proba``; the
    classes, sorted, are text, booleans or whole numbers.
    """

    def __init__(self, model: Any, classes: NDArray[Any]) -> None:
        self.model = model
        self._classes = classes
        self._values = classes.tolist()
        self._place = {value: k for k, value in enumerate(self._values)}
        self._names = [str(v).lower() if isinstance(v, bool) else str(v) for v in self._values]

    @property
    def unknown(self) -> Fields:
        """No class at all."""
        return {"prediction": None, "proba": None}

    def target(self, cell: str, *, has_decimal_comma: bool) -> Any:
        """Read a class; a ValueError says why it is none."""
        label: Any = cell.strip()
        kind = self._classes.dtype.kind
        if kind == "b":
            label = BOOLEANS.get(label.lower())
        elif kind in "iuf":
            label = read_number(cell, has_decimal_comma=has_decimal_comma)
        if label not in self._place:
            raise ValueError(
                f"{quoted(cell.strip())} is none of the classes that the model was begun with: "
                f"{listed(self._names)}"
            )
        return self._values[self._place[label]]

    def shown(self, target: Any) -> Any:
        """Return a target as JSON has it."""
        return target

    def ahead(self, X: Array, y: Sequence[Any]) -> list[Said]:
        """Predict each row, then learn it where its class is there, one after the other."""
        targets = np.empty(len(y), dtype=object)
        targets[:] = y
        rows = self.model.prequential(X, targets, classes=self._classes)
        said = []
        for k, value in enumerate(y):
            fields = self._fields(rows.proba[k])
            fields["n_centres"] = float(rows.n_centres[k])
            if value is None:
                said.append(Said(fields))
            else:
                is_right = bool(fields["prediction"] == value)
                said.append(Said(fields, float(rows.log_density[k]), is_right=is_right))
        return said

    def learn(self, X: Array, y: Sequence[Any]) -> None:
        """Learn rows, one after the other."""
        self.model.partial_fit(X, np.array(y, dtype=self._classes.dtype), classes=self._classes)

    def settle(self, n_features: int) -> None:
        """Ask for a prediction: rows that the model holds back are learned before."""
        self.model.predict_proba(np.zeros((1, n_features)))

    def _fields(self, proba: Array) -> Fields:
        return {
            "prediction": self._values[int(np.argmax(proba))],
            "proba": dict(zip(self._names, proba.tolist(), strict=True)),
        }


Answers: TypeAlias = Numbers | Labels


# Targets of the first rows, until these say whether they are numbers or classes.

#: Makes the answers for a target that was read.
Make = Callable[[Target], Answers]


@dataclass(frozen=True)
class _Cell:
    """A target as it stands there; ``problem`` says why it is no number."""

    text: str
    number: float = 0.0
    problem: str = ""


class Undecided:
    """Read targets that may be numbers or classes.

    Parameters
    ----------
    name : str
        Name of the target.
    is_auto : bool
        Text, booleans or few distinct whole numbers are classes, as for a table. False: all are.
    make : callable
        Makes the answers for the task.
    """

    model: Any = None

    def __init__(self, name: str, *, is_auto: bool, make: Make) -> None:
        self._name = name
        self._is_auto = is_auto
        self._make = make

    @property
    def unknown(self) -> Fields:
        """Nothing is known."""
        return {"prediction": None}

    def target(self, cell: str, *, has_decimal_comma: bool) -> _Cell:
        """Keep a target as it stands there."""
        text = cell.strip()
        try:
            return _Cell(text, read_number(cell, has_decimal_comma=has_decimal_comma))
        except ValueError as error:
            return _Cell(text, problem=str(error))

    def shown(self, target: _Cell) -> Any:
        """Return a target as JSON has it: a number if it is one."""
        if target.problem:
            return target.text
        return int(target.number) if target.number.is_integer() else target.number

    def decide(
        self, examples: Sequence[Example], reporter: Reporter
    ) -> tuple[Answers, list[Example]]:
        """Decide by the first rows; a row is reported whose target is then of the wrong kind.

        Parameters
        ----------
        examples : sequence of Example
            With targets from `target`.
        reporter : Reporter

        Returns
        -------
        answers : Answers
        examples : list of Example
            The others, with targets as these answers take them.

        Raises
        ------
        DataError
            They are dates, or of one class only.
        """
        cells = [example.target for example in examples]
        is_text = self._is_text(cells)
        kept = [k for k, cell in enumerate(cells) if is_text or not cell.problem]
        if is_text:
            column = column_of_texts(self._name, [cell.text for cell in cells], is_text=False)
        else:
            column = Column(self._name, np.array([cells[k].number for k in kept]), "number")
        rows = np.array(kept, dtype=np.int64)
        frame = Frame((column,), reporter.source, Origin.of_file(reporter.source, rows))
        task: Task = "auto" if self._is_auto else "classification"
        target = read_target(frame, self._name, task, allow_one_class=True)
        if target.task == "classification" and len(set(target.values.tolist())) == 1:
            raise DataError(
                f"{printable(reporter.source)}: target {quoted(self._name)} has one class only, "
                f"{quoted(target.values[0])}, in the first {len(kept)} rows; wait for others with "
                "a longer --warmup, or use --task regression"
            )
        for k, cell in enumerate(cells):
            if cell.problem and not is_text:
                reporter.bad(examples[k].row, f"the target: {cell.problem}")
        values = target.values.tolist()
        decided = [replace(examples[k], target=v) for k, v in zip(kept, values, strict=True)]
        return self._make(target), decided

    def _is_text(self, cells: Sequence[_Cell]) -> bool:
        """Whether all are text; else a few that are no numbers are mistakes."""
        n_texts = sum(bool(cell.problem) for cell in cells)
        if n_texts == 0 or not self._is_auto:
            return n_texts > 0
        is_whole = all(cell.number.is_integer() for cell in cells)
        is_few = len({cell.text for cell in cells}) <= MAX_CLASSES
        return 2 * n_texts >= len(cells) or (is_whole and is_few)


# Counts and running scores of a stream.

_RECENT = 1000


class Tally:
    """Rows read, learned and skipped, and the mean score: of all rows, and of the last 1000.

    Examples
    --------
    >>> tally = Tally()
    >>> for score in (-1.0, -2.0):
    ...     tally.add(Said({}, score, score > -1.5))
    >>> tally.mean_score, tally.recent_score, tally.recent_coverage
    (-1.5, -1.5, 0.5)
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self.last_row = 0  # number of the last one that was learned, or skipped
        self.n_learned = 0
        self.n_bad = 0
        self._n_scored = 0
        self._sum = 0.0
        self._scores: deque[float] = deque(maxlen=_RECENT)
        self._inside: deque[bool] = deque(maxlen=_RECENT)
        self._right: deque[bool] = deque(maxlen=_RECENT)
        self._n_judged = self._n_wrong = 0

    def add(self, said: Said) -> None:
        """Take in what was said of a row; without a score it does not count."""
        if said.score is None:
            return
        self._n_scored += 1
        self._sum += said.score
        self._scores.append(said.score)
        if said.is_inside is not None:
            self._inside.append(said.is_inside)
        if said.is_right is not None:
            self._right.append(said.is_right)
            self._n_judged += 1
            self._n_wrong += not said.is_right

    @property
    def mean_score(self) -> float | None:
        """Mean over all rows scored; None before the first."""
        return self._sum / self._n_scored if self._n_scored else None

    @property
    def recent_score(self) -> float | None:
        """Mean over the last 1000 rows scored; None before the first."""
        return fmean(self._scores) if self._scores else None

    @property
    def recent_coverage(self) -> float | None:
        """Share, of the last 1000 rows scored, of those inside their interval."""
        return fmean(self._inside) if self._inside else None

    @property
    def error_rate(self) -> float | None:
        """Share, of all classes predicted, of those that were wrong; None before the first."""
        return self._n_wrong / self._n_judged if self._n_judged else None

    @property
    def recent_error_rate(self) -> float | None:
        """The same of the last 1000."""
        return 1.0 - fmean(self._right) if self._right else None


# What is said of single rows: their place, what is wrong, and whether that ends the stream.


class Reporter:
    """Say what happens to rows, and count those that cannot be used.

    ``tell`` takes a label and words; where ``is_fatal``, a row that cannot be used ends the stream.
    """

    def __init__(
        self, tell: Callable[[str, str], None], source: str, *, is_fatal: bool, tally: Tally
    ) -> None:
        self.source = source
        self._tell = tell
        self.is_fatal = is_fatal
        self._tally = tally
        self._said: set[str] = set()

    def note(self, words: str) -> None:
        """Say something of all rows."""
        self._tell("note", words)

    def once(self, words: str) -> None:
        """Say something the first time only."""
        if words not in self._said:
            self._said.add(words)
            self.note(words)

    def bad(self, row: Row, words: str) -> dict[str, Any]:
        """Say that a row cannot be used.

        Returns
        -------
        dict
            Its answer.

        Raises
        ------
        DataError
            If that ends the stream.
        """
        self._tally.n_bad += 1
        joint = ", " if words.startswith("column ") else ": "
        sentence = f"{place(self.source, row.number, row.line)}{joint}{words}"
        if self.is_fatal:
            self._tally.last_row = row.number - 1
            raise DataError(sentence)
        self._tell("bad row", f"{sentence}; skipped")
        self._tally.last_row = max(self._tally.last_row, row.number)
        return {**named(row), "error": words}


def named(row: Row) -> dict[str, Any]:
    """Return the first fields of an answer: number and name of the row."""
    return {"row": row.number} if row.id is None else {"row": row.number, "id": row.id}


# Answers as JSON lines on standard output, each written at once.

_PIECE = 4096  # bytes that a pipe takes whole once it can be written to
_PATIENCE = 1.0  # seconds that a reader has for what is left, once a signal came


class Output:
    """Write to standard output; a reader that takes its time makes this wait, and loses nothing.

    Parameters
    ----------
    stopping : Stopping
        Once a signal came, a reader that takes nothing is not waited for.
    """

    def __init__(self, stopping: Stopping) -> None:
        self._stopping = stopping
        try:
            sys.stdout.flush()
            self._descriptor: int | None = sys.stdout.fileno()
        except (OSError, ValueError):  # replaced by something that is no file
            self._descriptor = None

    def write(self, answers: Sequence[dict[str, Any]]) -> None:
        """Write a line for each answer.

        Raises
        ------
        BrokenPipeError
            Nobody reads any more.
        StorageError
            They cannot be written: a disk is full, for instance.
        StreamStoppedError
            A signal came, and the reader took nothing for a second.
        """
        rows = [answer["row"] for answer in answers]
        text = "".join(json.dumps(answer, allow_nan=False) + "\n" for answer in answers)
        if self._descriptor is None:
            sys.stdout.write(text)
            return
        data = memoryview(text.encode())
        while data:
            self._wait(self._descriptor)
            try:
                data = data[os.write(self._descriptor, data[:_PIECE]) :]
            except BrokenPipeError:
                raise
            except OSError as error:
                first = rows[-bytes(data).count(b"\n")]
                raise StorageError(
                    f"cannot write to standard output: {error.strerror}; the answers of rows "
                    f"{first} to {rows[-1]} are lost"
                ) from error

    def _wait(self, descriptor: int) -> None:
        """Wait until something can be written."""
        if self._stopping.received is None:
            _, ready, _ = select.select([self._stopping.wake], [descriptor], [])
            if ready:
                return
        started = time.monotonic()
        while time.monotonic() < started + _PATIENCE:
            _, ready, _ = select.select([], [descriptor], [], _PATIENCE)
            if ready:
                return
        raise StreamStoppedError
