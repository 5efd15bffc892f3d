"""What the cells of a text file are: numbers, booleans, dates or text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from mercer.data.frame import Column
from mercer.data.wording import quoted

__all__ = [
    "MISSING",
    "ColumnBuilder",
    "column_of_texts",
    "parse_number",
    "parse_numbers",
    "stray_text",
]

#: Cells that stand for a missing value.
MISSING = frozenset({"", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "?", "None"})


def parse_number(text: str) -> float | None:
    """Read a number as it is written in a file; None when it is not one."""
    if "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def parse_numbers(cells: Sequence[str], has_decimal_comma: bool) -> NDArray[np.float64] | None:
    """Read the numbers of many cells, NaN for a missing one; None when one is not a number."""
    joined = "".join(cells)
    if "_" in joined:
        return None
    if has_decimal_comma and "," in joined and "." not in joined:
        cells = [cell.replace(",", ".") for cell in cells]
    try:
        return np.array(list(map(float, cells)))
    except ValueError:
        pass
    try:
        texts = (cell.strip() for cell in cells)
        return np.array([np.nan if text in MISSING else float(text) for text in texts])
    except ValueError:
        return None


class ColumnBuilder:
    """Collect the cells of one column, block by block, without holding the text of numbers.

    Parameters
    ----------
    name : str
        The name in the header.
    is_text : bool
        Take every cell as text, even where it looks like a number.
    is_held : bool
        Hold the cells as text from the start, because it is known that not all are numbers.
    has_decimal_comma : bool
        Numbers may be written with a comma for the decimal point.
    """

    def __init__(self, name: str, *, is_text: bool, is_held: bool, has_decimal_comma: bool) -> None:
        self.name = name
        self._is_text = is_text
        self._has_decimal_comma = has_decimal_comma
        self._is_number = not (is_text or is_held)
        self._numbers: list[NDArray[np.float64]] = []
        self._texts: list[str | None] = []
        self._levels: dict[str, str] = {}

    @property
    def is_broken(self) -> bool:
        """Whether text came after a block of numbers, so that the column must be read again."""
        return not self._is_number and bool(self._numbers)

    def add(self, cells: Sequence[str]) -> None:
        """Take the next cells of the column."""
        if self._is_number:
            numbers = parse_numbers(cells, self._has_decimal_comma)
            if numbers is not None:
                self._numbers.append(numbers)
                return
            self._is_number = False
        if not self.is_broken:
            share = self._levels.setdefault
            texts = (cell.strip() for cell in cells)
            self._texts.extend(None if text in MISSING else share(text, text) for text in texts)

    def finish(self) -> Column:
        """Make the column and say what it is."""
        if self._is_number:
            blocks = self._numbers or [np.empty(0)]
            return Column(self.name, np.concatenate(blocks), "number")
        return column_of_texts(self.name, self._texts, is_text=self._is_text)


def column_of_texts(name: str, texts: Sequence[str | None], *, is_text: bool) -> Column:
    """Make a column of text, of booleans, or of dates, whichever the texts are.

    Parameters
    ----------
    name : str
        The name in the header.
    texts : sequence of str or None
        The cells; None is missing.
    is_text : bool
        Do not look whether they are booleans or dates.
    """
    present = [] if is_text else list({text for text in texts if text is not None})
    if present and all(text.lower() in ("true", "false") for text in present):
        numbers = [np.nan if text is None else float(text.lower() == "true") for text in texts]
        return Column(name, np.array(numbers), "boolean")
    values = np.empty(len(texts), dtype=object)
    values[:] = texts
    return Column(name, values, "date" if present and all(map(_is_date, present)) else "text")


def stray_text(column: Column) -> tuple[int, str] | None:
    """Find the cell that makes a column of numbers look like text.

    A column is taken for one of numbers when more than half of its cells, but not all, are.

    Parameters
    ----------
    column : Column
        A column of text.

    Returns
    -------
    tuple of int and str, or None
        Position of the first cell that is not a number, and a sentence about it.
    """
    present = np.flatnonzero(~column.is_missing)
    strays = [int(i) for i in present if parse_number(column.values[i]) is None]
    if not strays or 2 * len(strays) >= len(present):
        return None
    n_others = len(present) - len(strays)
    return strays[0], (
        f"{quoted(column.values[strays[0]])} is not a number, but {n_others} other cells of the "
        "column are; correct it, or empty the cell if it stands for a missing value"
    )


def _is_date(text: str) -> bool:
    if len(text) < 8 or not text[0].isdigit():
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
