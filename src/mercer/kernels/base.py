"""What a covariance function can do; parameters are always on the log scale."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


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
        return sum(parameter.size(n_inputs) for parameter in self.parameters())

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

    def __add__(self, other: Kernel) -> Kernel:
        from mercer.kernels.algebra import Sum  # which is made of kernels

        return Sum((self, other)) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel) -> Kernel:
        from mercer.kernels.algebra import Product

        return Product((self, other)) if isinstance(other, Kernel) else NotImplemented


# What the kernels do with rows: scale them, take them in blocks, sum their squared differences.

_BLOCK_ENTRIES = 2**16  # half a megabyte: what one block of rows needs stays in the cache
_LARGEST_POWER = 200.0  # covariances stay below about 10^200 v0, so that their sums are finite


def scaled_rows(log_weights: Array, X: Array, reference: Array) -> Array:
    """Rows of X less the first of ``reference``, in units of the length scales."""
    return np.asarray((X - reference[:1]) * np.exp(0.5 * log_weights))


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
        yield slice(begin, begin + n_rows)


def half_scatter(H: Array, h: Array, X: Array) -> Array:
    """Sum over i, j of H_ij (x_il - x_jl)^2 / 2 for each l: shape (d,).

    H is symmetric and h its row sums: it is sum_i h_i x_il^2 - x_l'H x_l, and one product H X
    serves all l.
    """
    Xc = X - X[0]
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
