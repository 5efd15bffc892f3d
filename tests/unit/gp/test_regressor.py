from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import mercer
from mercer.errors import DataError, UsageError
from mercer.gp import fitting
from mercer.gp import regressor as answers
from mercer.gp.regressor import GPRegressor
from support.process_fits import tiny
from support.spectral_fits import waves

X, Y = waves(40)
Z = waves(9, seed=4)[0]


def test_paper_settings() -> None:
    model = GPRegressor.paper()
    assert (model.n_leapfrog, model.step_size, model.n_chains) == (20, 0.1, 1)
    assert model.n_draws + model.n_warmup == 200
    assert (model.prior, model.standardize, model.kernel) == ("paper", "std", "rbf")


def test_attributes() -> None:
    model = tiny(n_chains=2, inference="hmc").fit(X, 5.0 * Y + 3.0)
    assert model.relevance_.shape == (40, 3)
    np.testing.assert_array_equal(model.relevance_, np.exp(model.posterior_.flat("log_weight")))
    centre = -1.0 - np.log(3.0)
    np.testing.assert_allclose(
        np.log(model.prior_weight_interval_),
        [centre - 3.0 * 1.6448536, centre + 3.0 * 1.6448536],
        rtol=1e-6,
    )
    assert model.notes_ == ()
    assert 0.2 < model.noise_std_ < 1.5  # 0.5 in units of the target
    draws = model.posterior_
    best = draws.flat("log_evidence")[draws.flat("log_density").argmax()]
    expected = best - 40 * np.log(model.target_scale_)
    assert model.log_marginal_likelihood_ == pytest.approx(expected)


def test_known_noise() -> None:
    model = tiny(noise_std=0.25).fit(X, 5.0 * Y + 3.0)
    assert model.noise_std_ == pytest.approx(0.25, rel=1e-4)
    assert (model.predict(X, return_std=True)[1] > 0.25).all()


def test_relevance_finds_the_inputs_that_matter() -> None:
    """The first waves, the last acts in a straight line, the second does nothing."""
    model = tiny(inference="map").fit(*waves(80))
    assert model.relevance_[0].argmax() == 0
    assert model.relevance_[0, 1] < 0.1 * model.relevance_[0, 0]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("noise", "closeness"), [("normal", 0.03), ("contaminated", 0.1)])
def test_few_draws_are_as_sure_as_all(noise: str, closeness: float) -> None:
    X = np.random.default_rng(0).normal(size=(12, 3))
    y = np.sin(X[:, 0]) + 0.3 * np.random.default_rng(1).normal(size=12)
    model = GPRegressor(kernel="rbf", noise=noise, random_state=0).fit(X, y)
    rows = 1.5 * np.random.default_rng(2).normal(size=(50, 3))
    few, all_draws = model.predict(rows, return_std=True), model.predict(rows, True, "all")
    assert np.all(np.abs(few[0] - all_draws[0]) < 0.1 * all_draws[1])
    np.testing.assert_allclose(few[1], all_draws[1], rtol=closeness)


def test_a_whole_that_learns() -> None:
    rows, targets = waves(400)
    model = tiny(n_draws=25, n_warmup=25).fit(rows[:150], targets[:150])
    error = model.predict(rows[150:]) - targets[150:]
    assert np.sqrt(np.mean(error**2)) < 0.16  # noise 0.1
    lower, upper = model.predict_interval(rows[150:], 0.9)
    inside = ((lower <= targets[150:]) & (targets[150:] <= upper)).mean()
    assert 0.8 < inside < 0.97


def test_a_function_without_noise_is_met() -> None:
    x = np.linspace(-3.0, 3.0, 40)[:, np.newaxis]
    model = tiny().fit(x, np.sin(2.0 * x[:, 0]))
    new = np.linspace(-2.9, 2.9, 23)
    np.testing.assert_allclose(model.predict(new[:, np.newaxis]), np.sin(2.0 * new), atol=1e-3)


def test_kernels_differ() -> None:
    seen = [tiny(kernel=k, inference="map").fit(X, Y).predict(Z) for k in ("rbf", "matern12")]
    assert np.abs(seen[0] - seen[1]).max() > 1e-3


def test_too_many_rows_for_one_function_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny().fit(X, Y)
    monkeypatch.setattr(answers, "_MOST_TOGETHER", 45)
    assert model.sample_y(Z[:5], 2).shape == (2, 5)
    with pytest.raises(DataError, match="give fewer at a time"):
        model.sample_y(Z)


def width_beside_students() -> float:
    """Width of the 90 % interval of 15 values of noise alone, beside Student's.

    The function is switched off and the prior of the noise is flat: what is left is a normal law
    with unknown mean and variance.
    """
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((15, 1)), 7.0 + 3.0 * rng.standard_normal(15)
    prior = {"variance": (-30.0, 0.1), "noise": (0.0, 30.0)}
    model = tiny(prior=prior, n_draws=3000, n_warmup=100).fit(X, y)
    lower, upper = model.predict_interval([[0.0]])
    exact = 2.0 * stats.t.ppf(0.95, 14) * y.std(ddof=1) * np.sqrt(1.0 + 1.0 / 15.0)
    return float((upper - lower)[0] / exact)


