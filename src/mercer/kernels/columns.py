"""Kernels of chosen inputs, and of categories: what two rows have in common by their levels.

A table's column of text is several inputs of a model, one for each level; ``sources`` name the
column that each input comes from. A kernel may name columns as long as no inputs are known; `bind`
puts the positions of their inputs in the place of the names, and `in_names` goes back.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mercer.errors import UsageError
from mercer.kernels.base import (
    VARIANCE,
    WEIGHTS,
    Array,
    Composite,
    Isotropic,
    Kernel,
    Parameter,
    Stationary,
)

__all__ = [
    "Categorical",
    "Column",
    "OnColumns",
    "bind",
    "categories_of",
    "distinct_rows",
    "has_columns",
    "in_names",
    "on_columns",
]

#: An input by its position; several that are one input, a range; a column of the table, a name.
Column = int | str | range


@dataclass(frozen=True)
class Categorical(Stationary):
    """Kernel of categories: rows whose values differ in some inputs have less in common.

    By input: C(x, x') = v0 exp(-sum of the weights w_k of the inputs k that differ), theta =
    [log v0, log w_1, ..]: a weighted Hamming distance. By level: v0 exp(-(w_a + w_b) / 2) of two
    levels a and b of an input with three or more, with a weight in theta for each column.

    Attributes
    ----------
    sizes : tuple of int or None
        How many columns each input has, side by side. None: one each.
    is_each_level : bool
        Whether each level has a weight, or each input.

    Notes
    -----
    Values are compared, and not subtracted: any numbers are levels. Of inputs with a column a level
    a row with 0, or with one negative number, in all of them is a level that training had not. It
    differs from all others: by input like any two levels differ, by level with the mean of the
    weights as its own. Its variance is v0, as everywhere.

    exp(-w_k) is the correlation of two levels. The matrix over levels is positive semidefinite:
    u u' + diag(1 - u^2) with u = exp(-w / 2) <= 1. Cost O(n^2), and O(L^2) exponentials of L
    distinct rows.
    """

    sizes: tuple[int, ...] | None = None
    is_each_level: bool = False

    def parameters(self) -> tuple[Parameter, ...]:
        """One variance, and one weight per input or per column."""
        if self.sizes is None or self.is_each_level:
            return (VARIANCE, WEIGHTS)
        ends = np.cumsum(self.sizes).tolist()
        groups = zip(self.sizes, ends, strict=True)
        inputs = tuple(tuple(range(end - size, end)) for size, end in groups)
        return (VARIANCE, replace(WEIGHTS, inputs=inputs))

    @property
    def has_lengthscale(self) -> bool:
        """No: its weights are of steps from one level to another."""
        return False

    def gram(self, theta: Array, X: Array, out: Array | None = None) -> Array:
        """All pairs of rows."""
        codes, levels = _levels_of(X)
        table = self._covariances(theta, levels, levels)
        K = np.empty((len(X), len(X))) if out is None else out
        return np.asarray(table[codes].take(codes, axis=1, out=K, mode="clip"))  # all are levels

    def cross_gram(self, theta: Array, X: Array, Z: Array) -> Array:
        """Rows of X against those of Z."""
        (codes, levels), (others, other_levels) = _levels_of(X), _levels_of(Z)
        table = self._covariances(theta, levels, other_levels)
        return np.asarray(table[codes].take(others, axis=1))

    def gradient(self, theta: Array, X: Array, K: Array, A: Array) -> Array:
        """A * K is summed over the rows of each pair of levels; each weight meets its share."""
        codes, levels = _levels_of(X)
        order = np.argsort(codes, kind="stable")
        begins = np.searchsorted(codes[order], np.arange(len(levels)))
        H = np.multiply(A, K, out=A)
        by_row = np.add.reduceat(H[order], begins, axis=0)
        total = np.add.reduceat(by_row[:, order], begins, axis=1)
        weights = np.exp(theta[1:])
        of_weights = [
            -w * np.vdot(total, steps)
            for w, steps in zip(weights, self._steps(levels, levels), strict=True)
        ]
        return np.concatenate(([total.sum()], of_weights))

    def _covariances(self, theta: Array, U: Array, V: Array) -> Array:
        distance = np.zeros((len(U), len(V)))
        for w, steps in zip(np.exp(theta[1:]), self._steps(U, V), strict=True):
            distance += w * steps
        return np.asarray(np.exp(theta[0] - distance))

    def _steps(self, U: Array, V: Array) -> Iterator[Array]:
        """Yield for each weight how often it counts, for rows of U (u, d) and V (v, d): (u, v)."""
        end = 0
        for size in self.sizes or (1,) * U.shape[1]:
            begin, end = end, end + size
            if not self.is_each_level:
                own = np.concatenate((U[:, begin:end], V[:, begin:end]))
                level = distinct_rows(own)[1]
                yield (level[: len(U), np.newaxis] != level[len(U) :]).astype(np.float64)
                continue
            differ = [U[:, j, np.newaxis] != V[:, j] for j in range(begin, end)]
            # A level that was not there has 0 in all columns, and differs from another one in the
            # column of that; or a negative number, and differs in all of them.
            n_differ = np.sum(differ, axis=0)
            differs_in_all = (n_differ == size) & (size > 2)
            is_unseen = ((n_differ == 1) & (size > 1)) | differs_in_all
            for j, each in zip(range(begin, end), differ, strict=True):
                own = each & (~differs_in_all | (U[:, j, np.newaxis] > 0.0) | (V[:, j] > 0.0))
                yield 0.5 * own + 0.5 / size * is_unseen


def distinct_rows(X: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the rows of X (n, d) that differ: by their bytes, many times faster than by numbers.

    Returns
    -------
    first : ndarray of shape (L,)
        Positions of the first of each, in an order that is that of what they hold.
    which : ndarray of shape (n,)
        Which of these each row is.
    """
    rows = np.ascontiguousarray(X, np.float64) + 0.0  # -0.0 is 0.0
    distinct = _distinct if rows.size <= _MOST_REMEMBERED else _distinct.__wrapped__
    return distinct(rows.tobytes(), rows.shape[1])


_MOST_REMEMBERED = 2**15  # numbers in a table: each evaluation of a kernel asks for its rows


@lru_cache(maxsize=128)
def _distinct(rows: bytes, n_columns: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    values = np.frombuffer(rows, np.dtype((np.void, 8 * n_columns)))
    _, first, which = np.unique(values, return_index=True, return_inverse=True)
    first, which = first.astype(np.int64), which.ravel().astype(np.int64)
    first.flags.writeable = which.flags.writeable = False
    return first, which


def _levels_of(X: Array) -> tuple[NDArray[np.int64], Array]:
    """Which of the distinct rows each row of X (n, d) is, and these (L, d), as they first come."""
    first, which = distinct_rows(X)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place[which], X[first[order]] + 0.0


# Kernels of some of the inputs.


@dataclass(frozen=True)
class OnColumns(Kernel):
    """A kernel that looks at chosen inputs only: see `on_columns`, which makes it.

    Attributes
    ----------
    kernel : Kernel
        Neither a sum nor a product.
    columns : tuple of int, range or str
        Positions of inputs; for `Categorical` a range is one input. Names are of columns of a
        table, whose inputs are not known yet: see `bind`.
    """

    kernel: Kernel
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel) or isinstance(self.kernel, (Composite, OnColumns)):
            raise UsageError(f"inputs are chosen for one kernel; got {self.kernel!r}")
        _check_columns(self.columns)

    @property
    def positions(self) -> tuple[int, ...]:
        """Of all inputs, in their order; a `UsageError` where there are names instead."""
        found: list[int] = []
        for each in self.columns:
            if isinstance(each, str):
                raise UsageError(
                    f"no input {each!r}: inputs have no names here, or the kernel was not told; "
                    "give their positions, from 0"
                )
            found.extend([each] if isinstance(each, int) else each)
        return tuple(found)

    @property
    def growth(self) -> int:
        """That of the kernel."""
        return self.kernel.growth

    @property
    def has_lengthscale(self) -> bool:
        """No: not all inputs have one."""
        return False

    def parameters(self) -> tuple[Parameter, ...]:
        """Those of the kernel, of its inputs."""
        own = self.positions
        return tuple(
            replace(
                parameter,
                inputs=tuple(
                    tuple(own[j] for j in group)
                    for group in parameter.inputs or ((j,) for j in range(len(own)))
                ),
            )
            for parameter in self.kernel.parameters()
        )

    def gram(self, theta: Array, X: Array, out: Array | None = None) -> Array:
        """All pairs of rows."""
        return self.kernel.gram(theta, self._seen(X), out)

    def cross_gram(self, theta: Array, X: Array, Z: Array) -> Array:
        """Rows of X against those of Z."""
        return self.kernel.cross_gram(theta, self._seen(X), self._seen(Z))

    def diagonal(self, theta: Array, X: Array) -> Array:
        """Variances of the rows."""
        return self.kernel.diagonal(theta, self._seen(X))

    def gradient(self, theta: Array, X: Array, K: Array, A: Array) -> Array:
        """That of the kernel."""
        return self.kernel.gradient(theta, self._seen(X), K, A)

    def _seen(self, X: Array) -> Array:
        return np.take(X, self.positions, axis=1)


def on_columns(kernel: Kernel, columns: Sequence[Column]) -> Kernel:
    """Let a kernel look at chosen inputs only; of a sum or product each part.

    Parameters
    ----------
    kernel : Kernel
    columns : sequence of int, range or str
        Positions from 0, or names of columns. A range is several columns that are one input where
        `Categorical` compares them, such as the levels of a category; else all of its positions.

    Examples
    --------
    >>> from mercer.kernels.stationary import SquaredExponentialARD
    >>> kernel = on_columns(SquaredExponentialARD(), [2, 0])
    >>> kernel.gram(np.zeros(3), np.array([[0.0, 9.0, 0.0], [1.0, 5.0, 0.0]])).round(3).tolist()
    [[1.0, 0.607], [0.607, 1.0]]
    """
    if isinstance(kernel, Composite):
        return type(kernel)(tuple(on_columns(each, columns) for each in kernel.kernels))
    _check_columns(tuple(columns))
    inner = kernel.kernel if isinstance(kernel, Isotropic) else kernel
    if isinstance(inner, OnColumns):
        raise UsageError("inputs were chosen already: one choice of inputs for each kernel")
    if not isinstance(inner, Categorical):
        flat = [[each] if isinstance(each, (int, str)) else list(each) for each in columns]
        return OnColumns(kernel, tuple(each for part in flat for each in part))
    found = tuple(
        each[0] if isinstance(each, range) and len(each) == 1 else each for each in columns
    )
    sizes = tuple(len(each) if isinstance(each, range) else 1 for each in found)
    own = replace(inner, sizes=sizes if max(sizes) > 1 else None)
    return OnColumns(Isotropic(own) if isinstance(kernel, Isotropic) else own, found)


def _check_columns(columns: Sequence[Column]) -> None:
    """Refuse what are no inputs, or the same twice."""
    if not columns:
        raise UsageError("no inputs are chosen; there must be one at least")
    seen: set[int | str] = set()
    for each in columns:
        is_plain = isinstance(each, (int, str)) and not isinstance(each, bool)
        if not (is_plain or isinstance(each, range)):
            raise UsageError(f"inputs are positions, ranges or names; got {each!r}")
        if isinstance(each, range) and (each.step != 1 or each.start >= each.stop):
            raise UsageError(f"a range of inputs goes up, by 1, and is not empty; got {each!r}")
        for one in each if isinstance(each, range) else (each,):
            if isinstance(one, int) and not 0 <= one < _MOST_INPUTS:
                raise UsageError(f"positions of inputs are from 0 to {_MOST_INPUTS - 1}; got {one}")
            if one in seen:
                raise UsageError(f"the input {one!r} is chosen twice")
            seen.add(one)


_MOST_INPUTS = 100_000


# From names to positions, and back.


def has_columns(kernel: Kernel) -> bool:
    """Whether a part of the kernel looks at chosen inputs only."""
    if isinstance(kernel, Composite):
        return any(has_columns(each) for each in kernel.kernels)
    return isinstance(kernel, OnColumns) or (
        isinstance(kernel, Isotropic) and has_columns(kernel.kernel)
    )


def bind(kernel: Kernel, labels: Sequence[str], sources: Sequence[str] = ()) -> Kernel:
    """Return the kernel with positions of inputs in the place of names.

    Parameters
    ----------
    kernel : Kernel
    labels : sequence of str, length d
        Names of the inputs.
    sources : sequence of str, length d, optional
        Names of the columns that they come from, where these are others.

    Raises
    ------
    UsageError
        If there is no such input, with the nearest name; or the levels of a column are not in its
        inputs.

    Examples
    --------
    >>> from mercer.kernels.names import read_kernel
    >>> labels = ["age", "city=Bonn", "city=Oslo", "city=Rome"]
    >>> in_names(bind(read_kernel("categorical[city]"), labels, ["age", *["city"] * 3]))
    'categorical[1:4]'
    """
    if isinstance(kernel, Composite):
        bound = tuple(bind(each, labels, sources) for each in kernel.kernels)
        same = all(a is b for a, b in zip(bound, kernel.kernels, strict=True))
        return kernel if same else type(kernel)(bound)
    if isinstance(kernel, Isotropic) and isinstance(kernel.kernel, OnColumns):
        chosen = kernel.kernel
        return bind(on_columns(Isotropic(chosen.kernel), chosen.columns), labels, sources)
    if not isinstance(kernel, OnColumns):
        return kernel
    inner = kernel.kernel.kernel if isinstance(kernel.kernel, Isotropic) else kernel.kernel
    columns: list[Column] = []
    for each in kernel.columns:
        if isinstance(each, str):
            columns += _named(each, labels, sources or labels, inner)
        else:
            last = each if isinstance(each, int) else each[-1]
            if last >= len(labels):
                raise UsageError(
                    f"no input at position {last}: there are {len(labels)}, counted from 0"
                )
            columns.append(each)
    return on_columns(kernel.kernel, columns)


def _named(
    name: str, labels: Sequence[str], sources: Sequence[str], kernel: Kernel
) -> list[Column]:
    """Find the inputs of a name: those of a column of the table, or a single one."""
    found = [j for j, source in enumerate(sources) if source == name]
    if not found:
        found = [j for j in range(len(labels)) if _label(j, labels, sources) == name]
    if not found:
        known = list(dict.fromkeys([*sources, *labels]))
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        shown = ", ".join(dict.fromkeys(sources[:_SHOWN]))
        more = ", .." if len(sources) > _SHOWN else ""
        raise UsageError(f"the kernel has no input {name!r}: {hint}there is: {shown}{more}")
    if not isinstance(kernel, Categorical):
        return list(found)
    if [labels[j] for j in found] == [f"{name} (frequency)"]:
        raise UsageError(
            f"{name!r} has so many levels that its input is their frequency, and levels that are "
            f"equally frequent would be one: it is a number, as in rbf[{name}], or left out, or "
            "named as a category (--categories, TableEncoder(categories=[..]))"
        )
    is_run = found == list(range(found[0], found[-1] + 1))
    if not is_run:
        return list(found)
    if kernel.is_each_level:  # beside the levels, whether the value was missing
        levels = [j for j in found if labels[j].startswith(f"{name}=")]
        others = [j for j in found if j not in levels]
        return [*([range(levels[0], levels[-1] + 1)] if levels else []), *others]
    return [range(found[0], found[-1] + 1)]


_SHOWN = 12


def _label(j: int, labels: Sequence[str], sources: Sequence[str]) -> str:
    """Name one input alone: "x (value)" where a column x has more of them, such as x (missing)."""
    is_shared = labels[j] == sources[j] and list(sources).count(sources[j]) > 1
    return f"{labels[j]} (value)" if is_shared else labels[j]


def categories_of(
    labels: Sequence[str], sources: Sequence[str]
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Find the columns of text, whose levels are inputs, with the positions of these."""
    found = []
    for name in dict.fromkeys(sources):
        own = [j for j, source in enumerate(sources) if source == name]
        if labels[own[0]].startswith(f"{name}="):
            found.append((name, tuple(own)))
    return tuple(found)


def in_names(kernel: Kernel, labels: Sequence[str] = (), sources: Sequence[str] = ()) -> str:
    """Write a kernel as an expression, with names in the place of positions where there are any.

    It is what `bind` is given, back: with the same labels and sources it leads to the same kernel.
    """
    from mercer.kernels.names import write_kernel  # which reads and writes kernels of this module

    return write_kernel(_with_names(kernel, labels, sources or labels) if labels else kernel)


def _with_names(kernel: Kernel, labels: Sequence[str], sources: Sequence[str]) -> Kernel:
    if isinstance(kernel, Composite):
        parts = tuple(_with_names(each, labels, sources) for each in kernel.kernels)
        return type(kernel)(parts)
    if not isinstance(kernel, OnColumns):
        return kernel
    names, rest = list[Column](), list(kernel.columns)
    while rest:
        name, n = _name_of(rest, labels, sources)
        names.append(rest[0] if name is None else name)
        del rest[:n]
    try:
        again = bind(OnColumns(kernel.kernel, tuple(names)), labels, sources)
    except UsageError:
        return kernel
    return OnColumns(kernel.kernel, tuple(names)) if again == kernel else kernel


def _name_of(
    columns: Sequence[Column], labels: Sequence[str], sources: Sequence[str]
) -> tuple[str | None, int]:
    """Name the first columns, as many as one name is of; None where a position stays."""
    first = columns[0]
    begin = first if isinstance(first, int) else first[0] if isinstance(first, range) else -1
    if begin < 0:
        return None, 1
    own, seen = [j for j, source in enumerate(sources) if source == sources[begin]], list[int]()
    for n, each in enumerate(columns, start=1):
        seen.extend(
            [each] if isinstance(each, int) else list(each) if isinstance(each, range) else []
        )
        if seen == own:
            return sources[begin], n
    return (_label(first, labels, sources) if isinstance(first, int) else None), 1
