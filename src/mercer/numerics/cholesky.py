"""Cholesky factors and what is computed from them: the only home of factorisations and jitter.

Jitter is part of the model where covariances are factorised alone (`add_nugget`); no eigenvalue of
I + W^.5 K W^.5 is below one, and those of a regressor's K + s2 I have a floor.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack
from threadpoolctl import ThreadpoolController

from mercer.errors import NumericalError

# Large arrays that one evaluation after the other overwrites.
#
# A fresh array of megabytes costs a page fault every four kilobytes, which is a fifth of the time
# of a gradient at 500 rows. Nothing that is returned to a caller may live here.


class Workspace:
    """Named scratch arrays, one set a thread; pickled and copied empty."""

    def __init__(self) -> None:
        self._local = threading.local()

    def take(self, name: str, n: int) -> NDArray[np.float64]:
        """Return the C-ordered (n, n) array of that name; what it holds has no meaning."""
        return self._take(name, (n, n))

    def take_stack(self, name: str, count: int, n: int) -> NDArray[np.float64]:
        """Return the C-ordered (count, n, n) array of that name, likewise."""
        return self._take(name, (count, n, n))

    def _take(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
        arrays: dict[str, NDArray[np.float64]] = self._local.__dict__
        if name not in arrays or arrays[name].shape != shape:
            arrays[name] = np.zeros(shape)  # numbers even where only a triangle is filled
        return arrays[name]

    def __reduce__(self) -> Any:
        return Workspace, ()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Give BLAS one thread, so that the bits do not depend on the machine's load.

    The libraries are looked up once a process: a look-up takes six milliseconds.
    """
    return _controller().limit(limits=1, user_api="blas")  # type: ignore[no-any-return]


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


_MOST_KEPT = 2**30  # bytes of the arrays that one `FactorMemory` keeps


class FactorMemory:
    """Factors kept from one prediction to the next, if all fit; pickled and copied empty."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[NDArray[np.float64], ...]] = {}

    def get(
        self, i: int, count: int, compute: Callable[[], tuple[NDArray[np.float64], ...]]
    ) -> tuple[NDArray[np.float64], ...]:
        """Return the arrays of number ``i`` of ``count``, computed where they are not kept."""
        arrays = self._kept.get(i)
        if arrays is None:
            arrays = compute()
            if count * sum(each.nbytes for each in arrays) <= _MOST_KEPT:
                arrays = tuple(each.copy(order="K") for each in arrays)
                self._kept[i] = arrays
        return arrays

    def __reduce__(self) -> Any:
        return FactorMemory, ()


NUGGET = 1e-8  # of the mean prior variance


def add_nugget(K: NDArray[np.float64]) -> float:
    """Add the nugget to the diagonal of the Gram matrix K (n, n), in place; return its variance."""
    nugget = NUGGET * float(K.diagonal().mean())
    K.flat[:: len(K) + 1] += nugget
    return nugget


# Below this size one LAPACK call inverts a triangle fastest; above, two halves and two products.
_LEAF = 64


def factorise(B: NDArray[np.float64]) -> NDArray[np.float64]:
    """Factorise B = L L' in place; a `NumericalError` if B is not positive definite.

    B is symmetric and Fortran-ordered; only its lower triangle is read. What stands above the
    diagonal of L has no meaning.
    """
    L, info = lapack.dpotrf(B, lower=1, clean=0, overwrite_a=1)
    if info != 0:
        raise NumericalError(f"matrix of order {len(B)} is not positive definite (pivot {info})")
    return np.asarray(L)


# Of the largest variance, added to covariances so that most have a factor: far below a curve.
_BLUR = 1e-6


def covariance_root(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return R with R R' the covariance (m, m), but for what is rounding in it; it may change."""
    covariance.flat[:: len(covariance) + 1] += _BLUR * max(float(covariance.diagonal().max()), 0.0)
    try:
        return np.tril(factorise(np.array(covariance, order="F")))
    except NumericalError:  # far smaller than the prior it came from: rounding made it indefinite
        values, vectors = np.linalg.eigh(covariance)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def invert_triangle(L: NDArray[np.float64]) -> None:
    """Overwrite the lower triangle of L, Fortran-ordered, by that of L^-1.

    [[A, 0], [-C L21 A, C]], halves first.
    """
    n = len(L)
    if n <= _LEAF:
        L[:] = lapack.dtrtri(L, lower=1)[0]
        return
    h = n // 2
    upper, lower = L[:h, :h], L[h:, h:]
    invert_triangle(upper)
    invert_triangle(lower)
    corner = blas.dtrmm(-1.0, lower, L[h:, :h], lower=1)
    L[h:, :h] = blas.dtrmm(1.0, upper, corner, side=1, lower=1, overwrite_b=1)


def invert_lower(L: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return L^-1, Fortran-ordered, with zeros above the diagonal; L is not changed."""
    inverse = np.asfortranarray(np.tril(L))
    invert_triangle(inverse)
    return inverse


def invert_factored(L: NDArray[np.float64]) -> NDArray[np.float64]:
    """Overwrite the lower triangle of L by that of B^-1, where B = L L'; L is Fortran-ordered.

    Cost O(2 n^3 / 3) flops, nearly all in matrix products, which is up to a third less time than
    LAPACK's ``dpotri`` below a thousand rows.
    """
    invert_triangle(L)
    inverse, info = lapack.dlauum(L, lower=1, overwrite_c=1)
    if info != 0:
        raise NumericalError(f"the inverse of a matrix of order {len(L)} failed ({info})")
    return np.asarray(inverse)


def multiply_lower(L: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return L b for columns (n, m), Fortran-ordered; L is lower triangular.

    With L the inverse of a factor this takes half the time of `solve_lower`.
    """
    if b.shape[1] == 1:  # so that half of L is read
        return np.asarray(blas.dtrmv(L, b[:, 0], lower=1))[:, np.newaxis]
    return np.asarray(blas.dtrmm(1.0, L, b, lower=1))


def solve_by_inverse(inverse: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve L L' x = b for a vector, given L^-1."""
    half = blas.dtrmv(inverse, b, lower=1)
    return np.asarray(blas.dtrmv(inverse, half, lower=1, trans=1, overwrite_x=1))


def solve_lower(L: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve L x = b for one or several right-hand sides."""
    x, info = lapack.dtrtrs(L, b, lower=1)
    if info != 0:
        raise NumericalError(f"triangular solve of order {len(L)} failed ({info})")
    return np.asarray(x)


def solve_factored(L: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve B x = b for a vector, where B = L L'."""
    x, info = lapack.dpotrs(L, b, lower=1)
    if info != 0:
        raise NumericalError(f"solve of order {len(L)} failed ({info})")
    return np.asarray(x)


def solve_positive(B: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve B x = b for a symmetric positive definite B; neither is changed."""
    _, x, info = lapack.dposv(B, b, lower=1)
    if info != 0:
        raise NumericalError(f"matrix of order {len(B)} is not positive definite (pivot {info})")
    return np.asarray(x)


def symmetric_product(lower: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multiply a symmetric matrix, given by its lower triangle (Fortran-ordered), by a vector."""
    return np.asarray(blas.dsymv(1.0, lower, x, lower=1))
