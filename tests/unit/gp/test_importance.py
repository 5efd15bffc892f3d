"""`inference="importance"`: values without gradients, weighted draws in predictions and files."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification, make_friedman1, make_moons

import mercer
from mercer import GPClassifier, GPRegressor
from mercer.gp.fitting import GPSettings as Settings
from mercer.gp.fitting import RegressionSettings, _diagnosed, fit_posterior
from mercer.gp.hyperparameters import (
    HyperparameterTarget,
    Recorder,
    find_maximum,
    kernel_prior,
)
from mercer.gp.laplace import HyperparameterPosterior
from mercer.kernels.names import kernel_named
from mercer.posterior.diagnostics import flat_weights, monte_carlo_errors
from mercer.sampling import importance
from mercer.sampling.driver import Labels, RunOptions
from support.gp_cases import grid_posterior

KERNEL = kernel_named("rbf")
SMALL = {"kernel": "rbf", "n_draws": 40, "n_chains": 1, "n_warmup": 30, "random_state": 0}


def binary(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_classification(n, 3, n_informative=3, n_redundant=0, random_state=2)
    return X, y.astype(float)


def several() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_iris(return_X_y=True)
    return (X[::3] - X.mean(axis=0)) / X.std(axis=0), y[::3]


def numbers(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    return make_friedman1(n, 5, noise=1.0, random_state=1)


def posteriors() -> dict[str, HyperparameterTarget]:
    X, y = binary()
    Z, codes = several()
    R, t = numbers()
    t = (t - t.mean()) / t.std()
    settings = Settings("importance", "wide", None, None)
    return {
        "logistic": HyperparameterPosterior(X, y, KERNEL, kernel_prior(3)),
        "softmax": HyperparameterPosterior(Z, codes.astype(float), KERNEL, kernel_prior(4), 3),
        "gaussian": RegressionSettings(settings, None).posterior(R, t),
    }


@pytest.mark.parametrize(
    ("n", "kernel", "do_all_count"),
    [
        (60, "isotropic(rbf)", False),
        (160, "isotropic(rbf)", True),
        pytest.param(160, "rbf", False, marks=pytest.mark.slow),  # seconds
    ],
)
def test_positions_that_teach_count_where_they_hardly_bias(
    n: int, kernel: str, do_all_count: bool
) -> None:
    arguments = {"kernel": kernel, "n_draws": 2000, "n_chains": 1, "random_state": 0}
    model = GPClassifier(**arguments).fit(*binary(n))
    n_kept, n_evaluations = model.posterior_.n_total, model.diagnostics_.n_evaluations
    assert (n_kept > 0.8 * n_evaluations) == do_all_count  # those of no weight are not kept


@pytest.mark.parametrize(("n", "noise", "fewest", "most"), [
    (400, 1.0, 200.0, np.inf), (401, 1.0, 100.0, 199.0), (401, 30.0, 150.0, np.inf),
])  # fmt: skip
def test_many_rows_are_given_as_many_draws_as_their_predictions_take(
    n: int, noise: float, fewest: float, most: float
) -> None:
    X, y = make_friedman1(n, n_features=8, noise=noise, random_state=0)
    model = GPRegressor(kernel="rbf", standardize="std", noise="normal", random_state=0).fit(X, y)
    assert fewest <= model.diagnostics_.effective_size <= most


@pytest.mark.parametrize("name", ["logistic", "softmax", "gaussian"])
def test_values_are_those_of_the_evaluation_with_its_gradient(name: str) -> None:
    model = posteriors()[name]
    maximum = find_maximum(model, with_covariance=True)
    rows = np.array([0, 5])
    rng, centre = np.random.default_rng(0), maximum.point.position
    root = np.linalg.cholesky(maximum.covariance)
    for slopes in (maximum.slopes, None):
        values = model.values(maximum.point, slopes, rows)
        for scale in (0.0, 1.0, 2.0):
            theta = centre + scale * root @ rng.standard_normal(len(centre))
            point = model.evaluate(theta)
            log_density, recorded = values(theta)
            assert abs(log_density - point.log_density) < 2e-3
            latent = point.extra["f"][..., rows]
            np.testing.assert_allclose(recorded["latent"], latent, atol=1e-4)
        log_density, recorded = values(centre + 100.0)
        assert log_density == -np.inf
        assert not recorded["dual_coef"].any()


def test_a_mode_that_only_looked_near_is_sought_again() -> None:
    """Two steps of its search are small by chance, logits from where it would end."""
    X, y = make_moons(100, noise=0.2, random_state=0)
    X, kernel = (X - X.mean(axis=0)) / X.std(axis=0), kernel_named("isotropic(rbf) + linear")
    model = HyperparameterPosterior(X, y.astype(float), kernel, kernel_prior(2, kernel=kernel))
    maximum, theta = find_maximum(model, with_covariance=True), np.array([4.1, 2.7, 4.7])
    values, point = (
        model.values(maximum.point, maximum.slopes, np.arange(len(y))),
        model.evaluate(theta),
    )
    log_density, recorded = values(theta)
    assert abs(log_density - point.log_density) < 2e-3
    np.testing.assert_allclose(recorded["latent"], point.extra["f"], atol=1e-4)


def fitted(kind: str, **given: object) -> GPClassifier | GPRegressor:
    options = {**SMALL, "inference": "importance", **given}
    if kind == "numbers":
        return GPRegressor(**options).fit(*numbers())
    X, y = binary() if kind == "binary" else several()
    return GPClassifier(shared_kernel=kind == "several", **options).fit(X, y)


@pytest.mark.parametrize("kind", ["binary", "several", "numbers"])
def test_draws_are_weighted_and_files_keep_weights_and_evidence(kind: str, tmp_path: Path) -> None:
    model = fitted(kind)
    assert model.posterior_.is_weighted
    assert model.posterior_.n_total <= 40
    assert model.diagnostics_.effective_size >= 10  # a quarter of the draws, or it is not trusted
    assert not model.diagnostics_.warnings
    model.save(tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    assert again.log_evidence_ == model.log_evidence_
    assert again.log_evidence_se_ == model.log_evidence_se_
    assert again.diagnostics_ == model.diagnostics_
    np.testing.assert_array_equal(flat_weights(again.posterior_), flat_weights(model.posterior_))
    X = model._X[:7] * model.standardizer_.scale + model.standardizer_.centre
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    for one, other in zip(again.latent(X), model.latent(X), strict=True):
        np.testing.assert_array_equal(one, other)
    table = model.posterior_.summary()
    weights, theta = flat_weights(model.posterior_), model.posterior_.flat("log_signal_variance")
    row = table.column("name").index("log_signal_variance")
    assert table.column("mean")[row] == pytest.approx(weights @ theta)


def test_any_number_of_processes_and_a_resumed_run_give_the_same_bits(tmp_path: Path) -> None:
    """In a process of its own: one that has compiled other loops itself may round otherwise."""
    program = "import runpy, sys; runpy.run_path(sys.argv[1])['fit_three_times'](sys.argv[2])"
    words = [sys.executable, "-c", program, __file__, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def fit_three_times(folder: str) -> None:
    X = binary()[0][:9]
    alone = fitted("binary").predict_proba(X)
    importance._WORTH_PROCESSES = 0.0  # these evaluations are quick
    np.testing.assert_array_equal(fitted("binary", n_jobs=2).predict_proba(X), alone)
    for _ in range(2):
        model = fitted("binary", checkpoint=Path(folder))
        np.testing.assert_array_equal(model.predict_proba(X), alone)
    assert any("resumed" in note for note in model.notes_)


@pytest.mark.slow
def test_the_stated_error_of_predictions_is_their_spread_over_seeds() -> None:
    """Forty runs: their spread at each row is known to 11 %, and rows go together."""
    case = grid_posterior(3)
    recorder = Recorder(case.model, np.arange(12))
    settings, predicted, stated = Settings("importance", "wide", None, None), [], []
    for seed in range(40):
        options = RunOptions(n_draws=10_000, n_warmup=1, n_chains=1, thin=1, entropy=seed)
        given = (recorder, settings, options, Labels())
        fitted = fit_posterior(*given, maximum=case.maximum)
        predicted.append(flat_weights(fitted.draws) @ fitted.draws.flat("latent"))
        told = fitted.diagnostics
        stated.append([told.prediction_error, told.largest_prediction_error])
    spread = np.std(predicted, axis=0, ddof=1)
    mean, largest = np.mean(stated, axis=0)
    assert 0.7 < mean / spread.mean() < 1.4
    assert 0.7 < largest / spread.max() < 1.5


def test_chains_take_over_where_weights_are_not_to_be_trusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mercer.sampling.importance.LARGEST_SHAPE", -np.inf)
    monkeypatch.setattr("mercer.sampling.importance._NEARLY_EQUAL", np.inf)
    monkeypatch.setattr("mercer.gp.fitting._MOST_ROUNDS", (3, 3))
    with pytest.warns(mercer.errors.ConvergenceWarning, match="too short"):
        model = fitted("binary")
    assert not model.posterior_.is_weighted
    assert "not to be trusted" in model.notes_[0]
    assert model.log_evidence_ is None  # nor is the evidence that these weights give
    told = model.diagnostics_
    assert 0.0 < told.prediction_error <= told.largest_prediction_error < 0.2
    assert "Monte Carlo error of predictions" in str(told)
    assert model.posterior_.n_total == 40


def test_chains_that_take_over_are_as_long_as_predictions_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mercer.sampling.importance.LARGEST_SHAPE", -np.inf)
    monkeypatch.setattr("mercer.sampling.importance._NEARLY_EQUAL", np.inf)
    monkeypatch.setattr("mercer.gp.fitting._MOST_ROUNDS", (3, 3))
    monkeypatch.setattr("mercer.gp.fitting._FEWEST_OF_CHAIN", 10)
    draws = {}
    for error, warned in ((0.005, ()), (0.005, ("too short",)), (0.02, ())):
        changed = partial(judged, warnings=warned, error=error)
        monkeypatch.setattr("mercer.gp.fitting._diagnosed", changed)
        with catch_warnings():
            simplefilter("ignore", mercer.errors.ConvergenceWarning)
            draws[error, warned] = fitted("binary", n_draws=45, n_chains=2).posterior_
    short, warned, long = draws.values()
    assert short.n_total == 30
    assert warned.n_total == long.n_total == 90
    latent = long.variables["latent"]
    np.testing.assert_array_equal(short.variables["latent"], latent[:, :15])


def judged(*given: Any, warnings: tuple[str, ...], error: float) -> Any:
    """Diagnose a fit with these warnings, and this error, in place of its own."""
    found = _diagnosed(*given)
    told = replace(found.diagnostics, warnings=warnings, largest_prediction_error=error)
    return replace(found, diagnostics=told)


def test_the_error_of_an_average_over_chains_counts_their_correlation() -> None:
    rng, correlation, n = np.random.default_rng(0), 0.8, 2000
    x = rng.standard_normal((4, n, 2))
    for i in range(1, n):
        x[:, i] = correlation * x[:, i - 1] + np.sqrt(1.0 - correlation**2) * x[:, i]
    x[..., 1] = 3.0
    errors = monte_carlo_errors(x, None)
    # The variance of a mean is (1 + rho) / (1 - rho) = 9 times that of independent draws.
    assert errors[0] == pytest.approx(np.sqrt(9.0 / (4 * n)), rel=0.2)
    assert errors[1] == 0.0
    assert np.isnan(monte_carlo_errors(x[:, :3], None)).all()


def test_chains_have_no_evidence() -> None:
    """It is None then, as that of a kernel Gibbs sampler that compared nothing."""
    X = np.linspace(-1.0, 1.0, 12)[:, np.newaxis]
    short = {"n_draws": 10, "n_warmup": 10, "n_chains": 1, "progress": False}
    for settings in ({"inference": "hmc"}, {"integration": "exact"}):
        model = GPClassifier(kernel="rbf", **settings, **short).fit(X, X[:, 0] > 0.1)
        assert model.log_evidence_ is None
        assert model.log_evidence_se_ is None


# Evidence by quadrature over all three log parameters. Noise around a slow function or a fast
# function with little noise; the second is as probable, or far from where searches begin.
TWO_MAXIMA = {"two of a half": (102, 20, -23.8303), "little noise": (6, 8, -7.5210)}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("case", TWO_MAXIMA)
def test_both_maxima_of_few_rows_are_found(case: str) -> None:
    """One was, and the evidence half of what it is, or a third less: stated errors were .05."""
    seed, n, evidence = TWO_MAXIMA[case]
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3.0, 3.0, (n, 1))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_normal(n)
    weights = None if case == "two of a half" else np.full(n, 1.2)
    model = GPRegressor(kernel="rbf", random_state=0).fit(X, y, weights)
    assert abs(model.log_evidence_ - evidence) < 5.0 * model.log_evidence_se_
    assert model.log_evidence_se_ < 0.06


def test_a_note_says_that_copies_leave_no_noise() -> None:
    X, y = numbers(12)
    model = GPRegressor(**SMALL).fit(X, y, np.full(12, 2.0))
    assert model.noise_std_ < 1e-3
    assert "rows that repeat with equal targets" in model.notes_[-1]
    known = GPRegressor(noise_std=1e-4, **SMALL).fit(X, y, np.full(12, 2.0))
    assert not any(
        "repeat" in note for note in (*known.notes_, *GPRegressor(**SMALL).fit(X, y).notes_)
    )
