"""Cross-validation of the common length scale and the ridge penalty, on the same folds for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from mercer.baselines.ridge_path import fitted_values, normal_equations, ridge_path
from mercer.errors import NumericalError

__all__ = ["Selection", "cross_validate"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Selection:
    """The best of a grid.

    Attributes
    ----------
    errors : ndarray of shape (n_factors, n_penalties)
        Mean squared errors of the rows held out, in units of ``y``; inf where the matrix was
        singular.
    factor, penalty : float
        The pair of the smallest error.
    """

    errors: Array
    factor: float
    penalty: float


def cross_validate(
    frequencies: Callable[[float], Array],
    Z: Array,
    y: Array,
    factors: Sequence[float],
    penalties: Sequence[float],
    n_folds: int,
    seed: int,
) -> Selection:
    """Choose a length scale factor and a penalty by K-fold cross-validation.

    Parameters
    ----------
    frequencies : callable
        Frequencies (F, d) for a length scale factor.
    Z : ndarray of shape (n, d)
    y : ndarray of shape (n,)
    factors, penalties : sequence of float
    n_folds : int
        At most n are made.
    seed : int
        Of the folds.

    Returns
    -------
    Selection

    Raises
    ------
    NumericalError
        If every matrix of the grid is singular to working precision.

    Notes
    -----
    For each factor the products of every fold are computed once, and those of the other folds are
    a difference from their sum. Cost O(n F^2 + n_folds n_penalties F^3) for each factor.
    """
    folds = KFold(min(n_folds, len(y)), shuffle=True, random_state=seed)
    parts = [held_out for _, held_out in folds.split(Z)]
    errors = np.array([_errors(frequencies(factor), Z, y, parts, penalties) for factor in factors])
    errors[~np.isfinite(errors)] = np.inf
    i, k = divmod(int(np.argmin(errors)), len(penalties))
    if not np.isfinite(errors[i, k]):
        raise NumericalError("ridge regression is singular at every penalty; give larger ones")
    return Selection(errors, float(factors[i]), float(penalties[k]))


def _errors(
    W: Array,
    Z: Array,
    y: Array,
    parts: Sequence[NDArray[np.int64]],
    penalties: Sequence[float],
) -> Array:
    """Mean squared errors of the held-out rows, one for each penalty."""
    equations = [normal_equations(W, [(Z[rows], y[rows])]) for rows in parts]
    total = equations[0]
    for part in equations[1:]:
        total = total + part
    squares = np.zeros(len(penalties))
    for rows, part in zip(parts, equations, strict=True):
        coef = ridge_path(total - part, penalties)
        squares += ((y[rows, np.newaxis] - fitted_values(W, coef, Z[rows])) ** 2).sum(axis=0)
    return squares / len(y)
