"""GP-5: moments of the hyperparameters by HMC against a grid of the same density.

False alarm 1e-6 (five moments, 50 batches: |t| < 6.04). The step size gives an acceptance between
0.5 and 0.85: the mutant without its accept step is invisible at an acceptance of 0.99.
"""

from __future__ import annotations

import numpy as np
import pytest

from mercer.gp.estimator import ClassTask
from mercer.gp.fitting import GPSettings
from mercer.gp.hyperparameters import kernel_prior
from mercer.gp.laplace import HyperparameterPosterior
from mercer.random import entropy_of
from mercer.sampling.driver import RunOptions
from mercer.sampling.hmc import HMC, HamiltonianTuning, unit_mass
from mercer.sampling.nuts import NUTS
from support.gp_cases import posterior
from support.grid import Grid, five_moments
from support.mutants import accept_everything
from support.statistics import largest_z, tiers, z_limit
from support.targets import At, record_position, run

_BATCHES = 50
_START = At((-2.0, -2.0))


@pytest.fixture(scope="module")
def model() -> HyperparameterPosterior:
    return posterior(14, 1)


@pytest.fixture(scope="module")
def truth(model: HyperparameterPosterior) -> np.ndarray:
    grid = Grid.of(model, 51, 5.6)
    assert grid.edge_mass < 1e-7
    return grid.expectation(five_moments)


def hmc_error(
    model: HyperparameterPosterior, truth: np.ndarray, n_draws: int
) -> tuple[float, float]:
    """Largest |t| of the five moments, and the acceptance rate."""
    tuning = HamiltonianTuning(2.5, unit_mass(2))
    hmc = HMC(model, _START, record_position, tuning, n_leapfrog=3, path_length=None)
    draws, acceptance_rate = run(hmc, n_draws, seed=5)
    return largest_z(five_moments(draws), truth, _BATCHES), acceptance_rate


@pytest.mark.parametrize("n_draws", tiers(1000, 8000))
def test_gp_5_hyperposterior(
    model: HyperparameterPosterior, truth: np.ndarray, n_draws: int
) -> None:
    z, acceptance_rate = hmc_error(model, truth, n_draws)
    assert 0.5 < acceptance_rate < 0.85
    assert z < z_limit(_BATCHES, 5)


def test_gp_5_hyperposterior_sees_a_missing_accept_step(
    model: HyperparameterPosterior, truth: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept_everything(monkeypatch)
    assert hmc_error(model, truth, 1500)[0] > z_limit(_BATCHES, 5)


@pytest.mark.slow
def test_gp_5_hyperposterior_by_nuts(model: HyperparameterPosterior, truth: np.ndarray) -> None:
    nuts = NUTS(model, _START, record_position, HamiltonianTuning(1.8, unit_mass(2)))
    draws, _ = run(nuts, 3000, seed=5)
    assert largest_z(five_moments(draws), truth, _BATCHES) < z_limit(_BATCHES, 5)


def fitted_error(model: HyperparameterPosterior, truth: np.ndarray, n_draws: int = 2500) -> float:
    """The same statistic for the default chain: maximum, warm-up, jitter, adapted mass."""
    options = RunOptions(n_draws, 200, 1, 1, entropy_of(11), progress=False)
    settings = GPSettings("hmc", "paper", None, None)
    task = ClassTask(model.X, model.y, ("0", "1"), is_shared=False)
    draws = task.fit(settings, options, ("x0",)).draws
    theta = np.column_stack([draws.flat("log_signal_variance"), draws.flat("log_weight")])
    return largest_z(five_moments(theta), truth, _BATCHES)


@pytest.mark.parametrize("n_draws", tiers(1000, 2500))
def test_gp_5_default_chain(
    model: HyperparameterPosterior, truth: np.ndarray, n_draws: int
) -> None:
    assert fitted_error(model, truth, n_draws) < z_limit(_BATCHES, 5)


def test_gp_5_default_chain_sees_the_other_prior(
    model: HyperparameterPosterior, truth: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GPSettings, "prior_of", lambda self, n_inputs, **_: kernel_prior(n_inputs))
    assert fitted_error(model, truth) > z_limit(_BATCHES, 5)
