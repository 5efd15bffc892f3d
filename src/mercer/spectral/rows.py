"""The rows that BaNK learns from: a table of arrays or a source, block by block.

The sampler asks them for products of features, plain or weighted, and for nothing else.
"""

from __future__ import annotations

import functools
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from mercer.data.source import RowSource, take_rows
from mercer.errors import DataError, RowsError
from mercer.estimation.standardize import Standardizer
from mercer.estimation.tasks import refuse_fractions
from mercer.features.device import Device, Layout, check_device, feature_products
from mercer.features.products import (
    Products,
    Room,
    fill_design,
    fill_features,
    parts,
    slices,
    symmetric,
)
from mercer.numerics.sums import ROWS_PER_TERM, PairwiseSum, Plus, plus
from mercer.sampling.checkpoint import digest_arrays
from mercer.sampling.signals import check_stop, is_late

Array = NDArray[np.float64]
Block = TypeVar("Block")
Add = Callable[..., Any]  # (position of the first row, blocks of inputs and targets) -> their sum


class TargetTransform(Protocol):
    """From targets as they are given to what is fitted."""

    def transform(self, y: Array) -> Array:
        """Transform targets, shape (n,), or (n, q) of several outputs."""


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
        self._given, self._device = PairwiseSum(), device

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
        parts, device = self._features.products(total[0]), self._device
        given = parts.among, parts.across, total[1]
        among, across, rest = given if device is None else map(device.get, given)
        return np.block([[among, across], [across.T, rest]])


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
    n_outputs: int = 1  # q, columns of targets
    is_missing: NDArray[np.bool_] | None = None  # inputs (n, d) to be drawn, filled somehow

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
        given = self.n_linear + self.n_outputs, self.device
        make = functools.partial(feature_products, new, old, *given)
        return make().products(self.sums([make])[0])

    def gram(self, frequencies: Array) -> Array:
        """[Phi, H, y]'[Phi, H, y], shape (2 M + p + 1, 2 M + p + 1): one pass."""
        return self.grams([frequencies])[0]

    def grams(self, frequencies: Sequence[Array], deadline: float | None = None) -> list[Array]:
        """Gram matrices of sets of frequencies in one pass; `LateError` after a deadline."""
        given = self.n_linear + self.n_outputs, self.device
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
        add = functools.partial(
            _add_all, tuple(makers), self.has_linear_part, self.device, left_out
        )
        return tuple(self._pass(add, deadline))

    def _pass(self, add: Add, deadline: float | None) -> Any:
        """Make one pass whose sums may stay where features are computed."""
        return self.total(add, deadline)

    def total(self, add: Add, deadline: float | None = None, plus: Plus = plus) -> Any:
        """Make one pass over the rows where they are."""
        return add(0, _in_time(self.blocks(), deadline))


def _columns(has_linear_part: bool, device: Device | None, X: Any, y: Array) -> Any:
    """Linear columns and targets as rows, where the inputs are."""
    if device is not None:
        return device.columns(has_linear_part, X, y)
    given = [np.ones((1, len(X))), X.T] if has_linear_part else []
    return np.vstack([*given, y.T])


def _without(
    blocks: Iterable[tuple[Any, Array]],
    left_out: NDArray[np.int64],
    position: int,
    device: Device | None = None,
) -> Iterator[tuple[int, Any, Array]]:
    """Yield the term of each block and its rows but those left out; the first is at a position."""
    for X, y in blocks:
        low, high = np.searchsorted(left_out, (position, position + len(y)))
        gone, term = left_out[low:high] - position, position // ROWS_PER_TERM
        position += len(y)
        if not len(gone):
            yield term, X, y
            continue
        kept = np.delete(X, gone, axis=0) if device is None else device.without(X, gone)
        yield term, kept, np.delete(y, gone, axis=0)


