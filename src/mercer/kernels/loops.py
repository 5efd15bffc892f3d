# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops of the stationary kernels: arrays and scalars in and out.

Loops over rows of a matrix are functions of their own, so that their arrays are known to be apart.
"""

from __future__ import annotations

import numpy as np

from mercer.numerics.compilation import compiled

__all__ = ["exponent_from_products", "multiply_by_cosines", "slopes_of_cosines"]


_FAST = {"reassoc", "contract"}  # no promise about infinities or NaN


@compiled(nogil=True)
def _exponent_row(row, z, s, log_scale):
    for j in range(row.shape[0]):
        row[j] = min(row[j] - s - z[j], 0.0) + log_scale


@compiled(nogil=True)
def exponent_from_products(S, s, z, log_scale):
    """Overwrite the inner products S_ij = x_i'z_j by log_scale - |x_i - z_j|^2 / 2.

    ``s`` and ``z`` are half the squared norms of the rows of x and z. The squared distance is not
    allowed to be negative by rounding.
    """
    for i in range(S.shape[0]):
        _exponent_row(S[i], z, s[i], log_scale)


@compiled(nogil=True)
def _times_cosines(out, row, c, s, cosine, sine):
    for j in range(row.shape[0]):
        out[j] = row[j] * (c * cosine[j] + s * sine[j])


@compiled(nogil=True)
def multiply_by_cosines(K, cosine, sine, others_cosine, others_sine):
    """Multiply K_ij (n, m) by the product of cos(a_il - b_jl) over the inputs l.

    ``cosine`` and ``sine`` are those of the angles a, shape (n, d); ``others_cosine`` and
    ``others_sine`` of b, shape (d, m).
    """
    for i in range(K.shape[0]):
        for k in range(cosine.shape[1]):
            row = K[i]
            _times_cosines(row, row, cosine[i, k], sine[i, k], others_cosine[k], others_sine[k])


@compiled(nogil=True, fastmath=_FAST)
def _odd_sum(before, after, c, s, cosine, sine):
    total = 0.0
    for j in range(before.shape[0]):
        total += before[j] * after[j] * (s * cosine[j] - c * sine[j])
    return total


@compiled(nogil=True)
def slopes_of_cosines(G, turns, cosine, sine, others_cosine, others_sine, slopes):
    """Add to slopes_l the sum over i, j of G_ij turns_il sin(a_il - b_jl) times the other cosines.

    Arguments are as in `multiply_by_cosines`, with ``turns`` of shape (n, d) and ``slopes`` of
    shape (d,). No cosine is divided by: products before and after l are kept. G is overwritten.
    """
    n, d = cosine.shape
    after = np.empty((d, G.shape[1]))  # after[l]: G times the cosines behind l
    for i in range(n):
        before = G[i]
        after[d - 1] = before
        for k in range(d - 1, 0, -1):
            _times_cosines(
                after[k - 1], after[k], cosine[i, k], sine[i, k], others_cosine[k], others_sine[k]
            )
        before[:] = 1.0
        for k in range(d):
            c, s = cosine[i, k], sine[i, k]
            odd = _odd_sum(before, after[k], c, s, others_cosine[k], others_sine[k])
            slopes[k] += turns[i, k] * odd
            _times_cosines(before, before, c, s, others_cosine[k], others_sine[k])
