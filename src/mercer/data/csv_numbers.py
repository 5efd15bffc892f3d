"""The cells of one column of a text table as numbers, block by block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mercer.data.infer import MISSING, parse_number, parse_numbers
from mercer.data.wording import quoted

__all__ = ["NumberColumn"]


class NumberColumn:
    """Turn the cells of a column into numbers (true is 1, false 0), and remember what is none.

    Attributes
    ----------
    stray : tuple of int and str, or None
        Position of the first cell that is neither among those that were added with it, and what
        is wrong with it. Those and all later cells are NaN.
    """

    def __init__(self) -> None:
        self.stray: tuple[int, str] | None = None
        self._kind: Literal["number", "boolean"] | None = None

    def add(self, cells: Sequence[str], *, has_decimal_comma: bool) -> NDArray[np.float64]:
        """Take the next cells; NaN where one is missing."""
        if self.stray is None:
            numbers = None
            if self._kind != "boolean":
                numbers = self._keep("number", parse_numbers(cells, has_decimal_comma))
            if numbers is None and self._kind != "number":
                numbers = self._keep("boolean", _parse_booleans(cells))
            if numbers is not None:
                return numbers
            position = next(k for k, cell in enumerate(cells) if self._is_stray(cell))
            wanted = "true or false" if self._kind == "boolean" else "a number"
            self.stray = position, f"{quoted(cells[position].strip())} is not {wanted}"
        return np.full(len(cells), np.nan)

    def _keep(
        self, kind: Literal["number", "boolean"], numbers: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        """Let the first value decide what the column is."""
        if numbers is not None and not np.isnan(numbers).all():
            self._kind = kind
        return numbers

    def _is_stray(self, cell: str) -> bool:
        cell = cell.strip()
        if cell in MISSING:
            return False
        if self._kind == "boolean":
            return cell.lower() not in ("true", "false")
        return parse_number(cell) is None


def _parse_booleans(cells: Sequence[str]) -> NDArray[np.float64] | None:
    values = {"true": 1.0, "false": 0.0}
    texts = [cell.strip() for cell in cells]
    try:
        return np.array([np.nan if text in MISSING else values[text.lower()] for text in texts])
    except KeyError:
        return None
