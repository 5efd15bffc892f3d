"""Rows that wait for their target, by name; the oldest is forgotten when there are too many."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

__all__ = ["MOST", "Remembered"]

MOST = 10_000
Kept = TypeVar("Kept")


class Remembered(Generic[Kept]):
    """Keep the last rows by their names, which are the same as numbers and as text.

    Examples
    --------
    >>> rows = Remembered()
    >>> rows.add(7, "a row")
    >>> rows.pop("7"), rows.pop(7)
    ('a row', None)
    """

    def __init__(self) -> None:
        self._rows: OrderedDict[str, Kept] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, name: Any, row: Kept) -> None:
        """Keep a row in place of an earlier one of that name; one without a name is not kept."""
        if name is None:
            return
        self._rows.pop(str(name), None)
        self._rows[str(name)] = row
        if len(self._rows) > MOST:
            self._rows.popitem(last=False)

    def pop(self, name: Any) -> Kept | None:
        """Give a row away; None if there is none of that name."""
        return self._rows.pop(str(name), None)

    def items(self) -> Iterable[tuple[str, Kept]]:
        """Names and rows, the oldest first."""
        return self._rows.items()
