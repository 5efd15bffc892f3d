"""`noise="lognormal"`: targets above 0 whose noise is a factor, from their law to a report."""

from __future__ import annotations

import html
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

import mercer
from mercer.errors import DataError, MercerWarning, UsageError
from mercer.estimation.standardize import rows_that_decide
from mercer.posterior.positive_laws import LogNormalMixture, MixedLaws
from mercer.posterior.predictive import StudentMixture

pytestmark = pytest.mark.filterwarnings("ignore::mercer.errors.ConvergenceWarning")

# The law.

LOCATIONS = np.array([[0.0, 1.0, -2.0], [5.0, 5.5, 4.0]])
SCALES, WEIGHTS = np.array([0.5, 0.2, 1.0]), np.array([0.5, 0.3, 0.2])
LAW = LogNormalMixture(StudentMixture(LOCATIONS, SCALES, WEIGHTS, np.inf))


@pytest.mark.parametrize("row", [0, 1])
def test_the_law_is_a_mixture_of_log_normals(row: int) -> None:
    own = stats.lognorm(SCALES, scale=np.exp(LOCATIONS[row]))
    mean, second = WEIGHTS @ own.mean(), WEIGHTS @ (own.var() + own.mean() ** 2)
    assert LAW.mean[row] == pytest.approx(mean, rel=1e-12)
    assert LAW.std[row] == pytest.approx(np.sqrt(second - mean**2), rel=1e-9)
    for y in (0.01, 1.0, 200.0):
        values = np.full(2, y)
        density, below = WEIGHTS @ own.pdf(y), WEIGHTS @ own.cdf(y)
        assert np.exp(LAW.log_density(values)[row]) == pytest.approx(density, rel=1e-9)
        assert LAW.cdf(values)[row] == pytest.approx(below, rel=1e-9)
        assert LAW.pit(values)[row] == LAW.cdf(values)[row]
    lower, upper = LAW.interval(0.9)
    for end, level in ((lower, 0.05), (upper, 0.95)):
        assert WEIGHTS @ own.cdf(end[row]) == pytest.approx(level, abs=1e-7)


def test_draws_have_its_median() -> None:
    """Five standard errors of a share of 40 000."""
    y = LAW.sample(np.random.default_rng(0), 40_000)
    assert (y > 0.0).all()
    middle = LAW.interval(1e-9)[0]
    assert np.abs((y < middle).mean(axis=0) - 0.5).max() < 5.0 * 0.5 / 200.0


def test_far_logarithms_stay_finite() -> None:
    far = np.array([[800.0], [-800.0], [0.0]])
    law = LogNormalMixture(StudentMixture(far, np.array([40.0]), np.ones(1), np.inf))
    ends = law.interval(0.999)
    drawn = law.sample(np.random.default_rng(0), 100)
    assert np.isfinite([law.mean, law.std, *ends]).all()
    assert np.isfinite(drawn).all()


def test_what_is_not_above_0_has_no_density() -> None:
    for y in (0.0, -1.0):
        with pytest.raises(DataError, match="above 0"):
            LAW.log_density([1.0, y])


# The estimators: those of the logarithm, in units of the target.

RNG = np.random.default_rng(3)
X = RNG.uniform(-2.0, 2.0, (60, 2))
LOGS = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * RNG.standard_normal(60)
NEW, NEW_LOGS = X[:20] + 0.05, LOGS[:20] + 0.1
MODELS: dict[str, Any] = {
    "gp": mercer.GPRegressor(random_state=0, progress=False),
    "gp, one kernel": mercer.GPRegressor(kernel="rbf", random_state=0, progress=False),
    "spectral": mercer.BaNKRegressor(
        n_frequencies=24, n_draws=20, n_warmup=20, n_chains=2, random_state=0, progress=False
    ),
}


