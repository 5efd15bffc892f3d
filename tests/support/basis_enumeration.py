"""The posterior over all sets of candidates by brute force: no Gram matrix, no update."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats
from scipy.special import gammaln, logsumexp

from mercer.basis.filter import Filter
from mercer.basis.model import Prior
from support.basis_cases import Design

LOG_SCALES = math.log(1e-6), math.log(1e6)
LOG_NOISES = math.log(1e-4), math.log(1e8)


def log_set_prior(kind: str, expected: float, largest: int, r: int) -> np.ndarray:
    """Of each subset of r candidates: by its size, cut and normalised, shared by its like."""
    k = np.arange(min(largest, r) + 1)
    pmf = stats.poisson.pmf(k, expected)
    if kind == "negative_binomial":
        pmf = stats.nbinom.pmf(k, 1, 1.0 / (1.0 + expected))
    each = pmf / pmf.sum() / np.array([math.comb(r, size) for size in k])
    sizes = np.array([mask.bit_count() for mask in range(1 << r)])
    result = np.full(1 << r, -math.inf)
    result[sizes <= k[-1]] = np.log(each[sizes[sizes <= k[-1]]])
    return result


def cover(prior: Prior, F: np.ndarray, y: np.ndarray, scales: np.ndarray):
    """Log determinant and y'C^-1 y of C = I + F R^-1 F', n x n, for each scale."""
    m = prior.n_mean
    of_mean, of_centres = F[:, :m] @ F[:, :m].T, F[:, m:] @ F[:, m:].T
    g = scales[:, None, None]
    factor = g if prior.is_sampled else 1.0 / prior.mean_precision
    C = np.eye(len(y)) + factor * of_mean + g * of_centres
    solved = np.linalg.solve(C, np.broadcast_to(y[:, None], (len(C), len(y), 1)))[..., 0]
    return np.linalg.slogdet(C)[1], solved @ y


def log_likelihood(prior: Prior, n: float, log_det, square, noise) -> np.ndarray:
    """Student's density, or the normal one where the noise variance is given."""
    if prior.is_sampled:
        return -0.5 * (n * np.log(2.0 * math.pi * noise) + log_det + square / noise)
    a, b = prior.noise_shape, prior.noise_rate
    constant = gammaln(a + 0.5 * n) - gammaln(a) - 0.5 * n * math.log(2.0 * math.pi * b)
    return constant - 0.5 * log_det - (a + 0.5 * n) * np.log1p(0.5 * square / b)


class Enumerated:
    """All levels, all subsets, and quadrature over the variances.

    Attributes
    ----------
    log_evidence : float
    probability : ndarray of shape (L, 2^r)
        Of a level and a set: bit c of the position stands for candidate c.
    """

    def __init__(
        self,
        filter_: Filter,
        design: Design,
        y: np.ndarray,
        n_nodes: int = 120,
        n_noises: int = 120,
    ) -> None:
        self.prior, self.n_mean = filter_.prior, filter_.grid.n_mean
        self.n_widths = filter_.grid.n_widths
        self.root = np.sqrt(design.weights)
        self.features, self.y = design.features, y * self.root
        self.n_rows = float(design.weights.sum())
        L, r = len(design.features), len(design.centres)
        sets = filter_.sets
        self.log_prior = log_set_prior(sets.kind, sets.expected, sets.largest, r)
        self.log_prior -= math.log(filter_.grid.n_widths)
        # After all rows the prior of the scalings has come to its place.
        log_scalings = filter_.grid.log_prior_after(len(y))
        self.log_scalings = np.repeat(log_scalings, filter_.grid.n_widths)
        self._nodes(n_nodes, n_noises)
        self.log_joint = np.full((L, 1 << r, len(self.scales), len(self.noises)), -math.inf)
        for level in range(L):
            for mask in np.flatnonzero(self.log_prior > -math.inf):
                self.log_joint[level, mask] = (
                    self.log_likelihood_of(level, int(mask), self.scales[:, None], self.noises)
                    + self.log_prior[mask]
                    + self.log_scalings[level]
                    + self.log_weights
                )
        self.log_evidence = float(logsumexp(self.log_joint))
        self.probability = np.exp(logsumexp(self.log_joint, axis=(2, 3)) - self.log_evidence)

    def _nodes(self, n_nodes: int, n_noises: int) -> None:
        """Gauss-Legendre nodes in logs, with the prior in their weights."""
        prior = self.prior
        u, weights = _legendre(*LOG_SCALES, n_nodes)
        self.scales, self.noises = np.exp(u), np.ones(1)
        law = stats.invgamma(prior.scale_shape, scale=prior.scale_rate)
        log_weights = np.log(weights)[:, None] + u[:, None]
        if not prior.is_sampled:
            kept = law.cdf(math.exp(LOG_SCALES[1])) - law.cdf(math.exp(LOG_SCALES[0]))
            self.log_weights = log_weights + law.logpdf(self.scales)[:, None] - math.log(kept)
            return
        v, noise_weights = _legendre(*LOG_NOISES, n_noises)
        self.noises = np.exp(v)
        noise_law = stats.invgamma(prior.noise_shape, scale=prior.noise_rate)
        log_weights = log_weights + np.log(noise_weights) + 2.0 * v + noise_law.logpdf(self.noises)
        self.log_weights = log_weights + law.logpdf(self.scales[:, None] * self.noises)

    def design_of(self, level: int, mask: int) -> np.ndarray:
        """Columns of the mean and of one set, times the roots of the rows' weights."""
        chosen = [self.n_mean + c for c in range(mask.bit_length()) if mask >> c & 1]
        columns = [*range(self.n_mean), *chosen]
        return self.features[level][:, columns] * self.root[:, None]

    def log_likelihood_of(self, level: int, mask: int, scales, noises) -> np.ndarray:
        """At a column of scales and a row of noise variances."""
        log_det, square = cover(self.prior, self.design_of(level, mask), self.y, scales.ravel())
        shape = scales.shape
        return log_likelihood(
            self.prior, self.n_rows, log_det.reshape(shape), square.reshape(shape), noises
        )

    def log_target(self, level: int, mask: int, scale: float, noise: float) -> float:
        """What a particle must carry: evidence times the prior of the set among its like."""
        value = self.log_likelihood_of(level, mask, np.array([scale]), np.array([noise]))
        return float(value[0] + self.log_prior[mask] + math.log(self.n_widths))

    def curve(self, rows: np.ndarray) -> np.ndarray:
        """Posterior mean of f, for rows (L, n, m + r) of the design."""
        weights = np.exp(self.log_joint - self.log_evidence).sum(axis=3)
        total = np.zeros(rows.shape[1])
        for level, mask in np.argwhere(self.probability > 1e-12):
            F = self.design_of(level, int(mask))
            chosen = [self.n_mean + c for c in range(int(mask).bit_length()) if mask >> c & 1]
            new = rows[level][:, [*range(self.n_mean), *chosen]]
            for scale, weight in zip(self.scales, weights[level, mask], strict=True):
                R = np.full(F.shape[1], 1.0 / scale)
                if not self.prior.is_sampled:
                    R[: self.n_mean] = self.prior.mean_precision
                total += weight * (new @ np.linalg.solve(F.T @ F + np.diag(R), F.T @ self.y))
        return total


def _legendre(low: float, high: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return 0.5 * (high - low) * (nodes + 1.0) + low, 0.5 * (high - low) * weights
