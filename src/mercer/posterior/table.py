"""A small table that prints as aligned text, as HTML in a notebook, and as plain Python types."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.errors import UsageError

__all__ = ["Cell", "Table", "finite_or_none"]

Cell = str | int | float | bool | None

_MISSING = "-"


@dataclass(frozen=True)
class Table:
    """Named columns and rows of text, numbers, booleans or None.

    NumPy scalars become Python's own; numbers print with four significant digits, None as a dash.

    Parameters
    ----------
    columns : sequence of str
        Names of the columns, each once.
    rows : sequence of sequences
        One entry per column in each row.

    Raises
    ------
    UsageError
        When a row has another length than `columns`, or a name comes twice.

    Examples
    --------
    >>> print(Table(("name", "rhat"), (("noise_std", 1.00213), ("log_weight[glu]", 1.0))))
    name              rhat
    noise_std        1.002
    log_weight[glu]      1
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        columns = tuple(str(name) for name in self.columns)
        if len(set(columns)) != len(columns):
            raise UsageError(f"the columns of a table need different names, got {columns}")
        rows = tuple(tuple(_plain(cell) for cell in row) for row in self.rows)
        for row in rows:
            if len(row) != len(columns):
                raise UsageError(f"a row has {len(row)} entries, the table {len(columns)} columns")
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "rows", rows)

    def __str__(self) -> str:
        texts = [[_escape(name) for name in self.columns]]
        texts += [[_text(cell) for cell in row] for row in self.rows]
        is_number = [self._is_numeric(position) for position in range(len(self.columns))]
        widths = [max(len(row[j]) for row in texts) for j in range(len(self.columns))]
        lines = []
        for row in texts:
            cells = [
                text.rjust(width) if right else text.ljust(width)
                for text, width, right in zip(row, widths, is_number, strict=True)
            ]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(_escape(name))}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_text(cell))}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain lists, ready for JSON.

        Returns
        -------
        dict
            "columns" (list of str) and "rows" (list of lists).
        """
        return {"columns": list(self.columns), "rows": [list(row) for row in self.rows]}

    def column(self, name: str) -> tuple[Cell, ...]:
        """Return one column.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        tuple
            One entry per row.

        Raises
        ------
        UsageError
            When there is no such column.
        """
        if name not in self.columns:
            raise UsageError(f"no column {name!r}; there are {', '.join(self.columns)}")
        position = self.columns.index(name)
        return tuple(row[position] for row in self.rows)

    def _is_numeric(self, position: int) -> bool:
        cells = [row[position] for row in self.rows]
        return bool(cells) and not any(isinstance(cell, str) for cell in cells)


def _plain(cell: Any) -> Cell:
    """Turn a NumPy scalar into Python's own type."""
    value = cell.item() if isinstance(cell, np.generic) else cell
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise UsageError(f"a table holds text, numbers, booleans and None, not {type(value).__name__}")


def _text(cell: Cell) -> str:
    """Write one entry."""
    if cell is None:
        return _MISSING
    if isinstance(cell, float):
        return f"{cell:.0f}" if 1e3 <= abs(cell) < 1e7 else f"{cell:.4g}"
    return _escape(str(cell))


def _escape(text: str) -> str:
    """Escape control characters, so that a name cannot steer a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def finite_or_none(value: float) -> float | None:
    """Return a number as an entry of a table.

    Parameters
    ----------
    value : float
        Any number.

    Returns
    -------
    float or None
        None for NaN and infinities.
    """
    return float(value) if math.isfinite(value) else None