def pair(name: str) -> tuple[Any, Any]:
    """A model of targets, and one of their logarithms."""
    given = MODELS[name].get_params()
    make = type(MODELS[name])
    factor = make(**{**given, "noise": "lognormal"}).fit(X, np.exp(LOGS))
    return factor, make(**given).fit(X, np.log(np.exp(LOGS)))


@pytest.mark.parametrize("name", MODELS)
def test_it_is_the_model_of_the_logarithm(name: str) -> None:
    model, plain = pair(name)
    for key, values in plain.posterior_.variables.items():
        np.testing.assert_array_equal(model.posterior_.variables[key], values)
    law, of_log = model.predictive(NEW), plain.predictive(NEW)
    ends = np.exp(plain.predict_interval(NEW, 0.8))
    np.testing.assert_allclose(model.predict_interval(NEW, 0.8), ends)
    np.testing.assert_allclose(
        law.log_density(np.exp(NEW_LOGS)), of_log.log_density(NEW_LOGS) - NEW_LOGS
    )
    mean, std = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, model.predict(NEW))
    assert (mean > np.exp(plain.predict(NEW))).all()
    assert (std > 0.0).all()
    assert model.noise_std_ == plain.noise_std_
    drawn = (each.sample_y(NEW, 3, random_state=1) for each in (model, plain))
    np.testing.assert_allclose(np.log(next(drawn)), next(drawn))
    np.testing.assert_array_equal(model.query(NEW, 5), plain.query(NEW, 5))
    if hasattr(plain, "log_marginal_likelihood_"):
        evidence = plain.log_marginal_likelihood_ - LOGS.sum()
        assert model.log_marginal_likelihood_ == pytest.approx(evidence)
    if getattr(plain, "log_evidence_", None) is not None:
        assert model.log_evidence_ == pytest.approx(plain.log_evidence_ - LOGS.sum())


@pytest.mark.parametrize("name", ["gp", "spectral"])
def test_it_is_saved_explained_and_reported(name: str, tmp_path: Path) -> None:
    model, _ = pair(name)
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(again.predict_interval(NEW), model.predict_interval(NEW))
    told = model.explain(NEW[:2])
    total = told.contributions.sum(axis=1) + told.baseline
    np.testing.assert_allclose(total, model.predict(NEW[:2]), rtol=1e-6)
    assert ((told.lower <= told.contributions) & (told.contributions <= told.upper)).all()
    path = model.report(tmp_path / "r.html", NEW, np.exp(NEW_LOGS))
    page = html.unescape(path.read_text())
    assert "Targets are above 0, and their logarithm is" in page
    assert "Noise is a factor" in page


def test_repeated_rows_are_weights() -> None:
    twice = mercer.GPRegressor(kernel="rbf", inference="map", noise="lognormal")
    y = np.exp(LOGS)
    one = twice.fit(np.vstack([X, X[:9]]), np.append(y, y[:9])).log_marginal_likelihood_
    weights = np.append(np.full(9, 2.0), np.ones(51))
    assert twice.fit(X, y, sample_weight=weights).log_marginal_likelihood_ == pytest.approx(one)


@pytest.mark.parametrize("name", ["gp", "spectral"])
def test_predictions_are_the_mean_of_the_noise_around_the_middle_of_the_function(name: str) -> None:
    """Not that of the law: far from all rows the draws that are widest would be all of it.

    Beyond three standard deviations of all logarithms it counts by its precision, if it is known
    less well than one of these: a line would go on, and exp of it has no end.
    """
    model, plain = pair(name)
    rows = np.vstack([NEW, np.full(X.shape[1], 20.0), np.full(X.shape[1], 2e3)])
    logs, stds = plain.predict(rows, return_std=True)
    f, stds = (logs - plain.target_centre_) / plain.target_scale_, stds / plain.target_scale_
    assert (np.abs(f[:-2]) < 3.0).all()
    assert f[-2] > 3.0
    assert stds[-2] > 1.0
    f[-2:] = 3.0 + (f[-2:] - 3.0) * np.minimum(1.0, stds[-2:] ** -2.0)
    expected = f * plain.target_scale_ + plain.target_centre_ + 0.5 * plain.noise_std_**2
    np.testing.assert_allclose(model.predict(rows), np.exp(expected), rtol=0.02)
    assert model.predict(rows).max() < 3.0 * np.exp(LOGS).max()
    np.testing.assert_array_equal(model.predictive(rows).mean, model.predict(rows))
    assert model.predict(rows, return_std=True)[1][-1] > np.exp(expected[-1])
    told = model.explain(rows[-2:])
    total = told.contributions.sum(axis=1) + told.baseline
    np.testing.assert_allclose(total, model.predict(rows[-2:]), rtol=1e-6)


