"""Small problems of several classes, and slow, dense twins of what the package computes for them.

Latent values are (C, n) arrays; dense matrices are (Cn, Cn), class by class.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.linalg import block_diag, helmert
from scipy.special import logsumexp, softmax

from mercer.gp import softmax as covariance
from mercer.gp import softmax as laplace
from mercer.gp.hyperparameters import NormalPrior
from mercer.gp.laplace import HyperparameterPosterior
from mercer.kernels.stationary import SquaredExponentialARD
from support.gp_cases import plain_gram

KERNEL = SquaredExponentialARD()


def classes(n: int, d: int, n_classes: int = 3, seed: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal inputs and codes of a noisy, curved function of them; every class occurs."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    angles = 2.0 * np.pi * np.arange(n_classes) / n_classes
    f = 2.0 * np.cos(angles[:, None] - 1.5 * X[:, 0]) + np.sin(angles)[:, None] * X[:, -1]
    y = np.argmax(f + rng.gumbel(size=f.shape), axis=0)
    y[:n_classes] = np.arange(n_classes)[:n]
    return X, y


def targets(y: np.ndarray, n_classes: int) -> np.ndarray:
    """One-hot, by rows of the identity."""
    return np.eye(n_classes)[:, y.astype(int)]


def posterior(
    n: int, d: int, n_classes: int = 3, *, is_shared: bool, seed: int = 20
) -> HyperparameterPosterior:
    """Posterior of the hyperparameters under N(-1, 3^2) for each."""
    X, y = classes(n, d, n_classes, seed)
    prior = NormalPrior(np.full(d + 1, -1.0), np.full(d + 1, 3.0))
    return HyperparameterPosterior(X, y.astype(float), KERNEL, prior, n_classes, is_shared)


def thetas(d: int, n_kernels: int, count: int) -> np.ndarray:
    """Log parameters (count, n_kernels (d + 1)) of all sizes; every third has v0 of e^4 to e^6."""
    rng = np.random.default_rng(7)
    theta = rng.uniform(-4.0, 1.5, (count, n_kernels, d + 1))
    theta[:, :, 0] = rng.uniform(-3.0, 3.0, (count, n_kernels))
    theta[::3, :, 0] = rng.uniform(4.0, 6.0, (len(theta[::3]), n_kernels))
    return theta.reshape(count, -1)


def grams(theta: np.ndarray, X: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
    """Eq. (8) for each row of theta (n_kernels, p), term by term."""
    return np.stack([plain_gram(own, X, Z) for own in theta])


def dense_gram(K: np.ndarray, n_classes: int) -> np.ndarray:
    """The covariance of all latent values."""
    return block_diag(*(K[c % len(K)] for c in range(n_classes)))


def dense_weights(f: np.ndarray) -> np.ndarray:
    """W: minus the Hessian of the log likelihood at latent values f."""
    proba = softmax(f, axis=0)
    n_classes, n = f.shape
    W = np.diag(proba.ravel())
    for i in range(n):
        places = np.arange(n_classes) * n + i
        W[np.ix_(places, places)] -= np.outer(proba[:, i], proba[:, i])
    return W


def dense_r(K: np.ndarray, f: np.ndarray) -> np.ndarray:
    """R = W (I + K W)^-1, by a dense solve."""
    G, W = dense_gram(K, len(f)), dense_weights(f)
    return np.linalg.solve(np.eye(len(G)) + W @ G, W)


def log_joint(K: np.ndarray, Y: np.ndarray, a: np.ndarray) -> tuple[float, np.ndarray]:
    """Psi and f at f = K a."""
    f = (dense_gram(K, len(Y)) @ a.ravel()).reshape(Y.shape)
    return float(np.sum(f * (Y - 0.5 * a)) - logsumexp(f, axis=0).sum()), f


def dense_mode(K: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """The mode by Newton's method with dense solves, halved while Psi falls."""
    G = dense_gram(K, len(Y))
    a = np.zeros_like(Y)
    psi, f = log_joint(K, Y, a)
    for _ in range(300):
        W, g = dense_weights(f), Y - softmax(f, axis=0)
        wanted = np.linalg.solve(np.eye(len(G)) + W @ G, W @ f.ravel() + g.ravel())
        fraction = 1.0
        while True:
            new_a = a + fraction * (wanted.reshape(Y.shape) - a)
            new_psi, new_f = log_joint(K, Y, new_a)
            if new_psi >= psi - 1e-13 * (1.0 + abs(psi)) or fraction < 1e-6:
                break
            fraction *= 0.5
        change = np.abs(new_f - f).max()
        a, f, psi = new_a, new_f, new_psi
        if change < 1e-11 * max(1.0, np.abs(f).max()):
            return f
    raise AssertionError("the dense Newton method did not converge")


def dense_log_evidence(K: np.ndarray, Y: np.ndarray) -> float:
    """Laplace's log evidence at the dense mode."""
    f = dense_mode(K, Y)
    G = dense_gram(K, len(Y))
    psi = log_joint(K, Y, Y - softmax(f, axis=0))[0]
    return psi - 0.5 * float(np.linalg.slogdet(np.eye(len(G)) + G @ dense_weights(f))[1])


def exact_log_evidence(K: np.ndarray, Y: np.ndarray, order: int = 16) -> float:
    """log E p(y | f) over f ~ N(0, K) by Gauss-Hermite rules over the contrasts of all rows."""
    n_classes, n = Y.shape
    H = np.kron(helmert(n_classes), np.eye(n))
    covariance_root = np.linalg.cholesky(H @ dense_gram(K, n_classes) @ H.T)
    x, w = np.polynomial.hermite_e.hermegauss(order)
    nodes = np.stack(np.meshgrid(*[x] * len(H), indexing="ij"), -1).reshape(-1, len(H))
    weights = np.stack(np.meshgrid(*[w / w.sum()] * len(H), indexing="ij"), -1)
    f = (nodes @ covariance_root.T @ H).reshape(-1, n_classes, n)
    likelihood = np.exp(np.sum(Y * f, axis=(1, 2)) - logsumexp(f, axis=1).sum(axis=1))
    return float(np.log(weights.reshape(-1, len(H)).prod(axis=1) @ likelihood))


def leave_out_last_determinant(monkeypatch) -> None:
    """The evidence without sum log diag M."""
    curvature = laplace.curvature

    def without(K, proba, scratch, totals):
        factors = curvature(K, proba, scratch, totals)
        log_det = factors.log_det - np.log(factors.M.diagonal()).sum()
        return dataclasses.replace(factors, log_det=log_det)

    monkeypatch.setattr(laplace, "curvature", without)


def leave_out_third_derivatives(monkeypatch) -> None:
    """The gradient without s2, the change of the determinant through the mode."""
    slope = laplace._slope
    monkeypatch.setattr(laplace, "_slope", lambda *arguments: np.zeros_like(slope(*arguments)))


def leave_out_products_in_adjoint(monkeypatch) -> None:
    """The gradient without V_c'V_c."""
    adjoint = laplace._adjoint
    monkeypatch.setattr(
        laplace,
        "_adjoint",
        lambda n_grams, factors, products, a, q: adjoint(
            n_grams, factors, np.zeros_like(products), a, q
        ),
    )


def leave_out_products_in_covariance(monkeypatch) -> None:
    """Predictions without (V_c k)'(V_c' k)."""
    monkeypatch.setattr(covariance, "solve_lower", lambda M, b: np.zeros_like(b))
