"""The softmax averaged over a Gaussian."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from scipy.special import ndtri, softmax
from scipy.stats import qmc

from mercer.numerics.logistic_normal import expected_logistic

__all__ = ["expected_softmax", "softmax_average"]

Array = NDArray[np.float64]

_N_NORMALS = 256
_SEED = 1


def expected_softmax(mean: Array, covariance: Array) -> Array:
    """Average the softmax of f over f ~ N(mean, covariance), for many Gaussians.

    Parameters
    ----------
    mean : ndarray of shape (m, C)
        Of the latent values, in logits.
    covariance : ndarray of shape (m, C, C)
        Positive semidefinite to rounding.

    Returns
    -------
    ndarray of shape (m, C)
        Rows sum to one. Two classes: as `expected_logistic`, error at most 7e-7. More: 256
        scrambled Sobol points, the same for every Gaussian. At standard deviations of 1, 3 and 10
        logits the root mean square of the error is 2e-4, 7e-4, 2e-3 for three classes, and 6e-4,
        3e-3, 6e-3 for six.
    """
    return softmax_average(covariance, _N_NORMALS)(mean)


def softmax_average(covariance: Array, n_normals: int) -> Callable[[Array], Array]:
    """Return the function of means (m, C) that averages by ``n_normals`` points, a power of two.

    Notes
    -----
    A common shift of all classes changes nothing, so that only C - 1 contrasts are drawn, by the
    symmetric root of their covariance: it is continuous in the covariance.
    """
    n_classes = covariance.shape[-1]
    if n_classes == 2:
        return _logistic_average(covariance)
    contrasts = helmert(n_classes)
    values, vectors = np.linalg.eigh(contrasts @ covariance @ contrasts.T)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, np.newaxis, :]
    roots = roots @ np.swapaxes(vectors, 1, 2) @ contrasts
    offsets = _normals(n_normals, n_classes - 1) @ roots

    def average(mean: Array) -> Array:
        return np.asarray(softmax(mean[:, np.newaxis, :] + offsets, axis=2).mean(axis=1))

    return average


def _logistic_average(covariance: Array) -> Callable[[Array], Array]:
    variance = covariance[:, 0, 0] + covariance[:, 1, 1] - 2.0 * covariance[:, 0, 1]
    variance = np.maximum(variance, 0.0)

    def average(mean: Array) -> Array:
        second = expected_logistic(mean[:, 1] - mean[:, 0], variance)
        return np.column_stack([1.0 - second, second])

    return average


@functools.cache
def _normals(count: int, dimension: int) -> Array:
    """Scrambled Sobol points, the same always, as standard normals of shape (count, dimension)."""
    points = qmc.Sobol(dimension, scramble=True, seed=_SEED).random(count)
    return np.asarray(ndtri(points))