@pytest.mark.parametrize("name", ["gp", "spectral"])
def test_targets_that_are_not_above_0_are_refused_by_row(name: str) -> None:
    y = np.exp(LOGS)
    y[7] = 0.0
    model = type(MODELS[name])(noise="lognormal")
    with pytest.raises(DataError, match=r"row 7 of X .*: the target is 0, and noise='lognormal'"):
        model.fit(X, y)


def test_several_targets_have_normal_noise() -> None:
    with pytest.raises(UsageError, match="several outputs have normal noise"):
        mercer.BaNKRegressor(noise="lognormal").fit(X, np.exp(np.column_stack([LOGS, LOGS])))


# Noise that the targets choose.

AUTO = mercer.GPRegressor(kernel="rbf", random_state=0, progress=False)
LEARNED = mercer.BaNKRegressor(
    n_frequencies=16, n_draws=10, n_warmup=10, n_chains=1, random_state=0, progress=False
)
STEADY = np.exp(3.0 + LOGS)
EXACT = np.square(X[:, 0]) + 0.1  # no noise: errors of what is left out are those of the fit


@pytest.mark.parametrize("unfitted", [AUTO, LEARNED])
def test_a_factor_is_chosen_where_what_is_left_out_is_likelier_so(
    tmp_path: Path, unfitted: Any
) -> None:
    model, factor = (clone(unfitted).set_params(noise=noise) for noise in ("auto", "lognormal"))
    model.fit(X, STEADY)
    assert (model.noise, model.noise_) == ("auto", "lognormal")
    assert model.notes_[0].startswith("noise is a factor: targets left out are likelier so, by ")
    factor.fit(X, STEADY)
    assert factor.noise_ == "lognormal"
    np.testing.assert_array_equal(model.predict(NEW), factor.predict(NEW))
    np.testing.assert_array_equal(model.sample_y(NEW, 3, 0), factor.sample_y(NEW, 3, 0))
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    assert (again.noise, again.noise_) == ("auto", "lognormal")
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    page = html.unescape(model.report(tmp_path / "r.html", NEW, STEADY[:20]).read_text())
    assert "Targets are above 0, and their logarithm is" in page
    again = clone(unfitted).fit(X, 1e-9 * STEADY)
    assert again.noise_ == "lognormal"  # whatever the unit


@pytest.mark.parametrize(
    ("rows", "y", "given"),
    [
        (X, 30.0 + LOGS, {}),
        (X, LOGS, {}),
        (X, np.full(60, 5.0), {}),
        (X[:19], STEADY[:19], {}),
        (X, STEADY, {"noise_std": 2.0}),
        (X, STEADY, {"noise": "normal"}),
        (X, EXACT, {}),
    ],
)
@pytest.mark.parametrize("unfitted", [clone(AUTO).set_params(inference="map"), LEARNED])
def test_else_noise_is_added(
    rows: np.ndarray, y: np.ndarray, given: dict[str, Any], unfitted: Any
) -> None:
    if not given.keys() <= unfitted.get_params().keys():
        pytest.skip("no argument of this model")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        model = clone(unfitted).set_params(**given).fit(rows, y)
    assert model.noise_ == "normal" or (y is EXACT and model.noise_ == "student_t")
    assert not any("factor" in note for note in model.notes_)


