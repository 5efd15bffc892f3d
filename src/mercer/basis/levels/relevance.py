"""Scalings of the inputs to choose among: from all alike to what a Gaussian process finds relevant.

A Gaussian process with a weight for each input is fitted to the first rows, at the maximum of its
posterior; between the weights all alike and its weights lie further scalings, evenly on the log
scale. Particles carry one of them, as they carry a length scale.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import pdist

from mercer.basis.arrays import Array
from mercer.errors import NumericalError
from mercer.kernels.squared_exponential import SquaredExponentialARD
from mercer.numerics.cholesky import factorise, invert_factored

__all__ = ["relevance_scalings"]

# Log weights and log variances are normal around their start, with this standard deviation.
_SPREAD = 2.0
_FIRST_NOISE = 0.1
_MOST_ROWS = 300
_MOST_STEPS = 60


def relevance_scalings(Z: Array, y: Array, n_scalings: int) -> Array:
    """Return scalings of shape (n_scalings, d), the first all ones.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Standardised rows; at most 300 are used.
    y : ndarray of shape (n,)
        Standardised targets.
    n_scalings : int
        With 1, or with one input, only that first one.
    """
    d = Z.shape[1]
    equal = np.ones((1, d))
    if n_scalings == 1 or d == 1 or len(Z) < 3:
        return equal
    Z, y = Z[:_MOST_ROWS], y[:_MOST_ROWS]
    log_scaling = 0.5 * _log_weights(Z, y)
    typical = np.median(pdist(Z))
    result = []
    for share in np.linspace(0.0, 1.0, n_scalings):
        scaling = np.exp(share * (log_scaling - log_scaling.mean()))
        distance = np.median(pdist(Z * scaling))
        result.append(scaling * (typical / distance if distance > 0.0 else 1.0))
    return np.array(result)


def _log_weights(Z: Array, y: Array) -> Array:
    """Log inverse squared length scales at the maximum of the posterior, (d,)."""
    n, d = Z.shape
    kernel = SquaredExponentialARD()
    start = np.array([math.log(_FIRST_NOISE), 0.0, *np.full(d, -math.log(d))])

    def loss(theta: Array) -> tuple[float, Array]:
        noise = math.exp(theta[0])
        K = kernel.gram(theta[1:], Z)
        try:
            L = factorise(np.asfortranarray(K + noise * np.eye(n)))
        except NumericalError:
            return 1e10, np.zeros_like(theta)
        log_det = 2.0 * float(np.log(L.diagonal()).sum())
        inverse = np.tril(invert_factored(L))
        inverse += np.tril(inverse, -1).T
        alpha = inverse @ y
        A = 0.5 * (np.outer(alpha, alpha) - inverse)
        gradient = np.concatenate([[noise * np.trace(A)], kernel.gradient(theta[1:], Z, K, A)])
        away = (theta - start) / _SPREAD
        value = 0.5 * (float(y @ alpha) + log_det + float(away @ away))
        return value, away / _SPREAD - gradient

    bounds = [(math.log(1e-6), math.log(10.0)), (-8.0, 8.0), *[(-16.0, 8.0)] * d]
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _MOST_STEPS}
    )
    return np.asarray(found.x[2:])
