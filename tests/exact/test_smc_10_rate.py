"""SMC-10: the error of the posterior mean falls with the square root of the number of particles."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.basis.population_loops import predict_rows
from support import basis_mutants
from support.basis_cases import informed, make_filter, plain_kernel, problem, run
from support.basis_runs import truth

SIZES, N_RUNS, T = (64, 256, 1024, 4096), 200, 6
NEW = np.linspace(-2.0, 2.0, 9)[:, None]


def slope(n_runs: int = N_RUNS) -> float:
    """Of the logarithm of the mean squared error against that of N."""
    X, y = problem(T)
    errors = []
    for n_particles in SIZES:
        filter_ = informed(make_filter(n_particles=n_particles))
        grid = filter_.grid
        rows = np.array(
            [
                np.column_stack([np.ones(len(NEW)), plain_kernel(grid, NEW, X, level)])
                for level in range(grid.n_levels)
            ]
        )
        expected = truth(filter_, X, y).curve(rows)
        rng, squares = np.random.default_rng(n_particles), []
        for _ in range(n_runs):
            particles = run(filter_, X, y, rng).particles
            means, spreads = np.empty((2, len(NEW), n_particles))
            for level in range(grid.n_levels):
                which = np.flatnonzero(particles.level == level)
                predict_rows(rows[level], which, T, filter_.prior, particles, means, spreads)
            squares.append(np.mean((means @ np.exp(particles.log_weight) - expected) ** 2))
        errors.append(np.mean(squares))
    return float(np.polyfit(np.log(SIZES), np.log(errors), 1)[0])


@pytest.mark.slow
def test_smc_10_slope() -> None:
    """-1 +- 0.15: six standard errors, as the mean of 200 runs is known to 7 % or so."""
    assert abs(slope() + 1.0) < 0.15


@pytest.mark.slow
def test_smc_10_sees_weights_that_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows learned without weights: an error that more particles do not lower."""
    basis_mutants.weigh_nothing(monkeypatch)
    assert abs(slope(30) + 1.0) > 0.3
