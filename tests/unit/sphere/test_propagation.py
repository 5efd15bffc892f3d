"""Expectation propagation: evidence and labels beside closed forms, tempered runs and chains."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit

import mercer
from mercer import KernelGibbsClassifier
from mercer.errors import UsageError
from mercer.features.maps import nystroem_map
from mercer.kernels.names import kernel_named
from mercer.likelihoods.label_noise import (
    LabelNoise,
    class_rates,
    fixed_rate,
    learned_class_rates,
    learned_rate,
    row_rates,
)
from mercer.sphere import estimator, fitting, propagation, selection
from mercer.sphere.propagation import Sites, _Labels, approximate_evidence, approximate_posterior
from mercer.sphere.sampler import NormalSampler, signed_rows
from mercer.sphere.space import FeatureSpace, FiniteFeatures, KernelSpace, fit_covariance
from mercer.sphere.tempering import Tempering, climb_errors, measure_noise

RNG = np.random.default_rng(1)
N = 60
X = RNG.uniform(-2.0, 2.0, (N, 2))
RING = ((X**2).sum(axis=1) > 2.0).astype(np.int64)
RING[:9] = 1 - RING[:9]  # wrong labels: sites of negative precision
NOISES = {
    "fixed": fixed_rate(0.1, N),
    "learned": learned_rate((1.0, 1.0), N),
    "learned per class": learned_class_rates((1.0, 1.0), RING),
    "per class": class_rates(np.array([0.02, 0.3]), RING),
    "per row": row_rates(np.linspace(0.05, 0.5, N)),
}


def space(nugget: float) -> KernelSpace:
    return KernelSpace(fit_covariance(kernel_named("rbf"), 1.5, X, 1.0), X, nugget)


def of_ring(nugget: float, noise: LabelNoise, start=None):
    L, variance = space(nugget).smooth_rows()
    return approximate_evidence(signed_rows(L, RING), variance, noise, start)


@pytest.mark.parametrize(
    ("log_z", "fewest", "most"),
    [(lambda k: k - 500.0, 400, 400), (lambda k: k % 30 - 500.0, 80, 120)],
    ids=["rises", "rises and falls"],
)
def test_sweeps_go_on_as_long_as_the_evidence_rises(
    log_z: Any, fewest: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sites that run away, and come back, do not take the place of a long way to the mode."""
    problem = _Labels(np.eye(3), np.ones(3), learned_rate((1.0, 1.0), 3))
    seen = list[float]()

    def sweep(self, sites, log_odds, share):
        seen.append(log_z(len(seen)))
        return propagation.Swept(sites, log_odds, seen[-1], np.zeros(1), False), np.full(3, 0.1)

    monkeypatch.setattr(_Labels, "_sweep", sweep)
    swept = problem.settle(problem.no_sites(), np.zeros(1), 0.1, is_learning=True)
    assert not swept.is_settled
    assert fewest <= len(seen) <= most


