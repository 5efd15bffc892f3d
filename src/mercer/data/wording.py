"""Words of messages about data: names made printable, places in a file, the nearest name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["nearest", "place", "printable", "quoted"]

LONGEST = 60


def printable(text: str) -> str:
    r"""Escape what would disturb a terminal or break a line.

    Parameters
    ----------
    text : str
        The name of a file, or what stands in one.

    Returns
    -------
    str
        On one line, without control or direction characters.

    Examples
    --------
    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )


def quoted(text: object) -> str:
    """Put a name, a label or a cell in quotes, printable and not too long."""
    words = str(text)
    return f"'{printable(words if len(words) <= LONGEST else words[: LONGEST - 3] + '...')}'"


def place(file: str, row: int, line: int = 0, column: str | None = None) -> str:
    """Name a place in a file: file, row, line (where there are lines) and column.

    Examples
    --------
    >>> place("pima.csv", 3, 4, "bmi")
    "pima.csv, row 3 (line 4), column 'bmi'"
    """
    words = f"{printable(file)}, row {row}"
    if line:
        words += f" (line {line})"
    if column is not None:
        words += f", column {quoted(column)}"
    return words


def nearest(name: str, names: Iterable[str]) -> str:
    """Say which of the names is nearest: "; did you mean 'bmi'?", or nothing."""
    by_lower = {other.lower(): other for other in names}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f"; did you mean {quoted(by_lower[found[0]])}?" if found else ""
