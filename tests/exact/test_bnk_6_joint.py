"""BNK-6: the whole sweep leaves the joint law of state and targets as it is."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable

import pytest

from mercer.spectral import sampler as spectral_sampler
from mercer.spectral.base_measure import DiagonalComponents
from mercer.spectral.mixture import Mixture
from mercer.spectral.model import RidgeDensity
from mercer.spectral.sampler import SpectralSampler
from support.spectral_joint import (
    CASES,
    decide_by_the_prior,
    distances,
    limit,
    only_carries,
)
from support.statistics import few_first, tiers

N_RUNS, N_STEPS = 300, 3


# The others are two of these together, or one of these of the other base measure.
_FIRST = (
    "diagonal, pcn, linear part",
    "full, prior, linear part",
    "diagonal, all global",
    "diagonal, half global, scale drawn",
)


@pytest.mark.parametrize("n", tiers(150, 300))
@pytest.mark.parametrize("case", few_first(CASES, *_FIRST))
def test_bnk_6_joint(case: str, n: int) -> None:
    """False alarm 1e-6 over the 96 distances; detects 0.5 (300 runs: 0.35)."""
    found = distances(case, n, N_STEPS)
    assert max(found.values()) < limit(n), found


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_bnk_6_joint_with_more_runs(case: str) -> None:
    """False alarm 1e-6 over the 96 distances; detects 0.09."""
    found = distances(case, 5000, 5, seed=63)
    assert max(found.values()) < limit(5000), found


def forget_the_centre(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proposals mu + rho W + noise: the step back to the centre is forgotten."""

    def propose(rng, mixture, state, frequencies, tuning):
        rho = math.sqrt(1.0 - tuning.step**2)
        noise = tuning.step * mixture.draw_noise(rng, state)
        return mixture.centre(state) + rho * frequencies + noise

    monkeypatch.setattr(spectral_sampler, "propose", propose)


def keep_the_sines(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coefficient of a sine stays where the frequency changes its sign."""
    turn = SpectralSampler._turn

    def turned(self, rng, state):
        return dataclasses.replace(turn(self, rng, state), coef=state.coef)

    monkeypatch.setattr(SpectralSampler, "_turn", turned)


def forget_the_jacobian(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slice is on log ridge, the density that of the ridge."""
    density = RidgeDensity.__call__
    monkeypatch.setattr(RidgeDensity, "__call__", lambda self, x: density(self, x) - x)


def ignore_the_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """All proposals are accepted."""
    decide = spectral_sampler.decide
    monkeypatch.setattr(
        spectral_sampler,
        "decide",
        lambda joint, u, *noise: decide(joint, u - 1e9, *noise),
    )


def leave_the_members(monkeypatch: pytest.MonkeyPatch) -> None:
    """Components move, their members stay."""
    monkeypatch.setattr(DiagonalComponents, "carry", lambda self, W, assignment, others: W)


def forget_the_prior_of_scales(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scale of the base measure is accepted by the evidence alone."""
    propose = Mixture.propose_scale

    def proposed(self, rng, state, W):
        return *propose(self, rng, state, W)[:2], 0.0

    monkeypatch.setattr(Mixture, "propose_scale", proposed)


MUTANTS: list[tuple[Callable[[pytest.MonkeyPatch], None], str, int]] = [
    (forget_the_jacobian, "diagonal, prior", 3),
    (forget_the_centre, "diagonal, pcn, linear part", 6),
    (keep_the_sines, "full, prior, linear part", 3),
    (ignore_the_targets, "full, prior, linear part", 3),
    (ignore_the_targets, "diagonal, all global", 3),
]


@pytest.mark.parametrize(("mutant", "case", "n_steps"), MUTANTS)
def test_bnk_6_sees(mutant, case: str, n_steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    found = distances(case, N_RUNS, n_steps)
    assert max(found.values()) > 1.2 * limit(N_RUNS), found


CARRIED = [case for case in CASES if case.endswith("scale drawn")]


@pytest.mark.slow
@pytest.mark.parametrize("case", CARRIED)
def test_bnk_6_components_with_their_members(case: str) -> None:
    """Moves of components and scales alone; false alarm 1e-6, detects 0.35."""
    found = distances(case, N_RUNS, 3, take=only_carries)
    assert max(found.values()) < limit(N_RUNS), found


@pytest.mark.parametrize(
    "mutant", [decide_by_the_prior, leave_the_members, forget_the_prior_of_scales]
)
def test_bnk_6_sees_members_left(mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    found = distances(CARRIED[0], N_RUNS, 3, take=only_carries)
    assert max(found.values()) > 1.2 * limit(N_RUNS), found


def take_all_that_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frequencies proposed anew together are accepted whatever the targets say."""
    propose = Mixture.propose_anew

    def proposed(self, rng, state, W, n):
        return *propose(self, rng, state, W, n)[:2], 1e9

    monkeypatch.setattr(Mixture, "propose_anew", proposed)


ANEW = functools.partial(only_carries, n_times=3)


@pytest.mark.parametrize("n", tiers(150, 1000))
@pytest.mark.parametrize("case", few_first(CARRIED, CARRIED[0]))
@pytest.mark.parametrize("n_anew", few_first((3, 4), 4))
def test_bnk_6_many_anew_together(case: str, n_anew: int, n: int) -> None:
    """Those moves with three or all of four frequencies anew; false alarm 1e-6, detects 0.5.

    Of 1000 runs 0.2.
    """
    found = distances(case, n, 2, take=functools.partial(ANEW, n_anew=n_anew))
    assert max(found.values()) < limit(n), found


def test_bnk_6_sees_all_that_is_new_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    take_all_that_is_new(monkeypatch)
    found = distances(CARRIED[0], 150, 2, take=functools.partial(ANEW, n_anew=4))
    assert max(found.values()) > 1.2 * limit(150), found
