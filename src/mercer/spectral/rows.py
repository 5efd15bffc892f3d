"""The rows that BaNK learns from: a table of arrays or a source, block by block.

The sampler asks them for products of features and for nothing else.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mercer.data.source import RowSource
from mercer.errors import DataError, UsageError
from mercer.estimation.standardize import Standardizer
from mercer.features.device import Device, check_device, feature_products
from mercer.features.products import Products
from mercer.numerics.sums import ROWS_PER_TERM, PairwiseSum
from mercer.sampling.checkpoint import digest_arrays
from mercer.sampling.signals import check_stop, is_late

Array = NDArray[np.float64]
Block = TypeVar("Block")


class TargetTransform(Protocol):
    """From targets as they are given to what is fitted."""

    def transform(self, y: Array) -> Array:
        """Transform targets, shape (n,)."""


def some_positions(rng: np.random.Generator, n_rows: int, limit: int) -> NDArray[np.int64]:
    """Draw positions of at most so many rows, ascending; all of them where they are not more."""
    if n_rows <= limit:
        return np.arange(n_rows)
    return np.sort(rng.choice(n_rows, limit, replace=False))


class RowSum(Protocol):
    """Sums over the rows of one pass."""

    def add(self, X: Array, columns: Array) -> None:
        """Add rows: inputs (b, d), and linear columns and targets as rows, shape (p + 1, b)."""

    def begin_term(self, index: int) -> None:
        """Let the next row begin a term of its own, so many terms after the first of all rows."""

    def sum(self) -> Any:
        """The sum of the terms: an array, or a tuple of them."""


class GramSum:
    """[Phi, H, y]'[Phi, H, y], summed over blocks of rows."""

    def __init__(self, frequencies: Array, n_columns: int, device: Device | None = None) -> None:
        self._features = feature_products(frequencies, None, n_columns, device)
        self._given = PairwiseSum()

    def add(self, X: Array, columns: Array) -> None:
        """Add a term of rows, or the whole of it."""
        self._features.add(X, columns)
        self._given.add(columns @ columns.T)

    def begin_term(self, index: int) -> None:
        """Let the next row begin a term of its own."""
        self._features.begin_term()

    def sum(self) -> tuple[Array, Array]:
        """The sums of products with features, and of those without."""
        return self._features.sum(), self._given.total()

    def gram(self, total: tuple[Array, Array]) -> Array:
        """Put sums together, shape (2 M + p + 1, 2 M + p + 1)."""
        parts = self._features.products(total[0])
        return np.block([[parts.among, parts.across], [parts.across.T, total[1]]])


class LateError(Exception):
    """A pass over the rows did not end in time."""


_NO_ROWS = np.empty(0, dtype=np.int64)


class TrainingRows(ABC):
    """Standardised inputs and targets; frozen, and sent to other processes with the sampler.

    With a linear part the columns H that are always in the model are an intercept and the
    inputs; else there are none. Features are computed on the device, by NumPy where it is None.
    """

    has_linear_part: bool
    device: Device | None

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number n of rows."""

    @property
    @abstractmethod
    def n_inputs(self) -> int:
        """Number d of inputs."""

    @abstractmethod
    def blocks(self) -> Iterator[tuple[Array, Array]]:
        """Inputs (b, d) and targets (b,) in the order of the rows; the same blocks each time."""

    @abstractmethod
    def take(self, chosen: NDArray[np.int64]) -> tuple[Array, Array]:
        """Inputs and targets of some rows, by ascending position."""

    @property
    def n_linear(self) -> int:
        """Number p of columns that are always in the model."""
        return 1 + self.n_inputs if self.has_linear_part else 0

    def products(self, new: Array, old: Array | None = None) -> Products:
        """Products of new features with each other and with [old features, H, y]: one pass."""
        make = functools.partial(feature_products, new, old, self.n_linear + 1, self.device)
        return make().products(self.sums([make])[0])

    def gram(self, frequencies: Array) -> Array:
        """[Phi, H, y]'[Phi, H, y], shape (2 M + p + 1, 2 M + p + 1): one pass."""
        return self.grams([frequencies])[0]

    def grams(self, frequencies: Sequence[Array], deadline: float | None = None) -> list[Array]:
        """Gram matrices of sets of frequencies in one pass; `LateError` after a deadline."""
        given = self.n_linear + 1, self.device
        makers = [functools.partial(GramSum, each, *given) for each in frequencies]
        totals = self.sums(makers, deadline)
        return [make().gram(total) for make, total in zip(makers, totals, strict=True)]

    def sums(
        self,
        makers: Sequence[Callable[[], RowSum]],
        deadline: float | None = None,
        left_out: NDArray[np.int64] = _NO_ROWS,
    ) -> tuple[Any, ...]:
        """Make sums, and return what they are over all rows but some: one pass."""
        blocks = _in_time(self.blocks(), deadline)
        return _add_all(makers, self.has_linear_part, left_out, 0, blocks)


