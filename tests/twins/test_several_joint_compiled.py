"""Compiled moves of all classes together against NumPy, from the same stream."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.likelihoods.label_noise import fixed_rate
from mercer.sphere import several_loops as compiled
from mercer.sphere import several_loops as joint
from mercer.sphere.several import SeveralModel
from support.several_cases import make_model, separable
from support.several_twins import (
    case,
    plain_joint_move,
    plain_shuffle,
    plain_sweep,
    plain_trajectory,
)

KINDS = ["fixed", "per row", "learned"]


def fly(model: SeveralModel, g: np.ndarray, w: np.ndarray, duration: float, max_events: int):
    """The same by the compiled loop: g at the end, and what it returns."""
    point, velocity, noise = model.point(g), model.point(w), model.noise
    counts = joint.trajectory(
        model.gram, model.L, model.wall_products, model.labels, point, velocity, noise.group,
        noise.step, noise.row_cost, duration, max_events,
    )  # fmt: skip
    return point[:, model.n_rows :], counts


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "r", "n_classes"), [(1, 1, 2), (6, 2, 2), (7, 3, 3), (20, 4, 5)])
def test_trajectory(n: int, r: int, n_classes: int, kind: str) -> None:
    n_events = n_reflections = 0
    for seed in range(6):
        model, point = case(n, r, n_classes, kind, seed=seed)
        w = np.random.default_rng(seed + 100).standard_normal((n_classes, r))
        g = point[:, n:]
        end, counts = fly(model, g, w, 1.7, 10_000)
        twin, _, *twin_counts = plain_trajectory(model, g, w, 1.7)
        assert list(counts) == [*twin_counts, True]
        np.testing.assert_allclose(end, twin, rtol=1e-7, atol=1e-7)
        n_events += counts[0]
        n_reflections += counts[1]
    if n >= 6:
        assert 0 < n_reflections < n_events  # both happen


def test_the_twin_goes_back() -> None:
    """With the velocity turned round a flight ends where it began."""
    model, point = case(7, 3, 3, "per row")
    g, w = point[:, 7:], np.random.default_rng(9).standard_normal((3, 3))
    end, velocity, n_events, _ = plain_trajectory(model, g, w, 1.3)
    back, _, n_back, _ = plain_trajectory(model, end, -velocity, 1.3)
    np.testing.assert_allclose(back, g, atol=1e-9)
    assert n_events == n_back > 3


def test_trajectory_without_noise_stays_right() -> None:
    model = separable(make_model(30, 4, 3))
    g = np.random.default_rng(51).standard_normal((3, 4))
    for seed in range(20):
        w = np.random.default_rng(seed).standard_normal((3, 4))
        g, (n_events, n_reflections, is_whole) = fly(model, g, w, 1.5, 10_000)
        assert n_events == n_reflections > 0
        assert is_whole
        assert not model.is_wrong(g @ model.L.T).any()


def test_trajectory_gives_up() -> None:
    model, point = case(20, 2, 3, "fixed")
    w = np.random.default_rng(8).standard_normal((3, 2))
    n_events, _, is_whole = fly(model, point[:, 20:], w, 1.5, 3)[1]
    assert (n_events, is_whole) == (3, False)


def test_trajectory_with_a_row_of_zeros() -> None:
    """It is wrong for ever, and the others fly as if it were not there."""
    model, point = case(9, 3, 3, "fixed")
    L = np.insert(model.L, 4, 0.0, axis=0)
    labels = np.insert(model.labels, 4, 1)
    wider = SeveralModel(L, labels, fixed_rate(0.2, 10, 3))
    w = np.random.default_rng(2).standard_normal((3, 3))
    end, (_, _, is_whole) = fly(wider, point[:, 9:], w, 1.9, 1000)
    assert is_whole
    np.testing.assert_allclose(end, fly(model, point[:, 9:], w, 1.9, 1000)[0], atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_joint_move(n_classes: int, kind: str) -> None:
    model, point = case(25, 3, n_classes, kind)
    rng, twin_rng, noise = np.random.default_rng(3), np.random.default_rng(3), model.noise
    for seed in range(10):
        z = np.random.default_rng(seed).standard_normal((n_classes, 3))
        velocity = model.point(z)
        twin, twin_trials = plain_joint_move(twin_rng, point, velocity, model)
        n_trials = joint.joint_move(
            rng, point, velocity, model.labels, noise.group, noise.step, noise.row_cost
        )
        assert n_trials == twin_trials
        np.testing.assert_allclose(point, twin, atol=1e-10)


def test_joint_move_gives_up_where_it_stands() -> None:
    """Two rows that must be right, on their walls: any turn puts one of them wrong."""
    noise = fixed_rate(0.0, 2, 2)
    point = np.array([[1e-300, 0.0, 1.0], [0.0, 1e-300, -1.0]])
    velocity = np.array([[-1.0, -1.0, 0.3], [1.0, 1.0, -0.4]])
    mean = velocity.mean(axis=0)
    n_trials = joint.joint_move(
        np.random.default_rng(0), point, velocity, np.array([0, 1]), noise.group, noise.step,
        noise.row_cost,
    )  # fmt: skip
    assert n_trials == 200
    point -= mean
    np.testing.assert_allclose(point[:, :2], 0.0, atol=1e-299)
    assert point[0, 2] == pytest.approx(-point[1, 2])
    assert point[0, 2] > 0.0


def test_leads() -> None:
    model, point = case(12, 3, 4, "fixed")
    out = np.empty((3, 12))
    joint._leads(point, model.labels, out)
    for i, label in enumerate(model.labels):
        f = point[:, i]
        np.testing.assert_array_equal(out[:, i], f[label] - np.delete(f, label))


def test_next_wall_prefers_leads_that_turn_positive() -> None:
    ratios = np.array([[1.0, 5.0, 5.0, 2.0], [5.0, 0.0, 1.0, 5.0]])
    signs, largest = np.ones((2, 4)), ratios.max(axis=1)
    assert joint._next_wall(ratios, signs, largest) == (1, 0, 5.0)
    signs[0, 2] = -1.0
    assert joint._next_wall(ratios, signs, largest) == (0, 2, 5.0)
    signs[1, 3] = -1.0
    assert joint._next_wall(ratios, signs, largest) == (0, 2, 5.0)


@pytest.mark.parametrize("names", [("hmc", "lines", "ellipse"), ("lines",), ("hmc", "ellipse")])
def test_cycles(names: tuple[str, ...]) -> None:
    """Whole cycles, move by move."""
    n, r, n_classes, n_cycles = 12, 3, 3, 4
    n_lines = 2 if "lines" in names else 0
    model, point = case(n, r, n_classes, "learned")
    rng, twin_rng = np.random.default_rng(3), np.random.default_rng(3)
    draws = np.random.default_rng(4).standard_normal((2, n_cycles, n_classes, r))
    ahead = np.concatenate([draws @ model.L.T, draws], axis=3)
    durations, widths, twin = np.linspace(0.4, 1.5, n_cycles), np.full(r, 2.0), point.copy()
    totals, classes, order = np.zeros(5, np.int64), np.arange(n_classes), np.arange(r)
    for b in range(n_cycles):
        if "hmc" in names:
            g, _, n_events, n_reflections = plain_trajectory(
                model, twin[:, n:], draws[0, b], durations[b]
            )
            twin = model.point(g)
            totals[:3] += [1, n_events, n_reflections]
        if n_lines > 0:
            plain_shuffle(twin_rng, classes)
        for c in classes if n_lines > 0 else ():
            plain_shuffle(twin_rng, order)
            totals[3] += plain_sweep(twin_rng, twin, c, order[:n_lines], widths, model)
        if "ellipse" in names:
            twin, n_trials = plain_joint_move(twin_rng, twin, ahead[1, b], model)
            totals[4] += n_trials
    velocities, turns = (
        ahead[k].copy() if name in names else np.empty((0, n_classes, n + r))
        for k, name in enumerate(("hmc", "ellipse"))
    )
    counts = compiled.cycles(
        rng, point, velocities, turns, durations, 1000, model.gram, model.wall_products, model.L,
        np.ascontiguousarray(model.L.T), widths, n_lines, model.labels, model.noise.group,
        model.noise.step, model.noise.row_cost,
    )  # fmt: skip
    np.testing.assert_allclose(point, twin, atol=1e-7)
    np.testing.assert_array_equal(counts, totals)
    assert rng.random() == twin_rng.random()


def test_cycles_reject_a_trajectory_that_was_given_up() -> None:
    model, point = case(20, 2, 3, "fixed")
    start = point.copy()
    velocity = model.point(np.random.default_rng(8).standard_normal((3, 2)))[np.newaxis]
    counts = compiled.cycles(
        np.random.default_rng(0), point, velocity, velocity[:0], np.array([1.5]), 3, model.gram,
        model.wall_products, model.L, np.ascontiguousarray(model.L.T), np.ones(2), 0,
        model.labels, model.noise.group, model.noise.step, model.noise.row_cost,
    )  # fmt: skip
    np.testing.assert_array_equal(point, start)
    assert counts[0] == 0
