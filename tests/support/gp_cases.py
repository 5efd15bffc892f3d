"""Small GP problems, and slow, plain twins of what the package computes for them."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats
from scipy.special import expit, logsumexp

from mercer.gp.fitting import GPSettings, RegressionSettings
from mercer.gp.gaussian import RegressionPosterior
from mercer.gp.hyperparameters import Maximum, NormalPrior, find_maximum, kernel_prior
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
            new_psi = -0.5 * (new_a @ new_f) + log_likelihood(y, np.ones(len(y)), new_f)
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
    psi = -0.5 * (f @ (y - expit(f))) + log_likelihood(y, np.ones(len(y)), f)
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


# Posteriors of one, two and three log parameters of a regressor, whose averages are known.


@dataclass(frozen=True)
class GridPosterior:
    """A posterior of log parameters (p,), its maximum, and what a grid says of it."""

    model: RegressionPosterior
    maximum: Maximum
    log_evidence: float
    mean: np.ndarray
    variance: np.ndarray

    @property
    def n_parameters(self) -> int:
        """Number of log parameters."""
        return len(self.mean)


def plain_log_density(model: RegressionPosterior, theta: np.ndarray) -> np.ndarray:
    """Log of prior times evidence at theta (m, p), of one input: dense, with every constant.

    The columns: log variance of the function, log weight (of no effect where it is missing: the
    kernel is constant), log variance of the noise where it is not known.
    """
    n, x, m = len(model.y), model.X[:, 0], len(theta)
    is_noise_known = model.log_noise_variance is not None
    noise = np.full(m, model.log_noise_variance) if is_noise_known else theta[:, -1]
    kernel = theta if is_noise_known else theta[:, :-1]
    v0 = np.exp(kernel[:, 0])
    w = np.exp(kernel[:, 1]) if kernel.shape[1] == 2 else np.zeros(m)
    square = np.subtract.outer(x, x) ** 2
    C = v0[:, None, None] * np.exp(-0.5 * w[:, None, None] * square) + model.intercept_variance
    C += (np.exp(noise) + 1e-9 * (1.0 + v0))[:, None, None] * np.eye(n)
    L = np.linalg.cholesky(C)
    white = np.linalg.solve(L, np.broadcast_to(model.y[:, None], (m, n, 1)))[..., 0]
    log_det_half = np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
    evidence = -0.5 * np.square(white).sum(axis=1) - log_det_half - 0.5 * n * np.log(2.0 * np.pi)
    return evidence + stats.norm.logpdf(theta, model.prior.mean, model.prior.std).sum(axis=1)


def grid_moments(model: RegressionPosterior, n_points: int) -> tuple[float, np.ndarray, np.ndarray]:
    """Log evidence, means and variances by sums over a grid of 5 prior deviations to each side."""
    mean, std = model.prior.mean, model.prior.std
    axes = np.linspace(mean - 5.0 * std, mean + 5.0 * std, n_points).T
    theta = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(mean))
    parts = np.array_split(theta, 1 + len(theta) // 20000)
    logs = np.concatenate([plain_log_density(model, part) for part in parts])
    log_cell = np.log(axes[:, 1] - axes[:, 0]).sum()
    W = np.exp(logs - logsumexp(logs))
    return float(logsumexp(logs) + log_cell), W @ theta, W @ np.square(theta - W @ theta)


@functools.cache
def grid_posterior(n_parameters: int, prior_scale: float = 1.0) -> GridPosterior:
    """One: a constant's variance; two: a function's, noise known; three: with the noise's variance.

    ``prior_scale`` is that of the standard deviations, in units of the default prior's.
    """
    n = 12
    rng = np.random.default_rng(1)
    X = rng.uniform(-2.0, 2.0, (n, 1))
    y = np.sin(2.0 * X[:, 0]) + 0.5 * rng.standard_normal(n) + (n_parameters == 1)
    kernel = "constant" if n_parameters == 1 else "rbf"
    common = GPSettings("importance", "wide", None, None, kernel)
    settings = RegressionSettings(common, None if n_parameters == 3 else float(np.log(0.3)))
    model = settings.posterior(X, y)
    model = replace(model, prior=NormalPrior(model.prior.mean, prior_scale * model.prior.std))
    maximum = find_maximum(model, with_covariance=True)
    return GridPosterior(
        model, maximum, *grid_moments(model, {1: 401, 2: 121, 3: 61}[n_parameters])
    )
