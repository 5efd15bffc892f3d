"""SMC-9: the order of the rows does not matter, and equal inputs are equally likely."""

from __future__ import annotations

import numpy as np
import pytest

from support import basis_mutants
from support.basis_cases import make_filter, problem
from support.basis_runs import cells_z, estimates, evidence_z, truth
from support.statistics import few_first, largest_z, z_limit

N_RUNS, T = 150, 5
ORDERS = [np.arange(T), np.arange(T)[::-1], np.array([2, 4, 0, 1, 3])]


def moved_bits(masks: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Sets of positions in an order, as sets of rows."""
    return sum((masks >> place & 1) << row for place, row in enumerate(order))


def test_smc_9_enumeration_does_not_know_the_order() -> None:
    X, y = problem(T)
    filter_ = make_filter()
    first = truth(filter_, X, y)
    for order in ORDERS:
        other = truth(filter_, X[order], y[order])
        assert abs(other.log_evidence - first.log_evidence) < 1e-10
        back = np.empty_like(first.probability)
        back[:, moved_bits(np.arange(1 << T), order)] = other.probability
        np.testing.assert_allclose(back, first.probability, atol=1e-10)


@pytest.mark.parametrize("which", few_first(range(len(ORDERS)), 1))
def test_smc_9_orders(which: int) -> None:
    """Against one and the same enumeration. False alarm 1e-6 each; detects 12 %."""
    X, y = problem(T)
    filter_, order = make_filter(), ORDERS[which]
    exact = truth(filter_, X[order], y[order])
    found = estimates(filter_, X[order], y[order], exact, N_RUNS, seed=which)
    assert evidence_z(found) < 1.0
    assert cells_z(found, exact) < 1.0


def difference_of_twins(n_runs: int) -> float:
    """Mass of sets less that of sets with the other of two equal inputs: |t| over its limit."""
    X, y = problem(T)
    X[3] = X[1]
    filter_ = make_filter()
    exact = truth(filter_, X, y)
    found = estimates(filter_, X, y, exact, n_runs, seed=9)
    order = np.array([0, 3, 2, 1, 4])
    L, n_sets = exact.probability.shape
    masks = np.arange(n_sets)
    mirrored = moved_bits(masks, order)
    np.testing.assert_allclose(exact.probability[:, mirrored], exact.probability, atol=1e-9)
    cells = found.cells.reshape(n_runs, L, n_sets)
    differences = cells - cells[:, :, mirrored]
    chosen = (masks < mirrored) & (exact.probability.sum(axis=0) > 0.02)
    values = differences[:, :, chosen].sum(axis=1)
    return largest_z(values, np.zeros(values.shape[1]), n_runs) / z_limit(n_runs, values.shape[1])


def test_smc_9_equal_inputs() -> None:
    """Rows 1 and 3 have the same input: so have their sets the same mass. False alarm 1e-6."""
    assert difference_of_twins(N_RUNS) < 1.0


def test_smc_9_sees_a_newcomer_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    """No ways back in the weight, and no moves: the later of two equals is not its like."""
    basis_mutants.printed_weight(monkeypatch)
    basis_mutants.never_move(monkeypatch)
    assert difference_of_twins(N_RUNS) > 1.2
