"""Features, their products and the matrices of a sweep on a GPU: the door to array libraries.

Written in the functions of the Python array API standard, in double precision. Rows go to the
device once, or block by block where they do not fit; features, products and sums stay there, as do
the matrices that a sweep takes apart. Terms are summed in the order of `mercer.features.products`;
within a term the library adds as it likes, so that a pass has other last bits than in NumPy.

**Order.** On a device the cosines of a set of frequencies come first, then its sines, not yet
divided by sqrt(M): whoever reads a sum brings it into the order of `mercer.features.products`.

Cost: 14 n M^2 flops a sweep (12 in NumPy, by a symmetric product); 8 d bytes a row are kept.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import INSTALL, NumericalError, UsageError
from mercer.features.products import Array, FeatureProducts, Products
from mercer.numerics.sums import ROWS_PER_TERM, PairwiseSum

Indices = NDArray[np.int64]

# Numbers of the features that stand in the memory of the device at a time: 256 MiB.
_NUMBERS_AT_ONCE = 2**25
# Bytes of inputs that are kept on the device from one pass to the next.
_MOST_KEPT = 2**30


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

    @property
    def xp(self) -> Any:
        """The functions of the library."""
        return _namespace(self.library)

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

    def put(self, array: Any) -> Any:
        """Copy an array of numbers to the device, unless it is there."""
        if not isinstance(array, np.ndarray):
            return array
        return self.xp.asarray(array, dtype=self.xp.float64, device=self.name, copy=True)

    def get(self, array: Any) -> Array:
        """Copy an array of the device to NumPy."""
        if not hasattr(array, "cpu"):
            return np.asarray(array)
        if getattr(array, "is_cuda", False):
            # Pages that stay where they are: a fresh array takes twenty times as long to fill.
            pinned = self.xp.empty(tuple(array.shape), dtype=array.dtype, pin_memory=True)
            return np.asarray(pinned.copy_(array))
        return np.asarray(array.cpu())

    def kept(self, X: Array) -> Any:
        """Inputs on the device, where they may stay from one pass to the next, or as they are."""
        return self.put(X) if X.nbytes <= _MOST_KEPT else X

    def without(self, X: Any, gone: Indices) -> Any:
        """Rows that are there but some."""
        kept = np.setdiff1d(np.arange(X.shape[0]), gone)
        return self.xp.take(X, self.indices(kept), axis=0)

    def columns(self, has_linear_part: bool, X: Any, y: Array) -> Any:
        """Intercept and inputs of rows (b, d) that are there, and targets, as rows: (p + q, b)."""
        xp, targets = self.xp, self.put(np.atleast_2d(y.T))
        if not has_linear_part:
            return targets
        ones = xp.ones((1, X.shape[0]), dtype=xp.float64, device=self.name)
        return xp.concat([ones, X.T, targets], axis=0)

    def design(self, frequencies: Sequence[Any], X: Any, columns: Any) -> Any:
        """Features of each set of frequencies at rows X (b, d), then columns (b, c): (b, m)."""
        xp, parts = self.xp, []
        for W in frequencies:
            phase = X @ self.put(W.T)
            parts += [xp.cos(phase), xp.sin(phase)]
        return xp.concat([*parts, columns], axis=1)

    def functions(self, F: Any, n_frequencies: int, coef: Array) -> Array:
        """Functions of coefficients (K, m) at the rows of a design of one set, in NumPy: (K, b)."""
        layout = Layout((n_frequencies,), coef.shape[1] - 2 * n_frequencies)
        return self.get(self.put(layout.to_device(coef)) @ F.T)

    def product(self, F: Any, m: int) -> Any:
        """Products of the first m columns of a design (b, k) with all of them, (m, k).

        Of the first m with each other only the upper triangle counts: see `Layout.ordered`.
        """
        xp, h = self.xp, m // 2
        below = xp.concat([self.zeros(m - h, h), F[:, h:m].T @ F[:, h:]], axis=1)
        return xp.concat([F[:, :h].T @ F, below], axis=0)

    def weighted_gram(self, F: Any, roots: Array, targets: Array) -> Any:
        """[R F, t]'[R F, t] of a design (b, m), with R diagonal and t (b,) from NumPy."""
        columns = (F * self.put(roots[:, np.newaxis]), self.put(targets[:, np.newaxis]))
        weighted = self.xp.concat(columns, axis=1)
        return self.product(weighted, weighted.shape[1])

    def zeros(self, n_rows: int, n_columns: int) -> Any:
        """Make a matrix of zeros there."""
        return self.xp.zeros((n_rows, n_columns), dtype=self.xp.float64, device=self.name)

    def factorise(self, gram: Array, added: Array) -> Array:
        """Cholesky factor of a symmetric matrix with more on its diagonal: Fortran-ordered."""
        raised = DeviceMatrix(self, self.put(gram)).raised(added)
        return self.get(self.cholesky(raised.array, upper=True)).T

    def cholesky(self, B: Any, *, upper: bool = False) -> Any:
        """Cholesky factor of a matrix that is there."""
        try:
            return self.xp.linalg.cholesky(B, upper=upper)
        except Exception as error:  # each library has its own
            if not type(error).__name__.endswith("LinAlgError"):
                raise
            what = f"matrix of order {B.shape[0]} is not positive definite"
            raise NumericalError(what) from None

    def indices(self, places: Indices) -> Any:
        """Copy places to the device."""
        return self.xp.asarray(places, device=self.name)

    def joint(
        self, gram: Array, among: Any, across: Any, ridge: float, linear_precisions: Array
    ) -> DeviceMatrix:
        """Lay out all products as `mercer.spectral.sampler.join` does."""
        xp, G = self.xp, self.put(gram)
        m2, p = among.shape[0], len(linear_precisions)
        n_outputs, m = len(gram) - m2 - p, m2 // 2
        pairs = (m, 2, m, 2)
        now, new = xp.reshape(G[:m2, :m2], pairs), xp.reshape(among, pairs)
        both = xp.reshape(across[:, :m2], pairs)
        top = xp.concat([now, xp.permute_dims(both, (2, 3, 0, 1))], axis=3)
        square = xp.concat([top, xp.concat([both, new], axis=3)], axis=1)
        beside = [xp.reshape(A[:m2, m2:], (m, 2, p + n_outputs)) for A in (G, across)]
        side = xp.reshape(xp.concat(beside, axis=1), (2 * m2, p + n_outputs))
        below = xp.concat([side.T, G[m2:, m2:]], axis=1)
        whole = xp.concat([xp.reshape(square, (2 * m2, 2 * m2)), side], axis=1)
        added = [np.full(2 * m2, ridge), linear_precisions, np.zeros(n_outputs)]
        joint = DeviceMatrix(self, xp.concat([whole, below], axis=0)).raised(np.concatenate(added))
        return joint.without(np.arange(2 * m2, 2 * m2 + p))

    def selected(
        self, gram: Array, among: Any, across: Any, is_accepted: NDArray[np.bool_]
    ) -> Array:
        """As `mercer.spectral.loops.select`."""
        xp, G, m2 = self.xp, self.put(gram), among.shape[0]
        took = self.indices(np.repeat(is_accepted, 2))
        here, there, both = took[:, np.newaxis], took[np.newaxis, :], across[:, :m2]
        new = xp.where(there, among, both)
        square = xp.where(here, new, xp.where(there, both.T, G[:m2, :m2]))
        side = xp.where(here, across[:, m2:], G[:m2, m2:])
        top = xp.concat([square, side], axis=1)
        below = xp.concat([side.T, G[m2:, m2:]], axis=1)
        return self.get(xp.concat([top, below], axis=0))

    def spectrum(self, gram: Array, m: int, linear_precisions: Array) -> tuple[Array, Array, Array]:
        """As `mercer.spectral.model.reduce_products`: eigenvalues, b and target."""
        p, n_outputs = len(linear_precisions), len(gram) - m - len(linear_precisions)
        added = np.concatenate([np.zeros(m), linear_precisions, np.zeros(n_outputs)])
        whole = DeviceMatrix(self, self.put(gram)).raised(added)
        A = whole.without(np.arange(m, m + p)).array
        values, vectors = self.xp.linalg.eigh(A[:m, :m])
        given = values, A[m:, :m] @ vectors, A[m:, m:]
        diagonal, b, outputs = map(self.get, given)
        return diagonal, b, outputs.diagonal()


