"""`BaNKRegressor(noise="negative_binomial")`: counts, from their law to files and reports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import mercer
from mercer.errors import DataError, UsageError
from mercer.posterior.evaluation import hold
from mercer.posterior.labels import entropy_bits
from mercer.posterior.positive_laws import CountMixture
from mercer.spectral.estimator import BaNKRegressor
from support.mangled import set_array, taken
from support.spectral_fits import tiny


@pytest.fixture(scope="module")
def quick_start() -> None:
    """The start as it is: what a mean says of a row is near a limit."""


pytestmark = pytest.mark.filterwarnings("ignore::mercer.errors.ConvergenceWarning")

# The law.

MEANS = np.array([[0.3, 2.0, 9.0], [1e-3, 1e-2, 0.0], [1e5, 2e5, 3e4], [1e15, 1e300, 4.0]])
DISPERSIONS = np.array([0.5, 4.0, 300.0])
LAW = CountMixture(MEANS, DISPERSIONS)


def parts(row: int) -> Any:
    means = np.clip(MEANS[row], 1e-300, 1e15)
    return stats.nbinom(DISPERSIONS, DISPERSIONS / (DISPERSIONS + means))


@pytest.mark.parametrize("row", [0, 1, 2])
def test_the_law_is_a_mixture_of_negative_binomials(row: int) -> None:
    law, own = CountMixture(MEANS[[row]], DISPERSIONS), parts(row)
    assert law.mean[0] == pytest.approx(own.mean().mean(), rel=1e-9)
    second = (own.var() + own.mean() ** 2).mean()
    assert law.std[0] == pytest.approx(np.sqrt(second - own.mean().mean() ** 2), rel=1e-6)
    for y in (0.0, 1.0, 7.0, 40_000.0):
        mass, below = np.exp(own.logpmf(y)).mean(), own.cdf(y).mean()
        assert np.exp(law.log_density([y])[0]) == pytest.approx(mass, rel=1e-8, abs=1e-300)
        assert law.cdf([y])[0] == pytest.approx(below, rel=1e-9)
        assert law.pit([y])[0] == pytest.approx(below - 0.5 * mass, rel=1e-9)


@pytest.mark.parametrize("level", [0.02, 0.5, 0.9, 0.999])
def test_ends_of_intervals_are_the_least_counts_that_reach_their_probability(
    level: float,
) -> None:
    law = CountMixture(MEANS[:3], DISPERSIONS)
    for end, p in zip(law.interval(level), (0.5 - 0.5 * level, 0.5 + 0.5 * level), strict=True):
        np.testing.assert_array_equal(end, np.rint(end))
        for row, k in enumerate(end):
            assert parts(row).cdf(k).mean() >= p - 1e-9
            assert k == 0.0 or parts(row).cdf(k - 1.0).mean() < p + 1e-9


def test_means_beyond_whole_numbers_stay_finite() -> None:
    lower, upper = LAW.interval(0.9)
    assert np.isfinite([LAW.mean, LAW.std, lower, upper, LAW.log_density(np.zeros(4))]).all()
    assert np.isfinite(LAW.sample(np.random.default_rng(0), 5)).all()
    assert np.isfinite(LAW.log_density(np.full(4, 1e12))).all()


def test_draws_have_the_moments_of_the_law() -> None:
    """Six standard errors."""
    y = LAW.sample(np.random.default_rng(1), 40_000)[:, :3]
    np.testing.assert_array_equal(y, np.rint(y))
    error = y.std(axis=0) / 200.0
    assert np.all(np.abs(y.mean(axis=0) - LAW.mean[:3]) < 6.0 * error)
    square = np.square(y - LAW.mean[:3])
    gap = np.abs(square.mean(axis=0) - LAW.std[:3] ** 2)
    assert np.all(gap < 6.0 * square.std(axis=0) / 200.0)
    one = LAW.sample(np.random.default_rng(1), 5000, np.zeros(5000, dtype=int))[:, 0]
    assert one.mean() == pytest.approx(0.3, abs=6.0 * one.std() / 70.0)


def test_what_is_no_count_has_no_probability() -> None:
    for y in (0.5, -1.0):
        with pytest.raises(DataError, match="whole numbers"):
            LAW.log_density(np.full(4, y))
    for means, r in ((MEANS, DISPERSIONS[:2]), (-MEANS, DISPERSIONS), (MEANS, 0.0 * DISPERSIONS)):
        with pytest.raises(DataError, match="means"):
            CountMixture(means, r)


def test_middles_of_steps_are_uniform_on_average() -> None:
    """Of 0 and 1 the probability of values up to y is .9 on average: no sign of a wrong law."""
    law = CountMixture(np.full((4000, 1), 0.2), np.array([3.0]))
    y = law.sample(np.random.default_rng(2), 1)[0]
    held = hold(law, y, 1.0)
    assert held.pit.mean() == pytest.approx(0.5, abs=0.02)
    assert law.cdf(y).mean() > 0.8


# The estimator.

N = 300


def table(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, counts and their means."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, 2))
    mean = 6.0 * np.exp(np.sin(2.0 * X[:, 0]) + 0.4 * X[:, 1])
    return X, rng.poisson(mean * rng.gamma(5.0, 0.2, n)).astype(np.float64), mean


X, Y, MEAN = table(N)
Z, NEW, NEW_MEAN = table(400, 1)
SHORT = {"n_draws": 40, "n_warmup": 40, "n_chains": 2, "random_state": 0, "progress": False}
SHORT["n_frequencies"] = 48


def fitted(y: np.ndarray = Y, **own: Any) -> BaNKRegressor:
    model = BaNKRegressor(noise="negative_binomial", **{**SHORT, **own})
    return model.fit(X[: len(y)], y)


@pytest.fixture(scope="module")
def model() -> BaNKRegressor:
    return fitted()


def test_mean_dispersion_and_intervals_are_those_of_the_counts(model: BaNKRegressor) -> None:
    """The true law has a log score of 2.67 on these rows."""
    mean, std = model.predict(Z, return_std=True)
    assert np.sqrt(np.mean(np.log(mean / NEW_MEAN) ** 2)) < 0.15
    assert 3.5 < model.dispersion_ < 7.5
    np.testing.assert_allclose(model.predict(Z), mean)
    np.testing.assert_allclose(std, np.sqrt(NEW_MEAN + NEW_MEAN**2 / 5.0), rtol=0.6)
    lower, upper = model.predict_interval(Z)
    np.testing.assert_array_equal(np.rint([lower, upper]), [lower, upper])
    assert 0.88 < np.mean((lower <= NEW) & (upper >= NEW)) < 0.98
    true = CountMixture(NEW_MEAN[:, np.newaxis], np.array([5.0]))
    gap = true.log_density(NEW).mean() - model.predictive(Z).log_density(NEW).mean()
    assert -0.01 < gap < 0.06
    assert not hasattr(model, "noise_std_")


def test_drawn_targets_are_counts_of_one_function_each(model: BaNKRegressor) -> None:
    y = model.sample_y(Z, 500, random_state=3)
    np.testing.assert_array_equal(y, np.rint(y))
    error = model.predict(Z, return_std=True)[1] / np.sqrt(500)
    assert np.all(np.abs(y.mean(axis=0) - model.predict(Z)) < 6.0 * error)


def test_the_function_is_a_mean_where_rows_are_explained(model: BaNKRegressor) -> None:
    (drawn,) = model._function_draws([model._standardized(Z)], 7, np.random.default_rng(0))
    assert drawn.shape == (7, 1, len(Z))
    assert np.all(drawn > 0.0)


def test_a_saved_model_predicts_the_same(model: BaNKRegressor, tmp_path: Path) -> None:
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.predict(Z), model.predict(Z))
    np.testing.assert_array_equal(again.predict_interval(Z), model.predict_interval(Z))
    assert again.dispersion_ == model.dispersion_


def test_f8_dispersions(model: BaNKRegressor, tmp_path: Path) -> None:
    changes = {
        "no dispersion": lambda _, arrays: arrays.pop("draws/dispersion"),
        "dispersion 0": set_array("draws/dispersion", lambda v: 0.0 * v),
        "a draw less": set_array("draws/dispersion", lambda v: v[:, :-1]),
        "likelihood gone": lambda _, arrays: arrays.pop("draws/log_likelihood"),
    }
    model.save(tmp_path / "m.mercer")
    assert taken(tmp_path / "m.mercer", tmp_path, changes) == []


def test_the_report_speaks_of_counts(model: BaNKRegressor, tmp_path: Path) -> None:
    model.report(tmp_path / "r.html", Z, NEW)
    text = (tmp_path / "r.html").read_text()
    assert "Targets are counts" in text
    assert "negative binomial law" in text
    assert "The noise has a standard deviation" not in text


@pytest.mark.parametrize(
    ("y", "named"),
    [
        (np.where(np.arange(N) == 7, -1.0, Y), "row 7 .* is -1"),
        (np.where(np.arange(N) >= 9, Y + 0.5, Y), "row 9 "),
        (np.where(np.arange(N) == 3, 1e13, Y), "row 3 "),
        (np.where(np.arange(N) == 4, np.inf, Y), "infinity"),
    ],
    ids=["negative", "fractional", "beyond all", "infinite"],
)
def test_what_is_no_count_is_refused_by_its_row(y: np.ndarray, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        fitted(y)


@pytest.mark.one_in(3)
@pytest.mark.filterwarnings("ignore::mercer.errors.MercerWarning")
@pytest.mark.parametrize(
    "y",
    [
        np.zeros(N),
        np.eye(1, N, 5)[0],
        np.full(N, 4.0),
        1e6 + np.floor(1e5 * X[:, 0]),
        np.where(np.arange(N) % 2, 0.0, 1e6),
        np.full(N, 1e12),
        Y[:2],
    ],
    ids=["none", "one event", "constant", "huge", "none or huge", "largest", "two rows"],
)
def test_hard_counts_give_finite_numbers(y: np.ndarray) -> None:
    model = fitted(y, n_draws=10, n_chains=1, n_warmup=10)
    far = np.array([[1e6, -1e6], [-1e300, 0.0], [0.0, 1e12]])
    for rows in (X, far):
        assert np.isfinite(model.predict(rows, return_std=True)).all()
        assert np.isfinite(model.predict_interval(rows)).all()
        assert np.isfinite(model.predictive(rows).log_density(np.ones(len(rows)))).all()
    assert np.median(model.predict(X)) == pytest.approx(np.median(y), rel=0.5, abs=3e5)


def test_one_row_is_refused() -> None:
    with pytest.raises(ValueError, match="1 sample"):
        fitted(Y[:1])


@pytest.mark.filterwarnings("ignore::mercer.errors.MercerWarning")
def test_without_a_linear_part_and_with_proposals_of_the_prior() -> None:
    short = {"n_draws": 20, "n_chains": 1, "n_warmup": 20}
    for own in ({"linear_part": False}, {"proposals": "prior", "base_measure": "full"}):
        model = fitted(30.0 * Y, **short, **own)
        assert np.corrcoef(np.log(model.predict(Z)), np.log(NEW_MEAN))[0, 1] > 0.9


def test_rows_on_a_disk_are_learned_from_as_those_in_memory(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows.csv"
    lines = [",".join(map(repr, map(float, row))) for row in np.column_stack([X, Y])]
    path.write_text("a,b,y\n" + "\n".join(lines) + "\n")
    here, there = (tiny(noise="negative_binomial") for _ in range(2))
    here.fit(X, Y)
    there.fit(mercer.data.open(path), "y")
    np.testing.assert_array_equal(*(m.posterior_.flat("coef_mean") for m in (here, there)))
    path.write_text(path.read_text().replace(lines[5], lines[5][:-3] + "0.5"))
    with pytest.raises(DataError, match=r"rows\.csv, row 6, column 'y': the target is 0\.5"):
        there.fit(mercer.data.open(path), "y")


def test_of_more_rows_than_learn_the_kernel_some_teach_all() -> None:
    model = fitted(kernel_rows=150)
    assert any("all was learned from 150 of 300 rows" in note for note in model.notes_)


def test_the_same_draws_in_any_number_of_processes_and_after_a_stop(tmp_path: Path) -> None:
    short = {"n_draws": 10, "n_warmup": 10}
    one, two = fitted(**short), fitted(**short, n_jobs=2, checkpoint=tmp_path / "c")
    for name in one.posterior_.variables:
        np.testing.assert_array_equal(one.posterior_.flat(name), two.posterior_.flat(name))
    again = fitted(**short, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(again.predict(X), one.predict(X))


def test_moves_of_all_coefficients_are_tuned(model: BaNKRegressor) -> None:
    stats = model.posterior_.stats
    assert 0.6 < stats["trajectory_acceptance"].mean() < 0.99
    assert not any("trajectories" in note for note in model.notes_)


def test_a_law_of_counts_is_not_mixed_with_densities() -> None:
    members = [BaNKRegressor(noise="negative_binomial"), "basis"]
    with pytest.raises(UsageError, match="laws of numbers"):
        mercer.MercerRegressor(models=members).fit(X, Y)


def test_errors_of_targets_are_of_another_law(model: BaNKRegressor) -> None:
    with pytest.raises(UsageError, match="contaminated"):
        model.target_errors(Z, NEW)


def test_rows_to_ask_for_are_those_whose_counts_say_most() -> None:
    """Bits against the sum over all counts; a mean of nothing says nothing, however unknown."""
    rng = np.random.default_rng(0)
    X, pool = rng.uniform(-2.0, 2.0, (150, 1)), np.array([[-2.5], [0.0], [1.5], [2.0], [2.5]])
    settings = {"n_frequencies": 12, "n_warmup": 50, "n_draws": 100, "n_chains": 2}
    model = tiny(noise="negative_binomial", **settings)
    model.fit(X, rng.poisson(np.exp(3.0 * X[:, 0] - 2.0)))
    Z, r, functions = model._standardized(pool), 100.0, model._functions
    model._functions = replace(functions, noise_std=np.full(len(functions.mean), r**-0.5))
    means = np.exp(model._drawn(Z)[:, 0, :, np.newaxis])
    # As `stats.nbinom` has it, which takes seconds.
    y = np.arange(1500.0)
    log_p = special.gammaln(r + y) - special.gammaln(y + 1.0) - special.gammaln(r)
    p = np.exp(log_p + r * np.log(r / (r + means)) + y * np.log(means / (r + means)))
    bits = entropy_bits(p.mean(axis=0)) - entropy_bits(p).mean(axis=0)
    assert 0.0 < bits[0] < 0.05
    assert bits[-1] > 1.0
    found = 0.5 * np.log2(1.0 + model._information(Z))
    np.testing.assert_allclose(found, bits, rtol=0.1, atol=0.01)
    assert model.query(pool)[0] == len(pool) - 1
