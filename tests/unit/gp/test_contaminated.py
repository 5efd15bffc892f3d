from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer.errors import DataError, NumericalError, UsageError
from mercer.gp import contamination
from mercer.gp.contamination import ContaminatedSampler
from mercer.gp.fitting import GPSettings, RegressionSettings
from mercer.gp.gaussian import noisy_factor
from mercer.gp.regressor import GPRegressor
from mercer.likelihoods.label_noise import N_KINDS
from support.contaminated import (
    coverage,
    far_and_right,
    table,
    with_one_normal,
    zeros_then_a_line,
)
from support.mangled import taken

N = 60
SHORT = {"noise": "contaminated", "kernel": "rbf", "n_draws": 60, "n_chains": 2, "n_warmup": 20}


X, Y, WRONG, F = table(N)


def fitted(**own) -> GPRegressor:
    return GPRegressor(**{**SHORT, "random_state": 0, **own})


@pytest.fixture(scope="module")
def model() -> GPRegressor:
    with pytest.warns(mercer.errors.ConvergenceWarning):
        return fitted().fit(X, 100.0 + 20.0 * Y)


def test_rounding_beyond_the_floor_is_no_end() -> None:
    errors = 1e-9 * np.random.default_rng(0).standard_normal((40, 40))
    K = 1.0 + errors + errors.T  # of rows that are alike, many length scales from the first
    with pytest.raises(NumericalError):
        noisy_factor(K, 1e-9, np.empty_like(K))
    L = np.tril(contamination._factor_of_function(K, 1e-9, np.empty_like(K), 1.0))
    np.testing.assert_allclose(L @ L.T, K + 1.0, atol=2e-7)
    with pytest.raises(NumericalError, match="where the chain is"):
        contamination._factor_of_function(-K, 1e-9, np.empty_like(K), 0.0)


def test_a_trajectory_ends_with_the_inverse_of_its_end() -> None:
    """Of errors as large as there are, too: one part in 1e8 of them is more than the noise."""
    settings = GPSettings("importance", {}, None, None, "rbf")
    model, n = RegressionSettings(settings, None).posterior(X, Y), len(Y)
    mean, rows = model.prior.mean, np.arange(n)
    codes = np.arange(n) % N_KINDS
    sampler = ContaminatedSampler(model, mean, 1e-4 * np.eye(len(mean)), codes, rows)
    rng = np.random.default_rng(0)
    state = sampler.init(rng)
    moved, A, _ = sampler._move(rng, state)
    assert (moved.position[:-1] != state.position[:-1]).all()
    noise, added = sampler._noise(moved.position)
    C = model.kernel.gram(moved.position[:-1], X) + model.intercept_variance
    C += np.diag(noise + added[codes])
    np.testing.assert_allclose(moved.dual_coef, np.linalg.solve(C, Y), rtol=1e-9, atol=1e-14)
    left_out = 1.0 / A.diagonal() - added[codes]
    others = [np.delete(rows, i) for i in rows]
    known = [
        C[i, i] - added[codes[i]] - C[i, j] @ np.linalg.solve(C[np.ix_(j, j)], C[j, i])
        for i, j in zip(rows, others, strict=True)
    ]
    np.testing.assert_allclose(left_out, known, rtol=1e-9, atol=1e-15 * added.max())


def test_wrong_targets_are_found_and_expected_where_they_should_be(model: GPRegressor) -> None:
    p = model.target_error_proba_
    assert p[WRONG].min() > 0.95
    assert p[~WRONG].mean() < 0.05
    assert 0.02 < model.contamination_rate_ < 0.25
    z = (model.expected_target_ - 100.0 - 20.0 * F) / model.expected_target_std_
    assert np.abs(z).max() < 4.0
    assert model.noise_std_ == pytest.approx(2.0, rel=0.4)


def test_predictions_are_of_right_targets(model: GPRegressor) -> None:
    Z, _, _, f = table(200, 1)
    error = (model.predict(Z) - 100.0 - 20.0 * f) / 20.0
    normal = GPRegressor(kernel="rbf", inference="map").fit(X, 100.0 + 20.0 * Y)
    other = (normal.predict(Z) - 100.0 - 20.0 * f) / 20.0
    assert np.sqrt(np.mean(error**2)) < 0.5 * np.sqrt(np.mean(other**2))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mercer.errors.ConvergenceWarning")
