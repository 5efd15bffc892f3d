"""Rows of an array that lies in a file: a .npy file, or what a memory map was made of.

The file is read, not mapped: a pass takes no address space, its pages do not count as memory of
the process, and a file that is cut short is an error, not the end of the process.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from mercer.data.files import Stamp, printable, reading
from mercer.data.source import CHUNK_CELLS, Part, RowSource
from mercer.errors import DataError, MercerError

# Rows of an array in memory.


@dataclass(frozen=True, eq=False, kw_only=True)
class ArrayRows(RowSource):
    """Rows of an array that is in memory; a pickle holds the array."""

    array: NDArray[Any]  # (n_rows, n), of any type and layout; not copied, and must not change
    columns: tuple[int, ...]  # which of its columns, in order

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
    """Make a source of the rows of an array of numbers; columns are called x0, x1, ...

    Masked cells are missing values.
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


NPY = b"\x93NUMPY"


@dataclass(frozen=True, eq=False, kw_only=True)
class FileRows(RowSource):
    """Rows of an array in a file."""

    path: str  # absolute
    dtype: str  # as NumPy writes it
    offset: int  # bytes before the first number of the first row
    strides: tuple[int, int]  # bytes from row to row, and from column to column; positive
    columns: tuple[int, ...]  # which of its columns, in order

    def _chunks(self, start: int, stop: int) -> Iterator[NDArray[np.float64]]:
        first, last = min(self.columns), max(self.columns)
        is_by_rows = self.strides[0] >= self.strides[1]
        step = max(1, CHUNK_CELLS * 8 // (self.strides[0] * (1 if is_by_rows else self.n_columns)))
        with reading(Path(self.path)), FileIO(self.path) as file:
            for low in range(start, stop, step):
                n = min(step, stop - low)
                if is_by_rows:
                    piece = self._window(file, low, n, first, last - first + 1)
                    if self.columns != tuple(range(first, last + 1)):
                        piece = piece[:, np.subtract(self.columns, first)]
                else:
                    piece = np.hstack([self._window(file, low, n, k, 1) for k in self.columns])
                yield np.asarray(piece, dtype=np.float64)

    def _window(self, file: FileIO, row: int, n: int, column: int, n_columns: int) -> NDArray[Any]:
        """Read `n` rows of neighbouring columns, and what lies between them."""
        dtype = np.dtype(self.dtype)
        by_row, by_column = self.strides
        file.seek(self.offset + row * by_row + column * by_column)
        window = np.empty((n - 1) * by_row + (n_columns - 1) * by_column + dtype.itemsize, np.uint8)
        view = window.data
        while view:
            n_read = file.readinto(view)
            if not n_read:
                raise EOFError
            view = view[n_read:]
        return np.ndarray((n, n_columns), dtype, window, strides=self.strides)

    def _pick(self, positions: tuple[int, ...]) -> Self:
        return replace(
            self,
            names=tuple(self.names[k] for k in positions),
            columns=tuple(self.columns[k] for k in positions),
        )


def open_npy(path: Path) -> FileRows:
    """Make a source of the rows of a .npy file; columns are called x0, x1, ..."""
    name = str(path)
    stamp = Stamp.of(path)
    with reading(path), open(path, "rb") as file:
        try:
            read_header = {
                (1, 0): npy.read_array_header_1_0,
                (2, 0): npy.read_array_header_2_0,
            }[npy.read_magic(file)]
            shape, is_fortran, dtype = read_header(file)
        except (ValueError, KeyError):
            raise DataError(
                f"{printable(name)}: cannot be decoded as a .npy file; write it again"
            ) from None
        offset = file.tell()
    names = check_array(name, dtype, shape)
    if offset + math.prod(shape) * dtype.itemsize > stamp.size:
        raise DataError(f"{printable(name)}: ends in the middle; fetch or write the file again")
    steps = (1, shape[0]) if is_fortran else (shape[1], 1)
    return FileRows(
        name=name,
        names=names,
        parts=(Part(name, shape[0]),),
        stamps=(stamp,),
        path=stamp.path,
        dtype=dtype.str,
        offset=offset,
        strides=(steps[0] * dtype.itemsize, steps[1] * dtype.itemsize),
        columns=tuple(range(shape[1])),
    )


def find_file(array: NDArray[Any]) -> FileRows | None:
    """Make a source of the file behind a memory map, or behind a view of one.

    None where the array is not, or not exactly, what lies in a file: it is in memory, or a
    copy-on-write map, or a view that goes backwards, or the file is gone or another one.
    """
    root = _find_map(array)
    if root is None or isinstance(array, np.ma.MaskedArray):
        return None
    name = str(root.filename)
    names = check_array(name, array.dtype, array.shape)
    if array.size == 0 or min(array.strides) <= 0:
        return None
    try:
        stamp = Stamp.of(name)
        source = FileRows(
            name=name,
            names=names,
            parts=(Part(name, len(array)),),
            stamps=(stamp,),
            path=stamp.path,
            dtype=array.dtype.str,
            offset=root.offset + array.ctypes.data - root.ctypes.data,
            strides=(array.strides[0], array.strides[1]),
            columns=tuple(range(array.shape[1])),
        )
        ends = [(k, next(source._chunks(k, k + 1))) for k in (0, len(array) - 1)]
    except MercerError:
        return None
    is_same = all(np.array_equal(row[0], array[k], equal_nan=True) for k, row in ends)
    return source if is_same else None


def _find_map(array: NDArray[Any]) -> np.memmap[Any, Any] | None:
    """Find the memory map that an array is a view of, if it shows what is in a file."""
    root: Any = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    is_map = isinstance(root, np.memmap) and isinstance(root.base, mmap.mmap)
    return root if is_map and root.filename and root.mode != "c" else None
