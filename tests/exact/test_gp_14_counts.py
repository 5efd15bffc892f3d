"""Rows that are alike, or that have weights, in a GP classifier.

A row of weight w has its likelihood to the power w, and rows that are alike one function value: so
that the posterior of a table is that of the rows that differ, with counts of their classes.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.special import log_expit, softmax

from mercer import GPClassifier
from mercer.gp import importance
from mercer.gp import softmax as several
from mercer.gp.hyperparameters import NormalPrior
from mercer.gp.laplace import HyperparameterPosterior, LatentDraws, SoftmaxDraws
from mercer.kernels.stationary import SquaredExponentialARD

KERNEL, PRIOR = SquaredExponentialARD(), NormalPrior(np.full(3, -1.0), np.full(3, 3.0))
RNG = np.random.default_rng(3)
SITES = RNG.standard_normal((6, 2))
THETAS = np.array([[-1.0, 0.0, -1.0], [2.0, -1.0, 0.5], [5.0, -2.0, -2.0]])


def counts(n_classes: int, *, is_whole: bool) -> np.ndarray:
    """How often each class was seen at each of the sites: (C, 6)."""
    drawn = RNG.integers(0, 5, (n_classes, 6)).astype(float)
    drawn[0] += 1.0
    return drawn if is_whole else drawn * RNG.uniform(0.1, 2.0, drawn.shape)


def model_of(X: np.ndarray, y: np.ndarray, n_classes: int, *, is_shared: bool = True):
    n_functions = 1 if n_classes == 2 else n_classes
    return HyperparameterPosterior(X, y, KERNEL, PRIOR, n_functions, is_shared)


def repeated(C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The table that these counts are of."""
    codes, sites = np.divmod(np.arange(C.size), C.shape[1])
    times = C.ravel().astype(int)
    return np.repeat(SITES[sites], times, axis=0), np.repeat(codes, times).astype(float)


def tiled(theta: np.ndarray, model: HyperparameterPosterior) -> np.ndarray:
    """Log parameters of each kernel, a little apart."""
    return np.concatenate([theta + 0.3 * k for k in range(model.n_kernels)])


