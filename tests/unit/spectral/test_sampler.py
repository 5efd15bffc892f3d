from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from mercer.spectral.mixture import Mixture
from mercer.spectral.model import coefficients, feature_kernel
from mercer.spectral.rows import MemoryRows
from mercer.spectral.sampler import ProposalTuning, SpectralSampler, SpectralState
from support.mixture_cases import BASES, CONCENTRATION
from support.spectral_cases import (
    drawn_coef,
    make_spectral,
    marginal_law,
    plain_design,
    problem,
)

X, Y = problem(30, 2)


def after(sampler: SpectralSampler, n_steps: int, seed: int = 5) -> SpectralState:
    rng = np.random.default_rng(seed)
    state = sampler.init(rng)
    for _ in range(n_steps):
        state, _ = sampler.step(rng, state)
    return state


def test_start() -> None:
    """Frequencies of each factor of the scales in a component of their own."""
    sampler = make_spectral(X, Y, n_frequencies=300)
    state = sampler.init(np.random.default_rng(0))
    np.testing.assert_array_equal(state.mixture.counts, [150, 150])
    stds = [state.frequencies[state.mixture.assignment == k].std() for k in (0, 1)]
    np.testing.assert_allclose(stds, [0.5, 1.0], rtol=0.2)
    assert state.ridge == sampler.start.ridge


@pytest.mark.parametrize("n_frequencies", [1, 2])
def test_fewer_frequencies_than_factors(n_frequencies: int) -> None:
    sampler = make_spectral(X, Y, n_frequencies=n_frequencies)
    sampler = dataclasses.replace(
        sampler, start=dataclasses.replace(sampler.start, factors=(0.3, 1.0, 2.5))
    )
    assert np.isfinite(after(sampler, 3).coef.log_evidence)


@pytest.mark.parametrize("has_linear_part", [False, True])
def test_products_are_those_of_the_frequencies(has_linear_part: bool) -> None:
    """Also of those that a step has turned, whose sines are turned with them."""
    sampler = make_spectral(X, Y, has_linear_part=has_linear_part, n_frequencies=15)
    rng = np.random.default_rng(1)
    state, n_turned = sampler.init(rng), 0
    turn = SpectralSampler._turn
    for _ in range(20):
        before = state
        state, _ = sampler.step(rng, state)
        F = np.column_stack([plain_design(state.frequencies, X, has_linear_part), Y])
        np.testing.assert_allclose(state.gram, F.T @ F, atol=1e-11)
        n_turned += int((state.frequencies == -before.frequencies).all(axis=1).sum())
    assert n_turned > 5
    turned = turn(sampler, rng, state)
    for values in (state.coef.mean, drawn_coef(state)):
        old = plain_design(state.frequencies, X, has_linear_part) @ values
        signs = np.ones(len(values))
        is_turned = (turned.frequencies == -state.frequencies).all(axis=1)
        signs[1 : 2 * len(is_turned) : 2] = np.where(is_turned, -1.0, 1.0)
        new = plain_design(turned.frequencies, X, has_linear_part) @ (signs * values)
        np.testing.assert_allclose(new, old, atol=1e-12)
    np.testing.assert_allclose(turned.coef.mean, signs * state.coef.mean)


@pytest.mark.parametrize("has_linear_part", [False, True])
def test_coefficients_are_those_of_the_frequencies(has_linear_part: bool) -> None:
    """Mean and evidence of the precisions before those of the linear part were drawn."""
    sampler = make_spectral(X, Y, has_linear_part=has_linear_part, n_frequencies=6)
    rng = np.random.default_rng(2)
    before = sampler.init(rng)
    state, info = sampler.step(rng, before)
    model = sampler.model
    prior = model.prior_precisions(12, state.ridge, before.linear_precision)
    law = coefficients(model, sampler.rows.gram(state.frequencies), prior)
    np.testing.assert_allclose(state.coef.mean, law.mean, rtol=1e-6, atol=1e-9)
    assert state.coef.log_evidence == pytest.approx(law.log_evidence, rel=1e-10)
    assert info.log_density == state.coef.log_evidence


def test_a_ridge_that_is_given_stays() -> None:
    state = after(make_spectral(X, Y, is_ridge_learned=False, ridge=0.37), 5)
    assert state.ridge == 0.37
    assert after(make_spectral(X, Y, ridge=0.37), 5).ridge != 0.37


def test_without_a_linear_part_its_precision_stays() -> None:
    assert after(make_spectral(X, Y, has_linear_part=False), 5).linear_precision == 1.0


