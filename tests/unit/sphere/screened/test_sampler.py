"""The screened sampler: counting errors block by block, and a step that keeps its books."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mercer.likelihoods.label_noise import fixed_rate
from mercer.sphere import screened as module
from mercer.sphere.screened import ScreenedSampler, Screening


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
    monkeypatch.setattr(module, "_BLOCK_ROWS", 7)
    L, is_counted = rows(50, 3), np.arange(50) % 3 > 0
    G = np.random.default_rng(0).standard_normal((4, 3))
    expected = [np.count_nonzero((L @ g <= 0.0) & is_counted) for g in G]
    assert module._errors_of_rows(L, G, is_counted).tolist() == expected


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
