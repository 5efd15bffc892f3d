"""Features and their products on a GPU, or wherever another array library computes: the one door.

Written in the functions of the Python array API standard, in double precision. Blocks of rows go to
the device, their features, products and sums stay there, and the sum of a pass comes back. Terms
are summed in the order of `mercer.features.products`; within a term the library adds as it likes,
so that a pass has other last bits than in NumPy.

Cost: 16 n M^2 flops a sweep (12 in NumPy, by a symmetric product); 8 (d + 1) bytes a row travel.
"""

from __future__ import annotations

import functools
import importlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.errors import INSTALL, UsageError
from mercer.features.products import Array, FeatureProducts, Products, split_products
from mercer.numerics.sums import ROWS_PER_TERM, PairwiseSum

# Rows whose features stand in the memory of the device at a time: 200 MB with 1024 frequencies.
_ROWS_AT_ONCE = 4096


@functools.cache
def _namespace(library: str) -> Any:
    """Import an array library, by what makes it follow the standard."""
    if library == "torch":
        try:
            return importlib.import_module("array_api_compat.torch")
        except ImportError:
            raise ImportError(f"a device needs PyTorch; {INSTALL.format('torch')}") from None
    return importlib.import_module(library)


@dataclass(frozen=True)
class Device:
    """Where features are computed: pickles by its names, and is looked up where it is used.

    Parameters
    ----------
    name : str or None
        As the library calls it, such as "cuda:1"; None is its default.
    library : str
        A module that follows the array API standard.
    """

    name: str | None
    library: str = "torch"

    def check(self) -> None:
        """Compute something there; `UsageError` where that is not possible."""
        try:
            self.get(self.put(np.zeros((1, 1))))
        except ImportError:
            raise
        except Exception as error:  # each library, and each device, has its own
            reason = str(error).partition("\n")[0].partition(". ")[0][:200]
            raise UsageError(
                f"device={self.name!r} cannot be used: {reason}; leave device out to compute by "
                "NumPy"
            ) from error

    def put(self, array: Array) -> Any:
        """Copy an array to the device."""
        xp = _namespace(self.library)
        return xp.asarray(array, dtype=xp.float64, device=self.name, copy=True)

    def get(self, array: Any) -> Array:
        """Copy an array of the device to NumPy."""
        return np.asarray(array.cpu() if hasattr(array, "cpu") else array)

    def design(self, frequencies: tuple[Array, ...], X: Array, columns: Array) -> Any:
        """Features of each set of frequencies at rows X (b, d), then columns (c, b): (b, m)."""
        xp = _namespace(self.library)
        Z = self.put(X)
        parts = []
        for W in frequencies:
            phase = Z @ self.put(W.T)
            pair = xp.stack([xp.cos(phase), xp.sin(phase)], axis=-1)
            parts.append(xp.reshape(pair, (len(X), 2 * len(W))) / math.sqrt(max(len(W), 1)))
        return xp.concat([*parts, self.put(columns.T)], axis=1)

    def weighted_gram(self, F: Any, roots: Array, targets: Array) -> Any:
        """[R F, t]'[R F, t] of a design (b, m), with R diagonal and t (b,) from NumPy."""
        xp = _namespace(self.library)
        columns = (F * self.put(roots[:, np.newaxis]), self.put(targets[:, np.newaxis]))
        weighted = xp.concat(columns, axis=1)
        return weighted.T @ weighted

    def zeros(self, n_rows: int, n_columns: int) -> Any:
        """Make a matrix of zeros there."""
        return self.put(np.zeros((n_rows, n_columns)))


def check_device(name: str | None) -> Device | None:
    """Look for the device of a fit, None for NumPy; `UsageError` where it cannot be used."""
    if name is None:
        return None
    device = Device(name)
    device.check()
    return device


class DeviceProducts:
    """The sums of `FeatureProducts`, made on a device: see there."""

    def __init__(self, new: Array, old: Array | None, n_columns: int, device: Device) -> None:
        self._frequencies = (new,) if old is None else (new, old)
        self._n_new = 2 * len(new)
        self._width = sum(2 * len(each) for each in self._frequencies) + n_columns
        self._device = device
        self._sum = PairwiseSum()
        self._term: Any = None
        self._n_in_term = 0

    def add(self, X: Array, columns: Array) -> None:
        """Add a block of rows X (b, d), with the further columns (n_columns, b) as rows."""
        self._begin()  # also without a row: whoever sums knows how many terms
        begin = 0
        while begin < len(X):
            self._begin()
            n = min(_ROWS_AT_ONCE, len(X) - begin, ROWS_PER_TERM - self._n_in_term)
            rows = slice(begin, begin + n)
            F = self._device.design(self._frequencies, X[rows], columns[:, rows])
            self._term += F[:, : self._n_new].T @ F
            begin, self._n_in_term = begin + n, self._n_in_term + n
            if self._n_in_term == ROWS_PER_TERM:
                self.begin_term()

    def _begin(self) -> None:
        if self._term is None:
            self._term = self._device.zeros(self._n_new, self._width)

    def sum(self) -> Array:
        """Return the sum of the terms."""
        self.begin_term()
        return self._device.get(self._sum.total())

    def products(self, total: Array) -> Products:
        """Turn a sum of terms into products."""
        return split_products(total, self._n_new)

    def begin_term(self, index: int = 0) -> None:
        """Let the next row begin a term of its own, whichever it is of all."""
        if self._term is not None:
            self._sum.add(self._term)
        self._term, self._n_in_term = None, 0


def feature_products(
    new: Array, old: Array | None, n_columns: int, device: Device | None = None
) -> FeatureProducts | DeviceProducts:
    """Make the sums of a pass, by NumPy or on a device."""
    if device is None:
        return FeatureProducts(new, old, n_columns)
    return DeviceProducts(new, old, n_columns, device)
