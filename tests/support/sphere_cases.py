"""Oracles for label-noise posteriors on the sphere: enumeration, arcs, closed forms, quadrature.

All of it takes *signed* rows, L_i times the label y_i in {-1, +1}, or their Gram matrix: row i is
wrong where f_i = (L g)_i <= 0. A pattern is a boolean vector, true where the row is wrong; pattern
number k has row i wrong where bit i of k is set.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp, ndtr
from scipy.stats import multivariate_normal

from mercer.likelihoods import label_noise
from mercer.likelihoods.label_noise import LabelNoise

# --- small random problems -----------------------------------------------------------------------


def noisy_rows(n: int, r: int, rate: float = 0.2, seed: int = 30) -> np.ndarray:
    """Signed rows (n, r): standard normal ones, labels of a random classifier, flipped at rate."""
    rng = np.random.default_rng(seed)
    L = rng.standard_normal((n, r))
    labels = np.sign(L @ rng.standard_normal(r)) * np.where(rng.random(n) < rate, -1.0, 1.0)
    return L * labels[:, None]


def noisy_gram(n: int, rate: float = 0.2, seed: int = 31) -> tuple[np.ndarray, np.ndarray]:
    """Gram matrix (n, n) of points in the plane, exp(-|x - z|^2 / 2), and labels -1 or +1."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    G = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=-1))
    return G, np.sign(X[:, 0] + 0.3) * np.where(rng.random(n) < rate, -1.0, 1.0)


