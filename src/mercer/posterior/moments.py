"""Means, spreads and quantiles of draws, weighted or not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.posterior.draws import Draws

__all__ = ["effective_size", "flat_weights", "mean_sd", "quantiles"]

FloatArray = NDArray[np.float64]


def flat_weights(draws: Draws) -> FloatArray | None:
    """Return the normalised weights of all draws.

    Parameters
    ----------
    draws : Draws
        Weighted or not.

    Returns
    -------
    ndarray of shape (n_total,) or None
        None where the draws have no weights.
    """
    if draws.log_weights is None:
        return None
    log_weights = np.asarray(draws.log_weights, dtype=float).ravel()
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum(), dtype=float)


def effective_size(draws: Draws) -> float:
    """Return how many equal draws the weighted ones are worth, summed over populations.

    Parameters
    ----------
    draws : Draws
        Weighted draws.

    Returns
    -------
    float
        The sum over populations of 1 / sum W^2, W their weights with sum 1.
    """
    log_weights = np.asarray(draws.log_weights, dtype=float)
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    return float(np.sum(weights.sum(axis=1) ** 2 / np.sum(weights**2, axis=1)))


def mean_sd(flat: FloatArray, weights: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return means and standard deviations; squares of values near 1e300 do not overflow.

    Parameters
    ----------
    flat : ndarray of shape (n_total, n)
        Draws of n quantities.
    weights : ndarray of shape (n_total,) or None
        Normalised weights.

    Returns
    -------
    mean, sd : ndarrays of shape (n,)
        NaN for a quantity with draws that are not finite. Divisor of the variance: n_total - 1
        without weights.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        scale = np.abs(flat).max(axis=0)
        scale = np.where((scale > 0) & np.isfinite(scale), scale, 1.0)
        u = flat / scale
        if weights is None:
            mean = u.mean(axis=0)
            variance = np.square(u - mean).sum(axis=0) / max(len(u) - 1, 1)
        else:
            mean = weights @ u
            variance = weights @ np.square(u - mean)
        is_finite = np.isfinite(flat).all(axis=0)
        pair = np.where(is_finite, np.array([mean * scale, np.sqrt(variance) * scale]), np.nan)
    return pair[0], pair[1]


def quantiles(
    x: FloatArray, weights: FloatArray | None, levels: tuple[float, ...]
) -> tuple[float, ...]:
    """Return quantiles of one quantity.

    Parameters
    ----------
    x : ndarray of shape (n_total,)
        Finite draws.
    weights : ndarray of shape (n_total,) or None
        Normalised weights; with them, the smallest draw that reaches the level.
    levels : tuple of float
        In [0, 1].

    Returns
    -------
    tuple of float
        One per level.
    """
    if weights is None:
        return tuple(float(value) for value in np.quantile(x, levels))
    order = np.argsort(x, kind="stable")
    places = np.searchsorted(np.cumsum(weights[order]), levels)
    return tuple(float(x[order[min(place, len(x) - 1)]]) for place in places)
