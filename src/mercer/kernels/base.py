"""What a covariance function can do, and sums and products of them.

Parameters are always on the log scale.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.errors import UsageError

__all__ = [
    "MAX_LEAVES",
    "VARIANCE",
    "WEIGHTS",
    "Array",
    "Composite",
    "Isotropic",
    "Kernel",
    "Parameter",
    "Product",
    "Stationary",
    "Sum",
    "block_memory",
    "half_scatter",
    "row_blocks",
    "scaled_rows",
    "shared_name",
    "shortened_rows",
    "turned_rows",
]

Array = NDArray[np.float64]
#: Gives the scratch array (n, n) of a name, such as `mercer.numerics.cholesky.Workspace.take`.
Take = Callable[[str, int], Array]


@dataclass(frozen=True)
class Parameter:
    """One entry of theta, or one for each input."""

    name: str  # such as "log_weight", or "log_weight_2" where several leaves have one
    #: What it is, whatever its name, since priors go by kinds: "variance", "weight", "shape",
    #: "period" or "frequency".
    kind: str
    per_input: bool  # theta holds one for each input (several in a row), not a single one
    #: The inputs that the kernel looks at, those in one group that are one input in several
    #: columns, such as the levels of a category; None: all d columns, each an input.
    inputs: tuple[tuple[int, ...], ...] | None = None

    def n_seen(self, n_inputs: int) -> int:
        """How many inputs the kernel looks at, of rows with ``n_inputs`` columns."""
        return n_inputs if self.inputs is None else len(self.inputs)

    def size(self, n_inputs: int) -> int:
        """How many numbers of theta it is."""
        return self.n_seen(n_inputs) if self.per_input else 1

    def labels(self, names: Sequence[str]) -> tuple[str, ...]:
        """Name the entries of one per input by the columns that they are of."""
        if self.inputs is None:
            return tuple(names)
        return tuple(shared_name([names[j] for j in group]) for group in self.inputs)


def shared_name(names: Sequence[str]) -> str:
    """Name what several columns are of: of "city=Oslo" and "city=Rome" it is "city".

    Those that do not begin alike are named one after the other.
    """
    first = names[0]
    for end in (k for k, sign in enumerate(first) if sign == "="):
        stem = first[:end]
        if len(names) > 1 and all(name.startswith((f"{stem}=", f"{stem} (")) for name in names):
            return stem
    return ", ".join(names)


VARIANCE = Parameter("log_signal_variance", "variance", per_input=False)
WEIGHTS = Parameter("log_weight", "weight", per_input=True)


class Kernel(ABC):
    """A covariance function with unconstrained parameters theta of shape (p,).

    Implementations are frozen dataclasses without data: the same object serves any inputs.
    ``k1 + k2`` is a `Sum`, ``k1 * k2`` a `Product`; every other kernel is a leaf, and theta of a
    leaf begins with its log variance, by which all its covariances are multiplied.
    """

    @abstractmethod
    def parameters(self) -> tuple[Parameter, ...]:
        """Return what theta holds, in its order; no two have the same name."""

    @property
    def has_lengthscale(self) -> bool:
        """Whether theta is one log variance, then only log weights (inverse squared lengths)."""
        kinds = [parameter.kind for parameter in self.parameters()]
        return kinds == ["variance", "weight"]

    @property
    def growth(self) -> int:
        """Power of a row's squared length with which its variance grows; a constant does not."""
        return 0

    def n_parameters(self, n_inputs: int) -> int:
        """Length p of theta for inputs with ``n_inputs`` columns."""
        return _n_parameters(self, n_inputs)

    def alike(self, n_inputs: int) -> list[list[NDArray[np.int64]]]:
        """Groups of parts of theta, by their places, that can change places: C stays as it is."""
        return []

    def slices(self, n_inputs: int) -> dict[str, slice]:
        """Where in theta each parameter is, by name: a single number is a slice of length 1."""
        places, begin = {}, 0
        for parameter in self.parameters():
            end = begin + parameter.size(n_inputs)
            places[parameter.name] = slice(begin, end)
            begin = end
        return places

    @abstractmethod
    def gram(self, theta: Array, X: Array, out: Array | None = None) -> Array:
        """Covariances of all pairs of rows of X: symmetric, shape (n, n), C-ordered.

        ``out`` is overwritten and returned, where given.
        """

    @abstractmethod
    def cross_gram(self, theta: Array, X: Array, Z: Array) -> Array:
        """Covariances of the rows of X (n, d) with those of Z (m, d): shape (n, m)."""

    @abstractmethod
    def diagonal(self, theta: Array, X: Array) -> Array:
        """Variances of the rows of X: the diagonal of ``gram``, shape (n,)."""

    @abstractmethod
    def gradient(self, theta: Array, X: Array, K: Array, A: Array) -> Array:
        """Sum over i, j of A_ij dK_ij/dtheta_k for each k: shape (p,).

        K is ``gram(theta, X)`` and A a symmetric matrix of the same shape, which may be
        overwritten.
        """

    def gram_and_gradient(
        self, theta: Array, X: Array, out: Array, take: Take, name: str = ""
    ) -> tuple[Array, Callable[[Array], Array]]:
        """`gram` in ``out``, and `gradient` as a function of A alone.

        What both need stands in arrays that ``take`` gives, whose names begin with ``name``.
        """
        K = self.gram(theta, X, out)
        return K, lambda A: self.gradient(theta, X, K, A)

    def __add__(self, other: Kernel) -> Kernel:
        return Sum((self, other)) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel) -> Kernel:
        return Product((self, other)) if isinstance(other, Kernel) else NotImplemented


