from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from mercer.gp.estimator import GPClassifier
from mercer.gp.hyperparameters import NormalPrior
from support.gp_cases import problem


def test_paper_settings() -> None:
    model = GPClassifier.paper()
    assert (model.n_leapfrog, model.step_size, model.n_chains) == (20, 0.1, 1)
    assert model.n_draws + model.n_warmup == 200
    assert (model.prior, model.predictive_mean, model.standardize) == ("paper", "mode", "std")


def test_attributes() -> None:
    X, y = problem(25, 2)
    tiny = {"n_draws": 10, "n_warmup": 5, "n_chains": 2, "random_state": 0, "progress": False}
    model = GPClassifier(kernel="rbf", inference="hmc", **tiny)
    model.fit(X, y)
    assert model.relevance_.shape == (20, 2)
    np.testing.assert_array_equal(model.relevance_, np.exp(model.posterior_.flat("log_weight")))
    low, high = model.prior_weight_interval_
    centre = -1.0 - np.log(2.0)
    np.testing.assert_allclose(
        np.log([low, high]), [centre - 3.0 * 1.6448536, centre + 3.0 * 1.6448536], rtol=1e-6
    )
    assert model.feature_labels_ == ("x0", "x1")
    assert model.notes_ == ()
    assert any("too short to judge" in line for line in model.diagnostics_.warnings)


def test_predictive_mean_changes_predictions_and_not_draws() -> None:
    X, y = problem(25, 2)
    corrected, mode = (
        GPClassifier(
            kernel="rbf", predictive_mean=kind, n_draws=5, n_warmup=5, n_chains=1, random_state=0
        ).fit(X, y)
        for kind in ("corrected", "mode")
    )
    np.testing.assert_array_equal(corrected.relevance_, mode.relevance_)
    assert np.abs(corrected.predict_proba(X) - mode.predict_proba(X)).max() > 1e-4


def test_probabilities_never_reach_0_or_1() -> None:
    X = np.r_[np.full(40, -1.0), np.full(40, 1.0)][:, None]
    y = (X[:, 0] > 0).astype(int)
    p = GPClassifier(inference="map").fit(X, y).predict_proba(X)
    assert p.min() >= 1e-12
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-15)


def test_a_whole_that_learns() -> None:
    """Two curved classes: a fit beats the majority by far on rows it has not seen."""
    X, y = problem(400, 2)
    model = GPClassifier(n_draws=25, n_warmup=25, n_chains=1, random_state=0, progress=False)
    model.fit(X[:150], y[:150])
    p = model.predict_proba(X[150:])[:, 1]
    rest = y[150:]
    log_score = -np.mean(np.log(np.where(rest == 1.0, p, 1.0 - p)))
    base = y[:150].mean()
    baseline = -np.mean(np.log(np.where(rest == 1.0, base, 1.0 - base)))
    assert log_score < baseline - 0.1


PRIOR = NormalPrior(np.array([1.0, -2.0]), np.array([3.0, 0.5]))


def test_log_density_up_to_a_constant() -> None:
    a, b = np.array([0.3, -1.0]), np.array([2.0, 0.1])
    exact = [stats.norm(PRIOR.mean, PRIOR.std).logpdf(x).sum() for x in (a, b)]
    seen = [PRIOR.log_density(x) for x in (a, b)]
    assert seen[0] - seen[1] == pytest.approx(exact[0] - exact[1])
    assert PRIOR.log_density(PRIOR.mean) == 0.0


def test_gradient_against_differences() -> None:
    x, h = np.array([0.3, -1.0]), 1e-5
    for k in range(2):
        shift = h * (np.arange(2) == k)
        slope = (PRIOR.log_density(x + shift) - PRIOR.log_density(x - shift)) / (2.0 * h)
        assert PRIOR.gradient(x)[k] == pytest.approx(slope, rel=1e-8)


def test_interval_holds_its_share() -> None:
    lower, upper = PRIOR.interval(0.9)
    law = stats.norm(PRIOR.mean, PRIOR.std)
    np.testing.assert_allclose(law.cdf(lower), 0.05)
    np.testing.assert_allclose(law.cdf(upper), 0.95)
