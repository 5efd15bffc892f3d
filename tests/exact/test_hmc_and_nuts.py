"""HMC, NUTS and Metropolis against eight exact moments of a correlated and skewed target.

False alarm 1e-6 per test (50 batches, eight moments). The chains start in equilibrium; step sizes
are so large that the energy error matters, and the mass fits the target badly on purpose.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from mercer.sampling import nuts
from mercer.sampling.metropolis import Metropolis
from support.mutants import (
    AcceptsAll,
    accept_everything,
    draw_momentum_from_the_covariance,
    keep_the_momentum,
)
from support.statistics import largest_z, tiers, z_limit
from support.targets import (
    exact_draws,
    exact_moments,
    make_hmc,
    make_metropolis,
    make_nuts,
    moments,
    run,
    uneven_mass,
)

_BATCHES = 50
_LIMIT = z_limit(_BATCHES, 8)


def error(sampler, n_steps: int = 12_000) -> float:
    draws, _ = run(sampler, n_steps, seed=9)
    return largest_z(moments(draws), exact_moments(), _BATCHES)


def jittered_hmc():
    return make_hmc(0.6, mass=uneven_mass())


def fixed_hmc():
    return make_hmc(0.7, n_leapfrog=4)


def coarse_nuts():
    return make_nuts(0.8, mass=uneven_mass())


def random_walk():
    return make_metropolis(1.0, mass=uneven_mass())


def shallow_nuts():
    """Trajectories that end at the largest depth, not at a turn."""
    return make_nuts(0.35, max_depth=2)


def test_moments_of_exact_draws() -> None:
    draws = exact_draws(np.random.default_rng(1), 50_000)
    assert largest_z(moments(draws), exact_moments(), _BATCHES) < _LIMIT


SHALLOW = pytest.param(shallow_nuts, marks=pytest.mark.slow)


@pytest.mark.parametrize("n_steps", tiers(4_000, 12_000))
@pytest.mark.parametrize("make", [jittered_hmc, fixed_hmc, coarse_nuts, SHALLOW, random_walk])
def test_moments(make, n_steps: int) -> None:
    assert error(make(), n_steps) < _LIMIT


@pytest.mark.parametrize(
    ("make", "mutate"),
    [
        (fixed_hmc, accept_everything),
        (jittered_hmc, draw_momentum_from_the_covariance),
        (fixed_hmc, keep_the_momentum),
        (coarse_nuts, draw_momentum_from_the_covariance),
    ],
)
def test_moments_see_broken_trajectories(make, mutate, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    assert error(make()) > _LIMIT


def test_moments_see_a_walk_that_takes_every_proposal() -> None:
    class Takes(Metropolis):
        def step(self, rng, state):
            return super().step(AcceptsAll(rng), state)

    walk = random_walk()
    mutant = Takes(walk.target, walk.start, walk.recorder, walk.tuning, walk.n_moves)
    assert error(mutant) > _LIMIT


def flat_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points of a trajectory drawn uniformly, whatever their energy."""
    leaf = nuts._leaf
    monkeypatch.setattr(
        nuts, "_leaf", lambda *args: dataclasses.replace(leaf(*args), log_weight=0.0)
    )


def bias_within(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bias towards the new half also within a new half, where it has no place."""
    join = nuts._join
    monkeypatch.setattr(nuts, "_join", lambda *args, is_biased: join(*args, is_biased=True))


def take_from_a_stretch_that_turned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points are also drawn from a new half that was cut off because it turned."""
    join = nuts._join

    def careless(rng, old, new, forward, mass, *, is_biased):
        blind = dataclasses.replace(new, is_turning=False)
        joined = join(rng, old, blind, forward, mass, is_biased=is_biased)
        return dataclasses.replace(joined, is_turning=joined.is_turning or new.is_turning)

    monkeypatch.setattr(nuts, "_join", careless)


@pytest.mark.parametrize("mutate", [flat_weights, bias_within, take_from_a_stretch_that_turned])
def test_moments_see_broken_nuts(mutate, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    assert error(coarse_nuts()) > _LIMIT
