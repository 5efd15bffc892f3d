"""Rows that need not fit into memory: read in blocks, again and again, always the same.

The blocks are a function of the number of rows and of the rows in a block, never of how a file is
laid out. A source is frozen and pickles without its data: a process that it is sent to opens the
files again.
"""

from __future__ import annotations

import functools
import hashlib
import math
import mmap
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from io import FileIO
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from mercer.data.files import Stamp, changed, nearest, place, printable, quoted, reading
from mercer.data.frame import index_column, refuse_twins
from mercer.errors import DataError, MercerError, StorageError, UsageError
from mercer.numerics.sums import ROWS_PER_TERM, PairwiseSum, Plus, plus

if TYPE_CHECKING:
    from mercer.data.encoding import Encoder

__all__ = ["RowSource"]

# Cutting a stream of rows into blocks of equal length.

Array = NDArray[np.float64]
Picked = TypeVar("Picked", bound="ArrayRows | FileRows")


def regroup(
    pieces: Iterable[Array], rows_per_block: int, n_rows: int, *, is_reused: bool = False
) -> Iterator[Array]:
    """Cut rows that come in pieces of any length into blocks of `rows_per_block`, in C order.

    A piece may be overwritten once the next one is asked for. With `is_reused` all blocks are the
    same memory. There are `n_rows` rows in all.
    """
    left = n_rows
    n_filled = 0
    block = np.empty((0, 0))
    for piece in pieces:
        position = 0
        while position < len(piece):
            if n_filled == 0:
                size = min(rows_per_block, left)
                if not is_reused or len(block) < size:
                    block = np.empty((size, piece.shape[1]))
                block = block[:size]
            n = min(len(block) - n_filled, len(piece) - position)
            block[n_filled : n_filled + n] = piece[position : position + n]
            n_filled += n
            position += n
            if n_filled == len(block):
                yield block
                left -= n_filled
                n_filled = 0


# What is made of the blocks of a run of rows: (position of the first row, blocks) -> result.
Work = Callable[[int, Iterator[Array]], Any]
# As many blocks in single precision, of as many rows.
Make = Callable[[int, Iterator[Array]], Iterator[NDArray[np.float32]]]
#: Cells that are read at once, and the most cells under one checksum: 1 and 4 MiB.
CHUNK_CELLS = 2**17
CHECK_CELLS = 2**19
#: What to do about a column that is not numbers.
FILL_GAPS = "use --missing impute or indicator, in Python encode=TableEncoder(missing='impute')"
REMEDY = "leave it out with .without(...), or open it with encode='auto', target='its name'"


@dataclass(frozen=True)
class Part:
    """One file of a source, or its only array."""

    name: str
    n_rows: int


