"""SMC-14: a reservoir that is full: candidates retire, and rows are gone when new ones come."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.basis.model import Schedule
from support import basis_mutants
from support.basis_cases import make_filter, plain_design, plain_statistics, problem, run
from support.basis_runs import MORE_RUNS, N_RUNS, excess
from support.basis_sums import sums_of
from support.statistics import few_first

CASES = ["evictions", "evictions, sampled", "evictions, rows gone"]


@pytest.mark.parametrize("name", few_first(CASES, "evictions", "evictions, rows gone"))
def test_smc_14(name: str) -> None:
    """Given the candidates held in the end. False alarm 1e-6 each; detects 17 %."""
    evidence, cells = excess(name, N_RUNS)
    assert evidence < 1.0
    assert cells < 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_smc_14_with_more_runs(name: str) -> None:
    """False alarm 1e-6 each; detects 3 %."""
    assert max(excess(name, MORE_RUNS, seed=1)) < 1.0


@pytest.mark.parametrize("name", ["evictions", "evictions, rows gone"])
def test_smc_14_sees_a_single_parent(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """12 in place of 1."""
    basis_mutants.single_parent(monkeypatch)
    assert max(excess(name, 100)) > 1.5


def error_of_sums(n_buffered: int, block: int, n_slots: int, retention: float) -> float:
    """Largest error of all sums of 90 rows, relative to the largest sum; four levels."""
    schedule = Schedule(
        n_eager=8, block=block, n_buffered=n_buffered, n_redraws=0, n_changes=0, later_fraction=0.0
    )
    filter_ = make_filter(
        n_slots=n_slots, schedule=schedule, retention=retention, has_linear_part=True,
        scalings=((1.0, 1.0), (0.3, 1.5)), n_particles=2, largest=1,
    )  # fmt: skip
    X, y = problem(90, 2)
    state = run(filter_, X, y, np.random.default_rng(0))
    design = plain_design(filter_, X)
    expected, found = plain_statistics(design, y), sums_of(state)
    C = filter_.grid.n_mean + found.n_candidates
    np.testing.assert_array_equal(state.centres[: found.n_candidates], design.centres)
    errors = [
        np.abs(found.gram[:, :C, :C] - expected.gram).max(),
        np.abs(found.moment[:, :C] - expected.moment).max(),
        abs(found.square - expected.square),
        abs(found.n_rows - expected.n_rows),
    ]
    return float(max(errors) / np.abs(expected.gram).max())


@pytest.mark.parametrize("retention", [1.0, 0.9])
@pytest.mark.parametrize("n_slots", [1, 2, 5])
@pytest.mark.parametrize(("n_buffered", "block"), [(1, 1), (4, 2), (6, 4), (70, 4), (512, 8)])
def test_smc_14_sums(n_buffered: int, block: int, n_slots: int, retention: float) -> None:
    """Equal to those of features followed row by row, to 1e-10, however many rows are kept."""
    assert error_of_sums(n_buffered, block, n_slots, retention) < 1e-10


def test_smc_14_sees_rows_that_count_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new candidate is taken to vanish on the rows that are gone."""
    basis_mutants.oldest_rows_count_nothing(monkeypatch)
    assert error_of_sums(6, 4, 5, 1.0) > 1e-3
