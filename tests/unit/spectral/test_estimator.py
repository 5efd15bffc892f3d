from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid

import mercer
from mercer.errors import MercerWarning
from mercer.posterior.predictive import StudentMixture
from mercer.spectral import settings
from mercer.spectral.estimator import BaNKRegressor
from support.devices import device_for_tests
from support.spectral_fits import PAPER, tiny, waves
from support.statistics import FALSE_ALARM

X, Y = waves()
Z = waves(25, seed=31)[0]
KINDS = {"default": {}, "paper": PAPER, "full": {"base_measure": "full", "concentration": "learn"}}


@pytest.fixture(scope="module", params=KINDS)
def model(request: pytest.FixtureRequest) -> BaNKRegressor:
    return tiny(**KINDS[request.param]).fit(X, Y)


def test_paper_settings() -> None:
    paper = BaNKRegressor.paper()
    assert (paper.n_frequencies, paper.ridge_precision, paper.n_chains) == (384, 0.5, 1)
    assert (paper.proposals, paper.base_measure, paper.standardize) == ("prior", "full", "std")
    assert not paper.linear_part


@pytest.mark.parametrize(
    ("n", "expected"), [(2, 48), (200, 80), (201, 81), (400, 160), (4999, 160), (5000, 384)]
)
def test_frequencies_by_the_number_of_rows(n: int, expected: int) -> None:
    assert BaNKRegressor()._settings(n).n_frequencies == expected


def test_it_learns() -> None:
    """On rows it has not seen: little more than the noise, and far below the spread."""
    rows, targets = waves(400)
    fitted = tiny(n_frequencies=30).fit(rows[:200], targets[:200])
    mean, std = fitted.predict(rows[200:], return_std=True)
    error = np.sqrt(np.mean((mean - targets[200:]) ** 2))
    assert error < 0.2 < 0.3 * targets.std()
    assert 0.07 < fitted.noise_std_ < 0.15
    assert fitted.score(rows[200:], targets[200:]) > 0.9
    lower, upper = fitted.predict_interval(rows[200:], 0.9)
    assert 0.8 < np.mean((lower < targets[200:]) & (targets[200:] < upper)) < 0.99
    assert std.min() > fitted.noise_std_ * 0.9


def test_attributes(model: BaNKRegressor) -> None:
    assert model.n_frequencies_ == 6
    assert model.feature_labels_ == ("x0", "x1", "x2")
    assert model.posterior_.n_total == 20
    assert (model.posterior_.n_chains, model.n_features_in_) == (1, 3)
    assert any("too short to judge" in line for line in model.diagnostics_.warnings)
    assert "log_evidence" in str(model.posterior_.summary())
    table = model.components_
    shares = {row[0]: row[table.columns.index("share")] for row in table.rows}
    assert sum(shares.values()) == pytest.approx(1.0)


def test_several_chains_share_the_draws_of_the_coefficients() -> None:
    """128 draws of the function in all, however few frequencies are kept."""
    for n_draws, n_chains, expected in ((20, 1, 7), (3, 2, 22), (200, 1, 1)):
        fitted = tiny(n_draws=n_draws, n_chains=n_chains, n_warmup=2).fit(X, Y)
        assert fitted.posterior_.flat("coef_deviation").shape[1] == expected


def test_intervals(model: BaNKRegressor) -> None:
    """Nested, around the mean, and of the width that the standard deviation says."""
    mean, std = model.predict(Z, return_std=True)
    last = mean, mean
    for level in (0.1, 0.5, 0.9, 0.99):
        lower, upper = model.predict_interval(Z, level)
        assert ((lower < last[0]) & (last[1] < upper)).all() or level == 0.1
        last = lower, upper
    law = model.predictive(Z)
    np.testing.assert_array_equal(law.mean, mean)
    np.testing.assert_array_equal(law.std, std)
    np.testing.assert_allclose(law.cdf(last[1]) - law.cdf(last[0]), 0.99, atol=1e-6)
    width = np.subtract(*model.predict_interval(Z, 0.6827)[::-1]) / 2.0
    np.testing.assert_allclose(width, std, rtol=0.2)  # a mixture is not quite a normal


