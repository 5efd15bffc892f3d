"""Several classes: model, moves, starts, warm-up."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from mercer.errors import DataError
from mercer.likelihoods.label_noise import Confusion, fixed_rate, row_rates
from mercer.sampling.hmc import mass_windows
from mercer.sphere import several as module
from mercer.sphere import several as moves
from mercer.sphere import several as start
from mercer.sphere.sampler import QUARTER, WINDOW, PriorStart, SeparatingStart
from mercer.sphere.several import (
    MOVES,
    SeveralAdaptation,
    SeveralModel,
    SeveralState,
    cycles_a_step,
    default_moves,
    first_moves,
    make_several_start,
    moves_along,
    separating_functions,
)
from support.several_cases import log_likelihood, make_model, make_several, record, separable
from support.statistics import dkw_distance, dkw_limit

# Model.


def test_a_row_is_right_where_its_own_function_is_largest() -> None:
    model = make_model(20, 3, 4)
    g = np.random.default_rng(1).standard_normal((5, 4, 3))
    f = g @ model.L.T
    np.testing.assert_array_equal(model.is_wrong(f), np.argmax(f, axis=1) != model.labels)
    np.testing.assert_array_equal(model.is_wrong(f[2]), model.is_wrong(f)[2])


def test_a_tie_is_an_error() -> None:
    """As with two classes, where a row with f = 0 is wrong whatever its label."""
    model = SeveralModel(np.array([[0.0], [1.0]]), np.array([0, 1]), fixed_rate(0.1, 2, 3))
    np.testing.assert_array_equal(model.is_wrong(np.array([[0.0, 1.0]] * 3)), [True, True])


def test_points_and_shapes() -> None:
    model = make_model(6, 2, 3)
    assert (model.n_rows, model.rank, model.n_classes) == (6, 2, 3)
    g = np.arange(6.0).reshape(3, 2)
    point = model.point(g)
    np.testing.assert_array_equal(point[:, 6:], g)
    np.testing.assert_allclose(point[:, :6], [[row @ g_c for row in model.L] for g_c in g])
    np.testing.assert_allclose(model.gram, model.L @ model.L.T)


def test_log_likelihood() -> None:
    model = make_model(6, 2, 3)
    f = np.random.default_rng(2).standard_normal((7, 3, 6))
    e = (np.argmax(f, axis=1) != model.labels).sum(axis=1)
    expected = e * np.log(0.2 / 2.0) + (6 - e) * np.log(0.8)
    np.testing.assert_allclose(log_likelihood(model, f), expected)


def test_wall_products() -> None:
    """Against contrasts e_y - e_c, written out."""
    model = make_model(9, 2, 4)
    others = [[c for c in range(4) if c != y] for y in range(4)]
    for y in range(4):
        for t, c in enumerate(others[y]):
            for s in range(3):
                for i, label in enumerate(model.labels):
                    wall = np.eye(4)[label] - np.eye(4)[others[label][s]]
                    product = (np.eye(4)[y] - np.eye(4)[c]) @ wall
                    assert model.wall_products[y, t, s, i] == product


@pytest.mark.parametrize("rates", [np.array([0.0, 0.1, 0.0]), np.zeros(3), np.full(3, 0.2)])
def test_which_rows_must_be_right(rates: np.ndarray) -> None:
    model = SeveralModel(np.eye(3), np.arange(3), row_rates(rates, 3))
    np.testing.assert_array_equal(model.noise.must_be_right, rates == 0.0)
    model = SeveralModel(np.eye(3), np.arange(3), fixed_rate(float(rates.max()), 3, 3))
    np.testing.assert_array_equal(model.noise.must_be_right, rates.max() == 0.0)


# Moves.


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


# Sampler.


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
    for _ in range(100):
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


# Start.


def test_with_noise_everywhere_a_start_is_a_draw_from_the_prior() -> None:
    begin = make_several_start(make_model(20, 3, 4))
    assert begin == PriorStart((4, 3))
    expected = np.random.default_rng(1).standard_normal((4, 3))
    np.testing.assert_array_equal(begin(np.random.default_rng(1)), expected)


@pytest.mark.parametrize(("n", "r"), [(3, 6), (40, 5), (150, 3)])
def test_without_noise_no_row_of_the_start_is_wrong(n: int, r: int) -> None:
    model = separable(make_model(n, r, 4))
    begin = make_several_start(model)
    assert isinstance(begin, SeparatingStart)
    g = begin(np.random.default_rng(1))
    assert g.shape == (4, r)
    assert not model.is_wrong(g @ model.L.T).any()


def test_the_length_is_that_of_the_prior() -> None:
    """False alarm 1e-6; one degree of freedom less would be seen."""
    begin, rng = (
        SeparatingStart(np.full((3, 4), 7.0), 7.0 * np.sqrt(12.0)),
        np.random.default_rng(2),
    )
    squared = np.array([np.sum(begin(rng) ** 2) for _ in range(4000)])
    assert dkw_distance(squared, chi2(12).cdf) < dkw_limit(4000, 1)
    assert dkw_distance(squared, chi2(11).cdf) > 1.5 * dkw_limit(4000, 1)


@pytest.mark.parametrize("work", [0.0, 2e8], ids=["linear program", "perceptron"])
def test_each_way_to_separate(work: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Narrow cones, so that least squares fail: the seed is one where they do."""
    monkeypatch.setattr(start, "_PERCEPTRON_WORK", work)
    model = separable(make_model(150, 3, 4))
    targets = (model.labels[:, None] == np.arange(4)).astype(float)
    unit = model.L / np.linalg.norm(model.L, axis=1, keepdims=True)
    by_least_squares = np.linalg.lstsq(unit, targets, rcond=None)[0].T
    assert model.is_wrong(by_least_squares @ model.L.T).any()
    g = separating_functions(model.L, model.labels, 4, np.arange(150))
    assert not model.is_wrong(g @ model.L.T).any()


