"""SMC-12: what the filter says of a target before it learns it is a density."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from mercer.basis.filter import Filter, Seen, State, copied
from support.basis_cases import (
    make_filter,
    masks_of,
    plain_design,
    plain_kernel,
    problem,
    run,
)
from support.basis_enumeration import Enumerated, cover
from support.basis_runs import CASES, case
from support.basis_twins import of_a_kernel_at_the_row

# y = sinh(u): tails of Student's t are exponential in u, and the trapezoid rule converges fast.
NODES = np.linspace(-14.0, 14.0, 351)


def _learned(filter_: Filter, state: State, x: np.ndarray, y: float) -> tuple[State, Seen]:
    return filter_.learn(np.random.default_rng(7), copied(state), x, y)


def integral(log_density, nodes: np.ndarray = NODES) -> float:
    """Over all targets."""
    values = [math.exp(log_density(math.sinh(u))) * math.cosh(u) for u in nodes]
    return float(np.sum(values) * (nodes[1] - nodes[0]))


@pytest.mark.parametrize("name", CASES)
def test_smc_12_integrates_to_one(name: str) -> None:
    """The fifth row, given four."""
    filter_, X, y = case(name)
    state = run(filter_, X[:4], y[:4], np.random.default_rng(1))
    learned = partial(_learned, filter_, state, X[4])
    assert abs(integral(lambda v: learned(v)[1].log_density) - 1.0) < 1e-8


@pytest.mark.parametrize("name", CASES)
def test_smc_12_is_the_mixture(name: str) -> None:
    """Components by dense algebra from each particle's set and variances; their log density."""
    filter_, X, y = case(name)
    state = run(filter_, X[:4], y[:4], np.random.default_rng(1))
    rng = np.random.default_rng(7)
    prepared = filter_._resampled(rng, copied(state))
    particles, seen = prepared.particles, _learned(filter_, state, X[4], float(y[4]))[1]
    np.testing.assert_array_equal(seen.log_weights, particles.log_weight)
    assert seen.n_centres == pytest.approx(np.exp(particles.log_weight) @ particles.size)
    locations, scales = dense_components(filter_, X, y, particles)
    np.testing.assert_allclose(seen.means, locations, atol=1e-9)
    np.testing.assert_allclose(seen.variances, scales**2, rtol=1e-9)
    law = stats.norm if math.isinf(seen.degrees) else partial(stats.t, seen.degrees)
    each = law(locations, scales).logpdf(y[4])
    assert abs(logsumexp(seen.log_weights + each) - seen.log_density) < 1e-9


def dense_components(filter_: Filter, X, y, particles) -> tuple[np.ndarray, np.ndarray]:
    """From covers of four rows and of five: no update of anything."""
    four = plain_design(filter_, X[:4])
    weights = four.weights
    # The fifth row as candidates held after four see it.
    five = plain_design_of_new(filter_, X, four)
    prior, masks = filter_.prior, masks_of(particles, filter_.grid.n_mean)
    locations, scales = np.empty(len(masks)), np.empty(len(masks))
    root = np.sqrt(np.append(weights, 1.0))
    targets = root[:4] * y[:4]
    for i, mask in enumerate(masks):
        chosen = [filter_.grid.n_mean + c for c in range(int(mask).bit_length()) if mask >> c & 1]
        F = five[particles.level[i]][:, [*range(filter_.grid.n_mean), *chosen]] * root[:, None]
        m, scale = filter_.grid.n_mean, particles.scale[i]
        R = np.full(F.shape[1], scale)
        R[:m] = scale if prior.is_sampled else 1.0 / prior.mean_precision
        C = np.eye(5) + (F * R) @ F.T
        solved = np.linalg.solve(C[:4, :4], C[:4, 4])
        locations[i], spread = solved @ targets, C[4, 4] - solved @ C[:4, 4]
        noise = particles.noise[i]
        if not prior.is_sampled:
            _, square = cover(prior, F[:4], targets, np.array([scale]))
            noise = (prior.noise_rate + 0.5 * square[0]) / (prior.noise_shape + 0.5 * weights.sum())
            at_candidates = five[particles.level[i]][4, m:]
            spread += of_a_kernel_at_the_row(at_candidates, float(weights.sum()), scale)
        scales[i] = math.sqrt(noise * spread)
    return locations, scales


def plain_design_of_new(filter_: Filter, X, four) -> np.ndarray:
    """Features of four rows, then of the fifth."""
    grid = filter_.grid
    new = [
        np.concatenate([grid.mean(X[[4]])[0], plain_kernel(grid, X[[4]], four.centres, lv)[0]])
        for lv in range(grid.n_levels)
    ]
    return np.concatenate([four.features, np.array(new)[:, None]], axis=1)


def test_smc_12_the_ratio_of_evidences_is_none() -> None:
    """The mutant: Z_t / Z_{t-1}, by enumeration, over all targets is not 1; nor is the filter's.

    The prior of the sets changes where a candidate comes in.
    """
    X, y = problem(5)
    filter_ = make_filter(n_particles=400, largest=3)
    four = Enumerated(filter_, plain_design(filter_, X[:4]), y[:4]).log_evidence
    design = plain_design(filter_, X)

    def ratio(v: float) -> float:
        return Enumerated(filter_, design, np.append(y[:4], v), 60).log_evidence - four

    found = integral(ratio, NODES[::4])
    assert abs(found - 1.0) > 0.02
    state = run(filter_, X[:4], y[:4], np.random.default_rng(1))
    learned = partial(_learned, filter_, state, X[4])
    mutant = integral(lambda v: learned(v)[0].log_evidence - state.log_evidence, NODES[::4])
    assert abs(mutant - 1.0) > 0.01
