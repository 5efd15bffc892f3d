"""The model of a stream with its first rows: held back until the encoding can be learned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mercer.cli.work.live.answering import Answers, Said
from mercer.cli.work.live.cells import Coder, Problems
from mercer.cli.work.live.encoding import encoding_notes, learn_encoder, refuse_text
from mercer.cli.work.live.reporting import Reporter
from mercer.cli.work.live.rows import Example, Parser, Row
from mercer.cli.work.live.tally import Tally
from mercer.cli.work.live.undecided import Undecided
from mercer.data.column_code import ColumnCode
from mercer.data.encoding import Encoder
from mercer.errors import RowsError

__all__ = ["Learner"]

Array = NDArray[np.float64]
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
        Of a model that was loaded: it is ready at once.
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
            Of all inputs.

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
