"""A straight line through Laplace's errors: what makes the second stage accept more often.

The error of Laplace's log evidence changes with the hyperparameters, mostly with the signal
variance, and where it is steep a chain on Laplace's posterior proposes what the exact one refuses.
The first stage may aim at any density; so it aims at Laplace's posterior times exp(slope'theta).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mercer.sampling.target import Point, Target

__all__ = ["TiltedTarget", "fit_slope", "tilted"]

Array = NDArray[np.float64]

_PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
_MIN_POINTS = 20


@dataclass(frozen=True)
class TiltedTarget:
    """A target times exp(slope'theta), slope of shape (p,)."""

    target: Target
    slope: Array

    def evaluate(self, theta: Array) -> Point:
        """Evaluate the target and tilt what it gives."""
        return tilted(self.target.evaluate(theta), self.slope)


def tilted(point: Point, slope: Array) -> Point:
    """Return the point with slope'theta added to its log density; the prior keeps it proper."""
    log_density = point.log_density + float(slope @ point.position)
    return replace(point, log_density=log_density, gradient=point.gradient + slope)


def fit_slope(theta: Array, errors: Array) -> Array:
    """Fit a slope by ridge regression on standardised coordinates.

    Parameters
    ----------
    theta : ndarray of shape (k, p)
        Distinct hyperparameters, log scale.
    errors : ndarray of shape (k,)
        Estimated errors of Laplace's log evidence there, nats.

    Returns
    -------
    ndarray of shape (p,)
        With the penalty, of seven, whose predictions of left-out points are best; zero where the
        mean predicts as well, and where there are fewer than 20 points.
    """
    k, p = theta.shape
    if k < _MIN_POINTS:
        return np.zeros(p)
    scale = theta.std(axis=0) + 1e-12
    Z, centred = (theta - theta.mean(axis=0)) / scale, errors - errors.mean()
    U, s, Vt = np.linalg.svd(Z, full_matrices=False)
    projected = U.T @ centred
    best = float(np.mean((centred / (1.0 - 1.0 / k)) ** 2))
    coef = np.zeros(p)
    for penalty in _PENALTIES:
        shrink = s**2 / (s**2 + penalty)
        leverage = 1.0 / k + np.square(U) @ shrink
        residual = (centred - U @ (shrink * projected)) / (1.0 - leverage)
        score = float(np.mean(residual**2))
        if score < best:
            best, coef = score, Vt.T @ (shrink / s * projected)
    return np.asarray(coef / scale)
