"""GPR-2: moments of a GP regressor's hyperparameters by HMC against a grid of the same density.

False alarm 1e-6 (nine moments, 50 batches: |t| < 6.2). The grid computes the evidence from
eigenvalues. A gradient without the noise is no mutant here: HMC with another force still has the
right target; see GPR-1.
"""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from mercer.gp import fitting
from mercer.gp.fitting import GPSettings, RegressionSettings, fit_regression
from mercer.gp.gaussian import RegressionPosterior
from mercer.random import entropy_of
from mercer.sampling.driver import RunOptions
from mercer.sampling.hmc import HMC, HamiltonianTuning, unit_mass
from support.mutants import accept_everything
from support.process_fits import CHAIN, process_posterior
from support.process_grid import ProcessGrid, nine_moments
from support.statistics import few_first, largest_z, tiers, z_limit
from support.targets import At, record_position, run

_BATCHES = 50


@pytest.fixture(scope="module")
def model() -> RegressionPosterior:
    return process_posterior(14, 1)


@pytest.fixture(scope="module")
def truth(model: RegressionPosterior) -> np.ndarray:
    grid = ProcessGrid.of(model, 101, 5.4)
    assert grid.edge_mass < 1e-6
    coarse = ProcessGrid.of(model, 81, 5.4).moments()
    np.testing.assert_allclose(coarse, grid.moments(), rtol=1e-4, atol=1e-4)
    return grid.moments()


def hmc_error(model: RegressionPosterior, truth: np.ndarray, n_draws: int) -> tuple[float, float]:
    """Largest |t| of the nine moments, and the acceptance rate."""
    tuning = HamiltonianTuning(0.4, unit_mass(3))
    start = At((0.5, 0.2, -3.5))
    hmc = HMC(model, start, record_position, tuning, n_leapfrog=3, path_length=None)
    draws, acceptance_rate = run(hmc, n_draws, seed=5)
    return largest_z(nine_moments(draws), truth, _BATCHES), acceptance_rate


@pytest.mark.parametrize("n_draws", tiers(1000, 8000))
def test_gpr_2_hyperposterior(model: RegressionPosterior, truth: np.ndarray, n_draws: int) -> None:
    z, acceptance_rate = hmc_error(model, truth, n_draws)
    assert 0.5 < acceptance_rate < 0.85
    assert z < z_limit(_BATCHES, 9)


def test_gpr_2_hyperposterior_sees_a_missing_accept_step(
    model: RegressionPosterior, truth: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept_everything(monkeypatch)
    assert hmc_error(model, truth, 2000)[0] > z_limit(_BATCHES, 9)


def fitted_error(
    model: RegressionPosterior, truth: np.ndarray, chain: GPSettings, n_draws: int = 2500
) -> float:
    """The same statistic for the default chain: maximum, warm-up, jitter, adapted mass."""
    options = RunOptions(n_draws, 200, 1, 1, entropy_of(11), progress=False)
    settings = RegressionSettings(chain, None)
    # To the end: a chain that stops once predictions are known says less of hyperparameters.
    with mock.patch.object(fitting, "_FEWEST_OF_CHAIN", options.n_draws):
        draws = fit_regression(model.X, model.y, settings, options, ("x0",)).draws
    names = ("log_signal_variance", "log_weight", "log_noise_variance")
    theta = np.column_stack([draws.flat(name) for name in names])
    return largest_z(nine_moments(theta), truth, _BATCHES)


@pytest.mark.parametrize("n_draws", tiers(1200, 2500))
@pytest.mark.parametrize("inference", few_first(["hmc", "nuts"], "hmc"))
def test_gpr_2_default_chain(
    model: RegressionPosterior, truth: np.ndarray, inference: str, n_draws: int
) -> None:
    chain = GPSettings(inference, "wide", None, None)
    assert fitted_error(model, truth, chain, n_draws) < z_limit(_BATCHES, 9)


def test_gpr_2_default_chain_sees_another_prior_of_the_noise(
    model: RegressionPosterior, truth: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitting, "noise_prior", lambda n_inputs, choice: (-1.0, 3.0))
    assert fitted_error(model, truth, CHAIN) > z_limit(_BATCHES, 9)