def moments_z(model: BaNKRegressor) -> float:
    """Of draws of new targets: largest z of means and of mean squares, two for each row."""
    n = 20_000
    drawn, law = model.sample_y(Z, n, random_state=1), model.predictive(Z)
    centre = law.locations.mean(axis=1)
    squares = (drawn - centre) ** 2
    mean_z = (drawn.mean(axis=0) - centre) / (law.std / math.sqrt(n))
    square_z = (squares.mean(axis=0) - law.std**2) / (squares.std(axis=0) / math.sqrt(n))
    return float(np.abs([mean_z, square_z]).max())


MOMENTS_LIMIT = float(stats.norm.isf(FALSE_ALARM / (4.0 * len(Z) * len(KINDS))))


def test_draws_of_new_targets(model: BaNKRegressor) -> None:
    """Moments as predicted; false alarm 1e-6 over 150 statistics; detects a tenth of a std."""
    assert moments_z(model) < MOMENTS_LIMIT
    assert model.sample_y(Z).shape == (1, len(Z))
    np.testing.assert_array_equal(model.sample_y(Z, 3, 5), model.sample_y(Z, 3, 5))
    assert (model.sample_y(Z, 3, 5) != model.sample_y(Z, 3, 6)).any()


def test_draws_without_noise_are_seen(
    model: BaNKRegressor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: values of the function in place of new targets."""
    monkeypatch.setattr(
        StudentMixture,
        "sample",
        lambda self, rng, n, drawn=None: (
            self.locations[:, rng.integers(self.locations.shape[1], size=n)].T
        ),
    )
    assert moments_z(model) > 1.5 * MOMENTS_LIMIT


@pytest.mark.parametrize("n", [2, BaNKRegressor._rows_at_once + 1])
def test_draws_of_new_targets_share_their_function(n: int) -> None:
    """Equal rows of one draw differ by noise only, also where they are many."""
    rows, targets = waves(12)
    fitted = tiny(n_frequencies=40).fit(rows, targets)
    far = np.repeat(6.0 * rows[:1], n, axis=0)
    drawn = fitted.sample_y(far, 2000, random_state=0)
    assert np.corrcoef(drawn[:, 0], drawn[:, -1])[0, 1] > 0.5


def test_blocks_of_rows_do_not_matter(model: BaNKRegressor) -> None:
    rows = np.tile(Z, (BaNKRegressor._rows_at_once // len(Z) + 2, 1))
    mean, std = model.predict(rows, return_std=True)
    lower, _ = model.predict_interval(rows)
    expected = model.predict(Z, return_std=True)
    np.testing.assert_allclose(mean, np.tile(expected[0], len(rows) // len(Z)), rtol=1e-10)
    np.testing.assert_allclose(std, np.tile(expected[1], len(rows) // len(Z)), rtol=1e-10)
    expected_lower = model.predict_interval(Z)[0]
    np.testing.assert_allclose(lower, np.tile(expected_lower, len(rows) // len(Z)), rtol=1e-7)
    np.testing.assert_allclose(model.predict(rows), mean, rtol=1e-10)


def test_kernel_and_density(model: BaNKRegressor) -> None:
    lags = np.vstack([np.zeros((1, 3)), Z])
    mean, lower, upper = model.kernel(lags)
    np.testing.assert_array_equal([mean[0], lower[0], upper[0]], 1.0)
    assert ((lower <= mean) & (mean <= upper)).all()
    for values in (*model.spectral_density(lags), *model.marginal_spectral_density(Z[:, 0], 1)):
        assert (values >= 0.0).all()
        assert np.isfinite(values).all()


def test_kernel_is_that_which_predicts() -> None:
    """The products of the features of two rows, mean over draws."""
    fitted = tiny(linear_part=False).fit(X, Y)
    rows, origin = fitted.standardizer_.transform(Z), fitted.standardizer_.transform(X[:1])
    products = []
    for W in fitted.posterior_.flat("frequencies"):
        both = [np.concatenate([np.cos(V @ W.T), np.sin(V @ W.T)], 1) for V in (rows, origin)]
        products.append((both[0] @ both[1].T)[:, 0] / len(W))
    np.testing.assert_allclose(fitted.kernel(Z - X[:1])[0], np.mean(products, axis=0), atol=1e-12)


def test_the_density_of_one_input_integrates_to_1() -> None:
    """In radians per unit of the input, which here is a thousandth."""
    fitted = tiny().fit(1e-3 * X[:, :1], Y)
    w = 1e3 * np.tan(np.linspace(-1.5707, 1.5707, 20_001))
    found = trapezoid(fitted.spectral_density(w)[0], w)
    assert found == pytest.approx(1.0, abs=2e-3)
    np.testing.assert_allclose(
        fitted.marginal_spectral_density(w, 0)[0], fitted.spectral_density(w)[0], rtol=1e-9
    )


def test_a_constant_target() -> None:
    with pytest.warns(MercerWarning, match="the target is constant"):
        fitted = tiny().fit(X, np.full(len(X), 1e8 / 3.0))
    mean, std = fitted.predict(Z, return_std=True)
    np.testing.assert_allclose(mean, 1e8 / 3.0, rtol=1e-12)
    assert (std < 0.1).all()


def test_max_seconds() -> None:
    fitted = tiny(n_draws=10**7, max_seconds=1.0).fit(X, Y)
    assert any("stopped by max_seconds" in note for note in fitted.notes_)
    assert 0 < fitted.posterior_.n_draws < 10**7
    assert np.isfinite(fitted.predict(Z)).all()


def width_beside_students() -> float:
    """Width of the 90 % interval of 15 values of noise, their mean known, beside Student's."""
    rng = np.random.default_rng(5)
    rows, targets = rng.standard_normal((15, 1)), 3.0 * rng.standard_normal(15)
    model = tiny(n_frequencies=2, ridge_precision=1e6, linear_part=False, n_draws=3000)
    lower, upper = model.fit(rows, targets).predict_interval([[0.0]])
    return float((upper - lower)[0] / (2.0 * stats.t.ppf(0.95, 15) * targets.std()))


@pytest.mark.slow
def test_the_prior_of_the_noise_is_worth_less_than_an_observation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As wide as where nothing is known of the noise, to 1 %.

    Standard deviations of draws differ by a fifth, so that of 3000 draws chance is 0.4 %: 3 % has a
    false-alarm rate below 1e-6. The mutant is a prior worth two residuals of almost nothing: 7 %.
    """
    assert abs(width_beside_students() - 1.0) < 0.03
    monkeypatch.setattr(settings, "_NOISE_SHAPE", 1.0)
    assert width_beside_students() < 0.95


@pytest.mark.parametrize(
    "own",
    [
        {},
        pytest.param({"kernel_rows": 200}, marks=pytest.mark.slow),
        {"linear_part": False},
        pytest.param({"noise": "student_t"}, marks=pytest.mark.slow),
        pytest.param({"noise": "heteroscedastic"}, marks=pytest.mark.slow),
        pytest.param({"noise": "contaminated"}, marks=pytest.mark.slow),
    ],
)
def test_a_device_gives_the_predictions_of_numpy(
    own: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short chains differ in rounding alone; a model that was fitted there predicts anywhere."""
    strict = device_for_tests("strict")
    monkeypatch.setattr("mercer.spectral.rows.check_device", lambda name: name and strict)
    monkeypatch.setattr("mercer.spectral.sampler._FEW_ON_DEVICE", 1)
    rows, targets = waves(2500)
    settings = {"n_draws": 2, "n_warmup": 2, "n_chains": 1, "n_jobs": 1, **own}
    here, there = (tiny(**settings, device=name).fit(rows, targets) for name in (None, "strict"))
    np.testing.assert_allclose(there.predict(Z), here.predict(Z), rtol=1e-9, atol=1e-9)
    means = [model.posterior_.variables["coef_mean"] for model in (here, there)]
    assert means[0].tobytes() != means[1].tobytes()  # it was the device
    there.save(tmp_path / "there.mercer")
    loaded = mercer.load(tmp_path / "there.mercer")
    assert loaded.device == "strict"
    np.testing.assert_array_equal(loaded.predict(Z), there.predict(Z))