def test_one_target_that_is_not_above_0_decides_though_it_is_not_among_those_looked_at() -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(-2.0, 2.0, (2100, 1))
    y = np.exp(np.sin(rows[:, 0]) + 0.3 * rng.standard_normal(2100))
    own = {"kernel_rows": 60, "n_frequencies": 4, "n_draws": 2, "n_warmup": 0}
    model = clone(LEARNED).set_params(**own)
    assert model.fit(rows, y).noise_ == "lognormal"
    unseen = np.setdiff1d(np.arange(len(y)), rows_that_decide(len(y), 2000))
    y[unseen[0]] = -1.0
    assert model.fit(rows, y).noise_ == "normal"


def test_several_targets_and_gaps_leave_the_choice_of_noise_to_what_is_known() -> None:
    both = clone(LEARNED).fit(X, np.column_stack([STEADY, STEADY]))
    assert both.noise_ == "normal"
    gaps = X.copy()
    gaps[::7, 1] = np.nan
    assert clone(LEARNED).set_params(missing="posterior").fit(gaps, STEADY).noise_ == "lognormal"


# Mixtures with laws of any numbers, and the stack.

MIXED = MixedLaws([StudentMixture(LOCATIONS, SCALES, WEIGHTS, np.inf), LAW], np.array([0.3, 0.7]))


@pytest.mark.parametrize("level", [0.1, 0.9, 0.999])
def test_ends_of_intervals_leave_as_much_on_either_side(level: float) -> None:
    lower, upper = MIXED.interval(level)
    np.testing.assert_allclose(MIXED.cdf(lower), 0.5 - 0.5 * level, atol=1e-5)
    np.testing.assert_allclose(MIXED.cdf(upper), 0.5 + 0.5 * level, atol=1e-5)


def test_one_law_may_be_very_wide() -> None:
    """A tenth of the mass lies anywhere between e^-300 and e^300."""
    wide = LogNormalMixture(StudentMixture(np.zeros((1, 1)), np.full(1, 100.0), np.ones(1), np.inf))
    own = StudentMixture(np.full((1, 1), 50.0), np.ones(1), np.ones(1), np.inf)
    law = MixedLaws([own, wide], np.array([0.9, 0.1]))
    lower, upper = law.interval(0.8)
    assert law.cdf(lower)[0] == pytest.approx(0.1, abs=1e-6)
    assert law.cdf(upper)[0] == pytest.approx(0.9, abs=1e-6)
    assert lower[0] < 50.0 < upper[0] < 55.0


def test_its_density_is_the_slope_of_its_probability_and_below_0_that_of_the_others() -> None:
    for y in (-1.0, 0.5, 3.0):
        low, high = (MIXED.cdf(np.full(2, y + step)) for step in (-1e-5, 1e-5))
        np.testing.assert_allclose(
            np.exp(MIXED.log_density(np.full(2, y))), (high - low) / 2e-5, rtol=1e-4
        )
    only = LogNormalMixture(StudentMixture(LOCATIONS, SCALES, WEIGHTS, np.inf))
    assert (MixedLaws([only], np.ones(1)).log_density([-1.0, 0.0]) == -np.inf).all()


def test_draws_of_a_mixture_have_its_moments() -> None:
    """Six standard errors."""
    y = MIXED.sample(np.random.default_rng(0), 40_000)
    error = y.std(axis=0) / 200.0
    assert (np.abs(y.mean(axis=0) - MIXED.mean) < 6.0 * error).all()
    square = np.square(y - MIXED.mean)
    assert (np.abs(square.mean(axis=0) - MIXED.std**2) < 6.0 * square.std(axis=0) / 200.0).all()