@lru_cache(maxsize=1024)  # asked for each term of a sum in every evaluation
def _n_parameters(kernel: Kernel, n_inputs: int) -> int:
    return sum(parameter.size(n_inputs) for parameter in kernel.parameters())


class Stationary(Kernel):
    """Base of kernels that depend on how two rows differ: all rows have the variance v0."""

    def diagonal(self, theta: Array, X: Array) -> Array:
        """The variance v0, the same for every row."""
        return np.full(len(X), np.exp(theta[0]))


# What the kernels do with rows: scale them, take them in blocks, sum their squared differences.

_BLOCK_ENTRIES = 2**16  # half a megabyte: what one block of rows needs stays in the cache
_LARGEST_POWER = 200.0  # covariances stay below about 10^200 v0, so that their sums are finite


def scaled_rows(log_weights: Array, X: Array, reference: Array) -> Array:
    """Rows of X less the `_middle` of ``reference``, in units of the length scales."""
    return np.asarray((X - _middle(reference)) * np.exp(0.5 * log_weights))


def _middle(X: Array) -> Array:
    """A value amid those of each input, (1, d): of three rows, one of which may be far away."""
    return X[:1] if len(X) < 3 else np.sort(X[[0, len(X) // 2, -1]], axis=0)[1:2]


def turned_rows(log_frequencies: Array, X: Array, reference: Array) -> tuple[Array, Array, Array]:
    """Turns of each input since the first row of ``reference``, their cosine and sine: (n, d) each.

    Whole turns are taken off before the angle is computed, exactly, so that it keeps its digits
    however many there are.
    """
    turns = (X - reference[:1]) * np.exp(log_frequencies)
    angles = 2.0 * np.pi * np.fmod(turns, 1.0)
    return turns, np.cos(angles), np.sin(angles)


def row_blocks(n: int, m: int) -> Iterator[slice]:
    """Ranges of rows of an (n, m) array, about `_BLOCK_ENTRIES` entries each."""
    n_rows = max(_BLOCK_ENTRIES // max(m, 1), 1)
    for begin in range(0, n, n_rows):
        yield slice(begin, min(begin + n_rows, n))


def block_memory(n: int, m: int) -> Array:
    """Memory of the first, largest, block of rows; `row_blocks` of one pass can share it."""
    return np.empty((next(row_blocks(n, m), slice(0)).stop, m))


def half_scatter(H: Array, h: Array, X: Array) -> Array:
    """Sum over i, j of H_ij (x_il - x_jl)^2 / 2 for each l: shape (d,).

    H is symmetric and h its row sums: it is sum_i h_i x_il^2 - x_l'H x_l, and one product H X
    serves all l.
    """
    Xc = X - _middle(X)
    return np.asarray(h @ (Xc * Xc) - np.einsum("il,il->l", Xc, H @ Xc))


def shortened_rows(X: Array, degree: int) -> Array:
    """Rows of X, none longer than sqrt(d) 10^(100 / degree); X itself if none is.

    Powers of x.x' / d up to ``degree`` are then finite, with room for sums over them.
    """
    longest = np.sqrt(X.shape[1]) * 10.0 ** (0.5 * _LARGEST_POWER / degree)
    norm = np.sqrt(np.einsum("ij,ij->i", X, X))
    if not (norm > longest).any():
        return X
    return np.asarray(X * (longest / np.maximum(norm, longest))[:, np.newaxis])


# Sums and products of kernels.

MAX_LEAVES = 40


@dataclass(frozen=True)
class Composite(Kernel):
    """Kernels side by side; theta is theirs, one after the other.

    A parameter whose name occurs in several leaves bears the number of its leaf, counted from 1 at
    the left: "log_weight_1", "log_weight_2". A name that occurs once stays bare. There are two
    kernels or more, of at most 40 leaves in all; a sum in a sum is dissolved, as is a product in a
    product.
    """

    kernels: tuple[Kernel, ...]
    _join: ClassVar[np.ufunc]

    def __post_init__(self) -> None:
        word = type(self).__name__.lower()
        flat: list[Kernel] = []
        for kernel in self.kernels:
            if not isinstance(kernel, Kernel):
                raise UsageError(f"a {word} is made of kernels; got {kernel!r}")
            if isinstance(kernel, Composite) and type(kernel) is type(self):
                flat.extend(kernel.kernels)
            else:
                flat.append(kernel)
        if len(flat) < 2:
            raise UsageError(f"a {word} needs at least two kernels; got {flat!r}")
        object.__setattr__(self, "kernels", tuple(flat))
        n_leaves = _n_leaves(self)
        if n_leaves > MAX_LEAVES:
            raise UsageError(f"a kernel has at most {MAX_LEAVES} leaves; this one has {n_leaves}")

    @abstractmethod
    def unit_variances(self) -> tuple[bool, ...]:
        """Which of the kernels are leaves with a variance of 1, which is not in theta."""

    @abstractmethod
    def _rows(self, X: Array) -> Array:
        """Rows as the kernels see them."""

    @abstractmethod
    def _adjoint(self, A: Array, grams: list[Array], i: int, out: Array) -> None:
        """Fill ``out`` with what A is to the i-th kernel, given all their Gram matrices."""

    def gram(self, theta: Array, X: Array, out: Array | None = None) -> Array:
        """All pairs of rows."""
        X = self._rows(X)
        (first, own), *others = self._parts(theta, X.shape[1])
        K = first.gram(own, X, out)
        for kernel, own in others:
            self._join(K, kernel.gram(own, X), out=K)
        return K

    def gradient(self, theta: Array, X: Array, K: Array, A: Array) -> Array:
        """The gradients of the kernels, one after the other."""
        fresh = self.gram_and_gradient(theta, X, np.empty_like(K), lambda _, n: np.empty((n, n)))
        return fresh[1](A)

    def gram_and_gradient(
        self, theta: Array, X: Array, out: Array, take: Take, name: str = ""
    ) -> tuple[Array, Callable[[Array], Array]]:
        """All pairs of rows, and the gradients, for which each kernel's own matrix is kept."""
        X, n = self._rows(X), len(X)
        parts = [
            kernel.gram_and_gradient(own, X, take(f"{name} {i}", n), take, f"{name} {i}")
            for i, (kernel, own) in enumerate(self._parts(theta, X.shape[1]))
        ]
        grams = [K for K, _ in parts]
        self._join(*grams[:2], out=out)
        for K in grams[2:]:
            self._join(out, K, out=out)

        def joined(A: Array) -> Array:
            found, own = [], take(f"{name} adjoint", n)
            for i, is_unit in enumerate(self.unit_variances()):
                self._adjoint(A, grams, i, own)
                found.append(parts[i][1](own)[int(is_unit) :])
            return np.concatenate(found)

        return out, joined

    def cross_gram(self, theta: Array, X: Array, Z: Array) -> Array:
        """Rows of X against those of Z."""
        X, Z = self._rows(X), self._rows(Z)
        (first, own), *others = self._parts(theta, X.shape[1])
        K = first.cross_gram(own, X, Z)
        for kernel, own in others:
            self._join(K, kernel.cross_gram(own, X, Z), out=K)
        return K

    def diagonal(self, theta: Array, X: Array) -> Array:
        """Sums or products of the variances."""
        X = self._rows(X)
        each = [kernel.diagonal(own, X) for kernel, own in self._parts(theta, X.shape[1])]
        return np.asarray(self._join.reduce(each, axis=0))

    def leaves(self) -> tuple[tuple[Parameter, ...], ...]:
        """What each leaf, from left to right, has in theta, under its own names."""
        found: list[tuple[Parameter, ...]] = []
        for kernel, is_unit in zip(self.kernels, self.unit_variances(), strict=True):
            if isinstance(kernel, Composite):
                found.extend(kernel.leaves())
            else:
                found.append(kernel.parameters()[1 if is_unit else 0 :])
        return tuple(found)

    def parameters(self) -> tuple[Parameter, ...]:
        """Those of the leaves, one leaf after the other."""
        leaves = self.leaves()
        uses = Counter(parameter.name for leaf in leaves for parameter in leaf)
        return tuple(
            replace(parameter, name=f"{parameter.name}_{number}")
            if uses[parameter.name] > 1
            else parameter
            for number, leaf in enumerate(leaves, start=1)
            for parameter in leaf
        )

    def alike(self, n_inputs: int) -> list[list[NDArray[np.int64]]]:
        """Those within the kernels, and equal kernels themselves."""
        found: list[list[NDArray[np.int64]]] = []
        equal: dict[Kernel, list[NDArray[np.int64]]] = {}
        begin = 0
        for kernel, is_unit in zip(self.kernels, self.unit_variances(), strict=True):
            found += [[begin + part for part in parts] for parts in kernel.alike(n_inputs)]
            end = begin + kernel.n_parameters(n_inputs) - is_unit
            equal.setdefault(kernel, []).append(np.arange(begin, end))
            begin = end
        for parts in equal.values():
            size = min(map(len, parts))  # in a product the first may have a variance, for all
            if size > 0:
                found.append([part[-size:] for part in parts])
        return found

    def _parts(self, theta: Array, d: int) -> Iterator[tuple[Kernel, Array]]:
        """Each kernel with its own theta."""
        begin = 0
        for kernel, is_unit in zip(self.kernels, self.unit_variances(), strict=True):
            end = begin + kernel.n_parameters(d) - is_unit
            own = theta[begin:end]
            yield kernel, np.concatenate(([0.0], own)) if is_unit else own
            begin = end


def _n_leaves(kernel: Kernel) -> int:
    return sum(map(_n_leaves, kernel.kernels)) if isinstance(kernel, Composite) else 1


@dataclass(frozen=True)
class Sum(Composite):
    """C = C_1 + C_2 + ..: a sum of independent functions, one of each kernel.

    Notes
    -----
    Section 4.2.4 of [1]_. A Gram matrix costs those of the kernels, a gradient memory for them.

    References
    ----------
    .. [1] Rasmussen & Williams, Gaussian Processes for Machine Learning, MIT Press 2006.

    Examples
    --------
    >>> from mercer.kernels.linear import Constant, Linear
    >>> [parameter.name for parameter in (Linear() + Constant()).parameters()]
    ['log_signal_variance_1', 'log_signal_variance_2']
    """

    _join = np.add

    @property
    def growth(self) -> int:
        """That of the term that grows most."""
        return max(term.growth for term in self.kernels)

    def _rows(self, X: Array) -> Array:
        return X

    def unit_variances(self) -> tuple[bool, ...]:
        """None: each kernel has its own variance."""
        return (False,) * len(self.kernels)

    def _adjoint(self, A: Array, grams: list[Array], i: int, out: Array) -> None:
        """The same for each."""
        np.copyto(out, A)


@dataclass(frozen=True)
class Product(Composite):
    """C = C_1 C_2 ..: similar rows are those that are similar to every kernel.

    A product of variances is one number, so theta has it once: leaves after the first have a
    variance of 1. Where a factor is a sum, its terms have their variances and no leaf beside it
    has one.

    Notes
    -----
    Section 4.2.4 of [1]_. A gradient costs memory for the Gram matrices of all factors. Where
    covariances of several factors grow with the length of a row, rows longer than
    sqrt(d) 10^(100 / degree) are shortened to that, ``degree`` being of all factors: see
    `Polynomial`.

    References
    ----------
    .. [1] Rasmussen & Williams, Gaussian Processes for Machine Learning, MIT Press 2006.

    Examples
    --------
    >>> from mercer.kernels.linear import Linear
    >>> from mercer.kernels.stationary import MaternARD
    >>> [parameter.name for parameter in (MaternARD(1.5) * Linear()).parameters()]
    ['log_signal_variance', 'log_weight']
    """

    _join = np.multiply

    @property
    def growth(self) -> int:
        """That of all factors together."""
        return sum(factor.growth for factor in self.kernels)

    def unit_variances(self) -> tuple[bool, ...]:
        """All leaves but the first factor, or all leaves where a factor is a sum."""
        has_sum = any(isinstance(kernel, Sum) for kernel in self.kernels)
        return tuple(
            (has_sum or i > 0) and not isinstance(kernel, Sum)
            for i, kernel in enumerate(self.kernels)
        )

    def _adjoint(self, A: Array, grams: list[Array], i: int, out: Array) -> None:
        """A times the Gram matrices of all others, entry by entry."""
        np.copyto(out, A)
        for K in grams[:i] + grams[i + 1 :]:
            out *= K

    def _rows(self, X: Array) -> Array:
        return shortened_rows(X, self.growth) if self.growth > 1 else X


# A kernel with one weight for all inputs.


@dataclass(frozen=True)
class Isotropic(Kernel):
    """The same kernel with w_1 = .. = w_d = w: theta has one log weight in the place of d.

    Other parameters, such as periods, stay one per input.

    Attributes
    ----------
    kernel : Kernel
        With one weight per input: not a sum, a product, or a kernel without weights.

    Notes
    -----
    d/dlog w is the sum of the derivatives with respect to all log w_l. Cost as of the kernel.
    """

    kernel: Kernel

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise UsageError(f"isotropic needs a kernel; got {self.kernel!r}")
        weights = [p for p in self.kernel.parameters() if p.kind == "weight"]
        if isinstance(self.kernel, (Sum, Product)) or not weights or not weights[0].per_input:
            raise UsageError(
                "isotropic needs a single kernel with one weight per input, neither a sum nor a "
                f"product; got {self.kernel!r}"
            )

    @property
    def has_lengthscale(self) -> bool:
        """Whether the kernel's weights are inverse squared lengths, and all that it has."""
        return self.kernel.has_lengthscale

    def parameters(self) -> tuple[Parameter, ...]:
        """Those of the kernel, of which the weight is no longer one per input."""
        return tuple(
            replace(parameter, per_input=False) if parameter.kind == "weight" else parameter
            for parameter in self.kernel.parameters()
        )

    def gram(self, theta: Array, X: Array, out: Array | None = None) -> Array:
        """All pairs of rows."""
        return self.kernel.gram(self._repeated(theta, X), X, out)

    def cross_gram(self, theta: Array, X: Array, Z: Array) -> Array:
        """Rows of X against those of Z."""
        return self.kernel.cross_gram(self._repeated(theta, X), X, Z)

    def diagonal(self, theta: Array, X: Array) -> Array:
        """Variances of the rows."""
        return self.kernel.diagonal(self._repeated(theta, X), X)

    def gradient(self, theta: Array, X: Array, K: Array, A: Array) -> Array:
        """Derivatives with respect to the weights are summed."""
        gradient = self.kernel.gradient(self._repeated(theta, X), X, K, A)
        weights = self._weights(X)
        total = [gradient[weights].sum()]
        return np.concatenate((gradient[: weights.start], total, gradient[weights.stop :]))

    def _weights(self, X: Array) -> slice:
        """Where the kernel's own theta has its weights."""
        (name,) = (p.name for p in self.kernel.parameters() if p.kind == "weight")
        return self.kernel.slices(X.shape[1])[name]

    def _repeated(self, theta: Array, X: Array) -> Array:
        """Theta of the kernel."""
        place = self._weights(X)
        weights = np.repeat(theta[place.start], place.stop - place.start)
        return np.concatenate((theta[: place.start], weights, theta[place.start + 1 :]))
