from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from sklearn.datasets import make_classification

from mercer import GPClassifier
from mercer.gp import exact
from mercer.gp import importance as propagation
from mercer.gp.exact import CalibratedValues, calibrated
from mercer.gp.hyperparameters import find_maximum, kernel_prior, stacked_parameters
from mercer.gp.importance import EvidenceEstimator, match_moments, matched_evidence
from mercer.gp.laplace import HyperparameterPosterior, LaplaceValues, fit_laplace
from mercer.kernels.names import kernel_named
from mercer.kernels.stationary import SquaredExponentialARD
from mercer.posterior.draws import Draws
from mercer.sampling.importance import thinned
from support.exact_cases import gram, trapezoid_moments
from support.gp_cases import problem


def start(n: int, theta: np.ndarray) -> tuple[np.ndarray, ...]:
    """Gram matrix, targets, how often rows count, and Laplace's coefficients and weights."""
    X, y = problem(n, len(theta) - 1)
    K = gram(theta, X)
    a = fit_laplace(K, y).a
    return K, y, np.ones(n), a, (y - a) * (1.0 - y + a)


def test_one_row_is_matched_exactly() -> None:
    y = np.array([1.0])
    for variance in (0.5, 10.0, 100.0):
        K = np.array([[variance]])
        a = fit_laplace(K, y).a
        found = match_moments(K, y, np.ones(len(y)), a, a * (1.0 - a))
        assert found is not None
        f = np.linspace(-12.0, 12.0, 200001) * np.sqrt(variance)
        density = np.exp(-0.5 * f * f / variance - np.logaddexp(0.0, -f))
        mean = density @ f / density.sum()
        spread = density @ (f - mean) ** 2 / density.sum()
        assert found.mean[0] == pytest.approx(mean, rel=1e-3)
        assert 1.0 / (1.0 / variance + found.root_weights[0] ** 2) == pytest.approx(
            spread, rel=2e-3
        )


def test_means_are_those_of_the_posterior() -> None:
    for log_v0 in (-1.0, 1.0, 3.0):
        K, y, totals, a, W = start(3, np.array([log_v0, -0.5]))
        found = match_moments(K, y, totals, a, W)
        assert found is not None
        means = trapezoid_moments(K, y)[1:]
        laplace_error = np.abs(K @ a - means).max()
        assert np.abs(found.mean - means).max() < 0.1 * laplace_error + 1e-3
        np.testing.assert_allclose(found.mean, K @ found.coef)


def test_sweeps_settle_at_every_variance() -> None:
    for log_v0 in (-3.0, 1.0, 4.0, 8.0, 12.0):
        assert match_moments(*start(40, np.array([log_v0, 0.0, -1.0]))) is not None


def test_sweeps_that_go_astray_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    sites, count = propagation._sites, []

    def growing(y, totals, mean, variance, W, nu):
        count.append(1)
        new_W, new_nu, _ = sites(y, totals, mean, variance, W, nu)
        return new_W, new_nu, np.full(len(y), 10.0 ** len(count))

    arguments = start(20, np.array([1.0, 0.0, -1.0]))
    monkeypatch.setattr(propagation, "_sites", growing)
    assert match_moments(*arguments) is None
    monkeypatch.setattr(
        propagation,
        "_sites",
        lambda y, totals, mean, variance, W, nu: (W, nu, np.full(len(y), np.nan)),
    )
    assert match_moments(*arguments) is None


def test_the_evidence_is_nearly_that_of_quadrature() -> None:
    """Of one row it is exact; of two and three at most a quarter of Laplace's error is left."""
    for n in (1, 2, 3):
        for log_v0 in (-1.0, 1.0, 3.0, 5.0):
            K, y, totals, a, W = start(n, np.array([log_v0, -0.5]))
            log_evidence, truth = (
                matched_evidence(K, y, totals, a, W),
                np.log(trapezoid_moments(K, y)[0]),
            )
            share = 0.25 if n > 1 else 0.0
            laplace_error = abs(fit_laplace(K, y).log_evidence - truth)
            assert log_evidence == pytest.approx(truth, abs=share * laplace_error + 1e-4)


def test_sites_that_do_not_settle_have_no_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(propagation, "_MOMENTS_SETTLED", 0.0)
    assert matched_evidence(*start(3, np.array([1.0, 0.0]))) is None


def rare_class(variance: float, scale: float) -> tuple[np.ndarray, ...]:
    """Arguments for 100 rows of which the three on one side are of the one class."""
    X = np.random.default_rng(0).standard_normal((100, 3))
    y = (X[:, 0] >= np.sort(X[:, 0])[-3]).astype(float)
    distance = ((X[:, np.newaxis] - X) ** 2).sum(axis=2)
    K = variance * (np.exp(-0.5 * distance / scale**2) + 1e-6 * np.eye(100))
    a = fit_laplace(K, y).a
    return K, y, np.ones(100), a, (y - a) * (1.0 - y + a)


