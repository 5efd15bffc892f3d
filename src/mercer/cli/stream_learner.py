"""The model of a stream that learns row by row: numbers, classes, and the undecided beginning.

What a model that learns row by row says of a row, as fields of an answer: classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mercer.cli.stream_answers import Answers, Fields, Reporter, Said, Tally
from mercer.cli.stream_cells import (
    BOOLEANS,
    Coder,
    Problems,
    encoding_notes,
    learn_encoder,
    read_number,
    refuse_text,
)
from mercer.cli.stream_rows import Example, Parser, Row, listed
from mercer.data.encoding import ColumnCode, Encoder
from mercer.data.files import printable, quoted
from mercer.data.frame import Column, Frame, Origin, column_of_texts
from mercer.data.target import MAX_CLASSES, Target, Task, read_target
from mercer.errors import DataError, RowsError

__all__ = ["Labels", "Learner", "Undecided"]


Array = NDArray[np.float64]


class Labels:
    """The most probable class, and the probability of each.

    Parameters
    ----------
    model : classifier
        With ``partial_fit``, ``prequential`` and ``predict_proba``.
    classes : ndarray of shape (C,)
        Sorted: text, booleans or whole numbers.
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


# The model of a stream with its first rows: held back until the encoding can be learned.

_Each = TypeVar("_Each")
_SLICE = 100  # rows learned in one call


