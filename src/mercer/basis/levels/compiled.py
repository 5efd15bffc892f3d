"""Compiled kernels of distances at several length scales."""

from __future__ import annotations

import math

from mercer.numerics.compilation import compiled

__all__ = ["kernel_levels", "squared_distances", "sums_of_squarings"]

_FAST = {"contract", "reassoc", "nsz"}


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def squared_distances(x, Z, n, scalings, distances):
    """Write the squared distances of x to the first n rows of Z for each scaling: (A, n)."""
    for a in range(len(scalings)):
        for c in range(n):
            total = 0.0
            for j in range(len(x)):
                e = (x[j] - Z[c, j]) * scalings[a, j]
                total += e * e
            distances[a, c] = total


@compiled(nogil=True, error_model="numpy")
def _kernel(distance, lengthscale, kind):
    """Value at a squared distance; kinds are those of `mercer.basis.levels.levels.KINDS`."""
    if kind == 0:
        return math.exp(-0.5 * distance / (lengthscale * lengthscale))
    r = math.sqrt(distance) / lengthscale
    if kind == 1:
        return math.exp(-r)
    if kind == 2:
        r *= math.sqrt(3.0)
        return (1.0 + r) * math.exp(-r)
    r *= math.sqrt(5.0)
    return (1.0 + r + r * r / 3.0) * math.exp(-r)


@compiled(nogil=True, error_model="numpy")
def kernel_levels(distances, n, lengthscales, kind, is_halving, first, rows):
    """Write the kernel of n squared distances for each scaling and length scale.

    Parameters
    ----------
    distances : ndarray of shape (A, n) or more columns
    n : int
    lengthscales : ndarray of shape (W,)
        Falling.
    kind : int
    is_halving : bool
        The squares of the length scales are each half of the one before: then each value of the
        squared exponential is the square of the one before, and only the first is an exponential.
    first : int
        The first column of ``rows`` that is written.
    rows : ndarray of shape (A * W, first + n) or more columns
    """
    n_widths = len(lengthscales)
    for a in range(len(distances)):
        top = a * n_widths
        for c in range(n):
            rows[top, first + c] = _kernel(distances[a, c], lengthscales[0], kind)
        for j in range(1, n_widths):
            if is_halving:
                for c in range(n):
                    value = rows[top + j - 1, first + c]
                    rows[top + j, first + c] = value * value
            else:
                for c in range(n):
                    rows[top + j, first + c] = _kernel(distances[a, c], lengthscales[j], kind)


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def sums_of_squarings(K, features, sums):
    """Add features'K, then those of K squared element by element, and so on: one pass over K.

    Parameters
    ----------
    K : ndarray of shape (n, r)
        Kernel at the widest length scale. Used up.
    features : ndarray of shape (W, n)
        What each power is multiplied with.
    sums : ndarray of shape (W, r)
        Changed.
    """
    for s in range(len(K)):
        row = K[s]
        for j in range(len(features)):
            feature, out = features[j, s], sums[j]
            for c in range(len(row)):
                value = row[c]
                out[c] += feature * value
                row[c] = value * value
