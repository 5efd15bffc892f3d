"""What a finite feature map can do; rows are mapped block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mercer.errors import UsageError

Array = NDArray[np.float64]
Features = NDArray[np.floating[Any]]

# Two megabytes of doubles: a block and what computes it stay in the cache.
_BLOCK_ENTRIES = 2**18


class FeatureMap(ABC):
    """A map of rows to finitely many features, whose products are (nearly) a covariance.

    Implementations are frozen dataclasses of arrays; once made, they draw nothing.
    """

    @property
    @abstractmethod
    def n_inputs(self) -> int:
        """Number d of columns that a row has."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number m of features of a row."""

    @abstractmethod
    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Named arrays that hold the map in a file; ``from_arrays`` of the class reads them."""

    @abstractmethod
    def _fill(self, X: Array, out: Features) -> None:
        """Write the features of one block of rows."""

    def features(
        self, X: Array, out: Features | None = None, dtype: DTypeLike = np.float64
    ) -> Features:
        """Map the rows of X (n, d) to (n, m), into ``out`` where given.

        Beyond the result, memory is a few blocks of two megabytes, however many rows there are.
        Single precision is that of the result: what precedes it is computed in double precision
        wherever digits could be lost.
        """
        if X.ndim != 2 or X.shape[1] != self.n_inputs:
            raise UsageError(f"rows of {self.n_inputs} columns are wanted; got shape {X.shape}")
        if out is None:
            out = np.empty((len(X), self.n_features), dtype)
        if out.shape != (len(X), self.n_features) or out.dtype not in (np.float32, np.float64):
            raise UsageError(
                f"features are float32 or float64 of shape {(len(X), self.n_features)}; "
                f"got {out.dtype} of shape {out.shape}"
            )
        n_rows = max(_BLOCK_ENTRIES // max(self.n_features, self.n_inputs), 1)
        for begin in range(0, len(X), n_rows):
            rows = slice(begin, begin + n_rows)
            self._fill(X[rows], out[rows])
        return out


def stored_array(arrays: Mapping[str, NDArray[Any]], name: str, ndim: int) -> Array:
    """Return an array of a file, once it is known to be finite doubles of ``ndim`` axes.

    A KeyError or ValueError where it is not; the reader of the file names it.
    """
    values = arrays[name]
    is_right = values.dtype == np.float64 and values.ndim == ndim and np.isfinite(values).all()
    if not is_right:
        raise ValueError(f"{name} of a feature map: wrong shape, type or values")
    return values
