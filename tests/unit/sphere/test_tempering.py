"""Rungs: the prior at one end, the posterior at the other, swaps between."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.likelihoods.label_noise import fixed_rate, row_rates
from mercer.sphere.loops import swap_neighbours
from mercer.sphere.tempering import TemperedState
from support.lift_cases import make_tempered
from support.sphere_cases import noisy_rows

N, R = 15, 3
L = noisy_rows(N, R)


def test_the_first_rung_is_the_prior_where_no_label_is_certain() -> None:
    assert make_tempered(L).is_prior_free
    certain = make_tempered(L, row_rates(np.where(np.arange(N) == 0, 0.0, 0.3)))
    assert not certain.is_prior_free


@pytest.mark.parametrize("names", [("hmc", "lines"), ("lines",)])
def test_a_sweep(names) -> None:
    sampler, rng = make_tempered(L, names=names), np.random.default_rng(1)
    state = sampler.init(rng)
    for k in range(40):
        before = state
        state, info = sampler.step(rng, state)
        assert state.n_steps == k + 1
        assert state.points.shape == (3, N + R)
        np.testing.assert_allclose(state.points[:, :N], state.points[:, N:] @ L.T, atol=1e-9)
        assert info.n_errors == np.count_nonzero(state.points[-1, :N] <= 0.0)
        assert 0.0 <= info.acceptance_rate <= 1.0
        assert (before.points != state.points).any(axis=1).all()
    assert sampler.record(state)["g"] == pytest.approx(state.points[-1, N:])


def test_the_first_rung_is_a_fresh_draw_from_the_prior() -> None:
    """Whatever stood there before, unless a swap takes it away."""
    sampler = make_tempered(L)
    state = sampler.init(np.random.default_rng(2))
    odd = TemperedState(state.points, 1)  # swaps rungs 1 and 2 only
    other = TemperedState(np.concatenate([7.0 * state.points[:1], state.points[1:]]), 1)
    one, _ = sampler.step(np.random.default_rng(3), odd)
    two, _ = sampler.step(np.random.default_rng(3), other)
    np.testing.assert_array_equal(one.points, two.points)


def test_a_certain_row_is_right_on_every_rung() -> None:
    model_rows = L * np.sign(L @ [1.0, 0.5, -0.2])[:, np.newaxis]
    sampler = make_tempered(model_rows, fixed_rate(0.0, N))
    rng = np.random.default_rng(4)
    state = sampler.init(rng)
    for _ in range(60):
        state, info = sampler.step(rng, state)
        assert (state.points[:, :N] > 0.0).all()
        assert info.n_errors == 0


def test_swaps() -> None:
    """A rung with fewer errors always moves to the higher power; the other way with chance."""
    sampler = make_tempered(L)
    g = np.linalg.lstsq(L, np.ones(N), rcond=None)[0]
    good, bad = sampler.model.point(g), sampler.model.point(-g)
    gap = sampler.model.noise.cost(bad[:N] <= 0.0) - sampler.model.noise.cost(good[:N] <= 0.0)
    assert gap > 1.0

    def swap(seed: int, points: np.ndarray) -> float:
        costs = sampler.model.noise.cost(points[:, :N] <= 0.0)
        powers = np.array(sampler.powers)[: len(points)]
        return swap_neighbours(np.random.default_rng(seed), points, costs, powers, 1)

    for seed in range(20):
        points = np.stack([good, good, bad])
        assert swap(seed, points) == 1.0
        np.testing.assert_array_equal(points, np.stack([good, bad, good]))
    points = np.stack([good, bad, good])
    assert swap(0, points) == pytest.approx(np.exp(-0.6 * gap))
    assert swap(0, points[:1]) == 1.0


def test_sweeps_are_steps_in_one_call() -> None:
    """The same law, wrong rows of every sweep, f = L g; impossible errors never made."""
    sampler, rng = make_tempered(L), np.random.default_rng(3)
    state, is_wrong, acceptance_rate, n_events = sampler.sweeps(rng, sampler.init(rng), 50)
    assert state.n_steps == 50
    assert is_wrong.shape == (50, 3, N)
    np.testing.assert_array_equal(is_wrong[-1], state.points[:, :N] <= 0.0)
    np.testing.assert_allclose(state.points[:, :N], state.points[:, N:] @ L.T, atol=1e-9)
    assert 0.0 < acceptance_rate < 1.0
    assert n_events > 0
    fewer = is_wrong.sum(axis=2).mean(axis=0)
    assert fewer[0] > fewer[1] > fewer[2]