def one_site_after_the_other(K: np.ndarray, y: np.ndarray) -> float:
    """Log evidence of expectation propagation in its plainest form, moments by quadrature."""
    x, w = np.polynomial.hermite.hermgauss(120)
    W, nu, S, mean = np.zeros(len(y)), np.zeros(len(y)), K.copy(), np.zeros(len(y))

    def tilted(i: int) -> tuple[float, float, float, float, float]:
        cavity = 1.0 / (1.0 / S[i, i] - W[i])
        centre = cavity * (mean[i] / S[i, i] - nu[i])
        f = centre + np.sqrt(2.0 * cavity) * x
        p = expit((2.0 * y[i] - 1.0) * f) * w / np.sqrt(np.pi)
        m = (p @ f) / p.sum()
        return cavity, centre, p.sum(), m, (p @ f**2) / p.sum() - m**2

    for _ in range(30):
        for i in range(len(y)):
            cavity, centre, _, m, v = tilted(i)
            gain = max(1.0 / v - 1.0 / cavity, 1e-12) - W[i]
            nu[i], W[i] = m / v - centre / cavity, W[i] + gain
            S = S - np.outer(S[:, i], S[:, i]) * (gain / (1.0 + gain * S[i, i]))
            mean = S @ nu
    total = 0.5 * (nu @ mean) - 0.5 * np.linalg.slogdet(np.eye(len(y)) + K * W)[1]
    for i in range(len(y)):
        cavity, centre, Z, _, _ = tilted(i)
        wider = 1.0 + W[i] * cavity
        square = nu[i] ** 2 * cavity + 2.0 * nu[i] * centre - W[i] * centre**2
        total += np.log(Z) - 0.5 * (square / wider - np.log(wider))
    return float(total)


@pytest.mark.parametrize(("variance", "scale"), [(100.0, 3.0), (1000.0, 3.0), (1000.0, 10.0)])
def test_the_evidence_of_a_rare_class_is_that_of_settled_sites(
    variance: float, scale: float
) -> None:
    """Four whole sweeps leave it more than a tenth of a nat away; half steps settle."""
    arguments = rare_class(variance, scale)
    assert matched_evidence(*arguments) == pytest.approx(
        one_site_after_the_other(*arguments[:2]), abs=0.03
    )


def test_a_difference_that_is_no_such_function_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    values, positions = values_around_the_maximum(2, 30)
    rng = np.random.default_rng(5)
    monkeypatch.setattr(exact, "matched_evidence", lambda *_: float(3.0 * rng.standard_normal()))
    same, said = calibrated(values, positions[:24])
    assert same is values
    assert "uncorrected: how far expectation propagation's differs" in said[0]


def values_around_the_maximum(d: int = 6, n: int = 120) -> tuple[LaplaceValues, np.ndarray]:
    """Laplace's log density, and 64 draws of the Gaussian at its maximum."""
    X, y = problem(n, d)
    model = HyperparameterPosterior(X, y, SquaredExponentialARD(), kernel_prior(d))
    maximum = find_maximum(model, with_covariance=True)
    root = np.linalg.cholesky(maximum.covariance)
    draws = np.random.default_rng(0).standard_normal((64, d + 1)) @ root.T
    values = model.values(maximum.point, maximum.slopes, np.array([0]))
    return values, maximum.point.position + draws


def test_calibrated_evidence_is_the_exact_one_but_for_a_little() -> None:
    """Of Laplace's error, as it spreads over hyperparameters, less than a third is left."""
    values, positions = values_around_the_maximum()
    fitted, said = calibrated(values, positions[:24])
    assert said == ()
    model, errors = values.model, []
    exact = EvidenceEstimator(
        model.X, model.y, model.kernel, "matched", min_draws=2048, max_draws=2048
    )
    for k, theta in enumerate(positions[24:]):
        point = model.evaluate(theta)
        truth = exact.estimate(np.random.default_rng(k), point).log_evidence
        truth += model.prior.log_density(theta)
        log_density, recorded = fitted(theta)
        np.testing.assert_array_equal(recorded["dual_coef"], values(theta)[1]["dual_coef"])
        errors.append((point.log_density - truth, log_density - truth))
    laplace, left = np.array(errors).T
    assert left.std() < laplace.std() / 3.0
    assert abs(left.mean()) < 0.1 < abs(laplace.mean())


