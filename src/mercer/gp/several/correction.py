"""How far to go from the mode towards the mean, for several classes.

As in `mercer.gp.binary.correction`: the length of the step K q maximises, between 0 and 1, the
variational lower bound over Gaussians N(f + t K q, V), V Laplace's covariance. It is concave in t;
derivative

    sum_ci (Y - E pi)_ci (K q)_ci - q'K(a + t q),

the softmax pi averaged over the C x C covariance of each row by 64 points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from mercer.gp.several.expectation import softmax_average

__all__ = ["damped_correction"]

Array = NDArray[np.float64]

_N_NORMALS = 64
_PRECISION = 2.0**-10  # to which the length is known


def damped_correction(
    Y: Array, f: Array, covariance: Array, a: Array, q: Array, K_q: Array
) -> Array:
    """Return t q with t in [0, 1] the best length of the step.

    All arrays are of shape (C, n), but for the ``covariance`` of every row, (n, C, C).
    """
    linear, quadratic = float(np.sum(K_q * a)), float(np.sum(K_q * q))
    average = softmax_average(covariance, _N_NORMALS)

    def slope(t: float) -> float:
        proba = average((f + t * K_q).T).T
        return float(np.sum((Y - proba) * K_q)) - linear - t * quadratic

    if slope(1.0) >= 0.0:
        return q
    if slope(0.0) <= 0.0:
        return np.zeros_like(q)
    return float(brentq(slope, 0.0, 1.0, xtol=_PRECISION)) * q
