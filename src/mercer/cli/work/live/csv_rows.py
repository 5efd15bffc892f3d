"""Rows of a stream of CSV: a header, then a line for each row."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import replace

from mercer.cli.work.live.lines import Line
from mercer.cli.work.live.rows import MAX_ID, Row, Wanted, check_names, choose_inputs, present
from mercer.data.csv_reader import DELIMITERS
from mercer.data.frame import INDEX_COLUMNS
from mercer.data.wording import printable
from mercer.errors import DataError

__all__ = ["CsvRows"]


class CsvRows:
    """Turn lines into rows; cells are separated by what splits the header into the most names.

    A row is one line: a line break inside quotation marks is not taken, so that a mark that is
    never closed spoils one row and not all that follow.

    Parameters
    ----------
    header : Line
    wanted : Wanted

    Attributes
    ----------
    inputs : tuple of str
        The columns that `Row.cells` holds.
    ignored : tuple of str
        Columns that are not needed.
    has_decimal_comma : bool
        Numbers may be written with a comma for the decimal point.
    index : str or None
        A first column without a name, where it is taken for the names of the rows.

    Raises
    ------
    DataError
        The header is none, or lacks a column.
    """

    def __init__(self, header: Line, wanted: Wanted) -> None:
        if header.problem:
            raise DataError(f"{printable(wanted.source)}: {header.problem}; is it CSV?")
        self._delimiter = max(DELIMITERS, key=lambda mark: len(_cells(header.text, mark) or ()))
        names = [name.strip() for name in _cells(header.text, self._delimiter) or ("",)]
        if len(names) > 1 and not names[0]:
            names[0] = INDEX_COLUMNS[0]
        check_names(names, wanted.source)
        is_index = names[0] == INDEX_COLUMNS[0] and names[0] not in (wanted.needed or wanted.drop)
        self.index: str | None = None
        if is_index and wanted.id_column is None and names[0] != wanted.target:
            self.index = names[0]
            wanted = replace(wanted, id_column=self.index)
        has_target = wanted.needed is None or wanted.is_series
        self.inputs, self.ignored = choose_inputs(names, wanted, has_target=has_target)
        self.has_decimal_comma = self._delimiter == ";"
        self._n_cells = len(names)
        self._places = [names.index(name) for name in self.inputs]
        self._target = names.index(wanted.target) if wanted.target in names else None
        self._id = None if wanted.id_column is None else names.index(wanted.id_column)
        self._can_be_late = bool(self.inputs) and not wanted.is_series
        self._n_rows = 0

    def rows(self, lines: Iterable[Line]) -> list[Row]:
        """Read rows; blank lines are none."""
        return [self._row(line) for line in lines if line.problem or line.text.strip()]

    def _row(self, line: Line) -> Row:
        self._n_rows += 1
        number = self._n_rows
        if line.problem:
            return Row(number, line.number, problem=line.problem)
        cells = _cells(line.text, self._delimiter)
        if cells is None:
            problem = "a quotation mark is not closed on the line"
            return Row(number, line.number, problem=problem)
        if len(cells) != self._n_cells:
            words = f"has {len(cells)} cells, but the header has {self._n_cells}"
            return Row(number, line.number, problem=words)
        target = None if self._target is None else present(cells[self._target])
        name = None if self._id is None else cells[self._id].strip()
        if name is not None and len(name) > MAX_ID:
            words = f"the name of the row is longer than {MAX_ID} characters"
            return Row(number, line.number, problem=words)
        inputs = tuple([cells[place] for place in self._places])
        is_late = self._can_be_late and bool(name) and target is not None
        is_late = is_late and all(present(cell) is None for cell in inputs)
        return Row(number, line.number, inputs, target, name, is_late)


def _cells(text: str, delimiter: str) -> Sequence[str] | None:
    """Split a line; None where a quotation mark is out of place."""
    if '"' not in text:
        return text.split(delimiter)
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True))
    except csv.Error:
        return None
