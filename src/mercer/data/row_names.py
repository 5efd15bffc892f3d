"""What rows are called: the one place that turns positions into rows of the user's file.

A model is fitted to some rows of a table: others were held out, dropped or belong to another
group. A position among the rows that it saw says nothing to a user, so whatever names a row (a
report, a table, a message) goes through `RowNames`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from mercer.data.encoding import as_levels
from mercer.data.files import listing, printable, quoted
from mercer.data.frame import Frame
from mercer.data.source import RowSource

Rows = NDArray[np.int64]
Kind = Literal["file", "positions", "unknown"]

_KINDS: Final = ("file", "positions", "unknown")


@dataclass(frozen=True, eq=False)
class RowNames:
    """The names of n rows, in the order in which somebody holds them.

    The kind is "file" for rows of files, counted from 1 in each; "positions" for those in an array
    X, counted from 0; "unknown" for positions in a training part of which nobody wrote down where
    it came from.
    """

    kind: Kind
    number: Rows  # (n,)
    files: tuple[str, ...]  # as they were named; empty unless the kind is "file"
    file: Rows  # (n,), position of each row's file in `files`; all 0 where there is one or none
    id_column: str | None = None  # the column that names the rows, where the user gave one
    ids: NDArray[Any] | None = None  # (n,), its entries, text; None is a missing one

    @classmethod
    def of_frame(
        cls, frame: Frame, rows: NDArray[np.integer[Any]], id_column: str | None
    ) -> RowNames:
        """Name rows of a table that was read, ``rows`` being positions in it."""
        origin = frame.origin
        ids = None if id_column is None else as_levels(frame.column(id_column))[rows]
        file, number = origin.file[rows].astype(np.int64), origin.row[rows].astype(np.int64)
        return cls("file", number, origin.files, file, id_column, ids)

    @classmethod
    def of_source(cls, source: RowSource, rows: NDArray[np.integer[Any]]) -> RowNames:
        """Name rows at some positions in a source."""
        file, number = source.located(rows)
        return cls("file", number, tuple(part.name for part in source.parts), file)

    @classmethod
    def positions(cls, n: int) -> RowNames:
        """Name the n rows of an array: positions, the first of them 0."""
        return cls("positions", np.arange(n), (), np.zeros(n, np.int64))

    @classmethod
    def unknown(cls, n: int) -> RowNames:
        """Number n rows of which nobody knows where they stood, from 0."""
        return cls("unknown", np.arange(n), (), np.zeros(n, np.int64))

    def __len__(self) -> int:
        return len(self.number)

    @property
    def has_files(self) -> bool:
        """Whether a number alone does not tell the row, because there are several files."""
        return len(self.files) > 1

    def take(self, rows: NDArray[np.integer[Any]]) -> RowNames:
        """Keep the names at some positions, in that order."""
        ids = None if self.ids is None else self.ids[rows]
        return RowNames(
            self.kind, self.number[rows], self.files, self.file[rows], self.id_column, ids
        )

    def without_ids(self) -> RowNames:
        """Leave the ids out: reports and model files, which are passed on, do without them."""
        return RowNames(self.kind, self.number, self.files, self.file)

    def short(self, position: int) -> str:
        """Name one row without its id, such as "row 17", or "b.csv, row 3" of several files."""
        words = f"row {int(self.number[position])}"
        return f"{printable(self.files[self.file[position]])}, {words}" if self.has_files else words

    def listed(self, positions: Sequence[int]) -> str:
        """Name rows in a sentence, such as "rows 3 ('P-7') and 9 ('P-2')"."""
        words = []
        for position in positions:
            name = None if self.ids is None else self.ids[position]
            own = self.short(position) if self.has_files else str(int(self.number[position]))
            words.append(own if name is None else f"{own} ({quoted(name)})")
        noun = "" if self.has_files else "rows " if len(words) > 1 else "row "
        return noun + listing(words, len(words))

    def columns(self) -> dict[str, NDArray[Any]]:
        """Name the rows as columns of a table: file (of several), row, id where there is one."""
        named: dict[str, NDArray[Any]] = {}
        if self.has_files:
            named["file"] = np.array(self.files, dtype=object)[self.file]
        named["row"] = self.number
        if self.id_column is not None and self.ids is not None:
            named[self.id_column] = self.ids
        return named

    @property
    def explanation(self) -> str:
        """Say in a sentence what the numbers count."""
        if self.kind == "positions":
            return "Rows are positions in X as it was given to fit; the first is 0."
        if self.kind == "unknown":
            return (
                "Rows are positions among the rows that the model was fitted to, the first is 0: "
                "this model file does not record which rows of a file these were, so do not look "
                "them up there; fit again to get their names."
            )
        if self.has_files:
            return "Rows are counted in each file; row 1 is its first row of data."
        file = printable(self.files[0]) if self.files else "the table"
        return f"Rows are those of {file}; row 1 is its first row of data."

    def to_parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Split into values that JSON can hold and arrays, for a model file; without ids."""
        values = {"kind": self.kind, "files": list(self.files)}
        return values, {"rows/number": self.number, "rows/file": self.file}

    @classmethod
    def from_parts(
        cls, values: Mapping[str, Any] | None, arrays: Mapping[str, Any], n: int
    ) -> RowNames:
        """Put the names of n rows together again; unknown where a file has none.

        A KeyError, TypeError or ValueError where something does not fit; the reader of the file
        names it.
        """
        if values is None:
            return cls.unknown(n)
        kind, files = values["kind"], values["files"]
        number, file = arrays["rows/number"], arrays["rows/file"]
        is_text = isinstance(files, list) and all(isinstance(name, str) for name in files)
        is_column = all(a.dtype == np.int64 and a.shape == (n,) for a in (number, file))
        if kind not in _KINDS or not is_text or not is_column:
            raise ValueError("names of rows are not of the right kind")
        is_in_range = (
            (number >= 0).all() and (file >= 0).all() and (file < max(len(files), 1)).all()
        )
        if not is_in_range:
            raise ValueError("names of rows are out of range")
        return cls(kind, number, tuple(files), file)
