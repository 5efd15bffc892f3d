"""The nugget that is part of the exact model, and the factor of the Gram matrix that it allows.

Latent values have the prior N(0, K + j I) with j = 1e-8 times the mean of diag K: white noise of a
ten-thousandth of the function's standard deviation, which no label can show. The rounding of the
factor of a Gram matrix of rank one is about 1e-16 n times that mean, so that up to 5000 rows j is
four orders of magnitude above it; the factor's condition is at most 1e4 n^.5.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.numerics.cholesky import factorise

__all__ = ["NUGGET", "add_nugget", "lower_factor"]

Array = NDArray[np.float64]

NUGGET = 1e-8  # of the mean prior variance


def add_nugget(K: Array) -> float:
    """Add the nugget to the diagonal of the Gram matrix K (n, n), in place; return its variance."""
    nugget = NUGGET * float(K.diagonal().mean())
    K.flat[:: len(K) + 1] += nugget
    return nugget


def lower_factor(K: Array) -> Array:
    """Return the lower triangular L, with zeros above, of K = L L'; K is not changed.

    Raises
    ------
    NumericalError
        If K is not positive definite to working precision.
    """
    return np.tril(factorise(K.T.copy(order="F")))