def test_a_sweep_that_goes_too_far_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole step from the sites of a softer model leads far away, half of it does not."""
    rng, n, seen = np.random.default_rng(0), 4000, list[float]()
    Z = rng.standard_normal((n, 3))
    is_one = rng.random(n) < expit(3.0 * (np.sin(1.5 * Z[:, 0]) + Z[:, 1] * Z[:, 2]))
    W = rng.standard_normal((3, 50)) / 1.5
    L = np.hstack([np.cos(Z @ W), np.sin(Z @ W)]) / np.sqrt(50.0)
    rows, sweep = signed_rows(L, is_one.astype(np.int64)), _Labels._sweep

    def watched(self, sites, log_odds, share):
        found = sweep(self, sites, log_odds, share)
        seen.append(found[0].log_z)
        return found

    monkeypatch.setattr(_Labels, "_sweep", watched)
    problem = _Labels(rows, np.full(n, 0.1), learned_rate((1.0, 1.0), n))
    found = problem.mode()
    assert found.is_settled
    assert len(seen) < 45
    assert max(seen) < 0.0
    at_rest = problem.settle(found.sites, found.log_odds, 1e-6)
    assert found.log_z == pytest.approx(at_rest.log_z, abs=0.1)
    monkeypatch.setattr(propagation, "_LEAST_DAMPING", 1.0)  # none is taken back
    seen.clear()
    problem.mode()
    assert len(seen) > 60


def test_what_came_to_no_rest_is_not_integrated(monkeypatch: pytest.MonkeyPatch) -> None:
    restless = propagation.Swept(
        Sites(np.ones(N), np.ones(N)), np.zeros(1), -9.0, np.ones(1), False
    )
    monkeypatch.setattr(_Labels, "mode", lambda self, start=None: restless)
    monkeypatch.setattr(_Labels, "integrated", lambda self, mode: pytest.fail("integrated"))
    found = of_ring(0.1, NOISES["learned"])
    assert not found.is_settled
    assert found.rates == pytest.approx([0.25])  # half of the largest


@pytest.mark.parametrize("rate", [1e-4, 0.1, 0.45])
def test_independent_rows(rate: float) -> None:
    """Each label has probability 1/2, whatever the rate."""
    rows = np.diag([0.5, 1.0, 2.0])
    found = approximate_evidence(rows, np.array([0.0, 1.0, 0.1]), fixed_rate(rate, 3))
    assert found.log_evidence == pytest.approx(-3.0 * np.log(2.0), abs=1e-3)
    assert found.is_settled


def test_independent_rows_at_rates_that_differ() -> None:
    """Half of the classifiers are right on each: known rates of classes, and of rows."""
    rows, labels = np.diag([0.5, 1.0, 2.0, 1.0]), np.array([0, 1, 1, 0])
    by_class, by_row = np.array([0.05, 0.3]), np.array([0.01, 0.2, 0.5, 0.1])
    own, other = by_class[labels], by_class[1 - labels]
    exact = np.log(0.5 * (1.0 - own + other)).sum()
    found = approximate_evidence(rows, np.full(4, 0.1), class_rates(by_class, labels))
    assert found.log_evidence == pytest.approx(exact, abs=1e-3)
    found = approximate_evidence(rows, np.full(4, 0.1), row_rates(by_row))
    assert found.log_evidence == pytest.approx(-4.0 * np.log(2.0), abs=1e-3)


@pytest.mark.parametrize("correlation", [-0.9, 0.0, 0.6, 1.0])
@pytest.mark.parametrize("variance", [0.0, 0.7])
def test_two_rows(correlation: float, variance: float) -> None:
    """An orthant, whose probability is known, and rate q: within .1 nats, with a nugget .01."""
    rows, q = np.array([[1.0, 0.0], [correlation, np.sqrt(1.0 - correlation**2)]]), 0.1
    same = 0.5 + np.arcsin(correlation / (1.0 + variance)) / np.pi
    exact = 0.5 * ((1.0 - 2.0 * q * (1.0 - q)) * same + 2.0 * q * (1.0 - q) * (1.0 - same))
    found = approximate_evidence(rows, np.full(2, variance), fixed_rate(q, 2))
    assert found.log_evidence == pytest.approx(np.log(exact), abs=0.01 if variance else 0.1)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize("nugget", [0.0, 0.4])
def test_beside_a_tempered_run(kind: str, nugget: float) -> None:
    """Within half a nat and four standard errors."""
    noise, rows = NOISES[kind], signed_rows(space(nugget).design().L, RING)
    if not noise.is_common:
        value, error = measure_noise(np.random.default_rng(2), rows, noise, Tempering(20, 400))
    else:
        run = climb_errors(np.random.default_rng(2), rows, Tempering(20, 400))
        value, error = run.law().log_evidence(noise)
    found = of_ring(nugget, noise)
    assert found.is_settled
    assert abs(found.log_evidence - value) < 0.5 + 4.0 * error


def test_rates_are_those_of_the_labels() -> None:
    """None of the inside are wrong, two in five of the outside: evidence tells."""
    rng = np.random.default_rng(2)
    inputs = rng.uniform(-2.0, 2.0, (150, 2))
    ring = ((inputs**2).sum(axis=1) > 2.0).astype(np.int64)
    labels = np.where(rng.random(150) < 0.4 * ring, 0, ring)
    covariance = fit_covariance(kernel_named("rbf"), 1.5, inputs, 1.0)
    L, variance = KernelSpace(covariance, inputs, 0.0).smooth_rows()
    rows = signed_rows(L, labels)
    one = approximate_evidence(rows, variance, learned_rate((1.0, 1.0), 150))
    noise = learned_class_rates((1.0, 1.0), labels)
    found = approximate_evidence(rows, variance, noise, one)
    np.testing.assert_allclose(found.rates, [0.0, 0.4], atol=0.1)
    assert found.log_evidence > one.log_evidence + 5.0


@pytest.mark.parametrize("lengthscale", [6.0, 12.0])
def test_low_rank_does_not_fall_to_what_has_learned_nothing(lengthscale: float) -> None:
    """Inputs that are nearly the same, no nugget, one label in ten wrong: 150 log 2 is 104 nats."""
    rng = np.random.default_rng(4)
    size, own = rng.standard_normal((150, 1)), rng.standard_normal((150, 5))
    inputs, clear = size + 0.1 * own, own[:, 0] > own[:, 1]
    labels = np.where(rng.random(150) < 0.1, ~clear, clear).astype(np.int64)
    covariance = fit_covariance(kernel_named("rbf"), lengthscale, inputs, 1.0)
    L, variance = KernelSpace(covariance, inputs, 0.0).smooth_rows()
    found = approximate_evidence(signed_rows(L, labels), variance, learned_rate((1.0, 1.0), 150))
    assert found.rates[0] == pytest.approx(0.1, abs=0.03)
    assert found.log_evidence > -80.0


@pytest.mark.parametrize("rate", [1e-3, 0.005, 0.02])
def test_sites_without_a_nugget_at_low_rates(rate: float) -> None:
    """Classes that overlap: sites ran away to log probabilities of 1e10 where steps stayed long."""
    rng = np.random.default_rng(3)
    inputs = rng.standard_normal((120, 2))
    labels = (rng.random(120) < 1.0 / (1.0 + np.exp(-2.0 * inputs[:, 0]))).astype(np.int64)
    for lengthscale in (0.41, 0.83, 1.6):
        covariance = fit_covariance(kernel_named("rbf"), lengthscale, inputs, 1.0)
        L, variance = KernelSpace(covariance, inputs, 0.0).smooth_rows()
        found = approximate_evidence(signed_rows(L, labels), variance, fixed_rate(rate, 120))
        assert found.is_settled
        assert found.log_evidence < 0.0


def test_a_start_changes_nothing() -> None:
    plain = of_ring(0.4, NOISES["learned"])
    again = of_ring(0.4, NOISES["learned"], of_ring(0.0, NOISES["learned"]))
    assert again.log_evidence == pytest.approx(plain.log_evidence, abs=0.05)


@pytest.mark.parametrize("kind", ["learned", "learned per class"])
def test_gradient_in_the_rates(kind: str) -> None:
    """That of log Z at rest, against differences of it."""
    L, variance = space(0.4).smooth_rows()
    labels = _Labels(signed_rows(L, RING), variance, NOISES[kind])
    n_rates = 2 if kind == "learned per class" else 1
    at, nothing = logit(np.array([0.3, 0.2])[:n_rates]), Sites(np.zeros(N), np.zeros(N))
    gradient = labels.settle(nothing, at, 1e-9).gradient
    for k in range(n_rates):
        shift = 1e-3 * (np.arange(n_rates) == k)
        ends = [labels.settle(nothing, at + sign * shift, 1e-9).log_z for sign in (1.0, -1.0)]
        assert gradient[k] == pytest.approx((ends[0] - ends[1]) / 2e-3, abs=1e-3)


def test_sites_that_no_gaussian_has() -> None:
    """Precisions so negative that P is not positive definite are raised until it is."""
    L, variance = space(0.0).smooth_rows()
    labels = _Labels(signed_rows(L, RING), variance, NOISES["fixed"])
    found = labels._gaussian(Sites(np.full(N, -50.0), np.zeros(N)))
    assert (found.sites.precision > -50.0).all()
    assert (found.variance > 0.0).all()


# The posterior of the approximation.


def three_rows(correlation: float) -> np.ndarray:
    """Rows L whose products are 1, and the correlation between them."""
    return np.linalg.cholesky(np.full((3, 3), correlation) + (1.0 - correlation) * np.eye(3))


@pytest.mark.parametrize("correlation", [-0.3, 0.0, 0.7])
@pytest.mark.parametrize("variance", [0.0, 0.5])
def test_labels_of_three_rows(correlation: float, variance: float) -> None:
    """P(wrong) from the probabilities of all sign patterns; the third label is multiplied by -1."""
    L, rates = three_rows(correlation), np.array([0.05, 0.2, 0.3])
    L[2] *= -1.0
    rho = (L @ L.T) / (1.0 + variance)
    exact, total = np.zeros(3), 0.0
    for signs in itertools.product([1.0, -1.0], repeat=3):
        pairs = [np.arcsin(signs[i] * signs[j] * rho[i, j]) for i, j in ((0, 1), (0, 2), (1, 2))]
        is_wrong = np.array(signs) < 0.0
        p = (0.125 + sum(pairs) / (4.0 * np.pi)) * np.where(is_wrong, rates, 1.0 - rates).prod()
        exact, total = exact + p * is_wrong, total + p
    weights, (law,) = approximate_posterior(L, np.full(3, variance), row_rates(rates))
    assert weights == [1.0]
    np.testing.assert_allclose(law.p_wrong, exact / total, atol=0.01)


def test_draws_are_those_of_the_law() -> None:
    """Mean and covariance of f, and labels that are wrong as often as is said: z < 5."""
    L, variance = space(0.0).smooth_rows()
    rows, n = signed_rows(L, RING), 4000
    _, (law,) = approximate_posterior(rows, variance, fixed_rate(0.1, N))
    G, F, is_wrong = law.draw(np.random.default_rng(3), rows, 0.0, n)
    np.testing.assert_allclose(F, G @ rows.T)
    assert (np.abs(F.mean(axis=0) - law.mean) < 5.0 * law.sd / np.sqrt(n)).all()
    np.testing.assert_allclose(F.std(axis=0), law.sd, rtol=5.0 / np.sqrt(2.0 * n))
    p = law.p_wrong
    assert (np.abs(is_wrong.mean(axis=0) - p) < 5.0 * np.sqrt(p * (1.0 - p) / n) + 1e-9).all()
    share = (F <= 0.0).mean(axis=0)  # the sign of f is another matter: the law of f is no normal
    assert (np.abs(share - p) > 10.0 * np.sqrt(p * (1.0 - p) / n)).any()


def test_a_nugget_is_drawn_on_the_side_of_the_label() -> None:
    """All of f has the variance of the rows and the nugget, before labels say anything."""
    L, rows = np.eye(2), 200
    weights, laws = approximate_posterior(L, np.full(2, 0.8), fixed_rate(0.5, 2))
    nothing = NormalSampler(L, 0.8, weights, laws, lambda f, _: f, lambda f, *_: {"f": f})
    rng = np.random.default_rng(0)
    states = [nothing.init(rng) for _ in range(rows)]
    F = np.concatenate([state.f for state in states])
    is_wrong = np.concatenate([state.is_wrong for state in states])
    assert np.array_equal(F <= 0.0, is_wrong)
    assert F.var() == pytest.approx(1.8, rel=0.06)
    np.testing.assert_allclose(F.mean(axis=0), 0.0, atol=5.0 * np.sqrt(1.8 / len(F)))


def test_a_rate_that_is_hardly_known_is_averaged_over() -> None:
    """Log odds are f: the mode of the rate is above its mean, as chains and a fine grid say."""
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((300, 2))
    labels = (rng.random(300) < 1.0 / (1.0 + np.exp(-2.0 * inputs[:, 0]))).astype(np.int64)
    covariance = fit_covariance(kernel_named("rbf"), 2.0, inputs, 1.0)
    L, variance = KernelSpace(covariance, inputs, 0.4).smooth_rows()
    rows, noise = signed_rows(L, labels), learned_rate((1.0, 1.0), 300)
    weights, laws = approximate_posterior(rows, variance, noise)
    assert len(laws) > 4
    found = weights @ [law.p_wrong.mean() for law in laws]
    by_hand, sites = _Labels(rows, variance, noise), Sites(np.zeros(300), np.zeros(300))
    grid = np.linspace(logit(2e-4), logit(0.8), 40)
    swept = [by_hand.settle(sites, np.array([at]), 1e-3) for at in grid]
    densities = np.array([by_hand.log_posterior(one)[0] for one in swept])
    own = np.exp(densities - densities.max()) / np.exp(densities - densities.max()).sum()
    p = [by_hand._sweep(one.sites, one.log_odds, 0.0)[1].mean() for one in swept]
    assert found == pytest.approx(own @ p, rel=0.1)
    mode = approximate_evidence(rows, variance, noise).rates[0]
    assert found < 0.8 * mode


def flipped(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs, and labels of a smooth boundary, a tenth of them flipped."""
    rng = np.random.default_rng(5)
    inputs = rng.standard_normal((n, 2))
    is_flipped = rng.random(n) < 0.1
    return inputs, (np.sin(inputs[:, 0]) + inputs[:, 1] > 0.0) != is_flipped