@dataclass(frozen=True, eq=False)
class DeviceMatrix:
    """A symmetric matrix on a device."""

    device: Device
    array: Any

    def __len__(self) -> int:
        return int(self.array.shape[0])

    def raised(self, diagonal: Array) -> DeviceMatrix:
        """The matrix with more on its diagonal."""
        xp, n = self.device.xp, len(self)
        on_diagonal = xp.eye(n, dtype=xp.bool, device=self.device.name)
        added = self.array + self.device.put(diagonal)
        return DeviceMatrix(self.device, xp.where(on_diagonal, added, self.array))

    def without(self, gone: Indices) -> DeviceMatrix:
        """Schur complement of all rows but some, or the matrix where these are none."""
        if not len(gone):
            return self
        return self.schur(gone, np.setdiff1d(np.arange(len(self)), gone))

    def schur(self, gone: Indices, kept: Indices) -> DeviceMatrix:
        """Schur complement of some rows, others eliminated; `NumericalError` where that fails."""
        xp, device = self.device.xp, self.device
        own, others = device.indices(kept), device.indices(gone)
        rows = xp.take(self.array, others, axis=0)
        factor = device.cholesky(xp.take(rows, others, axis=1))
        # The standard solves without regard to a triangle.
        solve = getattr(xp.linalg, "solve_triangular", None)
        across = xp.take(rows, own, axis=1)
        solved = solve(factor, across, upper=False) if solve else xp.linalg.solve(factor, across)
        rest = xp.take(xp.take(self.array, own, axis=0), own, axis=1)
        return DeviceMatrix(device, rest - solved.T @ solved)

    def get(self) -> Array:
        """The matrix in NumPy, Fortran-ordered."""
        return self.device.get(self.array).T


