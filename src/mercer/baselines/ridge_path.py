"""Ridge regression on random features, from the normal equations of blocks of rows.

    minimise over b0, b:   sum_i (y_i - b0 - phi(x_i)'b)^2 + penalty |b|^2

The intercept b0 is not penalised. With F = [1, Phi] the products F'F and F'y are all that is kept
of the rows: memory does not grow with their number, and every penalty costs one factorisation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from mercer.errors import NumericalError
from mercer.features.products import FeatureProducts, fill_features
from mercer.numerics.cholesky import factorise

__all__ = [
    "NormalEquations",
    "blocks_of",
    "fitted_values",
    "normal_equations",
    "ridge",
    "ridge_path",
]

Array = NDArray[np.float64]

# 8 megabytes of doubles in the features of a block of rows.
_BLOCK_ENTRIES = 2**20


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """F'F of shape (p, p) and F'y of shape (p,); sums and differences are those of rows."""

    gram: Array
    moments: Array

    def __add__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(self.gram + other.gram, self.moments + other.moments)

    def __sub__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(self.gram - other.gram, self.moments - other.moments)


def normal_equations(frequencies: Array, blocks: Iterable[tuple[Array, Array]]) -> NormalEquations:
    """Sum over blocks of rows.

    Parameters
    ----------
    frequencies : ndarray of shape (F, d)
    blocks : iterable of (Z, y)
        Rows (b, d) and targets (b,).

    Returns
    -------
    NormalEquations
        Of order p = 1 + 2 F: the intercept, then cosine and sine of each frequency.
    """
    products, corner = FeatureProducts(frequencies, None, 2), np.zeros(2)
    for Z, y in blocks:
        products.add(Z, np.vstack([np.ones(len(y)), y]))
        corner += len(y), y.sum()
    sums = products.total()
    p = 1 + len(sums.among)
    gram = np.empty((p, p))
    gram[0, 0], gram[1:, 1:] = corner[0], sums.among
    gram[0, 1:] = gram[1:, 0] = sums.across[:, 0]
    return NormalEquations(gram, np.append(corner[1], sums.across[:, 1]))


def fitted_values(frequencies: Array, coef: Array, Z: Array) -> Array:
    """Evaluate b0 + phi(x)'b: shape (n,), or (n, k) for coefficients of shape (p, k)."""
    values = np.empty((len(Z), *coef.shape[1:]))
    for rows in blocks_of(len(Z), len(coef)):
        Phi = np.empty((2 * len(frequencies), rows.stop - rows.start))
        fill_features(frequencies, Z[rows], Phi)
        values[rows] = coef[0] + Phi.T @ coef[1:]
    return values


def blocks_of(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Consecutive rows that are computed with together."""
    step = max(_BLOCK_ENTRIES // n_columns, 1)
    for begin in range(0, n_rows, step):
        yield slice(begin, min(begin + step, n_rows))


def ridge(equations: NormalEquations, penalty: float) -> Array:
    """Solve for (b0, b): shape (p,).

    Raises
    ------
    NumericalError
        If the penalty is so small that the matrix is singular to working precision.
    """
    A = np.array(equations.gram, order="F")
    A[np.diag_indices(len(A))] += penalty
    A[0, 0] = equations.gram[0, 0]
    return np.asarray(cho_solve((factorise(A), True), equations.moments, check_finite=False))


def ridge_path(equations: NormalEquations, penalties: Sequence[float]) -> Array:
    """Solve for every penalty: shape (p, n_penalties), nan where the matrix is singular."""
    coef = np.full((len(equations.moments), len(penalties)), np.nan)
    for k, penalty in enumerate(penalties):
        try:
            coef[:, k] = ridge(equations, penalty)
        except NumericalError:
            continue
    return coef