ROWS, LABELS = flipped(200)
FEW: dict[str, Any] = {
    "n_draws": 60,
    "n_chains": 2,
    "n_warmup": 40,
    "random_state": 0,
    "progress": False,
}


def test_the_estimator_says_what_chains_say(tmp_path: Path) -> None:
    exact = KernelGibbsClassifier(**{**FEW, "n_draws": 300}).fit(ROWS, LABELS)
    model = KernelGibbsClassifier(sampler="propagation", **FEW).fit(ROWS, LABELS)
    assert "expectation propagation, an approximation" in " ".join(model.notes_)
    difference = model.label_error_proba_ - exact.label_error_proba_
    assert np.abs(difference).max() < 0.2
    assert np.abs(difference).mean() < 0.02
    new = np.random.default_rng(1).standard_normal((100, 2))
    said = model.predict_proba(new)
    np.testing.assert_allclose(said, exact.predict_proba(new), atol=0.15)
    drawn = model.posterior_.flat("is_wrong").mean(axis=0)
    np.testing.assert_allclose(drawn, model.label_error_proba_, atol=5.0 * 0.5 / np.sqrt(120))
    model.save(tmp_path / "model.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "model.mercer").predict_proba(new), said)
    again = KernelGibbsClassifier(sampler="propagation", n_jobs=2, **FEW).fit(ROWS, LABELS)
    np.testing.assert_array_equal(again.predict_proba(new), said)


def test_finite_features_have_a_nugget_without_chains(tmp_path: Path) -> None:
    """Classes that overlap: chains of features, which have none, take some labels for wrong."""
    rng = np.random.default_rng(2)
    inputs = rng.standard_normal((400, 2))
    labels = rng.random(400) < 1.0 / (1.0 + np.exp(-1.5 * inputs[:, 0]))
    model = KernelGibbsClassifier(sampler="propagation", rank=30, **FEW).fit(inputs, labels)
    assert model.label_error_proba_.mean() < 0.1
    drawn = {model._sample.models[j].nugget for j in np.unique(model.posterior_.flat("model"))}
    assert min(drawn) > 0.0
    new = np.array([[-3.0, 0.0], [0.0, 0.0], [3.0, 0.0]])
    said = model.predict_proba(new)[:, 1]
    assert said[0] < 0.15
    assert said[1] == pytest.approx(0.5, abs=0.15)
    assert said[2] > 0.85
    model.save(tmp_path / "model.mercer")
    np.testing.assert_array_equal(
        mercer.load(tmp_path / "model.mercer").predict_proba(new)[:, 1], said
    )


def test_what_features_lack_is_a_noise_of_each_row() -> None:
    """Evidence and P(wrong) beside draws of the prior: products of features, and the rest alone."""
    rng, q = np.random.default_rng(4), 0.1
    inputs, labels = rng.uniform(-2.0, 2.0, (6, 2)), np.array([0, 1, 1, 0, 1, 0])
    kernel, theta = kernel_named("rbf"), np.array([0.0, 0.0, 0.0])
    mapped = nystroem_map(kernel, theta, inputs[:2])
    features = FiniteFeatures.fitted(mapped, inputs, 0.0, has_residual=True)
    L, variance = FeatureSpace(features, inputs, 0.2).smooth_rows()
    rows, noise = signed_rows(L, labels), fixed_rate(q, 6)
    Q = rows @ rows.T
    rest = np.diag(kernel.diagonal(theta, inputs) - Q.diagonal() + 0.2)
    f = rng.multivariate_normal(np.zeros(6), Q + rest, 400_000, check_valid="ignore")
    each = np.where(f > 0.0, 1.0 - q, q).prod(axis=1)
    found = approximate_evidence(rows, variance, noise)
    assert found.log_evidence == pytest.approx(np.log(each.mean()), abs=0.05)
    _, (law,) = approximate_posterior(rows, variance, noise)
    np.testing.assert_allclose(law.p_wrong, each @ (f <= 0.0) / each.sum(), atol=0.02)
    G, F, is_wrong = law.draw(rng, rows, variance, 4000)
    np.testing.assert_allclose(is_wrong.mean(axis=0), law.p_wrong, atol=0.04)
    assert ((F <= 0.0) == is_wrong).mean() > 0.99
    own = (F - G @ rows.T).std(axis=0)
    assert own[2:4].min() > 0.6 > own[:2].max()  # landmarks, and the rows farthest from them


@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_beyond_the_features_reach_are_not_called_wrong(
    n_classes: int, tmp_path: Path
) -> None:
    """A function far rougher than so few features can be: most rows are known by themselves."""
    rng = np.random.default_rng(0)
    inputs = rng.uniform(-3.0, 3.0, (600, 2))
    waves = np.sin(3.0 * inputs[:, :1]) * np.sin(3.0 * inputs[:, 1:]) + [0.0, 0.3, 0.6]
    labels = np.argmax(waves * [1.0, -1.0, 0.2], axis=1) if n_classes == 3 else waves[:, 0] > 0.0
    model = KernelGibbsClassifier(
        sampler="propagation", rank=40, lengthscale=0.3, nugget=0.0, noise_rate=0.05, **FEW
    ).fit(inputs, labels)
    assert model.label_error_proba_.mean() == pytest.approx(0.05, abs=0.02)
    assert (model.label_error_proba_ > 0.5).mean() < 0.01
    far = model.predict_proba([[50.0, 50.0]])
    assert far.max() < 0.65  # of the intercept something is known
    model.save(tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer").predict_proba([[50.0, 50.0]])
    np.testing.assert_array_equal(again, far)


def test_a_fit_takes_what_the_comparison_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under one noise rate and under one a class; it comes to the same as from nothing."""
    modes = list[Any]()

    def from_there(*given: Any) -> Any:
        modes.append(given[-1])
        return approximate_posterior(*given)

    def from_nothing(*given: Any) -> Any:
        return approximate_posterior(*given[:-1])

    monkeypatch.setattr(fitting, "approximate_posterior", from_there)
    model = KernelGibbsClassifier(sampler="propagation", rank=20, random_state=0)
    said = model.fit(ROWS, LABELS).label_error_proba_
    assert {len(one.rates) for one in modes if one.is_settled} == {1, 2}
    monkeypatch.setattr(fitting, "approximate_posterior", from_nothing)
    np.testing.assert_allclose(model.fit(ROWS, LABELS).label_error_proba_, said, atol=0.01)


def test_rates_are_followed_as_long_as_the_evidence_rises(monkeypatch: pytest.MonkeyPatch) -> None:
    """From one rate to two takes hundreds of small steps; not at rest, it would count as none."""
    rng, n = np.random.default_rng(0), 2000
    inputs, W = rng.standard_normal((n, 2)), rng.standard_normal((19, 2)) / 1.66
    clean = (inputs[:, 0] + 0.5 * inputs[:, 1] > 0.0).astype(int)
    labels = np.where(rng.random(n) < np.where(clean == 1, 0.25, 0.02), 1 - clean, clean)
    angles = inputs @ W.T
    rows = signed_rows(np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(19.0), labels)
    variance, begin = np.full(n, 0.1), np.array([0.016, 0.016])
    one = approximate_evidence(rows, variance, fixed_rate(0.016, n))
    noise = learned_class_rates((1.0, 1.0), labels)
    monkeypatch.setattr(propagation, "_DAMPING", ((0, 0.1),))

    def swept() -> Any:
        odds = logit(2.0 * begin)
        return _Labels(rows, variance, noise).settle(one.sites, odds, 0.1, is_learning=True)

    assert swept().is_settled
    np.testing.assert_allclose(0.5 * expit(swept().log_odds), [0.02, 0.25], atol=0.03)
    monkeypatch.setattr(propagation, "_MOST_LEARNING", 80)
    assert not swept().is_settled


def test_a_noise_without_rest_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its evidence counts for none: who sees one rate is told that two were not weighed."""
    model = KernelGibbsClassifier(rank=20, sampler="propagation", random_state=0)
    assert not any("no rest" in note for note in model.fit(ROWS, LABELS).notes_)

    def restless(L: Any, variance: Any, noise: Any, start: Any = None) -> Any:
        found = approximate_evidence(L, variance, noise, start)
        return replace(found, is_settled=found.is_settled and not noise.is_by_class)

    monkeypatch.setattr(selection, "approximate_evidence", restless)
    notes = model.fit(ROWS, LABELS).notes_
    (said,) = [note for note in notes if "no rest" in note]
    assert said.startswith("with a noise rate for each class expectation propagation came to no ")
    assert any("noise by evidence: one rate (100% of the draws)" in note for note in notes)


def test_what_propagation_cannot_do_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimator, "LARGEST_PROPAGATED", 3999)
    with pytest.raises(UsageError, match="holds 200 rows of 20 features in memory, 3999 numbers"):
        KernelGibbsClassifier(rank=20, sampler="propagation").fit(ROWS, LABELS)
    with pytest.raises(UsageError, match="sampler='propagation' takes both"):
        KernelGibbsClassifier(rank=20, nugget=0.4).fit(ROWS, LABELS)


def test_rates_of_many_rows_may_differ() -> None:
    """By class they are learned, where chains above 5000 rows have one; by row they are known."""
    rng = np.random.default_rng(0)
    inputs, n = rng.standard_normal((5200, 2)), 5200
    clean = (inputs[:, 0] + 0.5 * inputs[:, 1] > 0.0).astype(int)
    labels = np.where(rng.random(n) < np.where(clean == 1, 0.25, 0.02), 1 - clean, clean)
    many = {**FEW, "sampler": "propagation", "rank": 40, "lengthscale": "median"}
    model = KernelGibbsClassifier(**many).fit(inputs, labels)
    assert model.noise_rate_[0] == pytest.approx(0.02, abs=0.015)
    assert model.noise_rate_[1] == pytest.approx(0.25, abs=0.03)
    assert np.isfinite(model.posterior_.variables["log_likelihood"]).all()
    rates = np.where(np.arange(n) < 2600, 1e-3, 0.2)
    model = KernelGibbsClassifier(**many, noise_rate=rates).fit(inputs, labels)
    is_wrong = labels != clean
    assert model.label_error_proba_[:2600].sum() < 0.2 * is_wrong[:2600].sum()
    assert model.label_error_proba_[2600:].sum() > 0.6 * is_wrong[2600:].sum()
    with pytest.raises(UsageError, match="sampler='propagation' takes any"):
        KernelGibbsClassifier(rank=40, noise_rate="learn per class").fit(inputs, labels)


def test_rates_of_classes_cost_the_same_without_a_table() -> None:
    whole = learned_class_rates((1.0, 2.0), RING)
    bare = learned_class_rates((1.0, 2.0), RING, has_table=False)
    errors = np.array([[0, 0], [3, 10], [20, 5]])
    np.testing.assert_allclose(bare.cost_of_counts(errors), whole.cost_of_counts(errors))
    assert bare.log_no_errors == pytest.approx(whole.log_no_errors)
