from __future__ import annotations

import numpy as np
import pytest

from mercer.sphere import several as moves
from mercer.sphere.several import SeveralState
from support.several_cases import make_model, make_several, record, separable


def test_the_state_holds_functions_and_their_values() -> None:
    model = make_model(30, 4, 3)
    sampler, rng = make_several(model, n_cycles=3), np.random.default_rng(1)
    state = sampler.init(rng)
    for _ in range(50):
        state, info = sampler.step(rng, state)
        g = state.point[:, 30:]
        np.testing.assert_allclose(state.point, model.point(g), atol=1e-11)
        assert info.n_errors == (np.argmax(state.point[:, :30], axis=0) != model.labels).sum()
        assert info.acceptance_rate == 1.0


def test_only_the_functions_of_a_state_count() -> None:
    """Values f are computed anew from g: they cannot drift."""
    model = make_model(30, 4, 3)
    sampler = make_several(model)
    state = sampler.init(np.random.default_rng(1))
    spoilt = state.point.copy()
    spoilt[:, :30] = np.nan
    expected, _ = sampler.step(np.random.default_rng(2), state)
    found, _ = sampler.step(np.random.default_rng(2), SeveralState(spoilt))
    np.testing.assert_array_equal(found.point, expected.point)


def test_without_noise_no_draw_has_an_error() -> None:
    model = separable(make_model(40, 5, 4))
    sampler, rng = make_several(model), np.random.default_rng(1)
    state = sampler.init(rng)
    for _ in range(300):
        state, info = sampler.step(rng, state)
        assert info.n_errors == 0


def test_record_hands_functions_and_values_to_the_recorder() -> None:
    model = make_model(6, 2, 3)
    sampler = make_several(model)
    state = sampler.init(np.random.default_rng(1))
    recorded = sampler.record(state)
    expected = record(state.point[:, :6], state.point[:, 6:])
    assert {name: value.shape for name, value in recorded.items()} == {
        "coef": (3, 2), "latent": (3, 6),
    }  # fmt: skip
    for name, value in expected.items():
        np.testing.assert_array_equal(recorded[name], value)


def test_a_trajectory_that_is_given_up_counts_as_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "_MAX_EVENTS_A_WALL", 0)
    model = make_model(30, 4, 3)
    sampler = make_several(model, ("hmc",), n_cycles=10)
    state = SeveralState(model.point(np.random.default_rng(1).standard_normal((3, 4))))
    end, info = sampler.step(np.random.default_rng(2), state)
    assert info.acceptance_rate == 0.0
    np.testing.assert_allclose(end.point, state.point, atol=1e-12)