def _add_all(
    makers: Sequence[Callable[[], RowSum]],
    has_linear_part: bool,
    device: Device | None,
    left_out: NDArray[np.int64],
    position: int,
    blocks: Iterable[tuple[Any, Array]],
) -> tuple[Any, ...]:
    """Add blocks of rows, a term each, the first of them at a position."""
    sums = [make() for make in makers]
    if device is not None:
        blocks = ((device.put(X), y) for X, y in blocks)
    for term, X, y in _without(blocks, left_out, position, device):
        columns = _columns(has_linear_part, device, X, y)
        for each in sums:
            each.begin_term(term)
            each.add(X, columns)
    return tuple(each.sum() for each in sums)


def _add_stored(
    add: Callable[..., Any],
    standardizer: Standardizer,
    target: TargetTransform,
    device: Device | None,
    position: int,
    blocks: Iterable[Array],
) -> Any:
    """Add blocks of a source: inputs, then the target, as they are given. Sums leave the device."""
    each = ((standardizer.transform(b[:, :-1]), target.transform(b[:, -1])) for b in blocks)
    found = add(position, each)
    return found if device is None else _fetched(device, found)


def _fetched(device: Device, found: Any) -> Any:
    if isinstance(found, tuple):
        return tuple(_fetched(device, each) for each in found)
    return device.get(found)


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
    is_missing: NDArray[np.bool_] | None = None

    @property
    def n_rows(self) -> int:
        """Number n of rows."""
        return len(self.X)

    @property
    def n_inputs(self) -> int:
        """Number d of inputs."""
        return int(self.X.shape[1])

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """Number q of outputs."""
        return math.prod(self.y.shape[1:])

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        """Slices of the arrays."""
        return self._blocks_of(self.X)

    def _pass(self, add: Add, deadline: float | None) -> Any:
        """Over inputs that stay on the device, where there is one."""
        blocks = self.blocks() if self.device is None else self._blocks_of(self._there)
        return add(0, _in_time(blocks, deadline))

    @functools.cached_property
    def _there(self) -> Any:
        return self.X if self.device is None else self.device.kept(self.X)

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def _blocks_of(self, X: Any) -> Iterator[tuple[Any, Array]]:
        for begin in range(0, len(self.y), ROWS_PER_TERM):
            check_stop()
            end = min(begin + ROWS_PER_TERM, len(self.y))
            yield X[begin:end, :], self.y[begin:end]

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

    def total(self, add: Add, deadline: float | None = None, plus: Plus = plus) -> Any:
        """Let the source, or workers that share its rows, add."""
        add = functools.partial(_add_stored, add, self.standardizer, self.target, self.device)
        return self.source.total(add, functools.partial(_check_time, deadline), plus)

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

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """That of the rows."""
        return self.rows.n_outputs

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


# Weighted products of features: one pass over rows whose weights are drawn as it goes.
#
# Of each block of rows the functions f = F beta are computed, weights omega and pseudo-targets z
# drawn given f and the targets, and what a sweep needs is added up:
#
#     [Phi*, Phi, H, z]' Omega [Phi*, Phi, H, z]
#
# for each function over its own rows. omega is used and forgotten, or kept for one sweep.
# Nothing is known from the sweep before, since the weights change: 16 n M^2 flops a function.
#
# Blocks are summed in pairs, pairs in fours and so on, in their order; each has its own stream of
# random numbers, so that whoever reads it draws the same omega.

# (functions, targets) of some rows -> weights, and weights times pseudo-targets z.
Weigh = Callable[[Array, Array], tuple[Array, Array]]
# (index of a block) -> how its rows are weighed, function after function.
WeighOf = Callable[[int], Weigh]
# (targets of some rows, number of functions) -> of each function its rows, None for all of them,
# and what these have for targets.
Tasks = Callable[[Array, int], Iterator[tuple[NDArray[np.bool_] | None, Array]]]


def numbers(y: Array, n_functions: int) -> Iterator[tuple[None, Array]]:
    """All rows, with their targets as they are: those of one function."""
    for _ in range(n_functions):
        yield None, y


