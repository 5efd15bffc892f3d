"""Warm-up: lengths of trajectories and directions of lines from the spread of g."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.likelihoods.label_noise import fixed_rate
from mercer.sphere.sampler import (
    QUARTER,
    SphereAdaptation,
    SphereModel,
    SphereSampler,
    SphereTuning,
    _n_needed,
    first_moves,
)
from support.lift_cases import make_sphere
from support.sphere_cases import noisy_rows


def warmed(sampler: SphereSampler, n_warmup: int) -> SphereSampler:
    adaptation, rng = SphereAdaptation(n_warmup), np.random.default_rng(1)
    learned, state = adaptation.init(sampler), sampler.init(rng)
    for _ in range(n_warmup):
        state, info = sampler.step(rng, state)
        learned, sampler = adaptation.update(learned, sampler, state, info)
    return adaptation.finish(learned, sampler)


def narrow() -> SphereModel:
    """Many rows and little noise: g is held in a narrow cone."""
    return SphereModel(noisy_rows(300, 3, 0.0), fixed_rate(0.02, 300))


def test_the_first_moves() -> None:
    wide = SphereModel(noisy_rows(4, 30), fixed_rate(0.2, 4))
    assert first_moves(("hmc",), wide).duration == QUARTER
    assert first_moves(("hmc",), narrow()).duration == pytest.approx(8.0 * 3 / 300)
    for names, count in ((("hmc",), 0), (("lines",), 30), (("hmc", "lines"), 16)):
        directions = first_moves(names, wide).directions
        assert directions.shape == (count, 34)
        np.testing.assert_allclose(directions[:, :4], directions[:, 4:] @ wide.L.T)


def test_lines_follow_the_posterior() -> None:
    """Directions are orthogonal, as long as the spread along them, the longest first."""
    sampler = warmed(make_sphere(narrow(), "hmc", "lines"), 400)
    D = sampler.moves.directions[:, 300:]
    np.testing.assert_allclose(sampler.moves.directions[:, :300], D @ narrow().L.T, atol=1e-12)
    lengths = np.linalg.norm(D, axis=1)
    np.testing.assert_allclose(D @ D.T, np.diag(lengths**2), atol=1e-10)
    assert (np.diff(lengths) < 0.0).all()
    # The length of g varies freely, its direction hardly.
    assert lengths[0] > 3.0 * lengths[1]
    rng, g = np.random.default_rng(2), []
    state = sampler.init(rng)
    for _ in range(600):
        state, _ = sampler.step(rng, state)
        g.append(state.point[300:])
    spread = np.std(np.array(g) @ (D / lengths[:, np.newaxis]).T, axis=0)
    assert ((spread < 4.0 * lengths) & (lengths < 4.0 * spread)).all()


def test_trajectories_are_as_long_as_the_cone_is_wide() -> None:
    short = warmed(make_sphere(narrow(), "hmc"), 200).moves.duration
    assert 0.01 < short < 0.6
    free = SphereModel(noisy_rows(4, 5), fixed_rate(0.4, 4))
    assert warmed(make_sphere(free, "hmc"), 200).moves.duration == QUARTER


def test_a_short_warmup_changes_nothing() -> None:
    sampler = make_sphere(narrow(), "hmc", "lines")
    after = warmed(sampler, 30)
    assert after.moves.duration == sampler.moves.duration
    np.testing.assert_array_equal(after.moves.directions, sampler.moves.directions)


def test_tuning_is_put_in_place_without_the_data() -> None:
    sampler, adaptation = make_sphere(narrow(), "hmc", "lines"), SphereAdaptation(100)
    tuning = SphereTuning(0.3, 2.0 * np.eye(3), 2)
    assert adaptation.tuning(sampler).n_trajectories == 1
    moved = adaptation.with_tuning(sampler, tuning)
    assert moved.moves.duration == 0.3
    np.testing.assert_allclose(moved.moves.directions, narrow().extended(2.0 * np.eye(3)))
    seen = adaptation.tuning(moved)
    assert seen.duration == 0.3
    np.testing.assert_array_equal(seen.directions, tuning.directions)
    assert seen.n_trajectories == 2
    assert moved.moves.names == ("hmc", "hmc", "lines")


def test_trajectories_of_a_draw_are_as_many_as_it_needs() -> None:
    """Few where errors are independent from draw to draw, all where they hardly move."""
    rng = np.random.default_rng(3)
    assert _n_needed(8, rng.integers(0, 9, 100).astype(float)) in (3, 4, 5)
    assert _n_needed(8, np.repeat(rng.integers(0, 9, 20), 5).astype(float)) == 8
    assert _n_needed(8, np.zeros(100)) == 3  # there is nothing to see: 8 log(.5) / log(1/10)
    assert _n_needed(8, np.zeros(2)) == 8
    assert _n_needed(1, rng.integers(0, 9, 100).astype(float)) == 1
    model = SphereModel(noisy_rows(40, 30), fixed_rate(0.2, 40))
    kept = warmed(make_sphere(model, *["hmc"] * 8), 120).moves.names
    assert set(kept) == {"hmc"}
    assert len(kept) < 8
