"""GP-11: moments of the hyperparameters by HMC against a grid, three classes, a shared kernel.

False alarm 1e-6 (five moments, 50 batches: |t| < 6.04), at an acceptance of 0.5 to 0.85, as GP-5.
"""

from __future__ import annotations

import numpy as np
import pytest

from mercer.gp.softmax import SoftmaxPosterior
from mercer.sampling.hmc import HMC, HamiltonianTuning, unit_mass
from support.grid import Grid, five_moments
from support.mutants import accept_everything
from support.softmax_cases import leave_out_last_determinant, posterior
from support.statistics import largest_z, tiers, z_limit
from support.targets import At, record_position, run

_BATCHES = 50


@pytest.fixture(scope="module")
def model() -> SoftmaxPosterior:
    return posterior(8, 1, is_shared=True)


@pytest.fixture(scope="module")
def truth(model: SoftmaxPosterior) -> np.ndarray:
    grid = Grid.of(model, 61, 5.6)
    assert grid.edge_mass < 1e-7
    return grid.expectation(five_moments)


def hmc_error(model: SoftmaxPosterior, truth: np.ndarray, n_draws: int) -> tuple[float, float]:
    """Largest |t| of the five moments, and the acceptance rate."""
    tuning = HamiltonianTuning(2.5, unit_mass(2))
    hmc = HMC(model, At((-1.0, -1.0)), record_position, tuning, n_leapfrog=3, path_length=None)
    draws, acceptance_rate = run(hmc, n_draws, seed=5)
    return largest_z(five_moments(draws), truth, _BATCHES), acceptance_rate


@pytest.mark.parametrize("n_draws", tiers(2000, 4000))
def test_gp_11_hyperposterior(model: SoftmaxPosterior, truth: np.ndarray, n_draws: int) -> None:
    z, acceptance_rate = hmc_error(model, truth, n_draws)
    assert 0.5 < acceptance_rate < 0.85
    assert z < z_limit(_BATCHES, 5)


@pytest.mark.parametrize("mutant", [accept_everything, leave_out_last_determinant])
def test_gp_11_hyperposterior_sees(
    mutant, model: SoftmaxPosterior, truth: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    assert hmc_error(model, truth, 2000)[0] > z_limit(_BATCHES, 5)
