"""GP-12: importance weights for the exact evidence: bounded by p(y | f)/eps, and unbiased.

False alarm 1e-6 over all cases of a family: normal limits for means of 20000 independent pairs.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest
from scipy import stats

from mercer.gp import importance as evidence
from mercer.gp.hyperparameters import NormalPrior
from mercer.gp.importance import (
    EvidenceEstimator,
    Proposal,
    draw_weights,
    log_likelihoods,
    lower_factor,
)
from mercer.gp.laplace import HyperparameterPosterior
from mercer.kernels.stationary import SquaredExponentialARD
from support.exact_cases import gram, trapezoid_moments
from support.gp_cases import problem
from support.statistics import FALSE_ALARM

_PROPOSALS = ("matched", "variational", "laplace")
_PAIRS = 20000
_LOG_V0 = (-1.0, 1.0, 3.0)


def model_of(n: int) -> HyperparameterPosterior:
    X, y = problem(n, 1)
    prior = NormalPrior(np.zeros(2), np.full(2, 3.0))
    return HyperparameterPosterior(X, y, SquaredExponentialARD(), prior)


def proposal_at(model: HyperparameterPosterior, theta: np.ndarray, name: str) -> Proposal:
    estimator = EvidenceEstimator(model.X, model.y, model.kernel, name)
    return estimator._fit(gram(theta, model.X), model.Y, model.totals, model.evaluate(theta))


def largest_excess() -> float:
    """Largest log w - log p(y | f) + log eps over 8000 draws for each proposal and theta."""
    model, excess = model_of(20), -np.inf
    for seed, log_v0 in enumerate((-2.0, 0.0, 3.0, 6.0, 9.0, 12.0)):
        theta = np.array([log_v0, -1.0])
        K = gram(theta, model.X)
        for name in _PROPOSALS:
            proposal, rng = proposal_at(model, theta, name), np.random.default_rng(seed)
            drawn = draw_weights(rng, K, lower_factor(K), model.Y, model.totals, proposal, 4000)
            bound = log_likelihoods(model.Y, model.totals, drawn.latent) - np.log(
                drawn.is_prior.mean()
            )
            excess = max(excess, float((drawn.log_weights - bound).max()))
    return excess


def test_gp_12_weights_are_bounded() -> None:
    assert largest_excess() < 1e-9


def test_gp_12_bound_sees_a_proposal_without_the_prior(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "_log_mixture", lambda log_ratio, share: -log_ratio)
    assert largest_excess() > 1.0


@functools.cache
def truths() -> dict[tuple[int, float], float]:
    """Evidence by quadrature of one, two and three rows."""
    return {
        (n, v): float(trapezoid_moments(gram(np.array([v, -0.5]), model_of(n).X), model_of(n).y)[0])
        for n in (1, 2, 3)
        for v in _LOG_V0
    }


def mean_and_error(pairs: np.ndarray, is_prior: np.ndarray) -> tuple[float, float]:
    """Mean of the pairs of both kinds together, and its standard error."""
    parts = (pairs[is_prior], pairs[~is_prior])
    variance = sum(len(part) * part.var(ddof=1) for part in parts)
    return float(pairs.mean()), float(np.sqrt(variance)) / len(pairs)


def largest_z(change=lambda proposal, model, theta: proposal, average=np.mean) -> float:
    """Largest |z| of an estimate against quadrature, over proposals, rows and variances."""
    worst = 0.0
    for seed, ((n, log_v0), truth) in enumerate(truths().items()):
        model, theta = model_of(n), np.array([log_v0, -0.5])
        K = gram(theta, model.X)
        for name in _PROPOSALS:
            proposal = change(proposal_at(model, theta, name), model, theta)
            rng = np.random.default_rng(seed)
            drawn = draw_weights(rng, K, lower_factor(K), model.Y, model.totals, proposal, _PAIRS)
            pairs = average(np.exp(drawn.log_weights), axis=0)
            mean, error = mean_and_error(pairs, drawn.is_prior)
            worst = max(worst, abs(mean - truth) / error)
    return worst


def limit(n_statistics: int) -> float:
    return float(stats.norm.isf(FALSE_ALARM / (2.0 * n_statistics)))


def test_gp_12_unbiased_against_quadrature() -> None:
    assert largest_z() < limit(27)


def test_gp_12_unbiased_sees_a_shift_left_out_of_the_density() -> None:
    """Drawn around the shifted mean, weighed as if drawn around the mode."""

    def unshifted(proposal, model, theta):
        return dataclasses.replace(proposal, coef=model.evaluate(theta).extra["a"])

    assert largest_z(unshifted) > limit(27)


def test_gp_12_unbiased_sees_pairs_that_are_not_averaged() -> None:
    assert largest_z(average=np.max) > limit(27)


def estimates(
    n_estimates: int, log_v0: float = 3.0, **settings
) -> tuple[list[evidence.Estimate], float, np.ndarray]:
    """Whole estimates at one theta, with the evidence and the means of f there."""
    model, theta = model_of(3), np.array([log_v0, -0.5])
    estimator = EvidenceEstimator(model.X, model.y, model.kernel, **settings)
    point, rng = model.evaluate(theta), np.random.default_rng(3)
    found = [estimator.estimate(rng, point) for _ in range(n_estimates)]
    Z, *means = trapezoid_moments(gram(theta, model.X), model.y)
    return found, float(Z), np.array(means)


def evidence_z(monkeypatch: pytest.MonkeyPatch) -> float:
    """|z| of whole estimates, where some first sets ask for many more draws than others."""
    monkeypatch.setattr(evidence, "_PILOT_PAIRS", 4)
    found, Z, _ = estimates(10000, 5.0, proposal="laplace", min_draws=8, max_draws=64)
    assert len({estimate.n_draws for estimate in found}) > 2
    values = np.exp([estimate.log_evidence for estimate in found])
    error = values.std(ddof=1) / np.sqrt(len(values))
    return float(abs(values.mean() - Z) / error)


@pytest.mark.slow
def test_gp_12_number_of_draws_by_a_first_set_is_unbiased(monkeypatch: pytest.MonkeyPatch) -> None:
    assert evidence_z(monkeypatch) < limit(1)


@pytest.mark.slow
def test_gp_12_number_of_draws_sees_a_first_set_used_where_it_pleases(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw, last = draw_weights, {}

    def sparing(rng, K, L, y, totals, proposal, n_pairs):
        if last and n_pairs == 4:
            return last.pop("pilot")
        drawn = draw(rng, K, L, y, totals, proposal, n_pairs)
        if last:
            last.clear()
        elif n_pairs == 4:
            last["pilot"] = drawn
        return drawn

    monkeypatch.setattr(evidence, "draw_weights", sparing)
    assert evidence_z(monkeypatch) > limit(1)


def latent_z(**settings) -> float:
    """Largest |z| of evidence-weighted means of the chosen f against their posterior means."""
    found, Z, means = estimates(1500, min_draws=4, max_draws=4, proposal="laplace", **settings)
    weights = np.exp([estimate.log_evidence for estimate in found])[:, None] / Z
    residual = weights * (np.array([estimate.latent for estimate in found]) - means)
    error = residual.std(axis=0, ddof=1) / np.sqrt(len(found))
    return float(np.abs(residual.mean(axis=0) / error).max())


def test_gp_12_chosen_function_is_from_the_posterior() -> None:
    assert latent_z() < limit(3)


def test_gp_12_chosen_function_sees_a_choice_without_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        evidence, "_choose", lambda rng, W: (int(rng.integers(2)), int(rng.integers(W.shape[1])))
    )
    assert latent_z() > limit(3)


def test_gp_12_coefficients_give_the_function() -> None:
    model = model_of(20)
    for log_v0 in (-1.0, 3.0, 8.0):
        theta = np.array([log_v0, -1.0])
        point, K = model.evaluate(theta), gram(theta, model.X)
        for seed in range(20):
            for name in _PROPOSALS:
                estimator = EvidenceEstimator(model.X, model.y, model.kernel, name)
                found = estimator.estimate(np.random.default_rng(seed), point)
                f = K @ found.coef
                np.testing.assert_allclose(f, found.latent, rtol=0, atol=1e-7 * np.exp(log_v0 / 2))