def test_intervals_hold_right_targets_with_heavy_tails() -> None:
    """One normal law a function, the mutant, is too wide in the middle and too narrow outside."""
    new, truth = far_and_right(3000, 1)
    law = fitted().fit(*far_and_right(300, 0)).predictive(new)
    held, others = coverage(law, truth), coverage(with_one_normal(law), truth)
    np.testing.assert_allclose(held, [0.5, 0.8, 0.9, 0.99], atol=0.04)
    assert others[0] > 0.57
    gained = law.log_density(truth) - with_one_normal(law).log_density(truth)
    assert gained.mean() > 0.05


def test_a_saved_model_says_the_same(model: GPRegressor, tmp_path: Path) -> None:
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    names = ("target_error_proba_", "expected_target_", "expected_target_std_", "recorded_")
    for name in names:
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    assert again.contamination_rate_ == model.contamination_rate_
    for one in ("predict", "latent"):
        np.testing.assert_array_equal(getattr(again, one)(X), getattr(model, one)(X))
    np.testing.assert_array_equal(again.sample_y(X, 2, 0), model.sample_y(X, 2, 0))
    for a, b in zip(again.target_errors(X, Y), model.target_errors(X, Y), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_file_without_shares_is_read_and_judges(model: GPRegressor, tmp_path: Path) -> None:
    """Versions with one kind of right targets and fixed sizes of errors wrote the rate alone."""
    model.save(tmp_path / "m.mercer")

    def older(_: dict, arrays: dict) -> None:
        arrays.pop("draws/log_shares")
        kinds = arrays["draws/error_kind"]
        arrays["draws/error_kind"] = np.where(kinds < 4, 0.0, kinds - 3.0)

    def beyond(_: dict, arrays: dict) -> None:
        arrays.pop("draws/log_shares")
        arrays["draws/error_kind"] += 12.0

    changes = {"kinds beyond": beyond, "older": older}
    assert taken(tmp_path / "m.mercer", tmp_path, changes) == ["older"]
    p = mercer.load(tmp_path / "changed.mercer").target_errors(X, 100.0 + 20.0 * Y)[0]
    assert p[WRONG].min() > 0.5
    assert p[~WRONG].mean() < 0.1


def test_new_targets_are_judged(model: GPRegressor) -> None:
    Z, y, wrong, _ = table(100, 2)
    p, expected, std = model.target_errors(Z, 100.0 + 20.0 * y)
    assert p[wrong].min() > 0.5
    assert p[~wrong].mean() < 0.1
    lower, upper = model.predict_interval(Z, 0.9545)
    np.testing.assert_allclose((upper - lower) / 4.0, std, rtol=0.3)
    np.testing.assert_allclose(expected, model.predict(Z), atol=0.5)
    with pytest.raises(DataError, match="100 finite numbers"):
        model.target_errors(Z, y[:3])


@pytest.mark.filterwarnings("ignore::mercer.errors.ConvergenceWarning")
def test_rows_beyond_the_limit_are_judged_too() -> None:
    model = fitted(max_rows=40, n_draws=200).fit(X, Y)  # 60 are often less than the way there
    assert model.target_error_proba_.shape == (N,)
    assert model.target_error_proba_[WRONG].min() > 0.9
    assert any("20 rows were not fitted" in note for note in model.notes_)


@pytest.mark.filterwarnings("ignore::mercer.errors.ConvergenceWarning")
@pytest.mark.parametrize("own", [{"max_seconds": 1e-6}, {"n_draws": 1, "n_chains": 1}])
def test_chains_begin_where_the_first_fit_leaves_one_draw(own: dict) -> None:
    """One draw has no covariance: the curvature at the maximum, or the prior, takes its place."""
    model = fitted(**own).fit(X, Y)
    assert model.posterior_.n_total == 2
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.filterwarnings("ignore::mercer.errors.ConvergenceWarning")
def test_the_same_seed_gives_the_same_draws_in_any_number_of_processes(tmp_path: Path) -> None:
    one, two = fitted().fit(X, Y), fitted(n_jobs=2, checkpoint=tmp_path / "c").fit(X, Y)
    for name in one.posterior_.variables:
        np.testing.assert_array_equal(one.posterior_.flat(name), two.posterior_.flat(name))
    again = fitted(checkpoint=tmp_path / "c").fit(X, Y)
    np.testing.assert_array_equal(again.target_error_proba_, one.target_error_proba_)


@pytest.mark.one_in(2)
@pytest.mark.filterwarnings("ignore::mercer.errors.MercerWarning")
@pytest.mark.parametrize(
    "y",
    [
        np.where(np.arange(N) < 58, 1.0, 5.0),
        np.round(F),
        np.where(WRONG, 1e9, Y),
        np.zeros(N),
        np.where(np.arange(N) % 2, F, F + 5.0),
    ],
    ids=["nearly constant", "ties", "huge errors", "constant", "half wrong"],
)
def test_hard_targets_give_finite_numbers(y: np.ndarray) -> None:
    model = fitted(n_draws=12, n_chains=1, n_warmup=5).fit(X, y)
    p = model.target_error_proba_
    assert np.isfinite(p).all()
    assert ((p >= 0.0) & (p <= 1.0)).all()
    assert np.isfinite(model.expected_target_).all()
    assert np.isfinite(model.predict(X)).all()
    if y.max() == 1e9:
        assert p[WRONG].min() > 0.99
        assert p[~WRONG].max() < 0.99


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"inference": "map"}, "contaminated"),
        ({"n_inducing": 50}, "without n_inducing"),
        ({"noise_std": np.ones(N)}, "one number"),
        ({"noise": "student"}, "'contaminated'"),
    ],
)
def test_what_it_does_not_go_with_is_refused(own: dict, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        fitted(**own).fit(X, Y)


def test_weights_of_rows_are_refused() -> None:
    with pytest.raises(UsageError, match="no sample_weight"):
        fitted().fit(X, Y, sample_weight=np.ones(N))
    with pytest.raises(UsageError, match="needs a fit with"):
        GPRegressor(kernel="rbf", inference="map").fit(X, Y).target_errors(X, Y)


def test_the_plot_marks_what_is_probably_wrong(model: GPRegressor) -> None:
    assert "target_errors" in dir(model.plot)
    ax = model.plot.target_errors()
    marked = next(line for line in ax.get_lines() if line.get_gid() == "mark-listed")
    assert len(marked.get_xdata()) == int((model.target_error_proba_ > 0.5).sum())


def test_values_far_off_are_drawn_at_the_edge() -> None:
    mean = np.linspace(0.0, 1.0, 20)
    y = np.where(np.arange(20) == 5, 1e6, mean)
    ax = mercer.plot.target_errors(y, mean, np.full(20, 0.1), y > 100.0)
    assert ax.get_ylim()[1] < 10.0
    assert ax.get_ylabel() == "recorded — 1 beyond the edges"
    assert mercer.plot.label_errors([0.9, 0.1], noun="value").get_ylabel() == "P(value is wrong)"


@pytest.mark.one_in(2)
@pytest.mark.filterwarnings("ignore::mercer.errors.ConvergenceWarning")
@pytest.mark.parametrize("shift", [2.0, 20.0])
def test_many_errors_on_one_side_are_no_noise(shift: float) -> None:
    """Of 30 % a curve through all rows has noise so wide that none is far off (0.6 and 6.0)."""
    inputs, _, _, f = table(200)
    rng = np.random.default_rng(5)
    y = f + 0.1 * rng.normal(size=200)
    y[:60] += shift + 0.2 * rng.normal(size=60)
    model = fitted().fit(inputs, y)
    assert model.target_error_proba_[:60].mean() > 0.9
    assert model.target_error_proba_[60:].mean() < 0.2
    assert np.sqrt(np.mean(np.square(model.predict(inputs) - f))) < 0.1


@pytest.mark.filterwarnings("ignore::mercer.errors.ConvergenceWarning")
def test_targets_that_are_mostly_equal_are_not_all_that_is_right() -> None:
    """A function that is constant among the zeros leaves them no noise, and all others wrong."""
    X, y, wrong, f = zeros_then_a_line(150)
    model = fitted(n_draws=150).fit(X, y)
    assert np.sqrt(np.mean(np.square(model.predict(X) - f))) < 0.2  # 1.0 from a constant
    assert ((model.target_error_proba_ > 0.5) == wrong).mean() > 0.95
    assert model.noise_std_ > 0.03


@pytest.mark.filterwarnings("ignore::mercer.errors.ConvergenceWarning")
def test_a_first_posterior_by_chains_says_where_to_begin() -> None:
    """Its draws have no weights."""
    model = fitted(inference="hmc").fit(X, Y)
    assert ((model.target_error_proba_ > 0.5) == WRONG).mean() > 0.95


@pytest.mark.filterwarnings("ignore::mercer.errors.ConvergenceWarning")
def test_chains_that_warn_become_longer() -> None:
    """From a hundred draws a chain on; as many are kept."""
    model = fitted(n_draws=500).fit(X, Y)
    assert model.posterior_.n_draws == 100
    is_said = any("times as long, as their diagnostics warned" in note for note in model.notes_)
    assert is_said or model.diagnostics_.is_converged
