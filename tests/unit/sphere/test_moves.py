"""Cycles of moves: what is used, what is left alone, what is counted."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.likelihoods.label_noise import fixed_rate
from mercer.sphere import sampler as module
from mercer.sphere.sampler import MOVES, Moves, Passed, SphereModel, default_moves
from support.sphere_cases import noises, noisy_rows

N, R = 20, 3


def model_of(kind: str = "fixed") -> tuple[SphereModel, np.ndarray]:
    noise, g = noises(N)[kind], np.random.default_rng(1).standard_normal(R)
    L = noisy_rows(N, R)
    L[noise.row_cost >= 1e6] *= np.sign(L[noise.row_cost >= 1e6] @ g)[:, np.newaxis]
    return SphereModel(L, noise), g


def moves_of(model: SphereModel, *names: str) -> Moves:
    return Moves(names, 1.0, model.extended(np.eye(R)))


def test_the_default_cycle() -> None:
    assert default_moves(1) == ("lines",)
    assert default_moves(2, 3) == ("hmc", "hmc", "hmc", "lines")
    assert default_moves(20) == ("hmc", "lines")
    assert default_moves(21, 2) == ("hmc", "hmc")
    assert set(default_moves(5)) <= set(MOVES)


@pytest.mark.parametrize("names", [("hmc",), ("lines",), ("great_circle",), MOVES])
@pytest.mark.parametrize("kind", noises(N))
def test_a_pass_keeps_f_and_leaves_its_input_alone(names, kind: str) -> None:
    model, g = model_of(kind)
    moves, point, rng = moves_of(model, *names), model.point(g), np.random.default_rng(2)
    assert moves.n_drawn == sum(name != "lines" for name in names)
    drawn = model.extended(rng.standard_normal((moves.n_drawn, R)))
    before = point.copy(), drawn.copy()
    end, passed = moves.apply(rng, model, model.noise, point, drawn)
    np.testing.assert_array_equal(point, before[0])
    np.testing.assert_array_equal(drawn, before[1])
    np.testing.assert_allclose(end[:N], model.L @ end[N:], atol=1e-9)
    assert not np.allclose(end, point)
    assert passed.is_whole
    assert (passed.n_events > 0) == ("hmc" in names)
    assert passed.n_reflections <= passed.n_events
    assert (passed.n_crossings > 0) == ("lines" in names)


def test_velocities_are_used_in_order() -> None:
    model, g = model_of()
    point, drawn = model.point(g), model.extended(np.random.default_rng(3).standard_normal((2, R)))
    both, _ = moves_of(model, "hmc", "hmc").apply(
        np.random.default_rng(4), model, model.noise, point, drawn
    )
    rng, one_by_one = np.random.default_rng(4), point
    for k in range(2):
        one_by_one, _ = moves_of(model, "hmc").apply(
            rng, model, model.noise, one_by_one, drawn[k : k + 1]
        )
    np.testing.assert_allclose(both, one_by_one, atol=1e-9)


def test_durations_vary_by_a_fifth() -> None:
    """Without walls in the way the angle of a flight is its duration."""
    model = SphereModel(np.zeros((1, 2)), fixed_rate(0.2, 1))
    moves, rng = Moves(("hmc",), 0.5, np.empty((0, 3))), np.random.default_rng(5)
    point, drawn = np.array([0.0, 1.0, 0.0]), np.array([[0.0, 0.0, 1.0]])
    angles = []
    for _ in range(300):
        end = moves.apply(rng, model, model.noise, point, drawn)[0]
        angles.append(np.arctan2(end[2], end[1]))
    assert 0.4 <= min(angles) < 0.41
    assert 0.59 < max(angles) <= 0.6


def test_great_circles_alone_draw_the_length() -> None:
    """They keep |g|; its law is chi with r degrees of freedom, whatever the direction."""
    model, g = model_of()
    moves, rng, point = moves_of(model, "great_circle"), np.random.default_rng(6), model.point(g)
    squared = []
    for _ in range(2000):
        drawn = model.extended(rng.standard_normal((1, R)))
        point, _ = moves.apply(rng, model, model.noise, point, drawn)
        point = model.point(point[N:])
        squared.append(point[N:] @ point[N:])
    assert np.mean(squared) == pytest.approx(R, abs=6.0 * np.sqrt(2.0 * R / 2000))


def test_a_trajectory_with_too_many_events_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_EVENTS_A_ROW", 0)
    model, g = model_of()
    point, drawn = model.point(g), model.extended(np.random.default_rng(7).standard_normal((1, R)))
    end, passed = moves_of(model, "hmc").apply(
        np.random.default_rng(8), model, model.noise, point, drawn
    )
    assert not passed.is_whole
    np.testing.assert_array_equal(end, point)


def test_counts_add_up() -> None:
    both = Passed(True, 3, 1, 4) + Passed(False, 2, 2, 1)
    assert both == Passed(False, 5, 3, 5)
