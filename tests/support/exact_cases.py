"""Tiny classification problems whose evidence and posterior quadrature gives."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from mercer.gp.hyperparameters import NormalPrior
from mercer.gp.laplace import HyperparameterPosterior, fit_laplace
from mercer.kernels.stationary import SquaredExponentialARD
from mercer.likelihoods.logistic import expected_logistic
from mercer.numerics.cholesky import add_nugget

PAIRS = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
_GAP = 1000.0  # between pairs: their covariance is 0 to the last bit for log w > -6


def gram(theta: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Gram matrix of the exact model: its nugget included."""
    K = SquaredExponentialARD().gram(theta, X)
    add_nugget(K)
    return K


def trapezoid_moments(K: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Evidence and posterior means of f, n <= 3: product trapezoid rule on whitened values."""
    n = len(y)
    z = np.arange(-8.5, 8.5, 0.16 if n == 3 else 0.05)
    w = np.exp(-0.5 * z * z)
    weights = functools.reduce(np.multiply.outer, [w / w.sum()] * n).ravel()
    nodes = np.stack(np.meshgrid(*[z] * n, indexing="ij"), -1).reshape(-1, n)
    f = nodes @ np.linalg.cholesky(K).T
    weights = weights * expit((2.0 * y - 1.0) * f).prod(axis=1)
    return np.append(weights.sum(), weights @ f / weights.sum())


def pair_model() -> HyperparameterPosterior:
    """Four pairs of rows, the rows of a pair at distance 1, pairs out of sight of each other."""
    X = (np.arange(4.0)[:, None] * _GAP + [0.0, 1.0]).reshape(-1, 1)
    prior = NormalPrior(np.array([2.0, 0.0]), np.array([1.5, 1.0]))
    return HyperparameterPosterior(X, PAIRS.ravel(), SquaredExponentialARD(), prior)


def _pair_evidence(K: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Evidence of a pair and the posterior mean of its first latent value.

    Trapezoid rule for the first value; the second, given it, by the averaged logistic.
    """
    z = np.linspace(-9.0, 9.0, 2001)
    weights = np.exp(-0.5 * z * z)
    f = np.sqrt(K[0, 0]) * z
    slope = K[0, 1] / K[0, 0]
    variance = np.full_like(f, K[1, 1] - slope * K[0, 1])
    s = 2.0 * y - 1.0
    weights = weights / weights.sum() * expit(s[0] * f)
    weights = weights * expected_logistic(s[1] * slope * f, variance)
    return float(weights.sum()), float(weights @ f / weights.sum())


@dataclass(frozen=True)
class PairGrid:
    """Exact and Laplace's posterior of `pair_model` on a grid; weights (size, size) sum to one.

    ``latent`` holds the posterior means of f at rows 0, 2 and 3, shape (size, size, 3).
    """

    theta: np.ndarray
    exact: np.ndarray
    laplace: np.ndarray
    latent: np.ndarray

    def moments(self, weights: np.ndarray) -> np.ndarray:
        """First and second moments of theta, shape (5,)."""
        u, v = self.theta[..., 0], self.theta[..., 1]
        return np.array([float((weights * m).sum()) for m in (u, v, u * u, v * v, u * v)])

    @property
    def latent_means(self) -> np.ndarray:
        """Posterior means of f at rows 0, 2 and 3."""
        return np.einsum("ij,ijk->k", self.exact, self.latent)


def pair_grid(size: int = 41, half_width: float = 5.6) -> PairGrid:
    """Evaluate both posteriors, so many prior standard deviations either way."""
    model = pair_model()
    span = np.linspace(-half_width, half_width, size)
    axes = [model.prior.mean[k] + model.prior.std[k] * span for k in (0, 1)]
    theta = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    shape = theta.shape[:2]
    log_exact, log_laplace, latent = np.empty(shape), np.empty(shape), np.empty((*shape, 3))
    for place in np.ndindex(shape):
        K = gram(theta[place], model.X[:2])
        log_prior = model.prior.log_density(theta[place])
        found = [_pair_evidence(K, y) for y in PAIRS]
        log_exact[place] = log_prior + sum(np.log(evidence) for evidence, _ in found)
        log_laplace[place] = log_prior + sum(fit_laplace(K, y).log_evidence for y in PAIRS)
        # The mean at a pair's second row is that of its first row with the labels exchanged.
        swapped = _pair_evidence(K, PAIRS[1][::-1].copy())
        latent[place] = found[0][1], found[1][1], swapped[1]
    return PairGrid(theta, _weights(log_exact), _weights(log_laplace), latent)


def _weights(log_density: np.ndarray) -> np.ndarray:
    weights = np.exp(log_density - log_density.max())
    return weights / weights.sum()