def of_blocks(rng: np.random.Generator, make: Callable[[np.random.Generator], Any]) -> Any:
    """Make something of a stream for each block; one draw of ``rng`` seeds all."""
    return functools.partial(_of_block, make, int(rng.integers(2**63)))


def _of_block(make: Callable[[np.random.Generator], Any], entropy: int, index: int) -> Any:
    return make(np.random.Generator(np.random.PCG64([entropy, index])))


@dataclass(frozen=True, eq=False, kw_only=True)
class WeightedProducts(Products):
    """Weighted sums over the rows of one function: `Products` of the proposed features.

    They are with each other and with [Phi, H, z], whose own products are ``gram``.
    """

    gram: Array


def weighted_products(
    rows: TrainingRows,
    proposed: Array,
    frequencies: Array,
    coef: Array,
    weigh_of: WeighOf,
    tasks: Tasks = numbers,
    known_at: Array | None = None,
) -> tuple[WeightedProducts, ...]:
    """Sum the products of all functions in one pass.

    Proposed frequencies (M', d) may be none; ``coef`` (K, 2 M + p) are those of the functions that
    the weights depend on, at ``known_at`` (M, d) or else at the frequencies. What ``weigh_of``
    returns is called for each function in turn on some rows at a time, in order.
    """
    given = proposed, frequencies, coef, weigh_of, tasks, known_at
    make: Callable[[], RowSum] = functools.partial(_WeightedSums, *given)
    if (device := rows.device) is None:
        return tuple(_split(symmetric(each), 2 * len(proposed)) for each in rows.sums([make])[0])
    make = functools.partial(_DeviceWeightedSums, *given, device)
    layout = Layout((len(proposed), len(frequencies)), rows.n_linear + 1)
    totals = (layout.ordered(each, device) for each in rows.sums([make])[0])
    return tuple(_split(each, 2 * len(proposed), device) for each in totals)


@dataclass(frozen=True, eq=False)
class WeighedRows:
    """Rows weighed by what one function makes of them, the same in each pass.

    Its products are those of `TrainingRows`, weighted, with pseudo-targets for y.
    """

    rows: TrainingRows
    frequencies: Array  # (M, d), of the function
    coef: Array  # (2 M + p,)
    weigh_of: WeighOf

    def products(self, new: Array, old: Array) -> WeightedProducts:
        """Weighted products of new features and [old features, H, z]: one pass."""
        known_at = None if old is self.frequencies else self.frequencies
        coef = self.coef[np.newaxis]
        given = new, old, coef, self.weigh_of, numbers, known_at
        return weighted_products(self.rows, *given)[0]

    def gram(self, frequencies: Array) -> Array:
        """[Phi, H, z]' Omega [Phi, H, z], shape (2 M + p + 1, 2 M + p + 1): one pass."""
        return self.products(frequencies[:0], frequencies).gram


@dataclass(eq=False)
class _WeightedSums:
    """The products of all functions, a sum each: see `weighted_products`."""

    proposed: Array
    frequencies: Array
    coef: Array
    weigh_of: WeighOf
    tasks: Tasks
    known_at: Array | None

    def __post_init__(self) -> None:
        self._room, self._other_room = Room(), Room()
        self._sums = [PairwiseSum() for _ in self.coef]

    def begin_term(self, index: int) -> None:
        """Weigh the next rows as those of this block."""
        self._weigh = self.weigh_of(index)

    def add(self, X: Array, columns: Array) -> None:
        """Add a block: the last of the columns holds the targets."""
        n_new, has_linear_part = 2 * len(self.proposed), len(columns) > 1
        order = n_new + 2 * len(self.frequencies) + len(columns)
        terms = [np.zeros((order, order), order="F") for _ in self.coef]
        for part, y in parts(X, columns[-1]):
            room, phase = self._room.of(order, len(part))
            if n_new:
                fill_features(self.proposed, part, room[:n_new], phase[: len(self.proposed)])
            own = phase[: len(self.frequencies)]
            fill_design(has_linear_part, self.frequencies, part, room[n_new:-1], own)
            other = None
            if self.known_at is not None:
                other, _ = self._other_room.of(self.coef.shape[1], len(part))
                fill_design(has_linear_part, self.known_at, part, other)
            tasks = self.tasks(y, len(terms))
            for term, coef, (is_in, targets) in zip(terms, self.coef, tasks, strict=True):
                if len(targets):
                    chosen = room if is_in is None else room[:, is_in]
                    F = chosen[n_new:-1] if other is None else other
                    _add(term, chosen, *self._weigh(coef @ F, targets))
        for total, term in zip(self._sums, terms, strict=True):
            total.add(term)

    def sum(self) -> tuple[Array, ...]:
        """The sum of each function."""
        return tuple(total.total() for total in self._sums)


