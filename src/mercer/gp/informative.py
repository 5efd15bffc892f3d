"""Rows chosen by what they tell where there are too many for matrices of n x n numbers.

A row i, seen with precision w_i, lowers the variance of the function at a row j by
c_ij^2 / (v_i + 1/w_i), with c the covariance and v the variance given the rows taken before. Rows
are taken greedily: of a few at random, the one that lowers the variances of rows picked at random
most (Cohn, 1996; the paper speaks of "query selection"). Neither c nor w depends on the target of
a row that is not taken yet, so the posterior given the chosen rows is not biased by the choice.

**Cost.** For k of n rows O(n k^2) and n k numbers: one step of a pivoted Cholesky factor a row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer.kernels.base import Kernel

__all__ = ["informative_rows"]

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

_TINY = 1e-300
_REFERENCES = 500


def informative_rows(
    kernel: Kernel,
    theta: Array,
    X: Array,
    precision: Array,
    first: Rows,
    count: int,
    rng: np.random.Generator,
    n_candidates: int = 60,
) -> Rows:
    """Choose ``count`` rows beyond ``first``, which are known already.

    Parameters
    ----------
    kernel : Kernel
    theta : ndarray of shape (p,)
    X : ndarray of shape (n, d)
        All rows, standardised.
    precision : ndarray of shape (n,)
        Of a target as an observation of the function: 1/s2, or pi (1 - pi) of a class. It also
        weighs how much the variance at a row matters.
    first : ndarray of shape (k,), int
    count : int
        At most n - k.
    rng : numpy.random.Generator
    n_candidates : int, default=60
        Rows that are compared for each that is taken.

    Returns
    -------
    ndarray of shape (count,), int
        In the order in which they were chosen.
    """
    explained = np.empty((len(first) + count, len(X)))
    variance = kernel.diagonal(theta, X).copy()
    noise = 1.0 / np.maximum(precision, _TINY)
    is_open = np.ones(len(X), dtype=bool)
    is_open[first] = False
    references = rng.choice(len(X), min(len(X), _REFERENCES), replace=False)
    chosen = np.concatenate([first, np.zeros(count, dtype=np.int64)])
    with threadpool_limits(limits=1, user_api="blas"):
        for k in range(len(explained)):
            if k >= len(first):
                left = np.flatnonzero(is_open)
                rows = rng.choice(left, min(len(left), n_candidates), replace=False)
                covariance = kernel.cross_gram(theta, X[rows], X[references])
                covariance -= explained[:k, rows].T @ explained[:k, references]
                gain = (covariance**2 @ precision[references]) / (variance[rows] + noise[rows])
                chosen[k] = rows[np.argmax(gain)]
            row = chosen[k]
            own = kernel.cross_gram(theta, X, X[row : row + 1])[:, 0]
            own -= explained[:k, row] @ explained[:k]
            explained[k] = own / np.sqrt(variance[row] + noise[row])
            variance = np.maximum(variance - explained[k] ** 2, 0.0)
            is_open[row] = False
    return chosen[len(first) :]
