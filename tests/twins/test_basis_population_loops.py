"""The compiled loops over all particles against NumPy, with the same uniform numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from mercer.basis import population_loops as population
from support.basis_cases import plain_design, plain_statistics
from support.basis_twins import CLOSE, Population, check_state

VARIANCES = ["integrated", "sampled"]


def test_huge_log_weights_are_normalised_as_others_are() -> None:
    """After a jump of 1e5 they are such; resampling wants a sum of 1 to 5e-9."""
    log_weight = -1e9 * np.linspace(1.0, 1.0 + 1e-9, 30)
    assert population.normalise(log_weight) == pytest.approx(-1e9)
    assert np.exp(log_weight).sum() == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("variances", VARIANCES)
def test_discount(variances: str) -> None:
    case = Population(variances)
    sums, before = case.statistics, case.particles.log_weight.copy()
    less = sums._replace(gram=0.6 * sums.gram, moment=0.6 * sums.moment, square=0.6 * sums.square,
        n_rows=0.6 * sums.n_rows)  # fmt: skip
    old = case.particles.log_target.copy()
    gain = population.discount(less, case.filter.prior, case.log_size, case.particles)
    new = [case.log_target(i, less, case.log_size) for i in range(len(old))]
    expected = before + np.array(new) - old
    np.testing.assert_allclose(case.particles.log_target, new, **CLOSE)
    np.testing.assert_allclose(gain, np.log(np.exp(expected).sum()), **CLOSE)
    np.testing.assert_allclose(case.particles.log_weight, expected - gain, **CLOSE)


@pytest.mark.parametrize("variances", VARIANCES)
def test_learn_row_and_predict_rows(variances: str) -> None:
    case = Population(variances)
    design = plain_design(case.filter, case.X)
    rows = np.ascontiguousarray(design.features[:, 7, : case.m + 7])
    particles, prior, N = case.particles, case.filter.prior, len(case.particles.size)
    y, n = float(case.y[7]), 7.0
    at = [rows[level] for level in particles.level]
    locations, spreads = np.array([case.predicted(i, at[i]) for i in range(N)]).T
    plain = np.array([case.predicted(i, at[i], is_plain=True)[1] for i in range(N)])
    found = np.full((2, 2, N), np.nan)
    for level in range(2):
        which = np.flatnonzero(particles.level == level)
        twice = np.stack([rows[level], rows[level]])
        population.predict_rows(twice, which, n, prior, particles, found[0], found[1])
    np.testing.assert_allclose(found[0], [locations, locations], **CLOSE)
    np.testing.assert_allclose(found[1], [spreads, spreads], **CLOSE)
    if prior.is_sampled:
        noise, law = particles.noise.copy(), stats.norm
    else:
        shape = prior.noise_shape + 0.5 * n
        noise, law = (prior.noise_rate + 0.5 * particles.rss) / shape, stats.t(2.0 * shape)
    logs, healed = (
        law.logpdf((y - locations) / np.sqrt(noise * each)) - 0.5 * np.log(noise * each)
        for each in (plain, spreads)
    )
    assert prior.is_sampled or (spreads > plain).any()
    before, means, widths = particles.log_weight.copy(), np.empty(N), np.empty(N)
    gain, said = population.learn_row(rows, y, 7, n, prior, particles, means, widths)
    weights = before + logs
    np.testing.assert_allclose(means, locations, **CLOSE)
    np.testing.assert_allclose(widths, noise * spreads, **CLOSE)
    np.testing.assert_allclose(said, np.log(np.exp(before + healed).sum()), **CLOSE)
    np.testing.assert_allclose(gain, np.log(np.exp(weights).sum()), **CLOSE)
    np.testing.assert_allclose(particles.log_weight, weights - gain, **CLOSE)
    more = plain_statistics(design, case.y)
    check_state(case, more, case.log_size)


@pytest.mark.parametrize("variances", VARIANCES)
@pytest.mark.parametrize("slot", [0, 3, 6])
def test_drop_candidate(slot: int, variances: str) -> None:
    case = Population(variances)
    old, weight = case.masks, case.particles.log_weight.copy()
    size, after = case.particles.size, case.filter.sets.log_size(6)
    gain = population.drop_candidate(
        case.statistics, case.filter.prior, case.log_size, after, case.m + slot, case.particles
    )
    np.testing.assert_array_equal(case.masks, old & ~(1 << slot))
    expected = np.empty(len(old))
    for i in range(len(old)):
        parents = [case.log_target(i, case.statistics, case.log_size), -math.inf]
        target = case.log_target(i, case.statistics, after)
        if size[i] < case.filter.sets.largest:
            case.particles.members[i, size[i]] = case.m + slot
            size[i] += 1
            parents[1] = case.log_target(i, case.statistics, case.log_size)
            size[i] -= 1
        expected[i] = weight[i] + target - np.logaddexp(*parents)
    np.testing.assert_allclose(gain, np.log(np.exp(expected).sum()), **CLOSE)
    np.testing.assert_allclose(case.particles.log_weight, expected - gain, **CLOSE)
    check_state(case, case.statistics, after)


@pytest.mark.parametrize("variances", VARIANCES)
def test_extend(variances: str) -> None:
    """From sets without the last candidate; one uniform number a particle, in their order."""
    case, seen = Population(variances), 0
    population.drop_candidate(
        case.statistics, case.filter.prior, case.log_size, case.filter.sets.log_size(6), case.m + 6,
        case.particles,
    )  # fmt: skip
    old, weight = case.masks, case.particles.log_weight.copy()
    target, size = case.particles.log_target.copy(), case.particles.size.copy()
    before = case.filter.sets.log_size(6)
    gain = population.extend(
        np.random.default_rng(4), case.statistics, case.filter.prior, before, case.log_size,
        case.m + 6, case.particles,
    )  # fmt: skip
    uniforms = np.random.default_rng(4).random(len(old))
    check_state(case, case.statistics, case.log_size)
    expected = np.empty(len(old))
    for i, u in enumerate(uniforms):
        took = case.masks[i] != old[i]
        children = [target[i] - before[size[i]] + case.log_size[size[i]], -math.inf]
        if size[i] < case.filter.sets.largest:
            case.particles.members[i, size[i]], case.particles.size[i] = case.m + 6, size[i] + 1
            children[1] = case.log_target(i, case.statistics, case.log_size)
            case.particles.size[i] = size[i] + took
        expected[i] = weight[i] + np.logaddexp(*children) - target[i]
        assert took == (math.log(1.0 - u) < children[1] - np.logaddexp(*children))
        seen += took
    assert 5 < seen < len(old) - 5
    np.testing.assert_allclose(gain, np.log(np.exp(expected).sum()), **CLOSE)
    np.testing.assert_allclose(case.particles.log_weight, expected - gain, **CLOSE)