@dataclass(eq=False)
class _DeviceWeightedSums(_WeightedSums):
    """The sums of `_WeightedSums`, whose features and products a device computes."""

    device: Device

    def add(self, X: Any, columns: Any) -> None:
        """Add a block: the last of the columns holds the targets."""
        n_functions, device, H = len(self.coef), self.device, columns[:-1, :].T
        y = device.get(columns[-1, :])
        F = device.design((self.proposed, self.frequencies), X, H)
        known, at = F[:, 2 * len(self.proposed) :], self.frequencies
        if self.known_at is not None:
            known, at = device.design((self.known_at,), X, H), self.known_at
        f = device.functions(known, len(at), self.coef)
        roots, weighed = np.zeros((2, n_functions, len(y)))
        # Variables are drawn in the order of `_WeightedSums`; rows of no function weigh nothing.
        for rows in slices(len(y)):
            for k, (is_in, targets) in enumerate(self.tasks(y[rows], n_functions)):
                if len(targets):
                    own = slice(None) if is_in is None else is_in
                    weights, weighted = self._weigh(f[k, rows][own], targets)
                    root = np.sqrt(weights)
                    roots[k, rows][own] = root
                    weighed[k, rows][own] = weighted / root
        for k, total in enumerate(self._sums):
            total.add(device.weighted_gram(F, roots[k], weighed[k]))


# (functions (K, b), targets) of some rows -> what is to be added up: a number or an array.
Say = Callable[[Array, Array], Any]


def function_sums(
    rows: TrainingRows,
    frequencies: Array,
    coef: Array,
    say_of: Callable[[int], Say],
    beside: Array | None = None,
) -> Any:
    """Sum what functions of coefficients (K, 2 M + p) and targets say of rows: one pass, O(n M).

    What ``say_of`` returns for a block is called on some rows at a time, in order. Features of
    frequencies ``beside`` (Q, d) follow the functions.
    """
    given = frequencies, coef, say_of, rows.device, beside
    return rows.sums([functools.partial(_FunctionSums, *given)])[0]


class _FunctionSums:
    """See `function_sums`."""

    def __init__(
        self,
        frequencies: Array,
        coef: Array,
        say_of: Callable[[int], Say],
        device: Device | None,
        beside: Array | None,
    ) -> None:
        self._frequencies, self._coef, self._say_of = frequencies, coef, say_of
        self._device, self._room, self._sum = device, Room(), PairwiseSum(operator.add)
        self._beside = beside

    def begin_term(self, index: int) -> None:
        """Hear the next rows as those of this block."""
        self._say = self._say_of(index)

    def add(self, X: Any, columns: Any) -> None:
        """Add a block: the last of the columns holds the targets."""
        total, device = 0.0, self._device
        if device is not None:
            F = device.design((self._frequencies,), X, columns[:-1, :].T)
            f = device.functions(F, len(self._frequencies), self._coef)
            y = device.get(columns[-1, :])
            X = np.empty((len(y), 0)) if self._beside is None else device.get(X)  # or not needed
            for rows in slices(len(y)):
                total = total + self._said(f[:, rows], X[rows], y[rows])
        else:
            for part, y in parts(X, columns[-1]):
                F, phase = self._room.of(self._coef.shape[1], len(part))
                own = phase[: len(self._frequencies)]
                fill_design(len(columns) > 1, self._frequencies, part, F, own)
                total = total + self._said(self._coef @ F, part, y)
        self._sum.add(total)

    def _said(self, f: Array, X: Array, y: Array) -> Any:
        if self._beside is None:
            return self._say(f, y)
        features = np.empty((2 * len(self._beside), len(X)))
        fill_features(self._beside, X, features)
        return self._say(np.concatenate([f, features]), y)

    def sum(self) -> Any:
        """The sum of the terms."""
        return self._sum.total()


