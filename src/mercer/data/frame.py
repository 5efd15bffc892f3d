"""A table of named columns that knows from which file and row each of its rows came."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mercer.data.wording import nearest, place, printable, quoted
from mercer.errors import DataError

__all__ = [
    "INDEX_COLUMNS",
    "Column",
    "Frame",
    "Kind",
    "Origin",
    "index_column",
    "refuse_other_columns",
    "refuse_twins",
]

Kind = Literal["number", "text", "boolean", "date", "other"]
#: Columns in which pandas leaves the names of rows: CSV without a name for them, and Parquet.
INDEX_COLUMNS = ("Unnamed: 0", "__index_level_0__")


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table.

    Parameters
    ----------
    name : str
        The name in the header.
    values : ndarray of shape (n_rows,)
        Numbers and booleans (0 and 1) as float64 with NaN for a missing one; text and dates as
        objects, a string or None.
    kind : {"number", "text", "boolean", "date", "other"}
        What the cells are. "other" is a type that no model can use (a list, say): its values are
        the name of the type.
    """

    name: str
    values: NDArray[Any]
    kind: Kind

    @property
    def is_missing(self) -> NDArray[np.bool_]:
        """Which cells are missing."""
        if self.values.dtype == np.float64:
            return np.asarray(np.isnan(self.values))
        return np.fromiter((v is None for v in self.values), dtype=np.bool_, count=len(self.values))

    def take(self, rows: NDArray[np.integer[Any]]) -> Column:
        """Keep the rows at the given positions."""
        return Column(self.name, self.values[rows], self.kind)


@dataclass(frozen=True, eq=False)
class Origin:
    """Where each row of a table came from.

    Parameters
    ----------
    files : tuple of str
        The files that were read, as they were named.
    file : ndarray of shape (n_rows,)
        Position in `files`.
    row : ndarray of shape (n_rows,)
        Number of the row within its file; the first row of data is 1.
    line : ndarray of shape (n_rows,)
        Line of the file on which the row starts; 0 where a file has no lines.
    """

    files: tuple[str, ...]
    file: NDArray[np.int32]
    row: NDArray[np.int64]
    line: NDArray[np.int64]

    @classmethod
    def of_file(cls, file: str, lines: NDArray[np.int64]) -> Origin:
        """All rows of one file, in order."""
        n = len(lines)
        return cls((file,), np.zeros(n, np.int32), np.arange(1, n + 1, dtype=np.int64), lines)

    def take(self, rows: NDArray[np.integer[Any]]) -> Origin:
        """Keep the rows at the given positions."""
        return Origin(self.files, self.file[rows], self.row[rows], self.line[rows])


@dataclass(frozen=True, eq=False)
class Frame:
    """A table: columns of equal length, and where the rows came from.

    Parameters
    ----------
    columns : tuple of Column
        In the order of the file.
    source : str
        The file, the folder or the data set, as it was named.
    origin : Origin
        File, row and line of each row.

    Raises
    ------
    DataError
        Two columns have the same name.
    """

    columns: tuple[Column, ...]
    source: str
    origin: Origin

    def __post_init__(self) -> None:
        refuse_twins(self.source, self.names)

    @classmethod
    def from_columns(cls, columns: Sequence[Column], source: str) -> Frame:
        """Build a table that was not read from lines of a file."""
        n = len(columns[0].values) if columns else 0
        return cls(tuple(columns), source, Origin.of_file(source, np.zeros(n, np.int64)))

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.origin.row)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def first_row(self) -> int:
        """Line of the first row in its file (its number, where the file has no lines)."""
        return int(self.origin.line[0]) or int(self.origin.row[0])

    def column(self, name: str) -> Column:
        """Find a column by its name.

        Raises
        ------
        DataError
            There is none of that name; the nearest is named.
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise DataError(
            f"{printable(self.source)}: there is no column {quoted(name)}"
            f"{nearest(name, self.names) or '; the columns are ' + self._some_names()}"
        )

    def without(self, names: Iterable[str]) -> Frame:
        """Leave out the named columns.

        Raises
        ------
        DataError
            One of them is not there; the nearest is named.
        """
        left_out = {self.column(name).name for name in names}
        kept = tuple(column for column in self.columns if column.name not in left_out)
        return Frame(kept, self.source, self.origin)

    def take(self, rows: NDArray[np.integer[Any]]) -> Frame:
        """Keep the rows at the given positions; each remembers where it came from."""
        columns = tuple(column.take(rows) for column in self.columns)
        return Frame(columns, self.source, self.origin.take(rows))

    def place(self, row: int, column: str | None = None) -> str:
        """Name the place of a row (and column) for a message: file, row and line."""
        origin = self.origin
        file = origin.files[int(origin.file[row])]
        return place(file, int(origin.row[row]), int(origin.line[row]), column)

    def _some_names(self) -> str:
        names = ", ".join(quoted(name) for name in self.names[:10])
        return names + (", ..." if len(self.names) > 10 else "")


def index_column(names: Sequence[str]) -> str | None:
    """Find the column that holds names of rows and has no name itself; None: there is none.

    It is the first column of a text file, and any column of a Parquet file.
    """
    text, arrow = INDEX_COLUMNS
    if names and names[0] == text:
        return text
    return arrow if arrow in names else None


def refuse_twins(source: str, names: Iterable[str]) -> None:
    """Refuse two columns of the same name.

    Raises
    ------
    DataError
        A name is there twice; says in which columns.
    """
    seen: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        if name in seen:
            raise DataError(
                f"{printable(source)}: column {quoted(name)} is there twice "
                f"(columns {seen[name]} and {position}); rename one of them"
            )
        seen[name] = position


def refuse_other_columns(
    first: str, first_names: tuple[str, ...], source: str, names: tuple[str, ...]
) -> None:
    """Refuse a file whose columns are not those of the first one; their order may differ.

    Raises
    ------
    DataError
        Names a column that one of them lacks.
    """
    for name in first_names:
        if name not in names:
            raise DataError(
                f"{printable(source)}: column {quoted(name)} of {printable(first)} is missing"
                f"{nearest(name, names)}"
            )
    for name in names:
        if name not in first_names:
            raise DataError(
                f"{printable(source)}: column {quoted(name)} is not in {printable(first)}; "
                "remove it, or add it to all files"
            )
