"""The model of a stream: how cells of single rows become numbers, and rows held back until then.

A cell that cannot be used spoils its row, no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mercer.cli.stream_answers import (
    BOOLEANS,
    Answers,
    Reporter,
    Said,
    Tally,
    Undecided,
    read_number,
)
from mercer.cli.stream_rows import Example, Parser, Row, present
from mercer.data.encoding import ColumnCode, Encoder, fit_encoder
from mercer.data.files import printable, quoted
from mercer.data.frame import Column, Frame, Origin, column_of_texts, parse_numbers
from mercer.data.target import LARGEST
from mercer.errors import DataError, RowsError

__all__ = ["Coder", "Learner", "encoding_notes", "learn_encoder", "refuse_text"]


Array = NDArray[np.float64]
Problems = dict[int, str]  # position of a row -> why it cannot be used


class Coder:
    """Encode rows as `Encoder.transform` encodes tables; a cell that is wrong spoils its row only.

    ``names`` says what the cells of a row are; ``tell`` is told, once a column, of text that was
    not there when the encoding was learned.
    """

    def __init__(
        self,
        codes: Sequence[ColumnCode],
        names: Sequence[str],
        *,
        has_decimal_comma: bool,
        tell: Callable[[str], None],
    ) -> None:
        self._codes = [(code, list(names).index(code.name)) for code in codes]
        self._has_decimal_comma = has_decimal_comma
        self._tell = tell
        self._with_unseen: set[str] = set()

    def encode(self, rows: Sequence[Row]) -> tuple[Array, Problems]:
        """Encode rows that have cells; one that cannot be used is zero, and has a problem."""
        problems: Problems = {}
        blocks = [np.empty((len(rows), 0))]
        for code, place in self._codes:
            values, own = self._values(code, [row.cells[place] for row in rows])
            block = code.encode(values)
            block[list(own)] = 0.0
            blocks.append(block)
            for position, words in own.items():
                problems.setdefault(position, f"column {quoted(code.name)}: {words}")
        return np.hstack(blocks), problems

    def _values(self, code: ColumnCode, cells: list[str]) -> tuple[NDArray[Any], Problems]:
        """Read the cells of a column, and say what is wrong with some of them."""
        if code.kind == "number" and code.written is None and not self._has_decimal_comma:
            numbers = parse_numbers(cells, False)
            if numbers is not None and (np.abs(numbers) <= LARGEST).all():  # nor is one NaN
                return numbers, {}
        is_text = code.kind in ("levels", "frequency")
        values: NDArray[Any] = np.full(len(cells), "" if is_text else code.origin, dtype=object)
        problems: Problems = {}
        for position, cell in enumerate(cells):
            try:
                values[position] = self._read(code, present(cell))
            except ValueError as error:
                problems[position] = str(error)
        return values if is_text else values.astype(np.float64), problems

    def _read(self, code: ColumnCode, text: str | None) -> float | str:
        """Read one cell, None if it is missing; a ValueError says what is wrong with it."""
        if text is None:
            if code.fill is None:
                raise ValueError("missing value")
            return code.fill
        if code.written is not None:
            value = code.written.read(text)
            if abs(value) > LARGEST:
                raise ValueError(f"{value:g} is too large to compute with")
            return value
        if code.kind == "number":
            return read_number(text, has_decimal_comma=self._has_decimal_comma)
        if code.kind == "boolean":
            if text.lower() not in BOOLEANS:
                raise ValueError(f"{quoted(text)} is neither true nor false (1 or 0)")
            return BOOLEANS[text.lower()]
        if text not in code.levels:
            self._note_unseen(code, text)
        return text

    def _note_unseen(self, code: ColumnCode, text: str) -> None:
        if code.name not in self._with_unseen:
            self._with_unseen.add(code.name)
            self._tell(
                f"column {quoted(code.name)}: {quoted(text)} was not there when its encoding was "
                "learned; it and others like it are encoded as none of the levels"
            )


# Learning from the first rows of a stream how cells become numbers.

_MANY = 10  # rows that each have a text of their own, so that the column may name them


def learn_encoder(
    names: Sequence[str], rows: Sequence[Row], *, source: str, has_decimal_comma: bool
) -> tuple[Encoder, Problems]:
    """Learn from the first rows, whose cells are the named columns, how these become numbers.

    A column that holds more numbers than other texts is one of numbers; the rows of these texts
    have problems.

    Raises
    ------
    DataError
        No row can be used, or a column cannot be encoded.
    """
    numbers: dict[str, Array] = {}
    problems: Problems = {}
    for place, name in enumerate(names):
        cells = [row.cells[place] for row in rows]
        values, strays = np.zeros(len(cells)), {}
        for position, cell in enumerate(cells):
            try:
                values[position] = read_number(cell, has_decimal_comma=has_decimal_comma)
            except ValueError as error:
                strays[position] = str(error)
        if 2 * len(strays) < len(rows):
            numbers[name] = values
            for position, words in strays.items():
                problems.setdefault(position, f"column {quoted(name)}: {words}")
    kept = np.array([k for k in range(len(rows)) if k not in problems], dtype=np.int64)
    if not len(kept):
        raise DataError(f"{printable(source)}: none of the first {len(rows)} rows can be used")
    columns = []
    for place, name in enumerate(names):
        if name in numbers:
            columns.append(Column(name, numbers[name][kept], "number"))
        else:
            texts = [present(rows[k].cells[place]) for k in kept]
            columns.append(column_of_texts(name, texts, is_text=False))
    origin = Origin(
        (source,),
        np.zeros(len(kept), dtype=np.int32),
        np.array([rows[k].number for k in kept], dtype=np.int64),
        np.array([rows[k].line for k in kept], dtype=np.int64),
    )
    return fit_encoder(Frame(tuple(columns), source, origin)), problems


def encoding_notes(encoder: Encoder, n_rows: int) -> list[str]:
    """Say of columns of text what may surprise, when the encoding was learned from ``n_rows``."""
    notes = list(encoder.notes)
    notes += [
        f"column {quoted(code.name)}: another text in each of the first {n_rows} rows; if it names "
        "the rows, use --id"
        for code in encoder.codes
        if code.kind == "levels" and len(code.levels) == n_rows >= _MANY
    ]
    return notes


def refuse_text(encoder: Encoder, source: str) -> None:
    """Refuse columns of text, if their levels would be those of a single row.

    Raises
    ------
    DataError
        Naming the first.
    """
    for code in encoder.codes:
        if code.kind in ("levels", "frequency", "date") or code.written is not None:
            raise DataError(
                f"{printable(source)}: column {quoted(code.name)} holds text, which is read as "
                "the first rows have it; use --warmup above 0, or --drop it"
            )


# The model of a stream with its first rows: held back until the encoding can be learned.

_Each = TypeVar("_Each")
_SLICE = 100  # rows learned in one call


class Learner:
    """Learn rows, from the first ``warmup`` also how their cells become numbers.

    With the encoder of a model that was loaded it is ready at once. ``lag_names`` are inputs that
    are no columns, before all others.
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
        """Learn the encoding, from the rows that are held back or those seen; then learn these.

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
