from __future__ import annotations

import numpy as np

from mercer.gp.estimator import GPClassifier
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
        np.log([low, high]), [centre - 2.0 * 1.6448536, centre + 2.0 * 1.6448536], rtol=1e-6
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