def signed(G: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The Gram matrix of the signed rows."""
    return G * np.outer(y, y)


def equicorrelated_gram(n: int) -> np.ndarray:
    """G = (I + 11')/2: for all labels +1 every number of errors is equally likely."""
    return 0.5 * (np.eye(n) + 1.0)


def noises(n: int, seed: int = 32) -> dict[str, LabelNoise]:
    """One of each kind of label noise for n rows of two classes."""
    rng = np.random.default_rng(seed)
    labels = (np.arange(n) % 3 == 0).astype(np.int64)
    rates = np.where(np.arange(n) % 4 == 3, 0.0, rng.uniform(0.05, 0.5, n))
    return {
        "fixed": label_noise.fixed_rate(0.2, n),
        "per class": label_noise.class_rates(np.array([0.1, 0.35]), labels),
        "per row": label_noise.row_rates(rates),
        "learned": label_noise.learned_rate((1.0, 3.0), n),
        "learned per class": label_noise.learned_class_rates((1.0, 3.0), labels),
    }


def powered(noise: LabelNoise, power: float) -> LabelNoise:
    """Costs of the likelihood to a power in [0, 1]; impossible errors stay impossible."""

    def times(cost: np.ndarray) -> np.ndarray:
        return np.where(cost >= label_noise.IMPOSSIBLE, cost, power * cost)

    return replace(
        noise,
        step=times(noise.step),
        row_cost=times(noise.row_cost),
        log_no_errors=power * noise.log_no_errors,
    )


# --- sign patterns of f ~ N(0, G), KGS-1 ---------------------------------------------------------


def patterns(n: int) -> np.ndarray:
    """All patterns in order, shape (2^n, n)."""
    return (np.arange(2**n)[:, None] >> np.arange(n)) % 2 == 1


def pattern_number(f: np.ndarray) -> np.ndarray:
    """Number of the pattern of signed function values (..., n)."""
    return (f <= 0.0) @ (2 ** np.arange(f.shape[-1]))


def orthant_probability(R: np.ndarray, order: int = 32) -> np.ndarray:
    """P(f > 0) for f ~ N(0, R), correlation matrices R of shape (..., n, n), n <= 7.

    By arcsines for n <= 3. Above, Plackett's identity: dP/dr_ij is the density of (f_i, f_j) at 0
    times an orthant probability of the other n - 2 given f_i = f_j = 0. It is integrated from the
    identity matrix to R, along t R + (1 - t) I, by Gauss and Legendre in s, t = 1 - (1 - s)^4,
    for the end where R may be singular. [order 32: error below 1e-10 with eigenvalues of 1e-4 or 0]
    """
    n = R.shape[-1]
    pairs = list(itertools.combinations(range(n), 2))
    if n <= 3:
        angles = sum((np.arcsin(np.clip(R[..., i, j], -1.0, 1.0)) for i, j in pairs), 0.0)
        return 0.5**n + angles / (2.0 * np.pi * max(1, n - 1)) + np.zeros(R.shape[:-2])
    nodes, weights = np.polynomial.legendre.leggauss(order)
    nodes, weights = 0.5 * (nodes + 1.0), 0.5 * weights
    t, dt = 1.0 - (1.0 - nodes) ** 4, weights * 4.0 * (1.0 - nodes) ** 3
    path = t[:, None, None] * R[..., None, :, :]
    path[..., range(n), range(n)] = 1.0
    total = np.full(R.shape[:-2], 0.5**n)
    for i, j in pairs:
        rest = [k for k in range(n) if k not in (i, j)]
        given = np.ix_(rest, [i, j])
        B, r = path[..., given[0], given[1]], path[..., i, j][..., None, None]
        solved = (B - r * B[..., ::-1]) / (1.0 - r**2)
        C = path[..., rest, :][..., :, rest] - solved @ np.swapaxes(B, -1, -2)
        scale = np.sqrt(np.einsum("...kk->...k", C))
        C = C / (scale[..., :, None] * scale[..., None, :])
        density = R[..., i, j, None] / (2.0 * np.pi * np.sqrt(1.0 - path[..., i, j] ** 2))
        total += (density * orthant_probability(C, order)) @ dt
    return total


def pattern_probabilities(G: np.ndarray) -> np.ndarray:
    """P(pattern) under f ~ N(0, G) for all 2^n patterns, n <= 6 (half a second there)."""
    return _pattern_probabilities(np.ascontiguousarray(G, float).tobytes(), len(G)).copy()


@functools.cache
def _pattern_probabilities(gram: bytes, n: int) -> np.ndarray:
    G = np.frombuffer(gram).reshape(n, n)
    scale = np.sqrt(G.diagonal())
    signs = np.where(patterns(n)[: 2 ** (n - 1)], -1.0, 1.0)
    R = G / np.outer(scale, scale) * signs[:, :, None] * signs[:, None, :]
    half = orthant_probability(R)
    return np.append(half, half[::-1])  # pattern 2^n - 1 - k is the opposite of pattern k


def pattern_probabilities_by_cdf(G: np.ndarray, accuracy: float = 1e-5) -> np.ndarray:
    """The same by SciPy's multivariate normal distribution function (quasi-random, n <= 6)."""
    n = len(G)
    signs = np.where(patterns(n), -1.0, 1.0)
    law = [signed(G, s) for s in signs]
    options = {"abseps": accuracy, "releps": 0.0, "maxpts": 20_000_000}
    return np.array([multivariate_normal.cdf(np.zeros(n), np.zeros(n), C, **options) for C in law])


def pattern_posterior(G: np.ndarray, noise: LabelNoise) -> tuple[np.ndarray, float]:
    """Posterior probabilities of all patterns of the signed Gram matrix, and the log evidence."""
    with np.errstate(divide="ignore"):
        log_prior = np.log(np.maximum(pattern_probabilities(G), 0.0))
    log_joint = log_prior - noise.cost(patterns(len(G)))
    total = logsumexp(log_joint)
    return np.exp(log_joint - total), float(total + noise.log_no_errors)


def error_law(G: np.ndarray) -> np.ndarray:
    """Prior probabilities of e = 0..n errors, by enumeration, n <= 6."""
    e = patterns(len(G)).sum(axis=1)
    return np.bincount(e, weights=pattern_probabilities(G), minlength=len(G) + 1)


# --- exact draws ---------------------------------------------------------------------------------


def exact_draws(rng: np.random.Generator, L: np.ndarray, noise: LabelNoise, count: int):
    """Posterior draws of g, shape (count, r), by rejection: a prior draw passes at exp(-cost)."""
    kept, n_kept, least = [], 0, min(0.0, float(noise.step.min()))
    while n_kept < count:
        g = rng.standard_normal((4096, L.shape[1]))
        is_kept = rng.random(4096) < np.exp(least - noise.cost(g @ L.T <= 0.0))
        kept.append(g[is_kept])
        n_kept += int(is_kept.sum())
    return np.concatenate(kept)[:count]


# --- rank 2: the circle, KGS-4 and KGS-14 --------------------------------------------------------


@dataclass(frozen=True)
class Arcs:
    """Posterior of the angle of g in the plane, for any n: constant on arcs between crossings.

    Attributes
    ----------
    edges : ndarray of shape (A + 1,)
        From the first crossing, in [-pi, pi), to the same one a turn later.
    is_wrong : ndarray of shape (A, n)
        Which rows are wrong on the arc.
    mass : ndarray of shape (A,)
        Posterior probability of the arc.
    log_evidence : float
    """

    edges: np.ndarray
    is_wrong: np.ndarray
    mass: np.ndarray
    log_evidence: float

    @classmethod
    def of(cls, L: np.ndarray, noise: LabelNoise) -> Arcs:
        """From signed rows of shape (n, 2); rows that are zero are wrong everywhere."""
        crossing = np.arctan2(L[:, 1], L[:, 0])[L.any(axis=1)] + 0.5 * np.pi
        start = np.sort(np.mod(np.append(crossing, crossing + np.pi) + np.pi, 2.0 * np.pi) - np.pi)
        edges = np.append(start, start[0] + 2.0 * np.pi)
        middle = 0.5 * (edges[1:] + edges[:-1])
        is_wrong = np.column_stack([np.cos(middle), np.sin(middle)]) @ L.T <= 0.0
        is_wrong[:, ~L.any(axis=1)] = True
        with np.errstate(divide="ignore"):
            log_mass = np.log(np.diff(edges) / (2.0 * np.pi)) - noise.cost(is_wrong)
        total = logsumexp(log_mass)
        return cls(edges, is_wrong, np.exp(log_mass - total), float(total + noise.log_no_errors))

    @property
    def errors(self) -> np.ndarray:
        """Number of wrong rows on each arc."""
        return self.is_wrong.sum(axis=1)

    def turned(self, angle: np.ndarray) -> np.ndarray:
        """Angles moved by whole turns into [edges[0], edges[0] + 2 pi)."""
        return np.mod(angle - self.edges[0], 2.0 * np.pi) + self.edges[0]

    def cdf(self, angle: np.ndarray) -> np.ndarray:
        """Distribution function of the `turned` angle: linear on every arc."""
        return np.interp(angle, self.edges, np.append(0.0, np.cumsum(self.mass)))

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Exact posterior draws of the angle."""
        arc = rng.choice(len(self.mass), count, p=self.mass)
        return self.edges[arc] + np.diff(self.edges)[arc] * rng.random(count)

    def error_law(self) -> np.ndarray:
        """Posterior probabilities of e = 0..n errors."""
        return np.bincount(self.errors, self.mass, minlength=self.is_wrong.shape[1] + 1)


def on_the_circle(angle: np.ndarray) -> np.ndarray:
    """Unit vectors (..., 2) at the angles."""
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


# --- the equicorrelated case for any n, KGS-13 ---------------------------------------------------


def equicorrelated_log_z(eta: float, n: int) -> float:
    """log Z(eta) = log of int phi(z) (Phi(z) + exp(-eta) Phi(-z))^n dz, in closed form.

    G = (I + 11')/2, all labels +1: f_i = (z + z_i)/sqrt(2), and Phi(z) is uniform on [0, 1].
    """
    if eta == 0.0:
        return 0.0
    return float(np.log(-np.expm1(-(n + 1.0) * eta)) - np.log(n + 1.0) - np.log(-np.expm1(-eta)))


def equicorrelated_log_z_by_quadrature(eta: float, n: int) -> float:
    """The same integral by the trapezoid rule."""
    z = np.linspace(-12.0, 12.0, 200_001)
    log_integrand = n * np.log(ndtr(z) + np.exp(-eta) * ndtr(-z)) - 0.5 * z**2
    return float(logsumexp(log_integrand) + np.log((z[1] - z[0]) / np.sqrt(2.0 * np.pi)))


def equicorrelated_error_law(n: int) -> np.ndarray:
    """P(e = k) = int phi(z) C(n, k) Phi(-z)^k Phi(z)^(n-k) dz = 1/(n + 1) for k = 0..n."""
    return np.full(n + 1, 1.0 / (n + 1.0))


# --- ladders of rungs ----------------------------------------------------------------------------


def error_ladder(
    rng: np.random.Generator,
    law: np.ndarray,
    rung_costs: np.ndarray,
    n_sweeps: int,
    correlation: float = 0.0,
) -> np.ndarray:
    """Errors (n_sweeps, K): each rung a stationary chain on law(e) exp(-rung_costs[k, e]).

    Its draws are the quantiles of a normal autoregression of order one; rung 0 has independent
    ones, as in a ladder whose first rung is drawn from the prior.
    """
    noise = rng.standard_normal((n_sweeps, len(rung_costs)))
    z, a = noise.copy(), np.where(np.arange(len(rung_costs)) == 0, 0.0, correlation)
    for s in range(1, n_sweeps):
        z[s] = a * z[s - 1] + np.sqrt(1.0 - a**2) * noise[s]
    u = ndtr(z)
    with np.errstate(divide="ignore"):
        log_law = np.log(law) - rung_costs
    weight = np.exp(log_law - log_law.max(axis=1, keepdims=True))
    cdf = np.cumsum(weight, axis=1) / weight.sum(axis=1, keepdims=True)
    columns = [np.searchsorted(cdf[k], u[:, k]) for k in range(len(rung_costs))]
    return np.minimum(np.column_stack(columns), len(law) - 1)


# --- the learned rate by brute force, KGS-11 -----------------------------------------------------


@dataclass(frozen=True)
class RateGrid:
    """Beta(a, b) prior on [0, (C - 1)/C] on a fine grid of log(q / (limit - q))."""

    q: np.ndarray
    log_prior: np.ndarray  # of the mass at each point
    n_classes: int

    @classmethod
    def of(cls, prior: tuple[float, float], n_classes: int = 2, size: int = 400_001) -> RateGrid:
        """Normalised by the grid's own sum: no incomplete beta function in it."""
        limit = (n_classes - 1) / n_classes
        half_width = 40.0 / min(1.0, prior[0])
        x = np.linspace(-half_width, half_width, size)
        log_q = np.log(limit) - np.logaddexp(0.0, -x)
        q = np.exp(log_q)
        log_density = prior[0] * log_q + (prior[1] - 1.0) * np.log1p(-q) - np.logaddexp(0.0, x)
        return cls(q, log_density - logsumexp(log_density), n_classes)

    def log_joint(self, errors: int, n: int) -> np.ndarray:
        """Log of prior mass times the probability of n labels, given which are wrong."""
        log_wrong = np.log(self.q) - np.log(self.n_classes - 1.0)
        return self.log_prior + errors * log_wrong + (n - errors) * np.log1p(-self.q)

    def log_weight(self, errors: int, n: int) -> float:
        """Log of the probability of the labels with the rate integrated out."""
        return float(logsumexp(self.log_joint(errors, n)))

    def posterior(self, errors: int, n: int) -> np.ndarray:
        """Posterior mass at each point of ``q``."""
        log_joint = self.log_joint(errors, n)
        return np.exp(log_joint - logsumexp(log_joint))
