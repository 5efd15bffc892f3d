"""From the cells of single rows to numbers: a cell that cannot be used spoils its row, no other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mercer.cli.stream_rows import Row, present
from mercer.data.encoding import ColumnCode, Encoder, fit_encoder
from mercer.data.files import printable, quoted
from mercer.data.formats import CellFormat
from mercer.data.frame import Column, Frame, Origin, column_of_texts, parse_number, parse_numbers
from mercer.data.target import LARGEST
from mercer.errors import DataError

__all__ = [
    "BOOLEANS",
    "Coder",
    "Problems",
    "encoding_notes",
    "learn_encoder",
    "read_number",
    "read_numbers",
    "refuse_text",
]


Array = NDArray[np.float64]
Problems = dict[int, str]  # position of a row -> why it cannot be used
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


class Coder:
    """Encode rows as `Encoder.transform` encodes tables.

    Parameters
    ----------
    codes : sequence of ColumnCode
        Columns of a matrix.
    names : sequence of str
        What the cells of a row are.
    has_decimal_comma : bool
    tell : callable
        Is told, once a column, of text that was not there when the encoding was learned.
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
        """Encode rows that have cells.

        Returns
        -------
        X : ndarray of shape (m, d)
            A row that cannot be used is zero.
        problems : dict of int to str
        """
        problems: Problems = {}
        blocks = [np.empty((len(rows), 0))]
        for code, place in self._codes:
            cells = [row.cells[place] for row in rows]
            own: Problems = {}
            block = self._block(code, cells, own)
            block[list(own)] = 0.0
            blocks.append(block)
            for position, words in own.items():
                problems.setdefault(position, f"column {quoted(code.name)}: {words}")
        return np.hstack(blocks), problems

    def _block(self, code: ColumnCode, cells: list[str], problems: Problems) -> Array:
        if code.written is not None:
            return code.encode(_written(code, code.written, cells, problems))
        if code.kind == "number":
            return self._numbers(code, cells, problems)[:, np.newaxis]
        texts = [present(cell) or code.fill for cell in cells]
        if code.kind == "boolean":
            return _booleans(texts, problems)[:, np.newaxis]
        for position, text in enumerate(texts):
            if text is None:
                problems[position] = "missing value"
            elif text not in code.levels:
                self._note_unseen(code, str(text))
        return code.encode(np.array(texts, dtype=object))

    def _numbers(self, code: ColumnCode, cells: list[str], problems: Problems) -> Array:
        values = None if self._has_decimal_comma else parse_numbers(cells, False)
        if (
            values is not None
            and np.isfinite(values).all()
            and np.abs(values).max(initial=0.0) <= LARGEST
        ):
            return values
        values, strays = read_numbers(cells, has_decimal_comma=self._has_decimal_comma)
        for position in strays:
            if present(cells[position]) is not None:
                problems[position] = strays[position]
            elif code.fill is None:
                problems[position] = "missing value"
            else:
                values[position] = code.fill
        return values

    def _note_unseen(self, code: ColumnCode, text: str) -> None:
        if code.name not in self._with_unseen:
            self._with_unseen.add(code.name)
            self._tell(
                f"column {quoted(code.name)}: {quoted(text)} was not there when its encoding was "
                "learned; it and others like it are encoded as none of the levels"
            )


def _written(code: ColumnCode, written: CellFormat, cells: list[str], problems: Problems) -> Array:
    """Read numbers or dates that are written in a known way."""
    values = np.full(len(cells), code.origin)
    for position, cell in enumerate(cells):
        text = present(cell)
        if text is None and isinstance(code.fill, float):
            values[position] = code.fill
        elif text is None:
            problems[position] = "missing value"
        else:
            try:
                values[position] = written.read(text)
            except ValueError as error:
                problems[position] = str(error)
            if abs(values[position]) > LARGEST:
                problems[position] = f"{values[position]:g} is too large to compute with"
    values[list(problems)] = code.origin
    return values


def _booleans(texts: Sequence[str | float | None], problems: Problems) -> Array:
    values = np.zeros(len(texts))
    for position, text in enumerate(texts):
        value = BOOLEANS.get(str(text).lower())
        if text is None:
            problems[position] = "missing value"
        elif value is None:
            problems[position] = f"{quoted(text)} is neither true nor false (1 or 0)"
        else:
            values[position] = value
    return values


def read_numbers(cells: Sequence[str], *, has_decimal_comma: bool) -> tuple[Array, Problems]:
    """Read numbers that can be computed with; zero, and why, where one cannot."""
    values, strays = np.zeros(len(cells)), {}
    for position, cell in enumerate(cells):
        try:
            values[position] = read_number(cell, has_decimal_comma=has_decimal_comma)
        except ValueError as error:
            strays[position] = str(error)
    return values, strays


# Learning from the first rows of a stream how cells become numbers.

_MANY = 10  # rows that each have a text of their own, so that the column may name them


def learn_encoder(
    names: Sequence[str], rows: Sequence[Row], *, source: str, has_decimal_comma: bool
) -> tuple[Encoder, Problems]:
    """Learn from the first rows how columns become numbers.

    Parameters
    ----------
    names : sequence of str
        What the cells of a row are; one at least.
    rows : sequence of Row
        With cells, none of them missing.
    source : str
    has_decimal_comma : bool

    Returns
    -------
    encoder : Encoder
    problems : dict of int to str
        A column that holds more numbers than other texts is one of numbers; here are the rows of
        these texts.

    Raises
    ------
    DataError
        No row can be used, or a column holds dates.
    """
    numbers: dict[str, Array] = {}
    problems: Problems = {}
    for place, name in enumerate(names):
        cells = [row.cells[place] for row in rows]
        values, strays = read_numbers(cells, has_decimal_comma=has_decimal_comma)
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