def test_only_rows_that_must_be_right_are_asked_for() -> None:
    model = make_model(30, 2, 3)
    free = separable(model)
    rates = np.where(model.labels == free.labels, 0.0, 0.2)
    mixed = SeveralModel(model.L, model.labels, row_rates(rates, 3))
    g = make_several_start(mixed)(np.random.default_rng(1))
    is_wrong = mixed.is_wrong(g @ model.L.T)
    assert not is_wrong[rates == 0.0].any()
    by_class = SeveralModel(
        model.L, free.labels, Confusion(free.labels, np.eye(3) * 0.8 + np.array([[0, 0.1, 0.1],
                                        [0.2, 0, 0], [0.2, 0, 0]]))
    )  # fmt: skip
    g = make_several_start(by_class)(np.random.default_rng(1))
    assert not by_class.is_wrong(g @ model.L.T)[free.labels != 0].any()


def test_where_no_classifier_separates_one_class_may_explain_all() -> None:
    """Class 0 may be recorded as any other, so that all rows may be of it."""
    L = np.array([[1.0], [2.0], [3.0], [1.0]])
    matrix = np.array([[0.6, 0.2, 0.2], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    labels = np.array([0, 1, 0, 2])
    model = SeveralModel(L, labels, Confusion(labels, matrix))
    g = make_several_start(model)(np.random.default_rng(1))
    np.testing.assert_array_equal((g @ L.T).argmax(axis=0), 0)
    with pytest.raises(DataError, match="equal inputs and different labels"):
        make_several_start(SeveralModel(L, labels, Confusion(labels, np.eye(3))))


def test_two_equal_rows_with_different_labels_are_named() -> None:
    model = separable(make_model(30, 4, 3))
    L, labels = model.L.copy(), model.labels.copy()
    L[21] = L[4]
    labels[4], labels[21] = 0, 2
    with pytest.raises(
        DataError, match=r"rows 4 and 21 of X .* have equal inputs and different labels"
    ):
        make_several_start(SeveralModel(L, labels, fixed_rate(0.0, 30, 3)))
    # Positions are those in the data, not among the rows that must be right.
    rates = np.where(np.arange(30) < 3, 0.2, 0.0)
    with pytest.raises(DataError, match=r"rows 4 and 21 .*use noise_rate > 0"):
        make_several_start(SeveralModel(L, labels, row_rates(rates, 3)))


def test_classes_that_cannot_be_separated() -> None:
    L = np.array([[1.0], [2.0], [3.0], [-1.0]])
    model = SeveralModel(L, np.array([0, 1, 0, 2]), fixed_rate(0.0, 4, 3))
    with pytest.raises(DataError, match="no classifier separates the classes"):
        make_several_start(model)


def test_a_row_of_zeros_cannot_be_right() -> None:
    model = SeveralModel(np.array([[0.0], [1.0]]), np.array([0, 1]), fixed_rate(0.0, 2, 2))
    with pytest.raises(DataError, match="no classifier separates"):
        make_several_start(model)


# Adaptation.


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
