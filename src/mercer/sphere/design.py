"""Rows of the feature space: from a Gram matrix, or as they are.

With G = L L', L of shape (n, r), a classifier w = sum_i alpha_i phi(x_i) has the coordinates
g = L' alpha, and f = L g. The null space of G is dropped: r is the rank of G.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.errors import DataError

__all__ = ["Design", "Spectrum", "design_from_features", "spectrum_of"]

Array = NDArray[np.float64]

# Eigenvalues below this share of the largest are rounding errors of the Gram matrix; so are rows
# of the feature space below it, which are zero then.
_NULL = 1e-10
# A negative eigenvalue beyond this share of the largest is no rounding error.
_INDEFINITE = 1e-8


@dataclass(frozen=True)
class Design:
    """Rows of the feature space and the way back to expansion coefficients.

    Attributes
    ----------
    L : ndarray of shape (n, r)
        f = L g.
    dual : ndarray of shape (n, r) or None
        alpha = dual g, so that f(x) = k(x, X) alpha; None where the features are at hand.
    """

    L: Array
    dual: Array | None


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues and eigenvectors of a Gram matrix, for any nugget on its diagonal."""

    eigenvalues: Array
    vectors: Array

    def design(self, nugget: float = 0.0) -> Design:
        """Rows of the feature space of G + nugget I; cost O(n r)."""
        values = self.eigenvalues + nugget
        is_kept = values > _NULL * values.max()
        root, V = np.sqrt(values[is_kept]), self.vectors[:, is_kept]
        longest = np.abs(V * root).max(axis=1, keepdims=True, initial=0.0)
        V = V * (longest > _NULL * root.max(initial=0.0))
        return Design(np.ascontiguousarray(V * root), np.ascontiguousarray(V / root))


def spectrum_of(G: Array) -> Spectrum:
    """Decompose a symmetric positive semi-definite Gram matrix; cost O(n^3).

    Raises
    ------
    DataError
        If it is indefinite, naming the eigenvalue.
    """
    values, vectors = np.linalg.eigh(0.5 * (G + G.T))
    largest = max(float(values[-1]), 0.0)
    if values[0] < -_INDEFINITE * max(largest, np.finfo(float).tiny):
        raise DataError(
            f"the Gram matrix is indefinite: its smallest eigenvalue is {values[0]:.3g}, its "
            f"largest {values[-1]:.3g}; a kernel must be positive semi-definite"
        )
    # In descending order: the first coordinates are the principal components of the kernel.
    return Spectrum(np.maximum(values[::-1], 0.0), np.ascontiguousarray(vectors[:, ::-1]))


def design_from_features(Phi: Array) -> Design:
    """Take finite features of shape (n, r) as they are."""
    return Design(np.ascontiguousarray(Phi, dtype=np.float64), None)
