"""The covariance of the latent values of all classes at one row, training or new."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.gp.several.laplace import Curvature
from mercer.numerics.cholesky import solve_lower

__all__ = ["latent_covariance"]

Array = NDArray[np.float64]


def latent_covariance(factors: Curvature, cross: Array, prior_variance: Array) -> Array:
    """Covariance of f at m rows under Laplace's approximation.

    Parameters
    ----------
    factors : Curvature
        Of the training rows, at the mode.
    cross : ndarray of shape (C, m, n) or (1, m, n)
        Covariances of these rows with the training rows, by the kernel of each class.
    prior_variance : ndarray of shape (C, m) or (1, m)

    Returns
    -------
    ndarray of shape (m, C, C)

    Notes
    -----
    With k_c the covariances of a row: delta_cc' (k_c** - k_c'E_c k_c) + (V_c k_c)'(V_c' k_c'),
    V_c = M^-1 E_c. Cost O(C n^2 m); memory C n m numbers.
    """
    n_classes, n = factors.roots.shape
    m = cross.shape[1]
    shared, covariance = np.empty((n_classes, n, m)), np.zeros((m, n_classes, n_classes))
    for c in range(n_classes):
        weighted = factors.roots[c][:, np.newaxis] * cross[c % len(cross)].T
        solved = factors.inverses[c] @ weighted
        own = prior_variance[c % len(cross)] - np.einsum("ij,ij->j", weighted, solved)
        covariance[:, c, c] = np.maximum(own, 0.0)
        shared[c] = solve_lower(factors.M, factors.roots[c][:, np.newaxis] * solved)
        for b in range(c + 1):
            product = np.einsum("ij,ij->j", shared[b], shared[c])
            covariance[:, b, c] += product
            if b < c:
                covariance[:, c, b] = product
    return covariance
