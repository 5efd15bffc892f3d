"""SMC-3 for the printed weight: its bias is what Algorithm 1 implies, set by set.

Each way from the empty set to U, move by move, adds the probability of its kinds of moves to the
weight of U: E[Zhat 1{U}] / Z = p(U | y) g(U), g the sum over ways. With exact weights g would be 1.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mercer.basis import filter as filter_module
from mercer.basis.filter import PrintedFilter
from support.basis_cases import make_filter, masks_of, plain_design, problem, run
from support.basis_enumeration import Enumerated
from support.statistics import largest_z, tiers, z_limit

N_ROWS = 6
EXACT = make_filter(variances="sampled", lengthscales=(1.5,), expected=1.3)


def kinds(k: int, t: int) -> tuple[float, float]:
    """Probabilities of birth and death as printed, for a Poisson prior of mean 1.3."""
    c, mean, largest = 0.25, EXACT.sets.expected, EXACT.sets.largest
    if k == 0:
        return 1.0, 0.0
    birth = c * min(1.0, mean / (k + 1)) if k < min(largest, t) else 0.0
    return birth, c * min(1.0, k / mean)


def ways() -> np.ndarray:
    """g of every subset of the rows, bit c for input c."""
    g = {(): 1.0}
    for t in range(1, N_ROWS + 1):
        new: dict[tuple[int, ...], float] = {}
        for members, value in g.items():
            birth, death = kinds(len(members), t)
            parts = [(members, 1.0 - birth - death)]
            parts += [(tuple(sorted({*members, c})), birth) for c in range(t) if c not in members]
            parts += [(tuple(c for c in members if c != out), death) for out in members]
            for to, probability in parts:
                new[to] = new.get(to, 0.0) + value * probability
        g = new
    every = [tuple(c for c in range(N_ROWS) if mask >> c & 1) for mask in range(1 << N_ROWS)]
    return np.array([g.get(members, 0.0) for members in every])


def runs(n_runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Zhat 1{U} / Z of each run (n, sets), and p(U | y)."""
    X, y = problem(N_ROWS)
    exact = Enumerated(EXACT, plain_design(EXACT, X), y)
    filter_ = PrintedFilter(100, EXACT.prior, EXACT.sets, EXACT.grid, 16, "systematic", 16)
    rng, cells = np.random.default_rng(5), np.empty((n_runs, 1 << N_ROWS))
    for i in range(n_runs):
        state = run(filter_, X, y, rng)
        W = np.exp(state.particles.log_weight)
        mass = np.bincount(masks_of(state.particles, 1), W, 1 << N_ROWS)
        cells[i] = np.exp(state.log_evidence - exact.log_evidence) * mass
    return cells, exact.probability[0]


def excess(cells: np.ndarray, expected: np.ndarray) -> float:
    """Largest |t| over its limit: of the evidence and of the sets that are not too rare."""
    common = expected > 0.01
    values = np.column_stack([cells.sum(axis=1), cells[:, common]])
    truth = np.concatenate([[expected.sum()], expected[common]])
    return largest_z(values, truth, len(cells)) / z_limit(len(cells), len(truth))


@pytest.mark.parametrize("n_runs", tiers(100, 400))
def test_the_bias_is_that_of_the_printed_algorithm(n_runs: int) -> None:
    """False alarm 1e-6. The evidence is low by far, and small sets have too much of it."""
    cells, p = runs(n_runs)
    expected = p * ways()
    assert excess(cells, expected) < 1.0
    assert excess(cells, p) > 10.0
    assert 0.1 < expected.sum() < 0.5


def test_sees_weights_with_the_probability_of_the_kind_of_move(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The mutant: moves of another share c than the weights are held against."""
    monkeypatch.setattr(filter_module, "_CHANGES", 0.35)
    cells, p = runs(200)
    assert excess(cells, p * ways()) > 1.5


def test_moves_are_those_that_the_loop_takes() -> None:
    from mercer.basis.population_loops import move_probabilities

    for k, t in itertools.product(range(4), range(1, 8)):
        if k <= t:
            found = move_probabilities(EXACT.sets.log_size(t), k, t, 0.25)
            np.testing.assert_allclose(found, kinds(k, t), rtol=1e-12)
