"""Compiled loops of the stationary kernels: arrays and scalars in and out."""

from __future__ import annotations

from numba import njit

__all__ = ["exponent_from_products"]


@njit(cache=True, nogil=True)
def exponent_from_products(S, s, z, log_scale):
    """Overwrite the inner products S_ij = x_i'z_j by log_scale - |x_i - z_j|^2 / 2.

    ``s`` and ``z`` are half the squared norms of the rows of x and z. The squared distance is not
    allowed to be negative by rounding.
    """
    for i in range(S.shape[0]):
        for j in range(S.shape[1]):
            S[i, j] = min(S[i, j] - s[i] - z[j], 0.0) + log_scale