@contextmanager
def within_memory(device: Device | None) -> Iterator[None]:
    """Say what to do where a device is full: a `UsageError`."""
    try:
        yield
    except Exception as error:  # each library has its own
        if device is None or "OutOfMemory" not in type(error).__name__:
            raise
        raise UsageError(
            f"device={device.name!r} has too little memory; take fewer n_frequencies, n_jobs=1 if "
            "chains run side by side, or leave device out to compute by NumPy"
        ) from error


def check_device(name: str | None) -> Device | None:
    """Look for the device of a fit, None for NumPy; `UsageError` where it cannot be used."""
    if name is None:
        return None
    device = Device(name)
    device.check()
    return device


@dataclass(frozen=True, eq=False)
class Layout:
    """Columns of a design as a device has them: sets of frequencies, then further columns."""

    sizes: tuple[int, ...]  # frequencies of each set
    n_others: int

    @functools.cached_property
    def order(self) -> tuple[Indices, Array]:
        """Of each column in the order of `mercer.features.products`: place there, and scale."""
        begin, places, scales = 0, [], []
        for m in self.sizes:
            pair = np.arange(m)[:, np.newaxis] + np.array([0, m])
            places.append(begin + pair.ravel())
            scales.append(np.full(2 * m, 1.0 / math.sqrt(max(m, 1))))
            begin += 2 * m
        places.append(begin + np.arange(self.n_others))
        return np.concatenate(places), np.concatenate([*scales, np.ones(self.n_others)])

    def to_device(self, coef: Array) -> Array:
        """Coefficients (K, m) of columns of the device, from those in order."""
        (order, scale), out = self.order, np.empty(coef.shape)
        out[:, order] = coef * scale
        return out

    def ordered(self, total: Any, device: Device) -> Any:
        """Bring products of the first columns, or all, with all into order, where they are."""
        is_here = isinstance(total, np.ndarray)
        xp, n_rows = np if is_here else device.xp, total.shape[0]
        places, factors = self.order
        if not is_here:
            places, factors = device.indices(places), device.put(factors)
        square = total[:, :n_rows]
        among = xp.triu(square) + xp.triu(square, k=1).T
        whole = xp.concat([among, total[:, n_rows:]], axis=1)
        rows = xp.take(whole, places[:n_rows], axis=0) * factors[:n_rows, np.newaxis]
        return xp.take(rows, places, axis=1) * factors


class DeviceProducts:
    """The sums of `FeatureProducts`, made on a device: see there."""

    def __init__(self, new: Array, old: Array | None, n_columns: int, device: Device) -> None:
        self._frequencies = (new,) if old is None else (new, old)
        self._layout = Layout(tuple(map(len, self._frequencies)), n_columns)
        self._n_new = 2 * len(new)
        self._width = len(self._layout.order[0])
        self._rows_at_once = min(max(_NUMBERS_AT_ONCE // self._width, 1024), ROWS_PER_TERM)
        self._device = device
        self._sum = PairwiseSum()
        self._term: Any = None
        self._n_in_term = 0

    def add(self, X: Any, columns: Any) -> None:
        """Add a block of rows X (b, d), with the further columns (n_columns, b) as rows.

        Both are arrays of NumPy or of the device.
        """
        device, begin = self._device, 0
        X, columns, frequencies = device.put(X), device.put(columns), self._there
        self._begin()  # also without a row: whoever sums knows how many terms
        while begin < X.shape[0]:
            self._begin()
            n = min(self._rows_at_once, X.shape[0] - begin, ROWS_PER_TERM - self._n_in_term)
            end = begin + n
            F = device.design(frequencies, X[begin:end, :], columns[:, begin:end].T)
            self._term += device.product(F, self._n_new)
            begin, self._n_in_term = end, self._n_in_term + n
            if self._n_in_term == ROWS_PER_TERM:
                self.begin_term()

    @functools.cached_property
    def _there(self) -> list[Any]:
        return list(map(self._device.put, self._frequencies))

    def _begin(self) -> None:
        if self._term is None:
            self._term = self._device.zeros(self._n_new, self._width)

    def sum(self) -> Any:
        """Return the sum of the terms, on the device."""
        self.begin_term()
        return self._sum.total()

    def products(self, total: Any) -> Products:
        """Turn a sum of terms into products, where it is."""
        total = self._layout.ordered(total, self._device)
        parts = total[:, : self._n_new], total[:, self._n_new :]
        return Products(*parts, None if isinstance(total, np.ndarray) else self._device)

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
