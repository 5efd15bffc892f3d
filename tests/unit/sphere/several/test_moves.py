from __future__ import annotations

import numpy as np
import pytest

from mercer.sphere import several as module
from mercer.sphere.several import (
    MOVES,
    QUARTER,
    WINDOW,
    SeveralModel,
    cycles_a_step,
    default_moves,
    first_moves,
    moves_along,
)
from support.several_cases import make_model


def test_first_directions_are_principal_axes() -> None:
    model = make_model(30, 4, 3)
    moves = first_moves(model)
    np.testing.assert_allclose(moves.directions.T @ moves.directions, np.eye(4), atol=1e-12)
    lengths = np.linalg.norm(moves.H, axis=1)
    np.testing.assert_allclose(moves.H @ moves.H.T, np.diag(lengths**2), atol=1e-10)
    assert (np.diff(lengths) < 0.0).all()
    np.testing.assert_allclose(moves.rows, model.L @ moves.directions)
    np.testing.assert_array_equal(moves.H, moves.rows.T)
    assert moves.H.flags.c_contiguous
    assert moves.rows.flags.c_contiguous
    np.testing.assert_array_equal(moves.widths, np.full(4, WINDOW))


def test_axes_that_are_principal_stay() -> None:
    base = make_model(30, 4, 3)
    L = np.linalg.svd(base.L)[0][:, :4] * np.array([3.0, 2.0, 1.0, 0.5])
    model = SeveralModel(L, base.labels, base.noise)
    np.testing.assert_array_equal(first_moves(model).directions, np.eye(4))


def test_first_duration_is_at_most_a_quarter() -> None:
    assert first_moves(make_model(10, 4, 3)).duration == QUARTER
    assert first_moves(make_model(400, 4, 3)).duration == pytest.approx(0.08)


@pytest.mark.parametrize("names", [MOVES, ("lines",), ("hmc",), ("ellipse",), ("lines", "ellipse")])
def test_each_set_of_moves_does_what_it_says(names: tuple[str, ...]) -> None:
    model = make_model(40, 20, 3)
    g = np.random.default_rng(0).standard_normal((3, 20))
    before = g.copy()
    f, end, counts = first_moves(model, names).apply(np.random.default_rng(1), model, g, 5)
    np.testing.assert_array_equal(g, before)
    np.testing.assert_allclose(f, end @ model.L.T, atol=1e-12)
    assert (np.abs(end - g) > 1e-6).all()
    n_whole, n_events, n_reflections, n_breakpoints, n_trials = counts
    assert (n_whole == 5) == (n_events > 0) == ("hmc" in names)
    assert n_reflections <= n_events
    assert (n_breakpoints > 0) == ("lines" in names)
    assert (n_trials >= 5) == ("ellipse" in names)


def test_tables_of_trajectories_are_made_only_for_them() -> None:
    model = make_model(10, 3, 3)
    g = np.zeros((3, 3)) + np.eye(3)
    first_moves(model, ("lines", "ellipse")).apply(np.random.default_rng(1), model, g, 1)
    assert not {"gram", "wall_products"} & set(vars(model))
    first_moves(model).apply(np.random.default_rng(1), model, g, 1)
    assert {"gram", "wall_products"} <= set(vars(model))


class Turned:
    """A generator whose normal draws are turned, for the compiled loops as it is."""

    def __init__(self, turn: np.ndarray) -> None:
        self.rng = np.random.default_rng(5)
        self.standard_normal = lambda shape: self.rng.standard_normal(shape) @ turn
        self.uniform = self.rng.uniform


def test_a_trajectory_is_the_same_in_any_basis(monkeypatch: pytest.MonkeyPatch) -> None:
    """Velocities are turned with the basis, so ends are the same."""
    model, g = make_model(20, 3, 3), np.random.default_rng(4).standard_normal((3, 3))
    turn = np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0]
    cycles = module.cycles
    monkeypatch.setattr(
        module, "cycles", lambda rng, *rest: cycles(getattr(rng, "rng", rng), *rest)
    )
    ends = []
    for basis, rng in ((np.eye(3), np.random.default_rng(5)), (turn, Turned(turn))):
        moves = moves_along(model, ("hmc",), 1.0, basis, np.full(3, WINDOW))
        ends.append(moves.apply(rng, model, g, 3)[1])
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-8)
    assert np.abs(ends[0] - g).max() > 0.1


def test_trajectories_are_left_out_where_their_table_is_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = make_model(20, 3, 3)
    assert default_moves(model) == MOVES
    monkeypatch.setattr(module, "_MOST_ROWS", 19)
    assert default_moves(model) == ("lines", "ellipse")


def test_rows_of_single_precision() -> None:
    base = make_model(20, 3, 3)
    model = SeveralModel(base.L.astype(np.float32), base.labels, base.noise)
    g = np.random.default_rng(0).standard_normal((3, 3))
    f, end, _ = first_moves(model).apply(np.random.default_rng(1), model, g, 2)
    assert f.dtype == end.dtype == np.float64
    np.testing.assert_allclose(f, end @ base.L.T, atol=1e-5)


def test_cycles_a_step() -> None:
    assert cycles_a_step(make_model(10, 2, 3)) == 8
    assert cycles_a_step(make_model(2000, 5, 3)) == 1
    assert cycles_a_step(make_model(300, 5, 3)) < cycles_a_step(make_model(300, 5, 3), ("lines",))
