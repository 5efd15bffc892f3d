"""Small GP classification problems, and slow, plain twins of what the package computes for them."""

from __future__ import annotations

import functools
import itertools

import numpy as np
from scipy.special import expit

from mercer.gp.hyperparameters import kernel_prior
from mercer.gp.laplace import HyperparameterPosterior
from mercer.kernels.stationary import SquaredExponentialARD
from mercer.likelihoods.logistic import log_likelihood, success_probability


def problem(n: int, d: int, seed: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal inputs and labels of a noisy, curved function of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    f = 2.0 * np.sin(1.5 * X[:, 0]) + X[:, -1]
    y = (rng.random(n) < expit(f)).astype(float)
    return X, y


def posterior(n: int, d: int, seed: int = 20) -> HyperparameterPosterior:
    """Posterior of the hyperparameters with the paper's prior."""
    X, y = problem(n, d, seed)
    return HyperparameterPosterior(X, y, SquaredExponentialARD(), kernel_prior(d, "paper"))


def thetas(d: int, count: int) -> np.ndarray:
    """Hyperparameters over all sizes that data can ask for; every fifth has v0 = e^4."""
    rng = np.random.default_rng(7)
    theta = np.column_stack([rng.uniform(-3.0, 4.0, count), rng.uniform(-4.0, 1.5, (count, d))])
    theta[::5, 0] = 4.0
    return theta


def plain_gram(theta: np.ndarray, X: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
    """Eq. (8), term by term."""
    differences = X[:, None, :] - (X if Z is None else Z)[None, :, :]
    return np.exp(theta[0] - 0.5 * (differences**2 @ np.exp(theta[1:])))


def plain_mode(K: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The mode f = K a by Newton's method with dense solves, halved while Psi falls."""
    n = len(y)
    a, f, psi = np.zeros(n), np.zeros(n), -np.inf
    for _ in range(300):
        p = expit(f)
        W = p * (1.0 - p)
        wanted = np.linalg.solve(np.eye(n) + W[:, None] * K, W * f + y - p)
        fraction = 1.0
        while True:
            new_a = a + fraction * (wanted - a)
            new_f = K @ new_a
            new_psi = -0.5 * (new_a @ new_f) + log_likelihood(y, new_f)
            if new_psi >= psi - 1e-13 * (1.0 + abs(psi)) or fraction < 1e-6:
                break
            fraction *= 0.5
        change = np.abs(new_f - f).max()
        a, f, psi = new_a, new_f, new_psi
        if change < 1e-12 * max(1.0, np.abs(f).max()):
            return f
    raise AssertionError("the plain Newton method did not converge")


def log_det_half(K: np.ndarray, f: np.ndarray) -> float:
    """Half the log determinant of I + W^.5 K W^.5 at latent values f."""
    p = expit(f)
    w = np.sqrt(p * (1.0 - p))
    return 0.5 * float(np.linalg.slogdet(np.eye(len(f)) + w[:, None] * K * w)[1])


def plain_log_evidence(K: np.ndarray, y: np.ndarray) -> float:
    """Eq. (10) at the plain mode."""
    f = plain_mode(K, y)
    psi = -0.5 * (f @ (y - expit(f))) + log_likelihood(y, f)
    return psi - log_det_half(K, f)


def exact_evidence(K: np.ndarray, y: np.ndarray, link=success_probability, order=48) -> float:
    """E prod_i p(y_i | f_i) over f ~ N(0, K) by a product of Gauss-Hermite rules, n <= 3.

    ``link`` gives p(y = 1 | f); with the normal distribution function the result is an orthant
    probability.
    """
    x, w = np.polynomial.hermite_e.hermegauss(order)
    rules = [(x, w / w.sum())] * len(y)
    nodes = np.stack(np.meshgrid(*[r[0] for r in rules], indexing="ij"), -1).reshape(-1, len(y))
    weights = functools.reduce(np.multiply.outer, [r[1] for r in rules]).ravel()
    p = link(nodes @ np.linalg.cholesky(K).T)
    return float(weights @ np.where(y == 1.0, p, 1.0 - p).prod(axis=1))


def label_vectors(n: int) -> list[np.ndarray]:
    """All 2^n vectors of labels."""
    return [np.array(labels) for labels in itertools.product((0.0, 1.0), repeat=n)]
