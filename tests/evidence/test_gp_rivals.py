from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning

from mercer.posterior.scores import error_rate, log_score
from reproduce.papers import gp_mixtures, gp_rivals
from reproduce.papers.gp_cells import Method
from reproduce.papers.gp_mixtures import MixtureDiscriminant
from reproduce.papers.gp_networks import Networks
from reproduce.papers.gp_part import run_methods
from reproduce.papers.reproduction import Settings

RIVALS = {
    "discriminant": gp_rivals.linear_discriminant,
    "logistic": gp_rivals.logistic_regression,
    "penalised": gp_rivals.penalised_logistic_regression,
    "network": partial(gp_rivals.likeliest_network, 2),
    "decayed": partial(gp_rivals.decayed_networks, 3),
    "mixture": gp_rivals.mixture_discriminant,
    "tree": gp_rivals.decision_tree,
    "forest": gp_rivals.random_forest,
    "svc": gp_rivals.calibrated_support_vectors,
}


def three_clouds(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three classes on a line, in inputs of unlike scales."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.standard_normal((n, 3)) + np.array([3.0, 0.0, 0.0]) * y[:, None]
    return X * np.array([1.0, 100.0, 0.01]), y


def two_islands(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A class that lies on both sides of the other: no single Gaussian tells them apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    side = np.where(rng.random(n) < 0.5, -4.0, 4.0)
    X = 0.7 * rng.standard_normal((n, 2))
    X[:, 0] += np.where(y == 1, side, 0.0)
    return X, y


@pytest.mark.parametrize("name", list(RIVALS))
def test_rivals_learn_and_say_probabilities(name: str) -> None:
    X, y = three_clouds(90, 0)
    X_test, y_test = three_clouds(60, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = RIVALS[name](0, True).fit(X, y)
    proba = model.predict_proba(X_test)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert error_rate(y_test, proba) < 0.25


def test_mixtures_see_islands_where_one_gaussian_does_not() -> None:
    X, y = two_islands(120, 0)
    X_test, y_test = two_islands(200, 1)
    scores = [
        log_score(y_test, MixtureDiscriminant(n_components=k).fit(X, y).predict_proba(X_test))
        for k in (2, 1)
    ]
    assert scores[0] < 0.1 < scores[1]


def test_one_gaussian_a_class_is_the_linear_discriminant() -> None:
    X, y = three_clouds(60, 2)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    # Its covariance divides by n as well.
    linear = LinearDiscriminantAnalysis(solver="lsqr").fit(Z, y)
    ours = MixtureDiscriminant(n_components=1).fit(Z, y)
    np.testing.assert_allclose(ours.predict_proba(Z), linear.predict_proba(Z), atol=1e-3)
    np.testing.assert_array_equal(ours.predict(Z), linear.predict(Z))


def test_em_climbs(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = two_islands(100, 5)
    X = X + 3.0 * np.random.default_rng(0).standard_normal(X.shape)
    model = MixtureDiscriminant(n_components=2, n_starts=1).fit(X, y)
    likelihoods = []
    monkeypatch.setattr(gp_mixtures, "_N_STEPS", 1)
    shares = model._start(np.random.default_rng(1), y)
    np.testing.assert_array_equal(shares @ np.array([1, 1, 0, 0]), y == 0)
    for _ in range(30):
        likelihood, shares = model._climb(X, y, shares)
        likelihoods.append(likelihood)
    # The floor of the variances is no part of EM: hence the tolerance.
    assert np.all(np.diff(likelihoods) > -1e-3)
    assert likelihoods[-1] > likelihoods[0] + 0.1


def test_a_class_of_two_rows_has_one_gaussian() -> None:
    X, y = three_clouds(30, 3)
    X, y = np.vstack([X, X[:2] + 50.0]), np.append(y, [7, 7])
    model = MixtureDiscriminant().fit(X, y)
    assert model.owners_.tolist() == [0, 0, 1, 1, 2, 2, 3]
    assert model.predict(X[-1:]).tolist() == [7]


def test_the_likeliest_start_is_kept_or_all_are_averaged() -> None:
    X, y = two_islands(80, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        alone = [Networks(n_hidden=2, n_starts=1, random_state=k).fit(X, y) for k in range(4, 8)]
        best = Networks(n_hidden=2, n_starts=4, random_state=1).fit(X, y)
        mean = Networks(n_hidden=2, n_starts=4, random_state=1, is_averaged=True).fit(X, y)
    losses = [model.networks_[0].loss_ for model in alone]
    assert [network.loss_ for network in best.networks_] == [min(losses)]
    assert min(losses) < max(losses)
    averaged = np.mean([model.predict_proba(X) for model in alone], axis=0)
    np.testing.assert_allclose(mean.predict_proba(X), averaged)
    np.testing.assert_array_equal(mean.predict(X), averaged.argmax(axis=1))


@pytest.mark.parametrize("make", [gp_rivals.mars, partial(gp_rivals.projection_pursuit, 3)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_regressions_of_r_learn_and_say_probabilities(make, n_classes: int) -> None:
    if not gp_rivals.has_r():
        pytest.skip("there is no Rscript with the package earth")
    X, y = three_clouds(90, 0)
    X_test, y_test = three_clouds(60, 1)
    words = np.array(["a", "b", "c"])
    train, test = y < n_classes, y_test < n_classes
    model = make(0, True).fit(X[train], words[y[train]])
    proba = model.predict_proba(X_test[test])
    assert proba.shape == (test.sum(), n_classes)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert proba.min() > 0.0
    assert error_rate(y_test[test], proba) < 0.25
    assert np.mean(model.predict(X_test[test]) == words[y_test[test]]) > 0.75


def test_methods_of_r_are_left_out_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gp_rivals.shutil, "which", lambda name: None)
    gp_rivals.has_r.cache_clear()
    try:
        assert not gp_rivals.has_r()
        method = Method("mars", "MARS", gp_rivals.mars, needs_r=True)
        lines: list[str] = []
        assert run_methods("t", "d", [method], [], Settings(tell=lines.append)) == {}
        assert lines == ["MARS is left out: no Rscript with the package earth"]
    finally:
        gp_rivals.has_r.cache_clear()
