"""Particles with random sets, and what dense algebra says of them."""

from __future__ import annotations

import math

import numpy as np

from mercer.basis import population_loops as population
from support.basis_cases import (
    make_filter,
    masks_of,
    placed,
    plain_design,
    plain_statistics,
    problem,
)

CLOSE = {"rtol": 1e-10, "atol": 1e-10}


def assert_factor(U: np.ndarray, w: np.ndarray, expected: tuple[np.ndarray, np.ndarray]) -> None:
    p = len(expected[1])
    signs = np.sign(np.diag(U)[:p])
    np.testing.assert_allclose(signs[:, None] * np.triu(U[:p, :p]), expected[0], **CLOSE)
    np.testing.assert_allclose(signs * w[:p], expected[1], **CLOSE)


def of_a_kernel_at_the_row(kernel: np.ndarray, n_rows: float, scale: float) -> float:
    """Variance that it adds to a prediction, in noise variances, from the kernel at candidates.

    Of its coefficient: one over the precision that prior and rows give it, the others known; times
    what a process with that kernel, variance 1, keeps at the row once it is known at the nearest.
    """
    precision = 1.0 / scale + (n_rows / len(kernel)) * np.square(kernel).sum()
    covariance = np.array([[1.0, kernel.max()], [kernel.max(), 1.0]])
    return float((1.0 - covariance[0, 1] ** 2 / covariance[1, 1]) / precision)


class Population:
    """Particles with random sets after seven rows, and their dense twins."""

    def __init__(self, variances: str, has_linear_part: bool = True) -> None:
        self.filter = make_filter(variances=variances, has_linear_part=has_linear_part)
        self.X, self.y = problem(8)
        self.design = plain_design(self.filter, self.X[:7])
        self.statistics = plain_statistics(self.design, self.y[:7])
        self.m, rng = self.filter.grid.n_mean, np.random.default_rng(3)
        masks = np.array([mask for mask in range(1 << 7) if mask.bit_count() <= 3])
        N = len(masks)
        self.particles = placed(
            self.filter,
            masks,
            rng.integers(0, 2, N),
            rng.gamma(1.0, size=N),
            rng.gamma(1.0, size=N),
        )
        self.log_size = self.filter.sets.log_size(7)
        population.discount(self.statistics, self.filter.prior, self.log_size, self.particles)
        self.particles.log_weight[:] = np.log(rng.dirichlet(np.ones(N)))

    @property
    def masks(self) -> np.ndarray:
        return masks_of(self.particles, self.m)

    def columns(self, i: int) -> np.ndarray:
        return np.append(np.arange(self.m), self.particles.members[i, : self.particles.size[i]])

    def ridge(self, i: int) -> np.ndarray:
        prior, scale = self.filter.prior, self.particles.scale[i]
        R = np.full(len(self.columns(i)), 1.0 / scale)
        if not prior.is_sampled:
            R[: self.m] = prior.mean_precision
        return R

    def predicted(self, i: int, row: np.ndarray, *, is_plain: bool = False) -> tuple[float, float]:
        """Location and spread, from the sums; with a kernel at the row, if not plain."""
        p, level = self.particles, self.particles.level[i]
        columns, sums = self.columns(i), self.statistics
        A = sums.gram[level][np.ix_(columns, columns)] + np.diag(self.ridge(i))
        x = row[columns]
        mean = x @ np.linalg.solve(A, sums.moment[level][columns])
        assert p.size[i] + self.m == len(columns)
        spread = 1.0 + x @ np.linalg.solve(A, x)
        if not (self.filter.prior.is_sampled or is_plain):
            spread += of_a_kernel_at_the_row(row[self.m :], sums.n_rows, p.scale[i])
        return float(mean), float(spread)

    def log_target(self, i: int, statistics, log_size) -> float:
        """From the sums, by slogdet."""
        prior, columns = self.filter.prior, self.columns(i)
        level, R = self.particles.level[i], self.ridge(i)
        A = statistics.gram[level][np.ix_(columns, columns)] + np.diag(R)
        b, n = statistics.moment[level][columns], statistics.n_rows
        rss = statistics.square - b @ np.linalg.solve(A, b)
        value = 0.5 * np.log(R).sum() - 0.5 * np.linalg.slogdet(A)[1] - 0.5 * n * math.log(math.tau)
        if prior.is_sampled:
            noise = self.particles.noise[i]
            value += -0.5 * n * math.log(noise) - 0.5 * rss / noise
        else:
            a, rate = prior.noise_shape, prior.noise_rate
            value += math.lgamma(a + 0.5 * n) - math.lgamma(a) + a * math.log(rate)
            value -= (a + 0.5 * n) * math.log(rate + 0.5 * rss)
        return value + log_size[self.particles.size[i]]


def check_state(case: Population, statistics, log_size) -> None:
    """Factor, fit and target of every particle, worked out afresh."""
    particles = case.particles
    for i in range(len(particles.size)):
        level, columns = particles.level[i], case.columns(i)
        U = np.linalg.cholesky(
            statistics.gram[level][np.ix_(columns, columns)] + np.diag(case.ridge(i))
        ).T
        w = np.linalg.solve(U.T, statistics.moment[level][columns])
        assert_factor(particles.factor[i], particles.whitened[i], (U, w))
        np.testing.assert_allclose(particles.rss[i], statistics.square - w @ w, **CLOSE)
        np.testing.assert_allclose(particles.half_logdet[i], np.log(np.diag(U)).sum(), **CLOSE)
        target = case.log_target(i, statistics, log_size)
        np.testing.assert_allclose(particles.log_target[i], target, **CLOSE)
