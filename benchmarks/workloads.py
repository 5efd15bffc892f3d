"""Seeded, versioned workloads: a change of one is a new name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from mercer.kernels.squared_exponential import SquaredExponentialARD

__all__ = ["gp_draw_v1"]


def gp_draw_v1(
    n: int, d: int, log_signal_variance: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Inputs, labels and log parameters: labels drawn from the model at the default prior's mean.

    log w = -1 - log d; the signal variance is given.
    """
    rng = np.random.default_rng([n, d])
    X = rng.standard_normal((n, d))
    theta = np.full(d + 1, -1.0 - np.log(d))
    theta[0] = log_signal_variance
    K = SquaredExponentialARD().gram(theta, X)
    f = np.linalg.cholesky(K + 1e-8 * np.exp(theta[0]) * np.eye(n)) @ rng.standard_normal(n)
    return X, (rng.random(n) < expit(f)).astype(float), theta
