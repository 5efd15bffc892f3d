"""Sums of products over a few rows, each matrix passed once for all of them."""

from __future__ import annotations

from scipy.linalg import blas

from mercer.basis.arrays import Array

__all__ = ["add_rows"]


def add_rows(gram: Array, moment: Array, rows: Array, y: Array) -> None:
    """Add products of rows with each other and with their targets, in place.

    Parameters
    ----------
    gram : ndarray of shape (L, C, C)
        Symmetric.
    moment : ndarray of shape (L, C)
    rows : ndarray of shape (n, L, C)
    y : ndarray of shape (n,)
    """
    for level in range(len(gram)):
        K = rows[:, level].T
        # A symmetric matrix is its transpose, which is laid out as BLAS wants it.
        blas.dgemm(1.0, K, K, 1.0, gram[level].T, trans_b=1, overwrite_c=1)
        moment[level] += K @ y