def test_the_fit_says_how_far_off_the_difference_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left of two dozen differences, 0.3 nats here, is an error of the fit to them."""
    values, positions = values_around_the_maximum(2, 12)
    rng, log_prior, few = np.random.default_rng(0), values.model.prior.log_density, positions[:24]
    laplace = np.array([values(theta)[0] for theta in few])
    errors, stated = [], []
    for _ in range(30):
        known = iter([x - log_prior(t) for x, t in zip(laplace, few, strict=True)])
        monkeypatch.setattr(
            exact, "matched_evidence", lambda *_, known=known: next(known) + 0.3 * rng.normal()
        )
        fitted, _ = calibrated(values, few)
        assert isinstance(fitted, CalibratedValues)
        errors.append([fitted(theta)[0] for theta in few] - laplace)
        stated.append(fitted.error)
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.mean(stated), rel=0.2)


def test_the_error_of_an_evidence_has_that_of_its_correction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = problem(12, 1)
    model = GPClassifier(kernel="rbf", n_draws=20, n_chains=1, random_state=0)
    found = []
    for times in (1.0, 1e6):  # of the error of the fit
        own = partial(with_error, times)
        monkeypatch.setattr("mercer.gp.fitting.calibrated", own)
        fitted = model.fit(X, y)
        found.append((fitted.log_evidence_, fitted.log_evidence_se_))
    assert found[0][0] == found[1][0]
    assert found[0][1] < 1.0 < 1e3 < found[1][1]


def with_error(times: float, *given: Any) -> Any:
    values, said = calibrated(*given)
    assert isinstance(values, CalibratedValues)
    return replace(values, error=times * values.error), said


def test_far_from_where_it_was_calibrated_the_difference_stays() -> None:
    values, positions = values_around_the_maximum()
    fitted, _ = calibrated(values, positions[:24])
    assert isinstance(fitted, CalibratedValues)
    far = positions[0] + np.array([12.0, *[1.0] * 6])
    farther = far + np.array([3.0, *[0.0] * 6])
    gaps = [fitted(theta)[0] - values(theta)[0] for theta in (far, farther)]
    assert gaps[0] == pytest.approx(gaps[1], abs=1e-9)
    assert fitted(positions[0] + 100.0)[0] == -np.inf


def test_positions_without_mass_teach_nothing() -> None:
    """Far down the difference is another function; one such position would bend the fit."""
    values, positions = values_around_the_maximum()
    far = positions[0] + np.array([9.0, *[-1.0] * 3, *[6.0] * 3])
    assert values(far)[0] < values(positions[0])[0] - 15.0
    both = [
        calibrated(values, each)[0] for each in (positions[:23], np.vstack((positions[:23], far)))
    ]
    assert both[0](positions[30])[0] == both[1](positions[30])[0]


def test_nothing_is_calibrated_at_few_positions_or_late() -> None:
    values, positions = values_around_the_maximum(2, 30)
    few, far = positions[:5], np.vstack((positions[:5], positions[:20] + 100.0))
    for given, deadline, words in (
        (few, None, "settled at 5 of the 5 points that count"),
        (far, None, "settled at 5 of the 5 points that count"),
        (positions[:24], 0.0, "max_seconds left no time"),
    ):
        same, said = calibrated(values, given, deadline)
        assert same is values
        assert "Laplace's evidence, uncorrected" in said[0]
        assert words in said[0]


def test_a_fit_says_that_its_evidence_is_not_corrected(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = problem(40, 2)
    arguments = {"kernel": "rbf", "n_draws": 60, "n_chains": 1, "random_state": 0}
    assert not any("uncorrected" in note for note in GPClassifier(**arguments).fit(X, y).notes_)
    monkeypatch.setattr(propagation, "_MOMENTS_SETTLED", 0.0)
    notes = GPClassifier(**arguments).fit(X, y).notes_
    words = "expectation propagation settled at 0 of the 40 points"
    assert sum(words in note for note in notes) == 1


@pytest.mark.parametrize("seed", [0, 2])
def test_draws_correct_the_evidence_where_positions_around_the_maximum_do_not(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In 20 dimensions these lie too far apart for one function of the two numbers."""
    X, y = make_classification(
        150, 20, n_informative=8, n_redundant=0, n_clusters_per_class=3, class_sep=2.0,
        random_state=0,
    )  # fmt: skip
    seen: list[Any] = []

    def spy(values: LaplaceValues, *given: Any) -> Any:
        found = calibrated(values, *given)
        seen.append((values, found[1]))
        return found

    monkeypatch.setattr("mercer.gp.fitting.calibrated", spy)
    fitted = GPClassifier(kernel="rbf", standardize="std", random_state=seed).fit(X, y)
    (values, said), (_, final) = seen
    assert "uncorrected" in said[0]
    assert final == ()
    assert not any("uncorrected" in note for note in fitted.notes_)
    errors = []
    for theta, log_density in zip(*_some(fitted.posterior_, 25), strict=True):
        laplace, recorded = values(theta)
        a, own = recorded["dual_coef"], values.model
        K = own.kernel.gram(theta, own.X)
        evidence = matched_evidence(K, own.Y, own.totals, a, (own.Y - a) * (1.0 - own.Y + a))
        truth = evidence + own.prior.log_density(theta)
        errors.append((laplace - truth, log_density - truth))
    laplace, left = np.array(errors).T
    assert left.std() < laplace.std() / 2.0
    assert abs(left.mean()) < 0.5 < abs(laplace.mean())


def _some(draws: Draws, n: int) -> tuple[np.ndarray, np.ndarray]:
    kept = thinned(np.random.default_rng(0), np.ravel(draws.log_weights), n)[0]
    names = draws.variables
    positions = stacked_parameters(kernel_named("rbf"), {name: draws.flat(name) for name in names})
    return positions[kept], draws.flat("log_density")[kept]