def _columns(has_linear_part: bool, X: Array, y: Array) -> Array:
    given = [np.ones((1, len(X))), X.T] if has_linear_part else []
    return np.concatenate([*given, y[np.newaxis]])


def _without(
    blocks: Iterable[tuple[Array, Array]], left_out: NDArray[np.int64], position: int
) -> Iterator[tuple[int, Array, Array]]:
    """Yield the term of each block and its rows but those left out; the first is at a position."""
    for X, y in blocks:
        low, high = np.searchsorted(left_out, (position, position + len(X)))
        gone, term = left_out[low:high] - position, position // ROWS_PER_TERM
        position += len(X)
        yield (term, np.delete(X, gone, axis=0), np.delete(y, gone)) if len(gone) else (term, X, y)


def _add_all(
    makers: Sequence[Callable[[], RowSum]],
    has_linear_part: bool,
    left_out: NDArray[np.int64],
    position: int,
    blocks: Iterable[tuple[Array, Array]],
) -> tuple[Any, ...]:
    """Add blocks of rows, a term each, the first of them at a position."""
    sums = [make() for make in makers]
    for term, X, y in _without(blocks, left_out, position):
        columns = _columns(has_linear_part, X, y)
        for each in sums:
            each.begin_term(term)
            each.add(X, columns)
    return tuple(each.sum() for each in sums)


def _add_stored(
    makers: Sequence[Callable[[], RowSum]],
    has_linear_part: bool,
    left_out: NDArray[np.int64],
    standardizer: Standardizer,
    target: TargetTransform,
    position: int,
    blocks: Iterable[Array],
) -> tuple[Any, ...]:
    """Add blocks of a source: inputs, then the target, as they are given."""
    standardized = ((standardizer.transform(b[:, :-1]), target.transform(b[:, -1])) for b in blocks)
    return _add_all(makers, has_linear_part, left_out, position, standardized)


def _in_time(blocks: Iterable[Block], deadline: float | None) -> Iterator[Block]:
    for block in blocks:
        _check_time(deadline)
        yield block


def _check_time(deadline: float | None) -> None:
    check_stop()
    if is_late(deadline):
        raise LateError


@dataclass(frozen=True, eq=False)
class MemoryRows(TrainingRows):
    """Rows that are in memory."""

    X: Array
    y: Array
    has_linear_part: bool
    device: Device | None = None

    @property
    def n_rows(self) -> int:
        """Number n of rows."""
        return len(self.X)

    @property
    def n_inputs(self) -> int:
        """Number d of inputs."""
        return int(self.X.shape[1])

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        """Slices of the arrays."""
        for begin in range(0, len(self.X), ROWS_PER_TERM):
            check_stop()
            rows = slice(begin, begin + ROWS_PER_TERM)
            yield self.X[rows], self.y[rows]

    def take(self, chosen: NDArray[np.int64]) -> tuple[Array, Array]:
        """Index the arrays."""
        return self.X[chosen], self.y[chosen]


@dataclass(frozen=True, eq=False)
class StoredRows(TrainingRows):
    """Rows that stay on a disk and are standardised as they are read: inputs, then targets."""

    source: RowSource
    standardizer: Standardizer
    target: TargetTransform
    has_linear_part: bool
    device: Device | None = None

    @property
    def n_rows(self) -> int:
        """Number n of rows."""
        return self.source.n_rows

    @property
    def n_inputs(self) -> int:
        """Number d of inputs."""
        return self.source.n_columns - 1

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        """Read the source from its start."""
        for block in self.source.blocks(ROWS_PER_TERM):
            check_stop()
            yield self._standardized(block)

    def take(self, chosen: NDArray[np.int64]) -> tuple[Array, Array]:
        """Read some rows of the source, in one pass."""
        return self._standardized(self.source.take(chosen))

    def sums(
        self,
        makers: Sequence[Callable[[], RowSum]],
        deadline: float | None = None,
        left_out: NDArray[np.int64] = _NO_ROWS,
    ) -> tuple[Any, ...]:
        """Make and add up the sums where the rows are."""
        given = (tuple(makers), self.has_linear_part, left_out, self.standardizer, self.target)
        add = functools.partial(_add_stored, *given)
        check = functools.partial(_check_time, deadline)
        return tuple(self.source.total(add, check))

    def _standardized(self, block: Array) -> tuple[Array, Array]:
        return self.standardizer.transform(block[:, :-1]), self.target.transform(block[:, -1])


