"""One sweep over the rungs from exact starts of the product of tempered posteriors."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.likelihoods.label_noise import LabelNoise, row_rates
from mercer.sphere import tempering
from mercer.sphere.loops import swap_neighbours, tempered_sweeps
from mercer.sphere.tempering import TemperedSampler, TemperedState
from support.lift_cases import chi_square_excess, make_tempered, mutated
from support.sphere_cases import exact_draws, noises, pattern_number, pattern_posterior, powered
from support.statistics import few_first, tiers

L = np.array([[2.0, 0.0, 0.0], [0.8, 0.6, 0.0], [-0.3, 0.2, 0.5]])
POWERS = (0.0, 0.3, 0.6, 1.0)
CASES = {**noises(3), "one certain row": row_rates(np.array([0.2, 0.0, 0.1]))}
N_TESTS = len(CASES) * (len(POWERS) + 2)


@pytest.fixture(params=tiers(3_000, 10_000))
def count(request: pytest.FixtureRequest) -> int:
    """Of how many exact starts a test is."""
    return int(request.param)


def sampler_for(noise: LabelNoise, name: str) -> TemperedSampler:
    return make_tempered(L, noise, POWERS, (name,))


def largest_excess(sampler: TemperedSampler, count: int) -> float:
    """Of the cells of each rung, and of those of neighbours, which are independent.

    Half of the sweeps swap even pairs, half odd ones. Chi-square in units of its limit, false
    alarm 1e-6 over all cases.
    """
    rng, noise = np.random.default_rng(46), sampler.model.noise
    rungs = [powered(noise, power) for power in POWERS]
    starts = np.stack([exact_draws(rng, L, rung, count) for rung in rungs], axis=1)
    sampler.init(rng)
    cells = np.empty((count, len(POWERS)), np.int64)
    for k, g in enumerate(starts):
        points = np.stack([sampler.model.point(each) for each in g])
        end, _ = sampler.step(rng, TemperedState(points, k % 64))
        cells[k] = pattern_number(end.points[:, :3])
    laws = [pattern_posterior(L @ L.T, rung)[0] for rung in rungs]
    excess = [
        chi_square_excess(np.bincount(seen, minlength=8), count * law, N_TESTS)
        for seen, law in zip(cells.T, laws, strict=True)
    ]
    for k in (1, 2):
        pairs = np.bincount(8 * cells[:, k] + cells[:, k + 1], minlength=64)
        both = np.outer(laws[k], laws[k + 1]).ravel()
        excess.append(chi_square_excess(pairs, count * both, N_TESTS))
    return max(excess)


@pytest.mark.parametrize("kind", few_first(CASES, "fixed", "learned per class", "one certain row"))
def test_one_sweep(kind: str, count: int) -> None:
    assert largest_excess(sampler_for(CASES[kind], "hmc"), count) < 1.0


def test_one_sweep_of_lines(count: int) -> None:
    assert largest_excess(sampler_for(CASES["learned"], "lines"), count) < 1.0


def _without_the_costs(rng, points, costs, powers, first) -> float:
    """Neighbours swap with probability exp(-difference of powers)."""
    return swap_neighbours(rng, points, -np.arange(len(costs), dtype=float), powers, first)


def _other_way_round(rng, points, costs, powers, first) -> float:
    return swap_neighbours(rng, points, -costs, powers, first)


@pytest.mark.parametrize("swap", [_without_the_costs, _other_way_round])
def test_one_sweep_sees_other_swaps(swap, monkeypatch: pytest.MonkeyPatch) -> None:
    sweeps = mutated(tempering.tempered_sweeps, swap_neighbours=swap)
    monkeypatch.setattr(tempering, "tempered_sweeps", sweeps)
    assert largest_excess(sampler_for(CASES["fixed"], "hmc"), 8000) > 2.0


def _squared(rng, table, points, powers, *rest) -> None:
    tempered_sweeps(rng, table, points, powers**2, *rest)


@pytest.mark.parametrize("name", ["hmc", "lines"])
def test_one_sweep_sees_another_power(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempering, "tempered_sweeps", _squared)
    assert largest_excess(sampler_for(CASES["fixed"], name), 5000) > 2.0
