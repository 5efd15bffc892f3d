"""SMC-1: the evidence of every subset is the density of a multivariate normal or Student's t."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from mercer.basis.filter import Filter
from mercer.basis.loops import constants, refactor
from mercer.basis.population_loops import discount
from support.basis_cases import (
    make_filter,
    masks_of,
    placed,
    plain_design,
    plain_statistics,
    problem,
)
from support.basis_enumeration import Enumerated

T = 8
SCALES, NOISES = np.array([1e-3, 0.4, 1.7, 300.0]), np.array([0.02, 0.2, 1.0, 5.0])
KINDS = [("integrated", False), ("integrated", True), ("sampled", False), ("sampled", True)]


def library_density(filter_: Filter, F: np.ndarray, y: np.ndarray, scale: float, noise: float):
    """Log p(y), the coefficients (and the noise variance) integrated out by the library."""
    prior = filter_.prior
    variances = np.full(F.shape[1], scale)
    if prior.is_sampled:
        covariance = noise * (np.eye(len(y)) + (F * variances) @ F.T)
        return stats.multivariate_normal(np.zeros(len(y)), covariance).logpdf(y)
    variances[: prior.n_mean] = 1.0 / prior.mean_precision
    shape = prior.noise_rate / prior.noise_shape * (np.eye(len(y)) + (F * variances) @ F.T)
    return stats.multivariate_t(np.zeros(len(y)), shape, df=2.0 * prior.noise_shape).logpdf(y)


@pytest.mark.parametrize(("variances", "has_linear_part"), KINDS)
@pytest.mark.parametrize("n", [1, 4, T])
def test_smc_1_every_subset(n: int, variances: str, has_linear_part: bool) -> None:
    """All 2^n sets, at two levels and four pairs of variances: as the library and as n x n."""
    X, y = problem(n)
    filter_ = make_filter(variances=variances, largest=n, has_linear_part=has_linear_part)
    design = plain_design(filter_, X)
    exact = Enumerated(filter_, design, y, 4, 4)
    masks = np.tile(np.arange(1 << n), 2)
    level = np.repeat([0, 1], 1 << n)
    which = np.arange(len(masks)) % len(SCALES)
    particles = placed(filter_, masks, level, SCALES[which], NOISES[which])
    discount(plain_statistics(design, y), filter_.prior, np.zeros(n + 2), particles)
    found = particles.log_target
    for i in range(len(masks)):
        own = int(level[i]), int(masks[i])
        scale, noise = particles.scale[i], particles.noise[i]
        library = library_density(filter_, exact.design_of(*own), y, scale, noise)
        grid = exact.log_likelihood_of(*own, scale.reshape(1, 1), noise.reshape(1))
        assert abs(found[i] - library) < 1e-10 * max(abs(library), 1.0)
        assert abs(found[i] - grid[0, 0]) < 1e-10 * max(abs(library), 1.0)


@pytest.mark.parametrize(("variances", "has_linear_part"), KINDS)
def test_smc_1_rows_one_by_one(variances: str, has_linear_part: bool) -> None:
    """What `Filter.learn` accumulates over the rows is the same density (SMC-13 has more)."""
    X, y = problem(T)
    filter_ = make_filter(variances=variances, has_linear_part=has_linear_part, n_particles=20)
    rng = np.random.default_rng(0)
    state = filter_.init(rng)
    for x, target in zip(X, y, strict=True):
        state, _ = filter_.learn(rng, state, x, float(target))
    design = plain_design(filter_, X)
    exact, particles = Enumerated(filter_, design, y, 4, 4), state.particles
    masks = masks_of(particles, filter_.grid.n_mean)
    for i, mask in enumerate(masks):
        level, scale, noise = particles.level[i], particles.scale[i], particles.noise[i]
        F = exact.design_of(int(level), int(mask))
        expected = library_density(filter_, F, y, scale, noise) + exact.log_prior[mask] + np.log(2)
        assert abs(particles.log_target[i] - expected) < 1e-10 * abs(expected)


def test_smc_1_refactor_agrees_with_the_sums() -> None:
    """One particle again gives the same as all."""
    X, y = problem(T)
    filter_ = make_filter()
    design = plain_design(filter_, X)
    statistics = plain_statistics(design, y)
    particles = placed(filter_, np.array([0b1011]), np.array([1]), np.ones(1), np.ones(1))
    discount(statistics, filter_.prior, np.zeros(5), particles)
    before = particles.log_target[0]
    shape, constant = constants(filter_.prior, statistics.n_rows)
    columns = np.empty(particles.factor.shape[1], np.int64)
    again = refactor(statistics, filter_.prior, shape, constant, particles, 0, columns)
    assert again == before