@dataclass(frozen=True, eq=False)
class RowsWithout(TrainingRows):
    """All rows but those left out, positions among them, ascending."""

    rows: TrainingRows
    left_out: NDArray[np.int64]

    @property
    def has_linear_part(self) -> bool:  # type: ignore[override]
        """That of the rows."""
        return self.rows.has_linear_part

    @property
    def device(self) -> Device | None:  # type: ignore[override]
        """That of the rows."""
        return self.rows.device

    @property
    def n_rows(self) -> int:
        """Number of rows that are not left out."""
        return self.rows.n_rows - len(self.left_out)

    @property
    def n_inputs(self) -> int:
        """Number d of inputs."""
        return self.rows.n_inputs

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        """The blocks of the rows, each without what is left out of it."""
        for _, X, y in _without(self.rows.blocks(), self.left_out, 0):
            yield X, y

    def sums(
        self,
        makers: Sequence[Callable[[], RowSum]],
        deadline: float | None = None,
        left_out: NDArray[np.int64] = _NO_ROWS,
    ) -> tuple[Any, ...]:
        """Sum the rows, a term for each block of all of them."""
        gone = np.union1d(self.left_out, self._below(left_out))
        return self.rows.sums(makers, deadline, gone)

    def take(self, chosen: NDArray[np.int64]) -> tuple[Array, Array]:
        """Take from the rows; positions are among those that are not left out."""
        return self.rows.take(self._below(chosen))

    def _below(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions among all rows of those among what is left."""
        n_kept_before = self.left_out - np.arange(len(self.left_out))
        return chosen + np.searchsorted(n_kept_before, chosen, side="right")


# The training data as they are given: arrays, or a source of rows on a disk.


class Table(ABC):
    """Inputs and targets, not yet standardised, and the device of the fit."""

    device: Device | None

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number n of rows."""

    @abstractmethod
    def take(self, chosen: NDArray[np.int64]) -> tuple[Array, Array]:
        """Inputs and targets of some rows, by ascending position."""

    @abstractmethod
    def rows(
        self, standardizer: Standardizer, target: TargetTransform, linear: bool
    ) -> TrainingRows:
        """All rows, standardised."""

    @abstractmethod
    def labels(self, most: int) -> tuple[Array, NDArray[np.int64]]:
        """Return the values of the target, ascending, ``most`` at most, and their frequencies."""

    @abstractmethod
    def digest(self) -> str:
        """Content hash."""


@dataclass(frozen=True, eq=False)
class _Arrays(Table):
    """Both in memory."""

    X: Array
    y: Array
    device: Device | None

    @property
    def n_rows(self) -> int:
        return len(self.y)

    def take(self, chosen: NDArray[np.int64]) -> tuple[Array, Array]:
        return self.X[chosen], self.y[chosen]

    def rows(
        self, standardizer: Standardizer, target: TargetTransform, linear: bool
    ) -> TrainingRows:
        X, y = standardizer.transform(self.X), target.transform(self.y)
        return MemoryRows(X, y, linear, self.device)

    def labels(self, most: int) -> tuple[Array, NDArray[np.int64]]:
        values, counts = np.unique(self.y, return_counts=True)
        _check_few(len(values), most)
        return values, counts.astype(np.int64)

    def digest(self) -> str:
        return digest_arrays(self.X, self.y)


@dataclass(frozen=True, eq=False)
class _Stored(Table):
    """Inputs, then the target, on a disk."""

    source: RowSource
    device: Device | None

    @property
    def n_rows(self) -> int:
        return self.source.n_rows

    def take(self, chosen: NDArray[np.int64]) -> tuple[Array, Array]:
        block = self.source.take(chosen)
        return block[:, :-1], block[:, -1]

    def rows(
        self, standardizer: Standardizer, target: TargetTransform, linear: bool
    ) -> TrainingRows:
        return StoredRows(self.source, standardizer, target, linear, self.device)

    def labels(self, most: int) -> tuple[Array, NDArray[np.int64]]:
        found = self.source.count(self.source.names[-1], most)
        _check_few(len(found), most)
        return np.array(list(found)), np.array(list(found.values()))

    def digest(self) -> str:
        return self.source.digest()


def _check_few(n_classes: int, most: int) -> None:
    if n_classes > most:
        raise DataError(f"the target has more than {most} classes, the most that are told apart")


def check_table(model: Any, X: Any, y: Any) -> Table:
    """Check device and data; set the number and names of columns as scikit-learn does."""
    device = check_device(model.device)
    if model._is_dask(X):
        from mercer.data.dask import open_collection

        source = open_collection(X, y)
        table = _stored(model, source, source.names[-1], device)
        if not hasattr(X, "columns"):
            del model.feature_names_in_
        return table
    if isinstance(X, RowSource):
        return _stored(model, X, y, device)
    X, y = model._checked(X, y)
    return _Arrays(X, y, device)


def _stored(model: Any, source: RowSource, target: Any, device: Device | None) -> Table:
    if not isinstance(target, str):
        raise UsageError(f"with rows on a disk, y is the name of the target column; got {target!r}")
    inputs = [name for name in source.names if name != target]
    rows = source.select([*inputs, target])
    if not inputs or rows.n_rows < 2:
        raise DataError(f"{source.name}: an input and two rows are needed")
    model.n_features_in_ = len(inputs)
    model.feature_names_in_ = np.array(inputs, dtype=object)
    return _Stored(rows.verified(), device)