def test_a_stack_of_prices_has_a_member_whose_noise_is_a_factor(tmp_path: Path) -> None:
    y = 5.0 * np.exp(LOGS)
    model = mercer.MercerRegressor(n_draws=50, n_folds=2, random_state=0).fit(X, y)
    assert max(model.weights_, key=model.weights_.get) == "gp_lognormal"
    assert model.members_["gp_lognormal"].noise == "lognormal"
    lower, upper = model.predict_interval(NEW)
    mean, std = model.predict(NEW, return_std=True)
    assert ((lower < mean) & (mean < upper) & (std > 0.0)).all()
    np.testing.assert_allclose(mean, model.predict(NEW), rtol=1e-6)
    assert np.isfinite(model.predictive(NEW).log_density(np.full(len(NEW), -1.0))).all()
    assert model.sample_y(NEW, 5, random_state=0).shape == (5, len(NEW))
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))


@pytest.mark.parametrize("y", [LOGS, 100.0 + LOGS - 2.0 * np.square(LOGS - LOGS.mean())])
def test_other_targets_have_none(y: np.ndarray) -> None:
    """Some below 0, or above but skewed to the left."""
    model = mercer.MercerRegressor(n_draws=50, n_folds=2, random_state=0).fit(X[:24], y[:24])
    assert "gp_lognormal" not in model.weights_


def test_it_is_a_member_by_name_and_as_it_is_set(tmp_path: Path) -> None:
    y = np.exp(LOGS)
    own = {"n_draws": 50, "n_folds": 2, "random_state": 0}
    named = mercer.MercerRegressor(models="gp_lognormal,boosting", **own).fit(X, y)
    assert set(named.weights_) == {"gp_lognormal", "boosting"}
    one = mercer.GPRegressor(noise="lognormal", inference="map", kernel="rbf")
    given = mercer.MercerRegressor(models=[one, "gp_lognormal"], **own).fit(X, y)
    assert set(given.weights_) == {"gp", "gp_lognormal"}
    given.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    assert [getattr(each, "noise", each) for each in again.models] == ["lognormal", "gp_lognormal"]
    with pytest.raises(UsageError, match="no model 'gp_lognormal' for classification"):
        mercer.MercerClassifier(models="gp_lognormal").fit(X, LOGS > 0.0)


# Of which some targets are wrong.

ERRORS = {
    "GPRegressor": {"kernel": "rbf", "n_draws": 60, "n_warmup": 20, "n_chains": 2},
    "BaNKRegressor": {"n_frequencies": 16, "n_draws": 40, "n_warmup": 40, "n_chains": 2},
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_beside_factors_are_those_of_the_logarithm(name: str, tmp_path: Path) -> None:
    rng, kind = np.random.default_rng(4), getattr(mercer, name)
    rows = rng.uniform(-2.0, 2.0, (80, 1))
    y = np.exp(3.0 + np.sin(2.0 * rows[:, 0]) + 0.3 * rng.standard_normal(80))
    y[[5, 20]] *= [30.0, 1.0 / 40.0]
    short = {**ERRORS[name], "random_state": 0}
    model = kind(noise="contaminated_lognormal", **short).fit(rows, y)
    plain = kind(noise="contaminated", **short).fit(rows, np.log(y))
    np.testing.assert_array_equal(model.target_error_proba_, plain.target_error_proba_)
    assert set(np.argsort(-model.target_error_proba_)[:2]) == {5, 20}
    law = stats.lognorm(plain.expected_target_std_, scale=np.exp(plain.expected_target_))
    np.testing.assert_allclose(model.expected_target_, law.mean())
    np.testing.assert_allclose(model.expected_target_std_, law.std())
    ends = zip(model.predict_interval(rows), plain.predict_interval(rows), strict=True)
    for found, of_log in ends:
        np.testing.assert_allclose(found, np.exp(of_log))
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    of_new, of_log = again.target_errors(rows, y), plain.target_errors(rows, np.log(y))
    np.testing.assert_allclose(of_new[0], of_log[0])
    np.testing.assert_allclose(of_new[1], np.exp(of_log[1] + 0.5 * of_log[2] ** 2))
    for refused in (lambda: model.target_errors(rows[:1], [0.0]), lambda: model.fit(rows, -y)):
        with pytest.raises(DataError, match="above 0"):
            refused()
