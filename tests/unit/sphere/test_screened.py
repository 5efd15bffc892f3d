"""Screened moves on many rows."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from mercer.likelihoods.label_noise import fixed_rate
from mercer.sphere import screened as module
from mercer.sphere import space
from mercer.sphere.screened import (
    ScreenedAdaptation,
    ScreenedSampler,
    Screening,
    first_screening,
)

# The screened sampler: counting errors block by block, and a step that keeps its books.


def rows(n: int, r: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, r))
    return X * np.where(rng.random(n) < 0.1, -1.0, np.sign(X[:, 0]))[:, np.newaxis]


def make(n: int = 200, n_active: int = 60, dtype: type = np.float32) -> ScreenedSampler:
    L = rows(n, 3).astype(dtype)
    active = np.sort(np.argsort(np.abs(L[:, 0]))[:n_active])
    n_far = int(np.count_nonzero(np.delete(L[:, 0], active) <= 0.0))
    start = np.array([2.0, 0.1, -0.1])
    return ScreenedSampler(
        L, fixed_rate(0.1, n), Screening(active, n_far, 0.2), 4, lambda rng: start,
        lambda errors, g: {"n_errors": np.asarray(errors), "g": g},
    )  # fmt: skip


def test_errors_are_counted_block_by_block(monkeypatch) -> None:
    chain = make(50, 20)
    G = np.random.default_rng(0).standard_normal((4, 3))
    far = np.delete(chain.L, chain.screening.active, axis=0)
    expected = [np.count_nonzero(far @ g.astype(np.float32) <= 0.0) for g in G]
    for rows_at_once in (7, 64):
        monkeypatch.setattr(space, "_BLOCK_ROWS", rows_at_once)
        assert chain._far_errors(G) == expected


def test_of_rows_as_near_the_first_are_active(monkeypatch) -> None:
    """Whoever holds the rows: each run names its nearest, and the nearest of these are taken."""
    L = np.tile([[1.0, 0.5], [1.0, 3.0], [1.0, 0.5]], (10, 1))
    for rows_at_once in (4, 64):
        monkeypatch.setattr(space, "_BLOCK_ROWS", rows_at_once)
        screening = module._around(L, np.array([0.0, 1.0]), 5, 0.1)
        assert screening.active.tolist() == [0, 2, 3, 5, 6]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_state_counts_all_errors(dtype: type) -> None:
    chain = make(dtype=dtype)
    rng = np.random.default_rng(5)
    state = chain.init(rng)
    for _ in range(30):
        state, info = chain.step(rng, state)
        errors = np.count_nonzero(chain.L.astype(np.float64) @ state.g <= 0.0)
        assert state.n_errors == errors == info.n_errors
    assert chain.record(state)["n_errors"] == state.n_errors


def test_the_length_of_g_is_that_of_the_prior() -> None:
    chain = make()
    rng = np.random.default_rng(6)
    state, squares = chain.init(rng), []
    for _ in range(400):
        state, _ = chain.step(rng, state)
        squares.append(state.g @ state.g)
    mean, error = np.mean(squares), np.sqrt(6.0 / 400)  # chi-square with 3 degrees: variance 6
    assert abs(mean - 3.0) < 5.0 * error


def test_a_rejection_keeps_the_point(monkeypatch) -> None:
    """Where every end costs more than can be paid, nothing moves but the length."""
    costs = itertools.cycle([1e9, 0.0])  # of the end, then of the point
    monkeypatch.setattr(ScreenedSampler, "_excess", lambda self, point, n_far: next(costs))
    chain = make()
    rng = np.random.default_rng(7)
    state = chain.init(rng)
    new, info = chain.step(rng, state)
    assert info.acceptance_rate == 0.0
    direction = state.g / np.linalg.norm(state.g)
    np.testing.assert_allclose(new.g / np.linalg.norm(new.g), direction, rtol=1e-12)


# Warm-up of the screened sampler: active rows that grow, shrink and settle.


N, R = 3000, 4


def make_warmed() -> ScreenedSampler:
    rng = np.random.default_rng(2)
    X, w = rng.standard_normal((N, R)), rng.standard_normal(R)
    y = np.sign(X @ w) * np.where(rng.random(N) < 0.05, -1.0, 1.0)
    L = (X * y[:, np.newaxis]).astype(np.float32)
    start = 2.0 * w / np.linalg.norm(w)
    return ScreenedSampler(
        L, fixed_rate(0.05, N), first_screening(L, start), 4, lambda rng: start,
        lambda errors, g: {},
    )  # fmt: skip


def test_the_first_active_rows_are_the_nearest_to_the_boundary() -> None:
    chain = make_warmed()
    g = chain.start(np.random.default_rng(0))
    distance = np.abs(chain.L @ g) / np.linalg.norm(chain.L, axis=1)
    active = chain.screening.active
    assert len(active) == 20 * R
    assert distance[active].max() <= np.delete(distance, active).min() + 1e-6
    assert chain.screening.n_far_errors == np.count_nonzero(np.delete(chain.L @ g, active) <= 0.0)


def test_warm_up_settles_where_everything_is_accepted() -> None:
    chain, n_warmup = make_warmed(), 60
    adaptation = ScreenedAdaptation(n_warmup)
    rng = np.random.default_rng(3)
    state, learned = chain.init(rng), adaptation.init(chain)
    for _ in range(n_warmup):
        state, info = chain.step(rng, state)
        learned, chain = adaptation.update(learned, chain, state, info)
    chain = adaptation.finish(learned, chain)
    rates = []
    for _ in range(50):
        state, info = chain.step(rng, state)
        rates.append(info.acceptance_rate)
    assert np.mean(rates) > 0.95
    assert R <= len(chain.screening.active) < N // 3


def test_a_step_has_fewer_trajectories_where_those_cost_most() -> None:
    """Of rows that nothing separates a trajectory meets all of them, many times."""
    few, many = make_warmed(), dataclasses.replace(make_warmed(), n_trajectories=16)
    n_near, n_far = len(few.screening.active), N - len(few.screening.active)
    each = 2.4 * n_far * R / n_near  # events that cost what the product does
    assert module._n_worthwhile(many, round(16 * each)) == 2
    assert module._n_worthwhile(many, round(16 * each / 4.5)) == 5
    assert module._n_worthwhile(many, 0) == 16
    assert module._n_worthwhile(dataclasses.replace(few, n_trajectories=1), 9000) == 1
    screening = dataclasses.replace(many.screening, n_trajectories=2)
    assert dataclasses.replace(many, screening=screening).n_followed == 2


def test_tuning_goes_out_and_back() -> None:
    chain = make_warmed()
    adaptation = ScreenedAdaptation(60)
    other = dataclasses.replace(chain.screening, duration=0.25)
    assert adaptation.tuning(adaptation.with_tuning(chain, other)).duration == 0.25


def test_a_round_of_rejections_widens_the_rows_and_shortens_the_way() -> None:
    chain = make_warmed()
    adaptation = ScreenedAdaptation(20)
    learned = adaptation.init(chain)
    rng = np.random.default_rng(4)
    state, info = chain.step(rng, chain.init(rng))
    info = dataclasses.replace(info, acceptance_rate=0.0)
    new = chain
    for _ in range(2):
        learned, new = adaptation.update(learned, new, state, info)
    assert len(new.screening.active) == 2 * len(chain.screening.active)
    assert new.screening.duration == 0.25 * chain.screening.duration


def test_nearest_rows_keep_their_order() -> None:
    assert module._smallest(np.array([3.0, 0.1, 2.0, 0.5]), 2).tolist() == [1, 3]
    assert module._smallest(np.array([3.0, 0.1]), 5).tolist() == [0, 1]


def test_a_round_in_which_nothing_moved_waits_for_the_next() -> None:
    """Draws without a spread choose no rows and no duration: they divided by it."""
    L = np.random.default_rng(0).standard_normal((400, 3)).astype(np.float32)
    g = np.array([1.0, 0.5, -0.5])
    screening = first_screening(L, g)
    sampler = ScreenedSampler(L, fixed_rate(0.1, 400), screening, 1, lambda rng: g, lambda n, g: {})
    adaptation, state = ScreenedAdaptation(4), sampler.init(np.random.default_rng(1))
    learned = adaptation.init(sampler)
    _, info = sampler.step(np.random.default_rng(2), state)
    info = dataclasses.replace(info, acceptance_rate=1.0)
    with np.errstate(all="raise"):
        for _ in range(4):
            learned, sampler = adaptation.update(learned, sampler, state, info)
    assert sampler.screening.duration == screening.duration
    np.testing.assert_array_equal(sampler.screening.active, screening.active)


# Where chains start.


@pytest.mark.parametrize("some", [20_000, 2000])  # half of the rows, or few in two stages
def test_a_start_is_near_the_boundary_whatever_labels_are_flipped(monkeypatch, some: int) -> None:
    """Few rows, those near it seen again, do as well as half of all; no two chains start alike."""
    monkeypatch.setattr(module, "_START_ROWS", some)
    rng = np.random.default_rng(8)
    X, w = rng.standard_normal((20_000, 8)), rng.standard_normal(8)
    y = np.sign(X @ w) * np.where(rng.random(len(X)) < 0.1, -1.0, 1.0)
    L = (X * y[:, np.newaxis]).astype(np.float32)

    def angle(g: np.ndarray) -> float:
        return float(np.arccos(g @ w / np.linalg.norm(g) / np.linalg.norm(w)))

    starts = [module.LinearStart(L)(np.random.default_rng(seed)) for seed in range(4)]
    np.testing.assert_allclose([g @ g for g in starts], 8.0)
    angles = [angle(g) for g in starts]
    assert max(angles) < 0.008 < 0.03 < angle(module._least_squares(L[:2000])[:-1])
    assert len(set(angles)) == 4


def test_a_start_needs_no_flipped_label_and_no_boundary() -> None:
    X = np.random.default_rng(9).standard_normal((300, 2))
    balanced = np.tile([[1.0, 0.5], [-1.0, -0.5]], (150, 1))  # each row with both labels
    for L in (X * np.sign(X[:, :1]), X, balanced[:, :1], balanced):
        with np.errstate(all="raise", under="ignore"):
            starts = [
                module.LinearStart(L.astype(np.float32))(np.random.default_rng(seed))
                for seed in range(40)
            ]
        assert np.isfinite(starts).all()


def test_a_column_without_a_value_keeps_its_prior() -> None:
    """It decides nothing: its part of g is drawn anew at each step, and says nothing of spreads."""
    full = make_warmed()
    L = np.column_stack([full.L[:, :2], np.zeros(N), full.L[:, 2:]]).astype(np.float32)
    idle = module.idle_columns(L)
    assert idle.tolist() == [2]
    start = np.insert(full.start(np.random.default_rng(0)), 2, 3.0)
    chain = dataclasses.replace(full, L=L, start=lambda rng: start, idle=idle)
    rng = np.random.default_rng(10)
    state, draws = chain.init(rng), []
    for _ in range(400):
        state, _ = chain.step(rng, state)
        draws.append(state.g.copy())
    own = np.array(draws)[:, 2]
    assert abs(own.mean()) < 5.0 / np.sqrt(400)
    assert abs(np.mean(own**2) - 1.0) < 5.0 * np.sqrt(2.0 / 400)
    others = dataclasses.replace(full, idle=np.empty(0, np.int64))
    found = module._chosen(chain, np.array(draws), 1.0).duration
    expected = module._chosen(others, np.delete(draws, 2, axis=1), 1.0).duration
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    # What is learned from does not know how large it was.
    adaptation, rng = ScreenedAdaptation(100), np.random.default_rng(11)
    _, info = chain.step(rng, state)
    windows = []
    for value in (0.1, 3.0):
        g = start.copy()
        g[2] = value
        learned, _ = adaptation.update(
            adaptation.init(chain), chain, dataclasses.replace(state, g=g), info
        )
        windows.append(learned.window)
    np.testing.assert_array_equal(windows[0], windows[1])
    np.testing.assert_allclose(np.square(windows[0]).sum(), R + 1)