def test_the_mean_of_the_targets_is_not_taken_for_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """As wide as the exact interval.

    The spread is averaged over 256 draws of the noise, whose standard deviations differ by a fifth:
    chance is 1.2 %, and 6 % has a false-alarm rate below 1e-6. Without the intercept intervals are
    7 % too narrow.
    """
    seen = width_beside_students()
    assert abs(seen - 1.0) < 0.06
    monkeypatch.setattr(fitting, "_INTERCEPT_VARIANCE", 0.0)
    assert width_beside_students() < seen - 0.04  # of the same random numbers


# Weights of rows, and known noise of each.


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kernel", ["rbf", "auto"])
def test_weights_are_repeated_rows(kernel: str) -> None:
    """Rows that are the same are one row: so the bits are the same, in whatever order."""
    X, y = waves(30)
    weights = np.random.default_rng(2).integers(0, 4, 30)
    weighted = tiny(kernel=kernel).fit(X, y, sample_weight=weights)
    order = np.random.default_rng(3).permutation(weights.sum())
    repeated = tiny(kernel=kernel).fit(
        np.repeat(X, weights, axis=0)[order], np.repeat(y, weights)[order]
    )
    for one, other in zip(
        weighted.predict(X, return_std=True), repeated.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert weighted.log_evidence_ == repeated.log_evidence_
    assert np.abs(weighted.predict(X) - tiny(kernel=kernel).fit(X, y).predict(X)).max() > 1e-3


def test_weights_beside_known_noise_of_each_row() -> None:
    X, y = waves(12)
    twice = tiny(noise_std=np.full(24, 0.1)).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    weighted = tiny(noise_std=np.full(12, 0.1)).fit(X, y, sample_weight=np.full(12, 2.0))
    np.testing.assert_array_equal(weighted.predict(X), twice.predict(X))


def test_weights_of_one_change_nothing_and_fractions_change_a_little() -> None:
    X, y = waves(30)
    plain = tiny().fit(X, y)
    ones = tiny().fit(X, y, sample_weight=np.ones(30))
    np.testing.assert_array_equal(plain.predict(X), ones.predict(X))
    nearly = tiny(inference="map").fit(X, y, np.full(30, 1.0 + 1e-9))
    np.testing.assert_allclose(
        nearly.predict(X), tiny(inference="map").fit(X, y).predict(X), rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.ones(29), "there are 30 rows"),
        (np.ones((30, 2)), "has shape"),
        (-np.ones(30), "not negative"),
        (np.full(30, np.nan), "finite"),
        (np.array(["a"] * 30), "must hold numbers"),
        (np.eye(30)[0], "two are needed"),
    ],
)
def test_weights_that_are_none_are_refused(weights: np.ndarray, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        tiny().fit(*waves(30), sample_weight=weights)


def test_known_noise_of_each_row_is_that_of_scikit_learn(tmp_path: Path) -> None:
    """Given the same hyperparameters: mean and spread of the function with that noise."""
    X, y = waves(40)
    y = 5.0 * y + 3.0
    std = np.random.default_rng(1).uniform(0.1, 2.0, 40)
    model = tiny(inference="map", noise_std=std).fit(X, y)
    assert model.noise_std_ == pytest.approx(np.sqrt(np.mean(std**2)), rel=1e-6)
    functions = model._functions[0]
    scale, centre = model.target_scale_, model.target_centre_
    kernel = ConstantKernel(np.exp(functions.theta[0, 0])) * RBF(
        np.exp(-0.5 * functions.theta[0, 1:])
    ) + ConstantKernel(functions.intercept_variance)
    Xs = model.standardizer_.transform(X)
    process = GaussianProcessRegressor(kernel, alpha=(std / scale) ** 2, optimizer=None)
    process.fit(Xs, (y - centre) / scale)
    mean, spread = process.predict(Xs[:9], return_std=True)
    seen, variance = model.latent(X[:9])
    np.testing.assert_allclose(seen, mean * scale + centre, rtol=1e-5)
    np.testing.assert_allclose(np.sqrt(variance), spread * scale, rtol=1e-3)
    drawn = model.sample_y(X[:3], 4000, random_state=0)
    expected = np.sqrt(variance[:3] + np.mean(std**2))
    np.testing.assert_allclose(drawn.std(axis=0), expected, rtol=0.08)  # 7 standard errors
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.predict_interval(X), model.predict_interval(X))
    np.testing.assert_array_equal(again.noise_std, std)


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        (np.ones(29), "29 values for 30 rows"),
        (np.zeros(30), "numbers above 0"),
        (np.full(30, np.inf), "numbers above 0"),
        (np.ones((30, 1)), "numbers above 0"),
    ],
)
def test_noise_of_rows_that_cannot_be_is_refused(noise: np.ndarray, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        tiny(noise_std=noise).fit(*waves(30))
