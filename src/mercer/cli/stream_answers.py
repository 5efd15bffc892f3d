"""What a stream says of a row: answers, their running scores, the report, the output.

What a model that learns row by row says of a row, as fields of an answer: numbers.
"""

from __future__ import annotations

import json
import math
import os
import select
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.cli.stream_cells import read_number
from mercer.cli.stream_rows import Row, Stopping, StreamStoppedError
from mercer.data.files import place
from mercer.errors import DataError, StorageError
from mercer.posterior.predictive import Predictive, check_level

__all__ = [
    "Answers",
    "Fields",
    "Foretold",
    "Numbers",
    "Output",
    "Reporter",
    "Said",
    "Tally",
    "named",
]


Array = NDArray[np.float64]
Fields = dict[str, Any]


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


class Foretold(Protocol):
    """What was said of a row whose target comes later."""

    @property
    def fields(self) -> Fields:
        """The prediction."""
        ...

    def scored(self, y: Any) -> Said:
        """Score it, now that the target is there."""
        ...


class Answers(Protocol):
    """A model as a stream asks it; targets are of its task, and None where they are missing."""

    model: Any

    @property
    def unknown(self) -> Fields:
        """The fields of a prediction, of a row that cannot be predicted yet."""
        ...

    def target(self, cell: str, *, has_decimal_comma: bool) -> Any:
        """Read a target; a ValueError says why it is none."""
        ...

    def shown(self, target: Any) -> Any:
        """Return a target as JSON has it."""
        ...

    def ahead(self, X: Array, y: Sequence[Any]) -> list[Said]:
        """Predict each row, then learn it where its target is there, one after the other."""
        ...

    def learn(self, X: Array, y: Sequence[Any]) -> None:
        """Learn rows, one after the other."""
        ...

    def settle(self, n_features: int) -> None:
        """Fix what the model learns from its first rows: scales."""
        ...


class Numbers:
    """Mean and standard deviation of a new observation, and the ends of its interval.

    Parameters
    ----------
    model : regressor
        With ``partial_fit``, ``prequential`` and ``predictive``.
    level : float or None
        Probability inside the interval; None: there is none.

    Raises
    ------
    UsageError
        The level is not between 0 and 1.
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

    def foretell(self, x: Array) -> _ForetoldNumber:
        """Predict the row x, of shape (1, d), whose target comes later."""
        law = self.model.predictive(x)
        fields: Fields = {"prediction": float(law.mean[0]), "std": float(law.std[0])}
        if self.level is not None:
            lower, upper = law.interval(self.level)
            fields |= {"lower": float(lower[0]), "upper": float(upper[0])}
        fields["n_centres"] = float(self.model.n_centres_)
        return _ForetoldNumber(fields, law)

    def settle(self, n_features: int) -> None:
        """Ask for a prediction: rows that the model holds back are learned before.

        Else the scales would depend on how many rows come together after these.
        """
        self.model.predictive(np.zeros((1, n_features)))


@dataclass(frozen=True)
class _ForetoldNumber:
    fields: Fields
    law: Predictive

    def scored(self, y: float) -> Said:
        score = float(self.law.log_density(np.array([y]))[0])
        return Said(self.fields, score, _is_inside(self.fields, y))


def _is_inside(fields: Fields, y: float | None) -> bool | None:
    if y is None or "lower" not in fields:
        return None
    return bool(fields["lower"] <= y <= fields["upper"])


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
    """Say what happens to rows.

    Parameters
    ----------
    tell : callable
        Takes a label and words.
    source : str
        Where the rows come from, for messages.
    is_fatal : bool
        A row that cannot be used ends the stream.
    tally : Tally
        Counts these rows.
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