def test_what_a_draw_stores() -> None:
    sampler = make_spectral(X, Y, n_frequencies=6, n_deviations=3)
    state = after(sampler, 3)
    record = sampler.record(state)
    assert record["coef_deviation"].shape == (3, 12 + 3)
    assert record["coef_mean"].shape == (15,)
    assert record["frequencies"].shape == (6, 2)
    assert float(record["noise_std"]) == math.sqrt(state.coef.noise_variance)
    assert int(record["n_components"]) == state.mixture.n_components
    expected = feature_kernel(state.frequencies, sampler.probe.lags)
    np.testing.assert_array_equal(record["kernel"], expected)
    F = plain_design(state.frequencies, sampler.probe.rows, True)
    np.testing.assert_allclose(record["function"], F @ drawn_coef(state), rtol=1e-10, atol=1e-12)


def test_acceptance_is_a_share_of_the_frequencies() -> None:
    sampler = make_spectral(X, Y, n_frequencies=10, step=0.3)
    rng = np.random.default_rng(6)
    state = sampler.init(rng)
    for _ in range(5):
        new, info = sampler.step(rng, state)
        stayed = (np.abs(new.frequencies) == np.abs(state.frequencies)).all(axis=1)
        assert info.acceptance_rate == pytest.approx(1.0 - stayed.mean())
        assert info.step_size == 0.3
        state = new


@pytest.mark.parametrize("case", BASES)
def test_every_base_measure(case: str) -> None:
    base = BASES[case]
    own = X[:, : base.n_inputs]
    sampler = make_spectral(own, Y, base=base, n_frequencies=8)
    sampler = dataclasses.replace(sampler, mixture=Mixture(base, CONCENTRATION))
    assert np.isfinite(after(sampler, 10).coef.log_evidence)


def with_few(level: int) -> SpectralSampler:
    """A sampler whose warm-up looks at 8, then 15, then all 30 rows."""
    sampler = make_spectral(X, Y, n_frequencies=8)
    few = tuple(MemoryRows(X[:n], Y[:n], True) for n in (8, 15))
    return dataclasses.replace(sampler, few=few, tuning=ProposalTuning(0.5, level))


def test_fewer_rows_in_warm_up() -> None:
    """Products and evidence are those of the rows that are looked at, also when these change."""
    rng = np.random.default_rng(3)
    state = with_few(0).init(rng)
    for level, n in ((0, 8), (0, 8), (1, 15), (2, 30), (2, 30)):
        sampler = with_few(level)
        before = state
        state, info = sampler.step(rng, state)
        assert state.n_rows == n
        F = plain_design(state.frequencies, X[:n], True)
        C = np.column_stack([F, Y[:n]])
        np.testing.assert_allclose(state.gram, C.T @ C, atol=1e-12)
        model = dataclasses.replace(sampler.model, n_rows=n)
        prior = model.prior_precisions(16, state.ridge, before.linear_precision)
        expected = marginal_law(model, F, prior).logpdf(Y[:n])
        assert info.log_density == pytest.approx(expected, rel=1e-9)


def test_all_rows_are_looked_at_in_the_end() -> None:
    """A step at the last level is that of a sampler without others."""
    plain = make_spectral(X, Y, n_frequencies=8)
    state = plain.init(np.random.default_rng(3))
    first, second = (
        sampler.step(np.random.default_rng(4), state)[0] for sampler in (plain, with_few(2))
    )
    np.testing.assert_array_equal(first.frequencies, second.frequencies)
    np.testing.assert_array_equal(first.coef.mean, second.coef.mean)


def test_a_step_of_several_sweeps() -> None:
    """It ends where so many steps of one sweep do, and reports their mean acceptance."""
    one = make_spectral(X, Y, global_share=0.5)
    three = dataclasses.replace(one, tuning=dataclasses.replace(one.tuning, n_sweeps=3))
    rngs = [np.random.default_rng(8) for _ in range(2)]
    state, infos = one.init(rngs[0]), []
    end, info = three.step(rngs[1], one.init(rngs[1]))
    for _ in range(3):
        state, each = one.step(rngs[0], state)
        infos.append(each)
    np.testing.assert_array_equal(end.frequencies, state.frequencies)
    np.testing.assert_array_equal(end.coef.mean, state.coef.mean)
    assert info.log_density == infos[-1].log_density
    for name in ("acceptance_rate", "global_acceptance"):
        expected = np.mean([getattr(each, name) for each in infos])
        assert getattr(info, name) == pytest.approx(expected)