def _add(term: Array, columns: Array, weights: Array, weighted: Array) -> None:
    """Add some rows to the lower triangle of a function's products; changes the columns."""
    root = np.sqrt(weights)
    columns[:-1] *= root
    columns[-1] = weighted / root
    # Writes into the Fortran-ordered sum, in place.
    blas.dsyrk(1.0, columns.T, beta=1.0, c=term, trans=1, lower=1, overwrite_c=1)


def _split(full: Any, n_new: int, device: Device | None = None) -> WeightedProducts:
    gram, among, across = full[n_new:, n_new:], full[:n_new, :n_new], full[:n_new, n_new:]
    if device is not None and not isinstance(full, np.ndarray):
        return WeightedProducts(among, across, device, gram=device.get(gram))
    whole = np.ascontiguousarray
    return WeightedProducts(whole(among), whole(across), gram=whole(gram))


class Table(ABC):
    """Inputs and targets, not yet standardised, and the device of the fit."""

    device: Device | None
    #: Of classes that are an ordered category in files, from the lowest to the highest.
    order: tuple[str, ...]

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
    def targets(self, chosen: NDArray[np.int64]) -> Array:
        """Targets of some rows as they are given, by ascending position."""

    @abstractmethod
    def refusal(self, row: int, words: str) -> DataError:
        """Make the error for a target, with the place where a reader of the data finds it."""

    @abstractmethod
    def digest(self) -> str:
        """Content hash."""


@dataclass(frozen=True, eq=False)
class _Arrays(Table):
    """Both in memory."""

    X: Array
    y: Array
    device: Device | None
    order: tuple[str, ...] = ()

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

    def targets(self, chosen: NDArray[np.int64]) -> Array:
        return self.y[chosen]

    def refusal(self, row: int, words: str) -> DataError:
        return RowsError([row], words)

    def digest(self) -> str:
        return digest_arrays(self.X, self.y)


@dataclass(frozen=True, eq=False)
class _Stored(Table):
    """Inputs, then the target, on a disk."""

    source: RowSource
    device: Device | None
    order: tuple[str, ...]

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
        refuse_fractions(found, self.source)
        return np.array(list(found)), np.array(list(found.values()))

    def targets(self, chosen: NDArray[np.int64]) -> Array:
        take = functools.partial(_take_targets, chosen)
        return np.concatenate(self.source.each(take, ROWS_PER_TERM, chosen))

    def refusal(self, row: int, words: str) -> DataError:
        return DataError(f"{self.source.place(row, self.source.names[-1])}{words}")

    def digest(self) -> str:
        return self.source.digest()


def _take_targets(chosen: NDArray[np.int64], position: int, blocks: Iterable[Array]) -> Array:
    return take_rows(chosen, position, (block[:, -1] for block in blocks))


def _check_few(n_classes: int, most: int) -> None:
    if n_classes > most:
        raise DataError(f"the target has more than {most} classes, the most that are told apart")


def check_table(model: Any, X: Any, y: Any) -> Table:
    """Check device and data; set the number and names of columns as scikit-learn does."""
    from mercer.estimation.table_encoder import given_rows

    device = check_device(model.device)
    if (rows := given_rows(model, X, y)) is not None:
        return _Stored(rows, device, rows.order)
    X, y = model._checked(X, y)
    return _Arrays(X, y, device)
