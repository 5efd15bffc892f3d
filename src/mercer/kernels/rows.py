"""What the kernels do with rows: scale them, take them in blocks, sum their squared differences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mercer.kernels.base import Array

__all__ = ["half_scatter", "row_blocks", "scaled_rows", "shortened_rows", "turned_rows"]

_BLOCK_ENTRIES = 2**16  # half a megabyte: what one block of rows needs stays in the cache
_LARGEST_POWER = 200.0  # covariances stay below about 10^200 v0, so that their sums are finite


def scaled_rows(log_weights: Array, X: Array, reference: Array) -> Array:
    """Rows of X less the first of ``reference``, in units of the length scales."""
    return np.asarray((X - reference[:1]) * np.exp(0.5 * log_weights))


def turned_rows(log_frequencies: Array, X: Array, reference: Array) -> tuple[Array, Array, Array]:
    """How often each input has turned since the first row of ``reference``.

    Returns
    -------
    turns, cosine, sine : ndarray of shape (n, d)
        Whole and broken turns, and the angle's cosine and sine. Whole turns are taken off
        before, exactly, so that an angle keeps its digits however many there are.
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
