"""Compiled loops of the stationary kernels: arrays and scalars in and out."""

from __future__ import annotations

from numba import njit

__all__ = ["exponent_from_products"]


@njit(cache=True, nogil=True)
def _exponent_row(row, z, s, log_scale):
    for j in range(row.shape[0]):
        row[j] = min(row[j] - s - z[j], 0.0) + log_scale


@njit(cache=True, nogil=True)
def exponent_from_products(S, s, z, log_scale):
    """Overwrite the inner products S_ij = x_i'z_j by log_scale - |x_i - z_j|^2 / 2.

    ``s`` and ``z`` are half the squared norms of the rows of x and z. The squared distance is not
    allowed to be negative by rounding.
    """
    for i in range(S.shape[0]):
        _exponent_row(S[i], z, s[i], log_scale)
