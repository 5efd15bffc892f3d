"""Rows of an array in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer.data.source import CHUNK_CELLS, Part, RowSource
from mercer.data.wording import printable
from mercer.errors import DataError

__all__ = ["ArrayRows", "check_array", "open_array"]


@dataclass(frozen=True, eq=False, kw_only=True)
class ArrayRows(RowSource):
    """Rows of an array that is in memory; a pickle holds the array.

    Parameters
    ----------
    array : ndarray of shape (n_rows, n)
        Numbers of any type and layout; it is not copied, and must not change.
    columns : tuple of int
        Which of its columns, in order.
    """

    array: NDArray[Any]
    columns: tuple[int, ...]

    def _chunks(self, start: int, stop: int) -> Iterator[NDArray[np.float64]]:
        is_whole = self.columns == tuple(range(self.array.shape[1]))
        step = max(1, CHUNK_CELLS // self.n_columns)
        for low in range(start, stop, step):
            piece = self.array[low : min(low + step, stop)]
            yield np.asarray(piece if is_whole else piece[:, self.columns], dtype=np.float64)

    def _pick(self, positions: tuple[int, ...]) -> Self:
        return replace(
            self,
            names=tuple(self.names[k] for k in positions),
            columns=tuple(self.columns[k] for k in positions),
        )


def open_array(array: NDArray[Any], name: str = "array") -> ArrayRows:
    """Make a source of the rows of an array; columns are called x0, x1, ...

    Masked cells are missing values.

    Raises
    ------
    DataError
        The array is not a table of numbers.
    """
    names = check_array(name, array.dtype, array.shape)
    if isinstance(array, np.ma.MaskedArray):
        array = np.ma.filled(array.astype(np.float64), np.nan)
    parts = (Part(name, len(array)),)
    columns = tuple(range(len(names)))
    return ArrayRows(name=name, names=names, parts=parts, array=array, columns=columns)


def check_array(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> tuple[str, ...]:
    """Refuse an array that is no table of numbers; name its columns x0, x1, ..."""
    if dtype.kind not in "biuf":
        raise DataError(f"{printable(name)}: holds {printable(str(dtype))}, not real numbers")
    if len(shape) != 2:
        raise DataError(
            f"{printable(name)}: has {len(shape)} dimension(s); a table of rows and columns has 2"
        )
    return tuple(f"x{k}" for k in range(shape[1]))
