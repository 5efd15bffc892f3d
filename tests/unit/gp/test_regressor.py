from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from mercer.errors import DataError
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
        [centre - 2.0 * 1.6448536, centre + 2.0 * 1.6448536],
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
