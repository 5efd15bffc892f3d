"""Student's t in any dimension: log density and characteristic function, from squared lengths."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, kve

__all__ = ["t_characteristic", "t_log_density"]

Array = NDArray[np.float64]


def t_log_density(square: Array, degrees: float, n_inputs: int, log_determinant: float) -> Array:
    """Log density of the multivariate t.

    Parameters
    ----------
    square : ndarray
        (x - m)' S^-1 (x - m), S the scale matrix.
    degrees : float
        Degrees of freedom.
    n_inputs : int
        Dimension of x.
    log_determinant : float
        log |S|.

    Returns
    -------
    ndarray
        Nats, of the shape of ``square``.
    """
    half = 0.5 * (degrees + n_inputs)
    constant = gammaln(half) - gammaln(0.5 * degrees) - 0.5 * log_determinant
    constant -= 0.5 * n_inputs * math.log(math.pi * degrees)
    return np.asarray(constant - half * np.log1p(square / degrees))


def t_characteristic(square: Array, degrees: float) -> Array:
    """Characteristic function of the centred multivariate t.

    Parameters
    ----------
    square : ndarray
        u' S u at the argument u, S the scale matrix.
    degrees : float
        Degrees of freedom.

    Returns
    -------
    ndarray
        In [0, 1], of the shape of ``square``.

    Notes
    -----
    K_v(r) r^v / (Gamma(v) 2^(v-1)) with v = degrees / 2 and r^2 = degrees u'Su. Where the Bessel
    function overflows, r is so small that 1 - r^2 / (4 (v - 1)) is left of the series.
    """
    v = 0.5 * degrees
    r = np.sqrt(degrees * square)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        scaled = kve(v, r)
        logs = np.log(scaled) - r + v * np.log(r) - gammaln(v) - (v - 1.0) * math.log(2.0)
    near_zero = 1.0 - r**2 / (4.0 * (v - 1.0)) if v > 1.0 else np.ones_like(r)
    return np.asarray(np.where(np.isposinf(scaled), near_zero, np.exp(np.minimum(logs, 0.0))))
