"""The chain: blocks of velocities drawn ahead, values computed anew, what it tells."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.likelihoods.label_noise import fixed_rate
from mercer.sphere import sampler as moves
from mercer.sphere.sampler import SphereModel, SphereState
from support.lift_cases import make_sphere
from support.sphere_cases import noisy_rows

N, R = 25, 3
MODEL = SphereModel(noisy_rows(N, R), fixed_rate(0.2, N))
CYCLES = [("hmc", "lines"), ("lines",), ("great_circle",), ("hmc",) * 5, ("hmc",) * 40]


@pytest.mark.parametrize("names", CYCLES, ids=len)
def test_the_state_holds_what_it_says(names) -> None:
    sampler, rng = make_sphere(MODEL, *names), np.random.default_rng(1)
    state = sampler.init(rng)
    n_drawn = sampler.moves.n_drawn
    for _ in range(70):
        before = state
        state, info = sampler.step(rng, state)
        np.testing.assert_allclose(state.point[:N], MODEL.L @ state.point[N:], atol=1e-9)
        assert info.n_errors == np.count_nonzero(state.point[:N] <= 0.0)
        assert info.acceptance_rate == 1.0
        assert state.n_used <= max(len(state.block), n_drawn)
        np.testing.assert_allclose(state.block[:, :N], state.block[:, N:] @ MODEL.L.T, atol=1e-12)
        if n_drawn and before.block is state.block:
            assert state.n_used == before.n_used + n_drawn
        else:
            assert state.n_used == n_drawn


def test_no_velocity_is_used_twice() -> None:
    sampler, rng = make_sphere(MODEL, "hmc", "hmc"), np.random.default_rng(2)
    state, blocks = sampler.init(rng), []
    for _ in range(40):
        state, _ = sampler.step(rng, state)
        if not blocks or blocks[-1] is not state.block:
            blocks.append(state.block)
    assert [len(block) for block in blocks] == [32, 32, 32]
    assert len(np.unique(np.concatenate(blocks)[:, N])) == 96


def test_values_are_computed_anew_with_each_block() -> None:
    """Errors of rounding in f do not live longer than a block."""
    sampler, rng = make_sphere(MODEL, "hmc"), np.random.default_rng(3)
    state = sampler.init(rng)
    spoilt = SphereState(np.append(state.point[:N] * 1.0001, state.point[N:]), state.block, 0)
    expected, _ = sampler.step(np.random.default_rng(4), state)
    found, _ = sampler.step(np.random.default_rng(4), spoilt)
    np.testing.assert_array_equal(found.point, expected.point)


def test_record_hands_both_parts_to_the_recorder() -> None:
    sampler = make_sphere(MODEL, "hmc", "lines")
    state = sampler.init(np.random.default_rng(5))
    recorded = sampler.record(state)
    np.testing.assert_array_equal(recorded["f"], state.point[:N])
    np.testing.assert_array_equal(recorded["g"], state.point[N:])


def test_a_trajectory_that_is_given_up_counts_as_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "MAX_EVENTS_A_ROW", 0)
    sampler, rng = make_sphere(MODEL, "hmc"), np.random.default_rng(6)
    state = sampler.init(rng)
    end, info = sampler.step(rng, state)
    assert info.acceptance_rate == 0.0
    np.testing.assert_array_equal(end.point, state.point)


@pytest.mark.parametrize("names", CYCLES[:3], ids=len)
def test_without_noise_no_draw_has_an_error(names) -> None:
    rng = np.random.default_rng(7)
    L = MODEL.L * np.sign(MODEL.L @ rng.standard_normal(R))[:, np.newaxis]
    sampler = make_sphere(SphereModel(L, fixed_rate(0.0, N)), *names)
    state = sampler.init(rng)
    first = state.point
    for _ in range(200):
        state, info = sampler.step(rng, state)
        assert info.n_errors == 0
    assert not np.allclose(first, state.point)
