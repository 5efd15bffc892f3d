"""GP-13: the exact posterior by delayed acceptance against quadrature on a grid.

Eight rows in four pairs: the evidence is a product of four integrals over two values each. False
alarm 1e-6 for each family: five moments of the hyperparameters and three latent values, 50 batches.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from mercer.gp import exact as predict
from mercer.gp import laplace as binary_predict
from mercer.gp.exact import (
    DelayedAcceptance,
    ExactDraws,
    draw_probabilities,
    laplace_weights,
    make_exact_sampler,
)
from mercer.gp.importance import EvidenceEstimator
from mercer.gp.laplace import HyperparameterPosterior
from mercer.likelihoods.logistic import expected_logistic
from mercer.sampling.hmc import HMC, HamiltonianTuning, mass_from_covariance
from support.exact_cases import PairGrid, gram, pair_grid, pair_model, trapezoid_moments
from support.statistics import largest_z, tiers, z_limit
from support.targets import At, record_position

_BATCHES = 50
_ROWS = np.array([0, 2, 3])


@pytest.fixture(scope="module")
def grid() -> PairGrid:
    found = pair_grid(31)  # of 41 points a side they differ by 2e-7
    assert found.exact[1:-1, 1:-1].sum() > 1.0 - 1e-6
    return found


def make(slope: float = 0.3, **estimator) -> DelayedAcceptance:
    """Delayed acceptance on the pairs, with a slope that is far from fitted."""
    model = pair_model()
    tuning = HamiltonianTuning(1.2, mass_from_covariance(np.diag([2.0, 1.0])))
    inner = HMC(model, At((2.0, 0.0)), record_position, tuning, n_leapfrog=2, path_length=None)
    sampler = make_exact_sampler(inner, model, _ROWS)
    return dataclasses.replace(
        sampler,
        estimator=dataclasses.replace(sampler.estimator, **estimator),
        correction=dataclasses.replace(sampler.correction, slope=np.array([slope, 0.0])),
    )


def chain(sampler: DelayedAcceptance, n_steps: int) -> dict[str, np.ndarray]:
    """Recorded draws of one chain."""
    rng = np.random.default_rng(5)
    state, draws = sampler.init(rng), []
    for _ in range(n_steps):
        state, _ = sampler.step(rng, state)
        draws.append(sampler.record(state))
    return {name: np.array([draw[name] for draw in draws]) for name in draws[0]}


def eight(draws: dict[str, np.ndarray]) -> np.ndarray:
    """Moments of theta and the latent values, one row a draw."""
    u, v = draws["x"].T
    return np.column_stack([u, v, u * u, v * v, u * v, draws["exact_latent"]])


def exact_z(grid: PairGrid, draws: dict[str, np.ndarray]) -> float:
    truth = np.append(grid.moments(grid.exact), grid.latent_means)
    return largest_z(eight(draws), truth, _BATCHES)


LIMIT = z_limit(_BATCHES, 8)


@pytest.fixture(scope="module", params=tiers(800, 2500))
def draws(request: pytest.FixtureRequest) -> dict[str, np.ndarray]:
    return chain(make(), request.param)


def test_gp_13_exact_posterior(grid: PairGrid, draws: dict[str, np.ndarray]) -> None:
    assert exact_z(grid, draws) < LIMIT


def test_gp_13_sees_a_missing_second_stage(grid: PairGrid, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DelayedAcceptance, "_acceptance_rate", lambda self, old, new: 1.0)
    assert exact_z(grid, chain(make(), 500)) > LIMIT
    assert exact_z(grid, chain(make(slope=0.0), 500)) > LIMIT


def noisy() -> DelayedAcceptance:
    """Four draws from the narrower Gaussian: estimates with errors of e^.5 and more."""
    return make(0.0, proposal="variational", min_draws=4, max_draws=4)


@pytest.mark.slow
def test_gp_13_noise_of_the_estimates_changes_nothing(grid: PairGrid) -> None:
    assert exact_z(grid, chain(noisy(), 6000)) < LIMIT


@pytest.mark.slow
def test_gp_13_sees_estimates_that_are_made_anew(
    grid: PairGrid, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = DelayedAcceptance.step

    def refreshed(self, rng, state):
        estimate = self.estimator.estimate(rng, state.point)
        return step(self, rng, dataclasses.replace(state, estimate=estimate))

    monkeypatch.setattr(DelayedAcceptance, "step", refreshed)
    assert exact_z(grid, chain(noisy(), 6000)) > LIMIT


def laplace_z(grid: PairGrid, draws: dict[str, np.ndarray], sign: float) -> float:
    """Largest |z| of reweighted moments of theta against Laplace's: ratios, linearised."""
    weights = laplace_weights(sign * draws["log_laplace_error"])[:, None]
    residual = weights * (eight(draws)[:, :5] - grid.moments(grid.laplace))
    return largest_z(residual, np.zeros(5), _BATCHES)


def test_gp_13_reweighted_draws_are_laplaces(grid: PairGrid, draws: dict[str, np.ndarray]) -> None:
    assert laplace_z(grid, draws, 1.0) < z_limit(_BATCHES, 5)


@pytest.mark.parametrize("draws", [2500], indirect=True)
def test_gp_13_reweighting_sees_the_inverse_weights(
    grid: PairGrid, draws: dict[str, np.ndarray]
) -> None:
    assert laplace_z(grid, draws, -1.0) > z_limit(_BATCHES, 5)


def prediction_z(n_draws: int) -> float:
    """|z| of the probability at a new row of one theta, batches of functions, by quadrature."""
    X, y = np.array([[0.0], [0.5], [1.5]]), np.array([1.0, 1.0])
    model = HyperparameterPosterior(X[:2], y, pair_model().kernel, pair_model().prior)
    theta = np.array([4.0, 0.0])
    estimator = EvidenceEstimator(model.X, model.y, model.kernel)
    rng, point = np.random.default_rng(7), model.evaluate(theta)
    found = [estimator.estimate(rng, point) for _ in range(n_draws)]
    # At so good a proposal the estimates differ by a hundredth: weights for the last digit.
    weights = np.exp([estimate.log_evidence for estimate in found])
    coef = np.array([estimate.coef for estimate in found])
    draws = ExactDraws(model.X, model.kernel, np.tile(theta, (len(coef), 1)), coef)
    proba = np.array([float(p[0]) for p in draw_probabilities(draws, X[2:])])
    np.testing.assert_allclose(draws.probabilities(X[2:])[:, 1], proba.mean(), rtol=1e-12)
    whole = trapezoid_moments(gram(theta, X), np.append(y, 1.0))[0]
    truth = whole / trapezoid_moments(gram(theta, X[:2]), y)[0]
    return largest_z((weights / weights.mean() * (proba - truth))[:, None], np.zeros(1), _BATCHES)


@pytest.mark.parametrize("n_draws", tiers(400, 2000))
def test_gp_13_prediction_against_quadrature(n_draws: int) -> None:
    assert prediction_z(n_draws) < z_limit(_BATCHES, 1)


def test_gp_13_prediction_sees_a_forgotten_variance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The function at the new row taken as its mean given the function at the old ones."""
    for module in (binary_predict, predict):
        monkeypatch.setattr(
            module,
            "expected_logistic",
            lambda mean, variance: expected_logistic(mean, 0.0 * variance),
        )
    assert prediction_z(2000) > z_limit(_BATCHES, 1)
