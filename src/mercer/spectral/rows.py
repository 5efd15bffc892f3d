"""The rows that BaNK learns from: a table of arrays or a source, block by block.

The sampler asks them for products of features and for nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.data.source import RowSource
from mercer.errors import DataError, UsageError
from mercer.estimation.standardize import Standardizer
from mercer.features.products import ROWS_PER_TASK, FeatureProducts, Products
from mercer.sampling.checkpoint import digest_arrays
from mercer.sampling.signals import check_stop

Array = NDArray[np.float64]


class TargetTransform(Protocol):
    """From targets as they are given to what is fitted."""

    def transform(self, y: Array) -> Array:
        """Transform targets, shape (n,)."""


def some_positions(rng: np.random.Generator, n_rows: int, limit: int) -> NDArray[np.int64]:
    """Draw positions of at most so many rows, ascending; all of them where they are not more."""
    if n_rows <= limit:
        return np.arange(n_rows)
    return np.sort(rng.choice(n_rows, limit, replace=False))


class GramSum:
    """[Phi, H, y]'[Phi, H, y], summed over blocks of rows."""

    def __init__(self, frequencies: Array, n_columns: int) -> None:
        self._features = FeatureProducts(frequencies, None, n_columns)
        self._given = np.zeros((n_columns, n_columns))

    def add(self, X: Array, columns: Array) -> None:
        """Add rows: inputs (b, d), and linear columns and targets as rows, shape (p + 1, b)."""
        self._features.add(X, columns)
        self._given += columns @ columns.T

    def total(self) -> Array:
        """The products of all rows that were added, shape (2 M + p + 1, 2 M + p + 1)."""
        parts = self._features.total()
        return np.block([[parts.among, parts.across], [parts.across.T, self._given]])


class TrainingRows(ABC):
    """Standardised inputs and targets; frozen, and sent to other processes with the sampler.

    With a linear part the columns H that are always in the model are an intercept and the
    inputs; else there are none.
    """

    has_linear_part: bool

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

    def columns(self, X: Array, y: Array) -> Array:
        """The linear columns and the targets of some rows, as rows: shape (p + 1, b)."""
        given = [np.ones((1, len(X))), X.T] if self.has_linear_part else []
        return np.concatenate([*given, y[np.newaxis]])

    def products(self, new: Array, old: Array | None = None) -> Products:
        """Products of new features with each other and with [old features, H, y]: one pass."""
        sums = FeatureProducts(new, old, self.n_linear + 1)
        for X, y in self.blocks():
            sums.add(X, self.columns(X, y))
        return sums.total()

    def gram(self, frequencies: Array) -> Array:
        """[Phi, H, y]'[Phi, H, y], shape (2 M + p + 1, 2 M + p + 1): one pass."""
        sums = GramSum(frequencies, self.n_linear + 1)
        for X, y in self.blocks():
            sums.add(X, self.columns(X, y))
        return sums.total()


@dataclass(frozen=True, eq=False)
class MemoryRows(TrainingRows):
    """Rows that are in memory."""

    X: Array
    y: Array
    has_linear_part: bool

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
        for begin in range(0, len(self.X), ROWS_PER_TASK):
            check_stop()
            rows = slice(begin, begin + ROWS_PER_TASK)
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
        for block in self.source.blocks(ROWS_PER_TASK):
            check_stop()
            yield self._standardized(block)

    def take(self, chosen: NDArray[np.int64]) -> tuple[Array, Array]:
        """Read some rows of the source, in one pass."""
        return self._standardized(self.source.take(chosen))

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
    def n_rows(self) -> int:
        """Number of rows that are not left out."""
        return self.rows.n_rows - len(self.left_out)

    @property
    def n_inputs(self) -> int:
        """Number d of inputs."""
        return self.rows.n_inputs

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        """The blocks of the rows, each without what is left out of it."""
        position = 0
        for X, y in self.rows.blocks():
            gone = self.left_out[np.searchsorted(self.left_out, position) :]
            gone = gone[gone < position + len(X)] - position
            position += len(X)
            yield np.delete(X, gone, axis=0), np.delete(y, gone)

    def take(self, chosen: NDArray[np.int64]) -> tuple[Array, Array]:
        """Take from the rows; positions are among those that are not left out."""
        n_kept_before = self.left_out - np.arange(len(self.left_out))
        return self.rows.take(chosen + np.searchsorted(n_kept_before, chosen, side="right"))


# The training data as they are given: arrays, or a source of rows on a disk.

_ROWS_AT_ONCE = 65536


class Table(ABC):
    """Inputs and targets, not yet standardised."""

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

    @property
    def n_rows(self) -> int:
        return len(self.y)

    def take(self, chosen: NDArray[np.int64]) -> tuple[Array, Array]:
        return self.X[chosen], self.y[chosen]

    def rows(
        self, standardizer: Standardizer, target: TargetTransform, linear: bool
    ) -> TrainingRows:
        return MemoryRows(standardizer.transform(self.X), target.transform(self.y), linear)

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

    @property
    def n_rows(self) -> int:
        return self.source.n_rows

    def take(self, chosen: NDArray[np.int64]) -> tuple[Array, Array]:
        block = self.source.take(chosen)
        return block[:, :-1], block[:, -1]

    def rows(
        self, standardizer: Standardizer, target: TargetTransform, linear: bool
    ) -> TrainingRows:
        return StoredRows(self.source, standardizer, target, linear)

    def labels(self, most: int) -> tuple[Array, NDArray[np.int64]]:
        total: Counter[float] = Counter()
        for block in self.source.select([self.source.names[-1]]).blocks(_ROWS_AT_ONCE):
            values, counts = np.unique(block[:, -1], return_counts=True)
            total.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
            _check_few(len(total), most)
        found = sorted(total)
        return np.array(found), np.array([total[value] for value in found])

    def digest(self) -> str:
        return self.source.digest()


def _check_few(n_classes: int, most: int) -> None:
    if n_classes > most:
        raise DataError(f"the target has more than {most} classes, the most that are told apart")


def check_table(model: Any, X: Any, y: Any) -> Table:
    """Check the data; set the number and names of columns as scikit-learn does."""
    if isinstance(X, RowSource):
        return _stored(model, X, y)
    return _Arrays(*model._checked(X, y))


def _stored(model: Any, source: RowSource, target: Any) -> Table:
    if not isinstance(target, str):
        raise UsageError(f"with rows on a disk, y is the name of the target column; got {target!r}")
    inputs = [name for name in source.names if name != target]
    rows = source.select([*inputs, target])
    if not inputs or rows.n_rows < 2:
        raise DataError(f"{source.name}: an input and two rows are needed")
    model.n_features_in_ = len(inputs)
    model.feature_names_in_ = np.array(inputs, dtype=object)
    return _Stored(rows.verified())
