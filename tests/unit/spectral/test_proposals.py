from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from mercer.spectral.mixture import Mixture
from mercer.spectral.sampler import (
    ProposalTuning,
    SpectralInfo,
    SpectralSampler,
    StepAdaptation,
    propose,
)
from support.mixture_cases import BASES, CONCENTRATION
from support.spectral_cases import make_spectral, problem
from support.statistics import dkw_distance, dkw_limit

N = 20_000
LIMIT = dkw_limit(N, 6)


def standardised(step: float, base: str, how=propose) -> np.ndarray:
    """Proposals from exact draws of their law, in units of their component: shape (N,)."""
    mixture, rng = Mixture(BASES[base], CONCENTRATION), np.random.default_rng(21)
    state, _ = mixture.draw_prior(rng, N)
    W = mixture.centre(state) + mixture.draw_noise(rng, state)
    proposed = how(rng, mixture, state, W, ProposalTuning(step))
    stds = state.components.stds[state.assignment]
    return ((proposed - mixture.centre(state)) / stds)[:, 0]


@pytest.mark.parametrize("base", ["diagonal, 2 inputs", "full, 2 inputs"])
@pytest.mark.parametrize("step", [1.0, 0.5, 1e-3])
def test_the_law_of_the_components_is_kept(step: float, base: str) -> None:
    """False alarm 1e-6; detects 0.04."""
    assert dkw_distance(standardised(step, base), stats.norm.cdf) < LIMIT


def test_proposals_without_their_centre_are_seen() -> None:
    """Mutant: mu + rho W + noise."""

    def mutant(rng, mixture, state, W, tuning):
        shift = math.sqrt(1.0 - tuning.step**2) * mixture.centre(state)
        return propose(rng, mixture, state, W, tuning) + shift

    assert dkw_distance(standardised(0.5, "diagonal, 2 inputs", mutant), stats.norm.cdf) > LIMIT


def test_a_step_of_one_forgets_and_a_small_one_stays() -> None:
    mixture = Mixture(BASES["diagonal, 2 inputs"], CONCENTRATION)
    state, W = mixture.draw_prior(np.random.default_rng(1), 50)
    for step in (1.0, 0.3, 1e-6):
        here, there = (
            propose(np.random.default_rng(2), mixture, state, V, ProposalTuning(step))
            for V in (W, W + 1.0)
        )
        rho = math.sqrt(1.0 - step**2)
        np.testing.assert_allclose(there - here, rho, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(here, W, atol=1e-3)


def adapted(acceptance, n: int, first: float = 0.5) -> tuple[list[float], SpectralSampler]:
    """Steps of a warm-up of n sweeps that accept a share that depends on the step."""
    X, y = problem(5, 1)
    sampler = make_spectral(X, y, step=first)
    adaptation, steps = StepAdaptation(), []
    learned = adaptation.init(sampler)
    for _ in range(n):
        steps.append(sampler.tuning.step)
        info = SpectralInfo(acceptance(steps[-1]), steps[-1], 0.0, 0.0)
        learned, sampler = adaptation.update(learned, sampler, None, info)
    return steps, adaptation.finish(learned, sampler)


@pytest.mark.parametrize("wanted", [0.02, 0.2, 0.7])
def test_the_step_that_is_accepted_three_times_in_ten_is_found(wanted: float) -> None:
    """With acceptance exp(-c step), c such that it is 0.3 at the step that is wanted."""
    c = -math.log(0.3) / wanted
    _, sampler = adapted(lambda step: math.exp(-c * step), 60)
    assert sampler.tuning.step == pytest.approx(wanted, rel=0.15)


def test_steps_stay_in_their_range() -> None:
    steps, sampler = adapted(lambda step: 1.0, 60)
    assert max(steps) <= 1.0
    assert sampler.tuning.step <= 1.0
    steps, sampler = adapted(lambda step: 0.0, 300)
    assert min(steps) >= 0.99e-6
    assert 0.0 < sampler.tuning.step < 1e-3


@pytest.mark.parametrize("n", [0, 1, 5, 6])
def test_a_short_warm_up(n: int) -> None:
    _, sampler = adapted(lambda step: 0.3, n)
    assert sampler.tuning.step == pytest.approx(0.5)


def test_the_longer_the_local_step_the_more_proposals_are_global() -> None:
    """Nine in ten where a local proposal is a new draw from the component."""
    for accepted, share in ((1.0, 0.9), (0.0, 0.5)):
        _, sampler = adapted(lambda step, rate=accepted: rate, 40)
        assert sampler.tuning.global_share == pytest.approx(share, abs=0.02)


def test_nothing_else_of_the_sampler_changes() -> None:
    X, y = problem(5, 1)
    sampler = make_spectral(X, y)
    new = StepAdaptation().with_tuning(sampler, ProposalTuning(0.1))
    assert sampler.tuning.step == 0.5
    for field in dataclasses.fields(sampler):
        if field.name != "tuning":
            assert getattr(new, field.name) is getattr(sampler, field.name)


def test_more_rows_as_warm_up_goes_on() -> None:
    """One level more after each of the numbers of sweeps; in the end all, however short it was."""
    sampler = make_spectral(*problem(5, 1))
    adaptation = StepAdaptation((2, 3))
    learned, levels = adaptation.init(sampler), []
    for _ in range(5):
        levels.append(sampler.tuning.level)
        info = SpectralInfo(0.3, sampler.tuning.step, 0.0, 0.0)
        learned, sampler = adaptation.update(learned, sampler, None, info)
    assert levels == [0, 0, 1, 2, 2]
    fresh = make_spectral(*problem(5, 1))
    assert adaptation.finish(adaptation.init(fresh), fresh).tuning.level == 2


def test_steps_of_several_sweeps_begin_after_warm_up() -> None:
    sampler, adaptation = make_spectral(*problem(5, 1)), StepAdaptation(n_sweeps=4)
    info = SpectralInfo(0.3, sampler.tuning.step, 0.0, 0.0)
    learned, warming = adaptation.update(adaptation.init(sampler), sampler, None, info)
    assert warming.tuning.n_sweeps == 1
    assert adaptation.finish(learned, warming).tuning.n_sweeps == 4


@pytest.mark.parametrize(
    ("refused", "n_anew", "n_sweeps"), [(0.0, 4, 3), (0.24, 4, 3), (0.3, 3, 5), (0.6, 0, 5)]
)
def test_many_are_proposed_anew_where_hardly_any_is_refused(
    refused: float, n_anew: int, n_sweeps: int
) -> None:
    """About as many of four as leave one refusal; all of them: half the sweeps."""
    sampler, adaptation = make_spectral(*problem(5, 1)), StepAdaptation(n_sweeps=5)
    learned = adaptation.init(sampler)
    info = SpectralInfo(0.3, sampler.tuning.step, 0.0, 1.0 - refused)
    for _ in range(6):
        learned, sampler = adaptation.update(learned, sampler, None, info)
        assert sampler.tuning.n_anew == 0
    tuning = adaptation.finish(learned, sampler).tuning
    assert (tuning.n_anew, tuning.n_sweeps) == (n_anew, n_sweeps)