@dataclass(frozen=True, eq=False, kw_only=True)
class RowSource(ABC):
    """A table of numbers of which only a few blocks are in memory at a time.

    Missing values and infinities are refused where they are met, with their place.

    Parameters
    ----------
    name : str
        The file, the folder or the array, as it was named.
    names : tuple of str
        The columns, in order.
    parts : tuple of Part
        The files, in the order of their rows.
    stamps : tuple of Stamp
        Files that must not change.
    refusals : mapping of str to str
        Columns that are not numbers, and the message of the error for using them.
    checksums : tuple of bytes
        SHA-256 of each stretch of rows, or nothing: see `verified`.
    encoding : Encoder or None
        What made these columns of those of a table, where that had text, dates or gaps.
    labels : mapping of str to tuple of str
        The classes of a target that is text, by its name: it holds their positions.
    kinds : mapping of str to str
        What numbers of a column are, if its file tells: "boolean" (true and false are 1 and 0), or
        "code", whole numbers of text files with leading zeros ("01").
    order : tuple of str
        Of a target that is an ordered category its levels, from the lowest to the highest.
    has_gaps : bool
        Missing values are not refused: see `gaps`.
    """

    name: str
    names: tuple[str, ...]
    parts: tuple[Part, ...]
    stamps: tuple[Stamp, ...] = ()
    refusals: Mapping[str, str] = field(default_factory=dict)
    checksums: tuple[bytes, ...] = ()
    encoding: Encoder | None = None
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    has_gaps: bool = False

    def __post_init__(self) -> None:
        refuse_twins(self.name, self.names)
        if not self.names:
            raise DataError(f"{printable(self.name)}: no column is left")
        if self.n_rows == 0:
            raise no_rows(self.name)

    @abstractmethod
    def _chunks(self, start: int, stop: int) -> Iterator[Array]:
        """Yield the rows from `start` to before `stop` in pieces of any size.

        A piece has all the columns; it is used up before the next one is asked for.
        """

    @abstractmethod
    def _pick(self, positions: tuple[int, ...]) -> Self:
        """Keep the columns at these positions, in this order."""

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return sum(part.n_rows for part in self.parts)

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return len(self.names)

    @property
    def is_verified(self) -> bool:
        """Whether the contents are checked whenever they are read."""
        return bool(self.checksums)

    def n_blocks(self, rows_per_block: int) -> int:
        """Count the blocks of `rows_per_block` rows; the last one may be shorter."""
        if rows_per_block < 1:
            raise UsageError(f"rows_per_block must be at least 1, and is {rows_per_block}")
        return -(-self.n_rows // rows_per_block)

    def select(self, names: Iterable[str]) -> Self:
        """Keep some columns, in the order given.

        If the source is verified, so is the result, which takes a pass: select first.

        Raises
        ------
        DataError
            A column is not there (the nearest is named), is named twice, or is not numbers.
        """
        names = list(names)
        for name in names:
            if name not in self.names:
                hint = nearest(name, self.names) or "; the columns are " + ", ".join(
                    quoted(name) for name in self.names[:10]
                )
                raise DataError(f"{printable(self.name)}: there is no column {quoted(name)}{hint}")
        positions = tuple(self.names.index(name) for name in names)
        picked = replace(self._pick(positions), checksums=())
        picked._refuse_columns()
        return picked._with_checksums(self, positions) if self.is_verified else picked

    def without(self, names: Iterable[str]) -> Self:
        """Leave out some columns.

        Raises
        ------
        DataError
            A column is not there, none is left, or one that is left is not numbers.
        """
        left_out = set(names)
        unknown = [name for name in left_out if name not in self.names]
        return self.select(unknown or [name for name in self.names if name not in left_out])

    def without_rows(self, rows: NDArray[np.integer[Any]]) -> RowSource:
        """Leave out some rows, such as those of `take` that a model is to be scored on.

        Parameters
        ----------
        rows : ndarray of shape (n,)
            Positions, counted from 0, in ascending order, each once.

        Raises
        ------
        DataError
            No row is left.
        """
        left_out: NDArray[np.int64] = np.asarray(rows, dtype=np.int64)
        if len(left_out) == 0:
            return self
        if left_out[0] < 0 or left_out[-1] >= self.n_rows or (np.diff(left_out) < 1).any():
            raise UsageError(f"rows must be ascending positions among the {self.n_rows} rows")
        ends = np.cumsum([part.n_rows for part in self.parts])
        sizes = np.diff(ends - np.searchsorted(left_out, ends), prepend=0).tolist()
        parts = tuple(Part(part.name, n) for part, n in zip(self.parts, sizes, strict=True))
        return LessRows(
            name=self.name, names=self.names, parts=parts, stamps=self.stamps,
            refusals=self.refusals, encoding=self.encoding, labels=self.labels, kinds=self.kinds,
            order=self.order, held=self, left_out=left_out,
        )  # fmt: skip

    def blocks(
        self, rows_per_block: int, *, first: int = 0, last: int | None = None
    ) -> Iterator[Array]:
        """Read the rows in order, `rows_per_block` at a time.

        Parameters
        ----------
        rows_per_block : int
            Rows in a block; the last block has what is left.
        first, last : int
            Blocks from `first` to before `last`, counted from 0; all by default. What workers are
            given should be long runs: a run that starts inside a row group of a Parquet file
            decodes the group from its start.

        Yields
        ------
        ndarray of shape (rows_per_block, n_columns)
            A new float64 array in C order, owned by the caller.

        Raises
        ------
        DataError
            A value is missing or infinite, a column is not numbers, a file is damaged, or changed
            since it was opened (or verified).
        StorageError
            A file cannot be read.
        """
        n_blocks = self.n_blocks(rows_per_block)
        last = n_blocks if last is None else last
        if not 0 <= first <= last <= n_blocks:
            raise UsageError(f"blocks {first} to {last} are not among the {n_blocks} blocks")
        self._refuse_columns()
        start, stop = first * rows_per_block, min(last * rows_per_block, self.n_rows)
        return regroup(self._read(start, stop), rows_per_block, stop - start)

    def total(self, add: Work, check: Callable[[], None] = lambda: None, plus: Plus = plus) -> Any:
        """Make one pass over all rows, of which only a sum is kept.

        Parameters
        ----------
        add : callable
            (position of the first row, blocks of `ROWS_PER_TERM` rows) -> array, or tuple of such.
            Where workers share the rows it is called by each for some of the blocks, and what it
            returns is added in the order of `mercer.numerics.sums.PairwiseSum`: it must itself add
            block to block in that order.
        check : callable
            Called every now and then; what it raises ends the pass.
        plus : callable
            Adds two results; arrays, or tuples of them one by one, by default.

        Returns
        -------
        What ``add`` returns for all blocks, to the last bit.
        """

        def blocks() -> Iterator[Array]:
            for block in self.blocks(ROWS_PER_TERM):
                check()
                yield block

        return add(0, blocks())

    def each(
        self, work: Work, rows_per_block: int, rows: NDArray[np.int64] | None = None
    ) -> list[Any]:
        """Return what a function makes of each run of blocks, in their order.

        Parameters
        ----------
        work : callable
            (position of the first row, blocks) -> anything. Called once for all blocks; where
            workers share the rows, by each for some of them.
        rows_per_block : int
            Divides `ROWS_PER_TERM`.
        rows : ndarray, optional
            Ascending positions; blocks before the first and after the last of them are left out,
            and others that hold none of them may be.
        """
        first, last = 0, self.n_blocks(rows_per_block)
        if rows is not None:
            first, last = int(rows[0]) // rows_per_block, int(rows[-1]) // rows_per_block + 1
        blocks = self.blocks(rows_per_block, first=first, last=last)
        return [work(first * rows_per_block, blocks)]

    def keep(self, make: Make, width: int, folder: Path) -> Any:
        """Keep as many rows of numbers as a function makes of the blocks: in a file, in one pass.

        Parameters
        ----------
        make : callable
            (position of the first row, blocks of `ROWS_PER_TERM` rows) -> blocks in single
            precision, one for each.
        width : int
            Columns of these.
        folder : Path
            Of the file, the only one that is left there. Where workers share the rows each keeps
            what it made in its memory, or on a disk of its own.

        Returns
        -------
        ndarray of shape (n_rows, width), mapped from the file, or `mercer.data.dask.HeldArrays`

        Raises
        ------
        StorageError
            It cannot be written.
        """
        for old in folder.iterdir():
            with suppress(OSError):  # still mapped, where systems mind
                old.unlink()
        try:
            with NamedTemporaryFile(dir=folder, delete=False) as file:
                for block in make(0, self.blocks(ROWS_PER_TERM)):
                    file.write(block.data)
        except OSError as error:
            raise StorageError(
                f"{folder}: the features of {self.n_rows} rows, 4 bytes each, cannot be written "
                f"({error.strerror}); make room, or name another place by XDG_CACHE_HOME"
            ) from None
        return np.asarray(np.memmap(file.name, np.float32, "r", shape=(self.n_rows, width)))

    def add_up(self, function: Callable[..., Any], plus: Plus, *lists: Iterable[Any]) -> Any:
        """Add in pairs what a function returns for the elements of lists; workers may do both."""
        total = PairwiseSum(plus)
        for given in zip(*lists, strict=True):
            total.add(function(*given))
        return total.total()

    def count(self, column: str, most: int) -> dict[float, int]:
        """Return the values of a column, ascending, and how many rows have each: one pass.

        Where there are more than ``most`` values, some of them, and more than that.
        """
        count = functools.partial(_count, self.names.index(column), most)
        total: Counter[float] = Counter()
        for found in self.each(count, ROWS_PER_TERM):
            total.update(found)
        return dict(sorted(total.items()))

    def take(self, rows: NDArray[np.integer[Any]]) -> Array:
        """Read some rows, in one pass from the first to the last of them.

        Parameters
        ----------
        rows : ndarray of shape (n,)
            Positions, counted from 0, in ascending order.

        Returns
        -------
        ndarray of shape (n, n_columns)
            In that order.
        """
        chosen: NDArray[np.int64] = np.asarray(rows, dtype=np.int64)
        if len(chosen) == 0:
            return np.empty((0, self.n_columns))
        if chosen[0] < 0 or chosen[-1] >= self.n_rows or (np.diff(chosen) < 0).any():
            raise UsageError(f"rows must be ascending positions among the {self.n_rows} rows")
        return np.concatenate(
            self.each(functools.partial(take_rows, chosen), ROWS_PER_TERM, chosen)
        )

    def gaps(self) -> NDArray[np.int64]:
        """Find the rows with a missing value, in one pass.

        Returns
        -------
        ndarray of shape (n,)
            Their positions, ascending, such as `without_rows` takes.
        """
        found = replace(self, checksums=(), has_gaps=True).each(_gaps, ROWS_PER_TERM)
        return np.concatenate(found)

    def digest(self) -> str:
        """Sum the contents: the same for equal numbers, whatever holds them.

        Returns
        -------
        str
            SHA-256 of shape and checksums in hexadecimal; names do not count. One pass, none for
            a verified source.
        """
        sha = hashlib.sha256(f"{self.n_rows},{self.n_columns},{self._check_rows}".encode())
        for checksum in self.checksums or self.verified().checksums:
            sha.update(checksum)
        return sha.hexdigest()

    def verified(self) -> Self:
        """Learn the checksums in one whole pass; later passes then refuse other contents.

        Also what size and time of a file do not show is noticed, at 4 MiB of rows a checksum.
        """
        if self.is_verified:
            return self
        return self._with_checksums(self, tuple(range(self.n_columns)))

    def place(self, row: int, column: str | None = None) -> str:
        """Name the place of a row for a message: its file, and its number there from 1."""
        (file,), (number,) = self.located(np.array([row]))
        return place(self.parts[file].name, int(number), 0, column)

    def located(
        self, rows: NDArray[np.integer[Any]]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Find rows, at positions (n,), in their files.

        Returns
        -------
        ndarray of shape (n,), ndarray of shape (n,)
            Which of `parts` each is in, and its number there, the first 1; before any was left out.
        """
        starts = np.cumsum([0, *(part.n_rows for part in self.parts)])
        file = np.searchsorted(starts[1:], rows, side="right")
        return file, rows - starts[file] + 1

    def positions(self, file: NDArray[np.int64], number: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return positions (n,) of rows by what `located` says of them; none is left out here."""
        starts = np.cumsum([0, *(part.n_rows for part in self.parts)])
        return np.asarray(starts[file] + number - 1)

    @property
    def _check_rows(self) -> int:
        # A power of two, so that stretches are parts of what a worker reads.
        return int(
            min(ROWS_PER_TERM, 1 << (max(1, CHECK_CELLS // self.n_columns).bit_length() - 1))
        )

    def _with_checksums(self, source: RowSource, positions: tuple[int, ...]) -> Self:
        """Add the checksums of these rows, which are columns of a source: one pass over it."""
        parts = source.each(functools.partial(_checksums, positions), self._check_rows)
        return replace(self, checksums=tuple(one for part in parts for one in part))

    def _refuse_columns(self) -> None:
        for name in self.names:
            if name in self.refusals:
                raise DataError(self.refusals[name])

    def _read(self, start: int, stop: int) -> Iterator[Array]:
        """Yield the rows in pieces, finite, and notice when they are not what they were."""
        for stamp in self.stamps:
            stamp.check()
        position = start
        pieces = self._compare if self.is_verified else self._chunks
        try:
            for piece in pieces(start, stop) if start < stop else ():
                self._refuse_gaps(piece, position)
                yield piece
                position += len(piece)
            if position < stop:
                raise changed(self._owner(position, stop))
        except MercerError:
            for stamp in self.stamps:  # a change may look like damage
                stamp.check()
            raise
        for stamp in self.stamps:
            stamp.check()

    def _compare(self, start: int, stop: int) -> Iterator[Array]:
        """Yield the rows in pieces whose checksums are those of the first pass."""
        n = self._check_rows
        low, high = start // n * n, min(-(-stop // n) * n, self.n_rows)
        for block in regroup(self._chunks(low, high), n, high - low, is_reused=True):
            if hashlib.sha256(block.data).digest() != self.checksums[low // n]:
                raise changed(self._owner(low, low + len(block)))
            yield block[max(start - low, 0) : stop - low]
            low += len(block)

    def _refuse_gaps(self, piece: Array, position: int) -> None:
        """Refuse a missing or infinite value, naming its place."""
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(piece.sum()):  # not so only if a value is not, or on overflow
                return
        is_gap = np.isinf(piece) if self.has_gaps else ~np.isfinite(piece)
        if is_gap.any():
            row, column = np.unravel_index(int(is_gap.argmax()), is_gap.shape)
            reason = (
                f"missing value; fill it in, remove the row or, of an input, {FILL_GAPS}"
                if np.isnan(piece[row, column])
                else "infinite, or too large for a float64; correct it"
            )
            raise DataError(f"{self.place(position + int(row), self.names[column])}: {reason}")

    def _owner(self, start: int, stop: int) -> str:
        """Name the file that holds all of these rows, or else the whole source."""
        for part in self.parts:
            if start < part.n_rows:
                return part.name if stop <= part.n_rows else self.name
            start, stop = start - part.n_rows, stop - part.n_rows
        return self.name


def _count(at: int, most: int, position: int, blocks: Iterator[Array]) -> Counter[float]:
    """Count the values of a column until there are more than so many."""
    total: Counter[float] = Counter()
    for block in blocks:
        found, counts = np.unique(block[:, at], return_counts=True)
        total.update(dict(zip(found.tolist(), counts.tolist(), strict=True)))
        if len(total) > most:
            break
    return total


def _gaps(position: int, blocks: Iterator[Array]) -> NDArray[np.int64]:
    """Find the rows with a missing value."""
    found = [np.empty(0, dtype=np.int64)]
    for block in blocks:
        found.append(position + np.flatnonzero(np.isnan(block).any(axis=1)))
        position += len(block)
    return np.concatenate(found)


def take_rows(rows: NDArray[np.int64], position: int, blocks: Iterable[Array]) -> Array:
    """Take those of the rows that are in the blocks, the first at a position among all."""
    taken = []
    for block in blocks:
        low, high = np.searchsorted(rows, (position, position + len(block)))
        taken.append(block[rows[low:high] - position])
        position += len(block)
    return np.concatenate(taken)


def _checksums(positions: tuple[int, ...], position: int, blocks: Iterator[Array]) -> list[bytes]:
    """Sum the contents of some columns of each block."""
    cut = (np.ascontiguousarray(block[:, positions]) for block in blocks)
    return [hashlib.sha256(block.data).digest() for block in cut]


def index_refusal(source: str, names: Sequence[str]) -> dict[str, str]:
    """Refuse a column without a name as an input: it holds the names of the rows."""
    name = index_column(names)
    if name is None:
        return {}
    where = f"{printable(source)}: column {quoted(name)}"
    words = "has no name, and is taken for the names of the rows; leave it out with .without(...)"
    return {name: f"{where} {words}"}


def no_rows(name: str) -> DataError:
    """Make the error for a table without rows."""
    return DataError(f"{printable(name)}: there is no row of data; add rows")


# Rows of a source of which some are left out.


@dataclass(frozen=True, eq=False, kw_only=True)
class LessRows(RowSource):
    """Rows of another source, without some of them."""

    held: RowSource
    left_out: NDArray[np.int64]  # ascending positions in it

    def _chunks(self, start: int, stop: int) -> Iterator[NDArray[np.float64]]:
        position, last_row = self._within(np.array([start, stop - 1])).tolist()
        for piece in self.held._chunks(position, last_row + 1):
            first, last = np.searchsorted(self.left_out, (position, position + len(piece)))
            yield np.delete(piece, self.left_out[first:last] - position, axis=0)
            position += len(piece)

    def _within(self, rows: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return where rows stand in the other source."""
        n_before = self.left_out - np.arange(len(self.left_out))  # rows that stay, before each
        return np.asarray(rows + np.searchsorted(n_before, rows, side="right"), dtype=np.int64)

    def _pick(self, positions: tuple[int, ...]) -> Self:
        held = self.held._pick(positions)
        return replace(self, names=held.names, held=held)

    def located(
        self, rows: NDArray[np.integer[Any]]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Find rows in their files: see `RowSource`."""
        return self.held.located(self._within(rows))


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
        return _picked(self, positions)


def _picked(rows: Picked, positions: tuple[int, ...]) -> Picked:
    """Keep some columns of rows that know which columns of an array they are."""
    names = tuple(rows.names[k] for k in positions)
    return replace(rows, names=names, columns=tuple(rows.columns[k] for k in positions))


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


# Rows of an array that lies in a file: a .npy file, or what a memory map was made of.

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
        return _picked(self, positions)


def open_npy(path: Path) -> FileRows:
    """Make a source of the rows of a .npy file; columns are called x0, x1, ..."""
    name = str(path)
    stamp = Stamp.of(path)
    with reading(path), open(path, "rb") as file:
        try:
            known = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
            read_header = known[npy.read_magic(file)]
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
