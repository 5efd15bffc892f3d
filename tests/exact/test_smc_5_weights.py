"""SMC-5: W pi(U') q(U | U') = pi'(U) L(U' | U) for all pairs of sets; both kernels sum to 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
from scipy import stats

from mercer.basis import population_loops as compiled
from mercer.basis.filter import Filter
from mercer.basis.model import Particles, Statistics
from mercer.basis.population_loops import discount, normalise
from support.basis_cases import (
    make_filter,
    masks_of,
    placed,
    plain_design,
    plain_statistics,
    problem,
)
from support.basis_enumeration import Enumerated, log_set_prior
from support.statistics import FALSE_ALARM

REPEATS = 400
SETTINGS = [
    {},
    {"largest": 1, "kind": "negative_binomial"},
    {"largest": 7, "expected": 0.7},
    {"variances": "sampled", "has_linear_part": True},
]


@dataclass
class Case:
    """t rows and all their inputs as candidates; targets with and without the last of them."""

    settings: dict
    t: int

    @cached_property
    def filter(self) -> Filter:
        return make_filter(**self.settings)

    @cached_property
    def exact(self) -> Enumerated:
        X, y = problem(self.t)
        return Enumerated(self.filter, plain_design(self.filter, X), y, 4, 4)

    @cached_property
    def statistics(self) -> Statistics:
        X, y = problem(self.t)
        return plain_statistics(plain_design(self.filter, X), y)

    def log_prior(self, mask: int, r: int) -> float:
        """Of a set among the subsets of r candidates; any will do that has its size."""
        sets = self.filter.sets
        values = log_set_prior(sets.kind, sets.expected, sets.largest, r)
        size = mask.bit_count()
        return float(values[(1 << size) - 1]) if size <= r else -np.inf

    def log_target(self, particles: Particles, i: int, mask: int, r: int) -> float:
        prior = self.log_prior(mask, r)
        if prior == -np.inf:
            return prior
        scale, noise = particles.scale[i : i + 1, None], particles.noise[i : i + 1]
        level = int(particles.level[i])
        return float(self.exact.log_likelihood_of(level, mask, scale, noise)[0, 0]) + prior

    def particles(self, masks: list[int], repeats: int, log_size: np.ndarray) -> Particles:
        """Each set at both levels and two pairs of variances, so many times; weights 1."""
        kept = [m for m in masks if m.bit_count() <= self.filter.sets.largest]
        grid = np.array([(m, level, pair) for m in kept for level in (0, 1) for pair in (0, 1)])
        mask, level, pair = np.repeat(grid, repeats, axis=0).T
        scale, noise = np.array([0.3, 4.0])[pair], np.array([0.1, 0.6])[pair]
        particles = placed(self.filter, mask, level, scale, noise)
        discount(self.statistics, self.filter.prior, log_size, particles)
        particles.log_weight[:] = 0.0
        return particles

    def is_consistent(self, particles: Particles, log_size: np.ndarray) -> bool:
        """Whether factor and target are those of the set, worked out afresh."""
        target = particles.log_target.copy()
        discount(self.statistics, self.filter.prior, log_size, particles)
        return bool(np.abs(target - particles.log_target).max() < 1e-10)


def errors_of_extension(case: Case, extend: Callable) -> tuple[float, float]:
    """Largest error of a log weight or target; least probability of the choices, Bonferroni."""
    r, m = case.t - 1, case.filter.grid.n_mean
    before, after = case.filter.sets.log_size(r), case.filter.sets.log_size(r + 1)
    particles = case.particles(list(range(1 << r)), REPEATS, before)
    old = masks_of(particles, m)
    rng = np.random.default_rng(5)
    total = extend(rng, case.statistics, case.filter.prior, before, after, m + r, particles)
    log_weight, new = particles.log_weight + total, masks_of(particles, m)
    worst, probabilities = 0.0, []
    for i in range(0, len(old), REPEATS):
        own = slice(i, i + REPEATS)
        parent = case.log_target(particles, i, int(old[i]), r)
        children = [case.log_target(particles, i, int(old[i]) | add, r + 1) for add in (0, 1 << r)]
        both = np.logaddexp(*children)
        worst = max(worst, np.abs(log_weight[own] - (both - parent)).max())
        took = new[own] != old[i]
        assert np.all(new[own][took] == old[i] | 1 << r)
        worst = max(
            worst, np.abs(particles.log_target[own] - np.where(took, *children[::-1])).max()
        )
        q = min(float(np.exp(children[1] - both)), 1.0)
        probabilities.append(stats.binomtest(int(took.sum()), REPEATS, q).pvalue)
    assert case.is_consistent(particles, after)
    return worst, min(probabilities) * len(probabilities)


def errors_of_retirement(case: Case, slot: int, drop_candidate: Callable) -> tuple[float, float]:
    """Largest error of a log weight or target; of the ways back, which must sum to 1."""
    r, m = case.t, case.filter.grid.n_mean
    before, after = case.filter.sets.log_size(r), case.filter.sets.log_size(r - 1)
    particles = case.particles(list(range(1 << r)), 1, before)
    old = masks_of(particles, m)
    total = drop_candidate(case.statistics, case.filter.prior, before, after, m + slot, particles)
    log_weight, new = particles.log_weight + total, masks_of(particles, m)
    worst, ways_back = 0.0, {}
    for i, parent in enumerate(old):
        child = int(parent) & ~(1 << slot)
        assert new[i] == child
        target = case.log_target(particles, i, child, r - 1)
        worst = max(worst, abs(particles.log_target[i] - target))
        own = case.log_target(particles, i, int(parent), r)
        parents = [case.log_target(particles, i, child | add, r) for add in (0, 1 << slot)]
        worst = max(worst, abs(log_weight[i] - (target - np.logaddexp(*parents))))
        key = child, particles.level[i], particles.scale[i]
        ways_back[key] = ways_back.get(key, 0.0) + np.exp(own + log_weight[i] - target)
    assert case.is_consistent(particles, after)
    return worst, max(abs(value - 1.0) for value in ways_back.values())


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("t", [1, 2, 3, 5])
def test_smc_5_extend(t: int, settings: dict) -> None:
    """Weights to 1e-10; choices with false alarm 1e-6 over all sets of a case; detects 0.25."""
    worst, probability = errors_of_extension(Case(settings, t), compiled.extend)
    assert worst < 1e-10
    assert probability > FALSE_ALARM


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("t", [1, 2, 3, 5])
def test_smc_5_drop_candidate(t: int, settings: dict) -> None:
    """Each slot; weights, and the sum of pi(U) W / pi'(V) over both parents U of V, to 1e-10."""
    for slot in range(t):
        worst, sums = errors_of_retirement(Case(settings, t), slot, compiled.drop_candidate)
        assert max(worst, sums) < 1e-10


def ratio_of_targets(loop: Callable) -> Callable:
    """The weight without the kernel that chose (extend) or leads back (drop)."""

    def mutant(*arguments):
        particles = arguments[-1]
        weight, target = particles.log_weight.copy(), particles.log_target.copy()
        loop(*arguments)
        particles.log_weight[:] = weight + particles.log_target - target
        return normalise(particles.log_weight)

    return mutant


def other_odds(extend: Callable) -> Callable:
    """The new candidate is preferred by one nat, the prior of larger sets raised for the choice."""

    def mutant(rng, statistics, prior, before, after, column, particles):
        raised = after + np.arange(len(after))
        return extend(rng, statistics, prior, before, raised, column, particles)

    return mutant


def test_smc_5_sees() -> None:
    case = Case(SETTINGS[0], 4)
    assert errors_of_extension(case, ratio_of_targets(compiled.extend))[0] > 0.1
    worst, sums = errors_of_retirement(case, 1, ratio_of_targets(compiled.drop_candidate))
    assert min(worst, sums) > 0.1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Case, "is_consistent", lambda *_: True)
        assert errors_of_extension(case, other_odds(compiled.extend))[1] < 1e-3 * FALSE_ALARM
