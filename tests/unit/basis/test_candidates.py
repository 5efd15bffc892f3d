"""Sums of a new candidate; of all of them together: SMC-14."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.basis.filter import _flushed_old, admit, copied, flushed
from mercer.basis.model import Schedule
from support.basis_cases import make_filter, problem, run

STILL = {"n_redraws": 0, "n_changes": 0, "later_fraction": 0.0}


def projection(filter_, x, others, level: int) -> np.ndarray:
    K = filter_.grid.design(others, others, level)[:, 1:]
    k = filter_.grid.design(x[np.newaxis], others, level)[0, 1:]
    return np.linalg.solve(K + 1e-6 * np.eye(len(others)), k)


def of_design(filter_, X, y, Z, level: int):
    design = filter_.grid.design(X, Z, level)
    return design.T @ design, design.T @ y


def test_while_all_rows_are_in_the_buffer_its_sums_are_exact() -> None:
    filter_ = make_filter(n_slots=4, n_particles=2, schedule=Schedule(**STILL))
    X, y = problem(4, 1)
    before = run(filter_, X, y, np.random.default_rng(0))
    new, expected_centres = np.array([0.37]), before.centres[:4].copy()
    expected_centres[1] = new
    state = admit(flushed(copied(before)), filter_.grid, 1, new, np.ones(4))
    for level in range(filter_.grid.n_levels):
        gram, moment = of_design(filter_, X, y, expected_centres, level)
        np.testing.assert_allclose(state.statistics.gram[level, :5, :5], gram, atol=1e-12)
        np.testing.assert_allclose(state.statistics.moment[level, :5], moment, atol=1e-12)
    assert state.statistics.n_candidates == 4


def test_on_rows_that_are_gone_it_is_a_projection_on_the_others() -> None:
    """Feature = a'k(x, others), a = (K + 1e-6)^-1 k(new), for rows beyond the buffer."""
    schedule = Schedule(n_eager=4, block=4, n_buffered=3, **STILL)
    filter_ = make_filter(n_slots=4, n_particles=2, largest=1, schedule=schedule)
    X, y = problem(4, 1)
    before = run(filter_, X, y, np.random.default_rng(0))
    assert before.n_seen - len(before.rows.y) == 1  # the first row is gone
    centres, others, new = before.centres, before.centres[[0, 2, 3]], np.array([0.37])
    state = flushed(copied(before))
    state = admit(state, filter_.grid, 1, new, np.ones(3))
    for level in range(filter_.grid.n_levels):
        on_first = filter_.grid.design(X[:1], centres[:4], level)[0, 1:]
        # The last candidate came when the first row was gone: so it is projected there.
        on_first[3] = on_first[:3] @ projection(filter_, centres[3], centres[:3], level)
        old = on_first[[0, 2, 3]] @ projection(filter_, new, others, level)
        kept = filter_.grid.design(X[1:], new[np.newaxis], level)[:, 1]
        expected = old * y[0] + kept @ y[1:]
        np.testing.assert_allclose(state.statistics.moment[level, 2], expected, atol=1e-8)
        np.testing.assert_allclose(
            state.statistics.gram[level, 2, 2], old**2 + kept @ kept, atol=1e-8
        )
        np.testing.assert_allclose(state.statistics.gram[level, 0, 2], old + kept.sum(), atol=1e-8)


@pytest.mark.parametrize("n_buffered", [3, 8])
def test_rows_that_are_pending_or_leaving_need_not_be_added_before_it(n_buffered: int) -> None:
    schedule = Schedule(n_eager=0, block=4, n_buffered=n_buffered, **STILL)
    filter_ = make_filter(n_slots=4, n_particles=2, largest=1, schedule=schedule)
    X, y = problem(7, 1)
    before = run(filter_, X, y, np.random.default_rng(0))
    assert before.n_pending > 0
    assert (before.n_leaving > 0) == (n_buffered < 7)
    new = filter_.grid, 1, np.array([0.37]), np.ones(min(7, n_buffered))
    early = admit(_flushed_old(flushed(copied(before))), *new)
    late = _flushed_old(flushed(admit(copied(before), *new)))
    for mine, theirs in zip(late.statistics, early.statistics, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-8)
    for mine, theirs in zip(late.old, early.old, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-8)