class Learner:
    """Learn rows, from the first ones also how their cells become numbers.

    Parameters
    ----------
    answers : Answers or Undecided
    parser : Parser
    reporter : Reporter
    tally : Tally
    warmup : int
        Rows with a target that are read before anything is predicted.
    encoder : Encoder or None
        Encoding of a model that was loaded: it is ready at once.
    lag_names : tuple of str
        Inputs that are no columns, before all others.
    """

    def __init__(
        self,
        answers: Answers | Undecided,
        parser: Parser,
        reporter: Reporter,
        tally: Tally,
        *,
        warmup: int,
        encoder: Encoder | None,
        lag_names: tuple[str, ...] = (),
    ) -> None:
        self.answers: Answers | Undecided = answers
        self.reporter = reporter
        self.tally = tally
        self.warmup = warmup
        self.encoder = encoder
        self._parser = parser
        self._lag_codes = tuple(ColumnCode(name, "number") for name in lag_names)
        self._held: list[Example] = []
        self._coder: Coder | None = None
        if encoder is not None:
            self._coder = self._make_coder(encoder)
            self._decided.settle(len(encoder.feature_names))

    @property
    def is_ready(self) -> bool:
        """Whether rows can be encoded and predicted."""
        return self._coder is not None

    @property
    def _decided(self) -> Answers:
        """The answers, once numbers or classes are to be learned."""
        assert not isinstance(self.answers, Undecided)
        return self.answers

    @property
    def n_rows_of_model(self) -> int:
        """Rows that the model has learned, or holds back."""
        return int(getattr(self.answers.model, "n_rows_seen_", 0))

    @property
    def inputs(self) -> tuple[str, ...]:
        """What the cells of a row are."""
        return self._parser.inputs

    @property
    def held_rows(self) -> list[Row]:
        """The rows that are held back."""
        return [example.row for example in self._held]

    def target(self, row: Row) -> Any:
        """Read the target of a row, None where it is missing; a ValueError says what is wrong."""
        if row.target is None:
            return None
        comma = self._parser.has_decimal_comma
        try:
            return self.answers.target(row.target, has_decimal_comma=comma)
        except ValueError as error:
            raise ValueError(f"the target: {error}") from None

    def hold(self, example: Example) -> None:
        """Keep a row until enough are there."""
        self._held.append(example)
        if len(self._held) >= self.warmup:
            encoder = self.begin()
            if self.tally.n_learned:
                self._decided.settle(len(encoder.feature_names))

    def begin(self, seen: Sequence[Row] = ()) -> Encoder:
        """Learn the encoding, then the rows that were held back.

        Parameters
        ----------
        seen : sequence of Row
            The encoding is learned from these, if no row is held.

        Returns
        -------
        Encoder
            Encoding of all inputs.

        Raises
        ------
        DataError
            If no row can be used, or a column or the target cannot be encoded.
        """
        if isinstance(self.answers, Undecided):
            self.answers, self._held = self.answers.decide(self._held, self.reporter)
        rows = self.held_rows or list(seen)
        problems: Problems = {}
        codes: tuple[ColumnCode, ...] = ()
        if self._parser.inputs:
            encoder, problems = learn_encoder(
                self._parser.inputs,
                rows,
                source=self.reporter.source,
                has_decimal_comma=self._parser.has_decimal_comma,
            )
            codes = encoder.codes
            if self.warmup == 0:
                refuse_text(encoder, self.reporter.source)
            for note in encoding_notes(encoder, len(rows)):
                self.reporter.note(note)
        self.encoder = Encoder((*self._lag_codes, *codes), "error")
        self._coder = self._make_coder(self.encoder)
        # Without a data frame scikit-learn has no way to pass the names of columns on.
        self.answers.model._names_of_columns = self.encoder.feature_names
        held, self._held = self._held, []
        begin = 0
        for position, words in sorted(problems.items()):
            self.learn(held[begin:position])
            self.reporter.bad(rows[position], words)
            begin = position + 1
        self.learn(held[begin:])
        return self.encoder

    def encode(
        self, rows: Sequence[Row], lags: Sequence[tuple[float, ...]] = ()
    ) -> tuple[Array, Problems]:
        """Encode rows, with the values of inputs that are no columns."""
        assert self._coder is not None
        X, problems = self._coder.encode(rows)
        if self._lag_codes:
            X = np.hstack([np.array(lags).reshape(len(rows), len(self._lag_codes)), X])
        return X, problems

    def learn(self, examples: Sequence[Example]) -> None:
        """Learn rows in their order; one that the model refuses is reported."""
        for begin in range(0, len(examples), _SLICE):
            part = examples[begin : begin + _SLICE]
            X, _ = self.encode([e.row for e in part], [e.lags for e in part])
            # Of rows after one that ends the stream nothing is said.
            for example, words in zip(
                part, self.learn_encoded(X, [e.target for e in part]), strict=False
            ):
                if words:
                    self.reporter.bad(example.row, words)

    def learn_encoded(self, X: Array, y: Sequence[Any]) -> list[str]:
        """Learn rows in their order; says what is wrong with each, nothing if it was learned.

        Where such a row ends the stream, it is the last of which something is said.
        """
        try:
            self._decided.learn(X, y)
        except ValueError as error:
            if len(y) == 1:
                return [_words(error)]
            # A call that fails has learned nothing.
            return list(self._until_fatal(self.learn_encoded, X, y))
        self.tally.n_learned += len(y)
        return [""] * len(y)

    def ahead(self, X: Array, y: Sequence[Any]) -> list[Said | str]:
        """Predict rows, then learn those with a target; a text says what is wrong with one.

        Where such a row ends the stream, it is the last of which something is said.
        """
        try:
            said = self._decided.ahead(X, y)
        except ValueError as error:
            if len(y) == 1:
                return [_words(error)]
            return list(self._until_fatal(self.ahead, X, y))
        self.tally.n_learned += sum(value is not None for value in y)
        return list(said)

    def _until_fatal(
        self, learn: Callable[[Array, Sequence[Any]], Sequence[_Each]], X: Array, y: Sequence[Any]
    ) -> Iterator[_Each]:
        """Learn rows one by one; one that ends the stream is the last."""
        for k in range(len(y)):
            (words,) = learn(X[k : k + 1], y[k : k + 1])
            yield words
            if isinstance(words, str) and words and self.reporter.is_fatal:
                return

    def _make_coder(self, encoder: Encoder) -> Coder:
        codes = encoder.codes[len(self._lag_codes) :]
        comma, tell = self._parser.has_decimal_comma, self.reporter.note
        return Coder(codes, self._parser.inputs, has_decimal_comma=comma, tell=tell)


def _words(error: ValueError) -> str:
    """Say what is wrong with the one row of a call, which whoever reports it names."""
    return error.words.removeprefix(": ") if isinstance(error, RowsError) else str(error)
