from __future__ import annotations

import numpy as np
import pytest

from mercer.sampling.hmc import mass_windows
from mercer.sphere import several as module
from mercer.sphere.several import QUARTER, WINDOW, SeveralAdaptation, SeveralState
from support.several_cases import make_model, make_several

# Of the functions fed to the adaptation: axes and standard deviations along them.
AXES = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0]
SPREAD = np.array([0.8, 0.2, 0.05])


def feed(n_warmup: int = 400, n_classes: int = 3, spread: np.ndarray = SPREAD):
    """Warm up on independent draws of a known covariance around different means of classes."""
    model = make_model(12, 3, n_classes)
    sampler, tuner = make_several(model), SeveralAdaptation(n_warmup)
    learned, rng = tuner.init(sampler), np.random.default_rng(2)
    means = 3.0 * rng.standard_normal((n_classes, 3))
    for _ in range(n_warmup):
        g = means + (spread * rng.standard_normal((n_classes, 3))) @ AXES.T
        learned, sampler = tuner.update(learned, sampler, SeveralState(model.point(g)), None)
    return tuner.finish(learned, sampler)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_directions_and_widths_are_those_of_the_covariance(n_classes: int) -> None:
    moves = feed(n_classes=n_classes).moves
    np.testing.assert_allclose(moves.directions.T @ moves.directions, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(np.abs(np.diag(AXES.T @ moves.directions)), 1.0, atol=0.01)
    np.testing.assert_allclose(moves.widths, WINDOW * SPREAD, rtol=0.2)
    assert moves.duration == pytest.approx(QUARTER)
    np.testing.assert_allclose(moves.rows, make_model(12, 3, n_classes).L @ moves.directions)


def test_duration_is_six_standard_deviations_where_that_is_short() -> None:
    moves = feed(spread=0.1 * SPREAD).moves
    assert moves.duration == pytest.approx(0.6 * np.sqrt(np.mean(SPREAD**2)), rel=0.2)


def test_a_mean_over_classes_that_wanders_teaches_nothing() -> None:
    """Labels say nothing of it, and it is drawn anew in every cycle."""
    plain = feed()
    model = make_model(12, 3, 3)
    sampler, tuner = make_several(model), SeveralAdaptation(400)
    learned, rng = tuner.init(sampler), np.random.default_rng(2)
    means, wander = 3.0 * rng.standard_normal((3, 3)), np.random.default_rng(3)
    for _ in range(400):
        g = means + (SPREAD * rng.standard_normal((3, 3))) @ AXES.T
        g += 5.0 * wander.standard_normal(3)
        learned, sampler = tuner.update(learned, sampler, SeveralState(model.point(g)), None)
    np.testing.assert_allclose(sampler.moves.widths, plain.moves.widths, rtol=1e-9)


def test_above_the_limit_of_the_rank_axes_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGEST_ROTATED", 2)
    warm = feed()
    fresh = make_several(make_model(12, 3, 3))
    np.testing.assert_array_equal(warm.moves.directions, fresh.moves.directions)
    variances = np.diag(fresh.moves.directions.T @ (AXES * SPREAD**2) @ AXES.T
                        @ fresh.moves.directions)  # fmt: skip
    np.testing.assert_allclose(warm.moves.widths, WINDOW * np.sqrt(variances), rtol=0.2)


def test_moves_change_at_the_ends_of_windows_only() -> None:
    model = make_model(12, 3, 3)
    sampler, tuner, rng = make_several(model), SeveralAdaptation(200), np.random.default_rng(1)
    learned, state, changes = tuner.init(sampler), sampler.init(rng), []
    for k in range(1, 201):
        before = sampler.moves
        state, info = sampler.step(rng, state)
        learned, sampler = tuner.update(learned, sampler, state, info)
        assert learned.n_seen == k
        if sampler.moves is not before:
            changes.append(k)
            assert learned.count == 0
    assert tuple(changes) == mass_windows(200)[1]
    assert tuner.finish(learned, sampler) is sampler


def test_widths_never_close_and_never_exceed_the_prior() -> None:
    moves = feed(spread=np.array([30.0, 1.0, 0.0])).moves
    assert moves.widths.max() == pytest.approx(WINDOW)
    assert moves.widths.min() >= WINDOW * 1e-6
