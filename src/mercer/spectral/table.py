"""The training data as they are given: arrays, or a source of rows on a disk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.source import RowSource
from mercer.errors import DataError, UsageError
from mercer.estimation.standardize import Standardizer
from mercer.sampling.checkpoint import digest_arrays
from mercer.spectral.rows import MemoryRows, StoredRows, TargetTransform, TrainingRows

__all__ = ["Table", "check_table"]

Array = NDArray[np.float64]

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
        """Return the values of the target, ascending, and how many rows have each.

        Raises
        ------
        DataError
            If there are more than ``most``.
        """

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
