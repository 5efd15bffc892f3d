"""Sums of products over rows."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.basis.filter import Filter, State, flushed
from mercer.basis.length_scales import LengthScaleGrid
from mercer.basis.model import Reservoir, Schedule, SetPrior, add_rows, integrated


@pytest.mark.parametrize("n", [1, 4, 7])
def test_add_rows(n: int) -> None:
    rng = np.random.default_rng(3)
    half, moment = rng.standard_normal((2, 5, 5)), rng.standard_normal((2, 5))
    gram = half @ half.swapaxes(1, 2)
    rows, y = rng.standard_normal((9, 2, 5))[:n], rng.standard_normal(n)
    expected = gram + np.einsum("nla,nlb->lab", rows, rows)
    of_targets = moment + np.einsum("n,nla->la", y, rows)
    add_rows(gram, moment, rows, y)
    np.testing.assert_allclose(gram, expected, rtol=1e-12)
    np.testing.assert_allclose(moment, of_targets, rtol=1e-12)


LEVELS = LengthScaleGrid(
    2.0 ** (-0.5 * np.arange(7)), np.array([[1.0, 1.0], [0.5, 2.0]]), "rbf", linear_part=True
)


def made(n_buffered: int, retention: float) -> Filter:
    return Filter(
        8, integrated(3), SetPrior("poisson", 2.0, 4), LEVELS,
        Reservoir(20, 1, is_forgetting=retention < 1.0),
        Schedule(8, 4, 0.5, n_buffered=n_buffered), "systematic", retention,
    )  # fmt: skip


def learned(n_rows: int, n_buffered: int, retention: float) -> State:
    """Rows, after half of which all particles have the widest level."""
    filter_ = made(n_buffered, retention)
    rng = np.random.default_rng(0)
    X, noise = rng.standard_normal((n_rows, 2)), 0.1 * rng.standard_normal(n_rows)
    y = np.sin(X @ [1.0, 0.3]) + noise
    state = filter_.init(rng)
    for t in range(n_rows):
        if t == n_rows // 2:
            state.particles.level[:] = 0
            state.particles.log_target[:] = -1e3
        state, _ = filter_.learn(rng, state, X[t], float(y[t]))
    return state


@pytest.mark.parametrize("retention", [1.0, 0.99])
@pytest.mark.parametrize("n_buffered", [128, 64])
def test_sums_that_are_kept_are_those_of_the_rows(n_buffered: int, retention: float) -> None:
    """Levels that no particle is near are left; one that comes near has all rows again."""
    n = 100
    state = learned(n, n_buffered, retention)
    assert not state.is_kept.all()
    assert state.is_kept[LEVELS.near(np.unique(state.particles.level))].all()
    r, held = state.statistics.n_candidates, min(n, n_buffered)
    state = flushed(state)
    ages = state.n_discounts - state.rows.age[:held]
    weight = retention ** ages.astype(float)
    for level in np.flatnonzero(state.is_kept).tolist():
        K = LEVELS.design(state.rows.X[:held], state.centres[:r], level)
        gram, moment = (K.T * weight) @ K, (K.T * weight) @ state.rows.y[:held]
        if n_buffered < n:
            K, y = state.leaving[: state.n_leaving, level, : 3 + r], state.leaving_y
            gram += state.old.gram[level, : 3 + r, : 3 + r] + K.T @ K
            moment += state.old.moment[level, : 3 + r] + K.T @ y[: state.n_leaving]
        mine = state.statistics.gram[level, : 3 + r, : 3 + r]
        np.testing.assert_allclose(mine, gram, rtol=1e-9, atol=1e-9)
        mine = state.statistics.moment[level, : 3 + r]
        np.testing.assert_allclose(mine, moment, rtol=1e-9, atol=1e-9)


def test_levels_that_may_be_proposed() -> None:
    near = np.flatnonzero(LEVELS.near(np.array([0, 4])))
    assert near.tolist() == [0, 1, 3, 4, 5, 7, 11]