@pytest.mark.parametrize("is_shared", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_gp_14_counts_are_repeated_rows(n_classes: int, is_shared: bool) -> None:
    """Log density, gradient, function and predictions, whatever the signal variance."""
    C = counts(n_classes, is_whole=True)
    X, y = repeated(C)
    once = model_of(SITES, C, n_classes, is_shared=is_shared)
    all_rows = model_of(X, y, n_classes, is_shared=is_shared)
    for theta in THETAS:
        own = tiled(theta, once)
        found, expected = once.evaluate(own), all_rows.evaluate(own)
        assert found.log_density == pytest.approx(expected.log_density, abs=1e-7)
        np.testing.assert_allclose(found.gradient, expected.gradient, atol=1e-5)
        rows = np.arange(len(SITES))
        value, told = once.values(found, None, rows)(own)
        assert value == pytest.approx(expected.log_density, abs=2e-4)
        np.testing.assert_allclose(told["dual_coef"], found.extra["a"], atol=1e-5)
        places = [int(np.flatnonzero((site == X).all(axis=1))[0]) for site in SITES]
        f = np.atleast_2d(expected.extra["f"])[:, places]
        np.testing.assert_allclose(np.atleast_2d(found.extra["f"]), f, atol=1e-5)
        p = [
            probabilities(model, point, own)
            for model, point in ((once, found), (all_rows, expected))
        ]
        np.testing.assert_allclose(*p, atol=1e-6)


def probabilities(model, point, theta: np.ndarray) -> np.ndarray:
    """At new rows, corrected."""
    Z = np.random.default_rng(1).standard_normal((5, 2))
    a = point.extra["a"][np.newaxis]
    if model.n_functions == 1:
        draws = LatentDraws(model.X, KERNEL, theta[np.newaxis], a, model.y, None)
    else:
        split = model.split(theta)[np.newaxis]
        draws = SoftmaxDraws(model.X, KERNEL, split, a, model.y, None)
    return draws.probabilities(Z)


def gradient_error(n_classes: int) -> float:
    """Largest difference of the gradient from that of differences; counts are no whole numbers."""
    model, worst = model_of(SITES, counts(n_classes, is_whole=False), n_classes), 0.0
    for theta in THETAS:
        numeric = [
            (model.evaluate(theta + step).log_density - model.evaluate(theta - step).log_density)
            / 2e-5
            for step in 1e-5 * np.eye(len(theta))
        ]
        worst = max(worst, float(np.abs(model.evaluate(theta).gradient - numeric).max()))
    return worst


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_gp_14_gradient_with_weights(n_classes: int) -> None:
    assert gradient_error(n_classes) < 1e-4


def test_gp_14_gradient_sees_rows_that_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the third derivatives alone: the mode and its curvature are right."""
    slope = several._slope

    def unweighted(factors, proba, products):
        told = slope(factors, proba, products)
        return told * factors.totals

    monkeypatch.setattr(several, "_slope", unweighted)
    assert gradient_error(3) > 1e-2


def test_gp_14_several_determinants_see_the_totals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without log |T|/2 the evidence of counts is not that of the repeated rows."""
    C = counts(3, is_whole=True)
    once, all_rows = model_of(SITES, C, 3), model_of(*repeated(C), 3)
    right = all_rows.evaluate(THETAS[1]).log_density
    curvature = several.curvature

    def without(K, proba, scratch, totals):
        found = curvature(K, proba, scratch, totals)
        log_det = found.log_det + 0.5 * float(np.log(totals).sum())
        return dataclasses.replace(found, log_det=log_det)

    monkeypatch.setattr(several, "curvature", without)
    assert abs(once.evaluate(THETAS[1]).log_density - right) > 0.5


def exact(variance: float, y: float, total: float) -> float:
    """Log of E sigma(f)^y (1 - sigma(f))^(t - y) over N(0, v), by a fine trapezoidal rule."""
    f = np.linspace(-40.0, 40.0, 800_001) * np.sqrt(variance)
    logs = y * log_expit(f) + (total - y) * log_expit(-f) - 0.5 * f**2 / variance
    logs -= 0.5 * np.log(2.0 * np.pi * variance)
    return float(np.log(np.exp(logs - logs.max()).sum() * (f[1] - f[0])) + logs.max())


@pytest.mark.parametrize(
    ("y", "total"), [(0.0, 3.0), (2.5, 2.5), (40.0, 700.0), (1.0, 2.0), (0.2, 0.3), (0.0, 1e4)]
)
@pytest.mark.parametrize("variance", [0.1, 3.0, 50.0, 400.0])
def test_gp_14_propagation_of_one_row_is_exact(y: float, total: float, variance: float) -> None:
    K, mode = np.array([[variance]]), model_of(SITES[:1], np.array([[total - y], [y]]), 2)
    theta = np.array([np.log(variance), -1.0, -1.0])
    a = mode.evaluate(theta).extra["a"]
    W = (y - a) * (total - y + a) / total
    found = importance.matched_evidence(K, mode.Y, mode.totals, a, W)
    assert found == pytest.approx(exact(variance, y, total), abs=1e-4)


def test_gp_14_estimates_are_of_the_counts() -> None:
    """Unbiased estimates by importance sampling, of a Gaussian by propagation or the bound."""
    C = counts(2, is_whole=False)
    model = model_of(SITES[:1], C[:, :1], 2)
    point = model.evaluate(THETAS[1])
    truth = exact(
        float(np.exp(THETAS[1][0])) * (1.0 + 1e-8), *(float(v) for v in (C[1, 0], C[:, 0].sum()))
    )
    for name in ("matched", "variational", "laplace"):
        estimator = importance.EvidenceEstimator(
            model.X, model.y, KERNEL, name, min_draws=40_000, max_draws=40_000
        )
        found = estimator.estimate(np.random.default_rng(0), point)
        assert found.log_evidence == pytest.approx(truth, abs=5.0 * found.log_std)


# The estimator.


def table(n_classes: int, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(8)
    X = rng.standard_normal((n, 2))
    logits = np.stack([np.cos(2.0 * k + 1.5 * X[:, 0]) * 3.0 for k in range(n_classes)])
    p = softmax(logits, axis=0)
    y = np.array([rng.choice(n_classes, p=p[:, i]) for i in range(n)])
    y[:n_classes] = np.arange(n_classes)
    return X, y


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("settings", [{}, {"kernel": "rbf"}, {"inference": "map"}])
def test_gp_14_whole_weights_are_repeated_rows(n_classes: int, settings: dict) -> None:
    X, y = table(n_classes)
    weights = np.random.default_rng(9).integers(0, 4, len(y))
    given = {"random_state": 0, "n_draws": 60, **settings}
    once = GPClassifier(**given).fit(X, y, sample_weight=weights)
    rows = GPClassifier(**given).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_array_equal(once.predict_proba(X), rows.predict_proba(X))
    assert len(once._task_.X) == np.count_nonzero(weights)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_gp_14_weights_act_and_are_kept(n_classes: int, tmp_path) -> None:
    """Rows of a class that count for more make it more probable; a file holds the weights."""
    import mercer

    X, y = table(n_classes)
    weights = np.where(y == 1, 4.5, 0.25)
    given = {"random_state": 0, "n_draws": 60, "kernel": "rbf"}
    plain, heavy = (GPClassifier(**given).fit(X, y, sample_weight=own) for own in (None, weights))
    more = heavy.predict_proba(X)[:, 1] - plain.predict_proba(X)[:, 1]
    assert more.mean() > 0.05
    heavy.save(tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(again.predict_proba(X), heavy.predict_proba(X))
