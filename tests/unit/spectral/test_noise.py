"""`BaNKRegressor` with noise that is contaminated or Student's t."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

import mercer
import mercer.data
from mercer.errors import DataError, UsageError
from mercer.posterior.labels import TargetAudit, audit_of
from mercer.posterior.predictive import StudentMixture
from mercer.spectral import fitting
from mercer.spectral.estimator import BaNKRegressor
from mercer.spectral.rows import MemoryRows, WeighedRows
from support.contaminated import (
    coverage,
    far_and_right,
    table,
    with_one_normal,
    zeros_then_a_line,
)
from support.mangled import set_array, taken
from support.spectral_cases import plain_design
from support.spectral_fits import tiny
from support.statistics import few_first

N = 200
pytestmark = pytest.mark.filterwarnings("ignore::mercer.errors.ConvergenceWarning")


X, Y, WRONG, F = table(N, largest=8.0)
Z, NEW, NEW_WRONG, NEW_F = table(300, 1, 8.0)


def fitted(noise: str, y: np.ndarray = Y, **own: Any) -> BaNKRegressor:
    short = {"n_draws": 40, "n_warmup": 40, "n_chains": 1, "n_frequencies": 48}
    short |= {"random_state": 0, "progress": False}
    return BaNKRegressor(noise=noise, **{**short, **own}).fit(X[: len(y)], y)


@pytest.fixture(scope="module")
def models() -> dict[str, BaNKRegressor]:
    return {name: fitted(name, 100.0 + 20.0 * Y) for name in ("contaminated", "student_t")}


def test_wrong_targets_are_found_and_expected_where_they_should_be(models) -> None:
    model = models["contaminated"]
    p = model.target_error_proba_
    assert p[WRONG].min() > 0.95
    assert p[~WRONG].mean() < 0.05
    assert 0.03 < model.contamination_rate_ < 0.2
    z = (model.expected_target_ - 100.0 - 20.0 * F) / model.expected_target_std_
    assert np.abs(z).max() < 3.0
    assert model.noise_std_ == pytest.approx(2.0, rel=0.3)
    np.testing.assert_array_equal(model.recorded_, 100.0 + 20.0 * Y)
    audit = audit_of(model)
    assert isinstance(audit, TargetAudit)
    assert set(audit.row[: WRONG.sum()]) == set(np.flatnonzero(WRONG))


def test_new_targets_are_judged(models) -> None:
    p, expected, std = models["contaminated"].target_errors(Z, 100.0 + 20.0 * NEW)
    assert p[NEW_WRONG].min() > 0.9
    assert p[~NEW_WRONG].mean() < 0.05
    lower, upper = models["contaminated"].predict_interval(Z, 0.9545)
    np.testing.assert_allclose((upper - lower) / 4.0, std, rtol=0.3)
    np.testing.assert_allclose(expected, models["contaminated"].predict(Z), atol=0.5)
    with pytest.raises(DataError, match="300 finite numbers"):
        models["contaminated"].target_errors(Z, NEW[:3])
    with pytest.raises(UsageError, match="needs a fit with"):
        models["student_t"].target_errors(Z, NEW)


def test_the_function_is_learned_in_spite_of_them(models) -> None:
    normal = fitted("normal", 100.0 + 20.0 * Y)

    def error(model: BaNKRegressor) -> float:
        return float(np.sqrt(np.mean((model.predict(Z) - 100.0 - 20.0 * NEW_F) ** 2)))

    for model in models.values():
        assert error(model) < 0.4 * error(normal)


def test_targets_that_are_mostly_equal_are_not_all_that_is_right() -> None:
    """A function that is constant among the zeros leaves them no noise, and all others wrong."""
    rows, y, wrong, f = zeros_then_a_line(300)
    own = {"n_draws": 40, "n_warmup": 40, "n_chains": 1, "random_state": 0}
    model = BaNKRegressor(noise="contaminated", **own).fit(rows, y)
    assert np.sqrt(np.mean(np.square(model.predict(rows) - f))) < 0.1
    assert ((model.target_error_proba_ > 0.5) == wrong).mean() > 0.95
    assert model.noise_std_ > 0.03


def test_contaminated_noise_predicts_right_targets(models) -> None:
    lower, upper = models["contaminated"].predict_interval(Z)
    is_in = (lower < 100.0 + 20.0 * NEW) & (upper > 100.0 + 20.0 * NEW)
    assert 0.8 < is_in[~NEW_WRONG].mean() < 0.98


def test_the_law_of_right_targets_is_summed_over_their_kinds(models) -> None:
    """Four normals a function; one of the same variance, the mutant, is another law."""
    model = models["contaminated"]
    law, draws, at = model.predictive(Z[:5]), model.posterior_, np.array([1.0, 1.3, 0.5, 1.1, 0.9])
    k = 2 * draws.flat("coef_deviation").shape[1]
    shares = np.repeat(np.exp(draws.flat("log_shares")[:, :4]), k, axis=0)
    noise = np.repeat(draws.flat("noise_std"), k) * model.target_scale_
    means, at = law.locations[:, ::4], 100.0 * at
    parts = stats.norm(means[..., None], noise[:, None] * [1.0, 2.0, 4.0, 8.0]).pdf(
        at[:, None, None]
    )
    wanted = np.log(((shares * parts).sum(axis=2) / shares.sum(axis=1)).mean(axis=1))
    np.testing.assert_allclose(law.log_density(at), wanted, rtol=1e-9)
    one = with_one_normal(law)
    assert np.abs(one.log_density(at) - wanted).max() > 0.5
    np.testing.assert_allclose(one.std, law.std, rtol=1e-9)
    np.testing.assert_allclose(one.mean, law.mean, rtol=1e-12)


@pytest.mark.slow
def test_intervals_hold_right_targets_with_heavy_tails() -> None:
    """One normal law a function, the mutant, is too wide in the middle and too narrow outside."""
    rows, y = far_and_right(300, 0)
    new, truth = far_and_right(3000, 1)
    short = {"n_draws": 40, "n_warmup": 40, "n_chains": 2, "random_state": 0, "progress": False}
    model = BaNKRegressor(noise="contaminated", **short).fit(rows, y)
    law = model.predictive(new)
    held, others = coverage(law, truth), coverage(with_one_normal(law), truth)
    np.testing.assert_allclose(held, [0.5, 0.8, 0.9, 0.99], atol=0.04)
    assert others[0] > 0.57
    assert others[3] < held[3] - 0.01
    gained = law.log_density(truth) - with_one_normal(law).log_density(truth)
    assert gained.mean() > 0.05
    # Wide noise is that of a row, not of a draw: of 20 draws each has some.
    drawn = model.sample_y(new, 20, random_state=0)
    far = np.abs(drawn - model.predict(new)) > 2.5 * model.noise_std_
    assert ((far.mean(axis=1) > 0.001) & (far.mean(axis=1) < 0.5)).sum() > 15


def test_students_t_noise_predicts_targets_with_their_tails(models) -> None:
    """The law is a mixture of Student's t, a location and a scale and degrees a draw."""
    model = models["student_t"]
    law, draws = model.predictive(Z[:5]), model.posterior_
    assert isinstance(law, StudentMixture)
    df = np.repeat(draws.flat("noise_df"), 2 * draws.flat("coef_deviation").shape[1])
    scale = np.repeat(draws.flat("noise_std"), len(df) // draws.n_total) * model.target_scale_
    at = np.array([100.0, 130.0, 60.0, 101.0, 99.0])
    parts = stats.t(df, loc=law.locations, scale=scale).pdf(at[:, np.newaxis])
    np.testing.assert_allclose(law.log_density(at), np.log(parts.mean(axis=1)), rtol=1e-9)
    lower, upper = model.predict_interval(Z[:5], 0.9)
    ends = [stats.t(df, loc=law.locations, scale=scale).cdf(e[:, None]) for e in (lower, upper)]
    np.testing.assert_allclose([end.mean(axis=1) for end in ends], [[0.05] * 5, [0.95] * 5])
    variances = scale**2 * df / (df - 2.0)
    assert model.noise_std_ == pytest.approx(np.sqrt(variances).mean(), rel=1e-9)
    total = variances.mean() + law.locations.var(axis=1)
    np.testing.assert_allclose(model.predict(Z[:5], return_std=True)[1], np.sqrt(total))
    whole = 100.0 + 20.0 * NEW
    assert model.predictive(Z).log_density(whole).mean() > -4.6
    is_in = model.predictive(Z).cdf(whole)
    assert 0.85 < ((is_in > 0.05) & (is_in < 0.95)).mean() < 0.99


def test_drawn_targets_have_tails_of_their_own(models) -> None:
    """Far ones are not those of one draw: of 20 draws each has some."""
    model = models["student_t"]
    drawn = model.sample_y(Z, 20, random_state=0)
    far = np.abs(drawn - model.predict(Z)) > 4.0 * model.posterior_.flat("noise_std").mean() * 20.0
    assert ((far.mean(axis=1) > 0.0) & (far.mean(axis=1) < 0.5)).sum() > 15


@pytest.mark.one_in(2)
@pytest.mark.parametrize("noise", ["contaminated", "student_t"])
def test_a_saved_model_says_the_same(models, noise: str, tmp_path: Path) -> None:
    model = models[noise]
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    assert again.noise == noise
    assert again.noise_std_ == model.noise_std_
    for one in ("predict", "predict_interval", "kernel"):
        np.testing.assert_array_equal(getattr(again, one)(X), getattr(model, one)(X))
    np.testing.assert_array_equal(again.sample_y(X, 2, 0), model.sample_y(X, 2, 0))
    if noise == "contaminated":
        names = ("target_error_proba_", "expected_target_", "expected_target_std_", "recorded_")
        for name in names:
            np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
        for a, b in zip(again.target_errors(X, Y), model.target_errors(X, Y), strict=True):
            np.testing.assert_array_equal(a, b)


CHANGES: dict[str, dict[str, Any]] = {
    "student_t": {
        "no variance": set_array("draws/noise_df", lambda v: 0.0 * v),
        "likelihood gone": lambda _, arrays: arrays.pop("draws/log_likelihood"),
    },
    "contaminated": {
        "rates above 1": set_array("draws/log_rate", lambda v: -v),
        "shares above 1": set_array("draws/log_shares", lambda v: -v),
        "a share less": set_array("draws/log_shares", lambda v: v[..., :-1]),
        "probabilities above 1": set_array("targets/wrong", lambda v: v + 2.0),
        "a target less": set_array("recorded", lambda v: v[:-1]),
    },
}


def test_a_file_without_shares_is_read_and_judges(models, tmp_path: Path) -> None:
    """Versions with one kind of right targets and fixed sizes of errors wrote the rate alone."""
    models["contaminated"].save(tmp_path / "m.mercer")
    older = {"no shares": lambda _, arrays: arrays.pop("draws/log_shares")}
    assert taken(tmp_path / "m.mercer", tmp_path, older) == ["no shares"]
    old = mercer.load(tmp_path / "changed.mercer")
    p = old.target_errors(Z, 100.0 + 20.0 * NEW)[0]
    assert p[NEW_WRONG].min() > 0.9
    assert p[~NEW_WRONG].mean() < 0.05
    assert old.noise_std_ < models["contaminated"].noise_std_  # no tails


@pytest.mark.parametrize("noise", CHANGES)
def test_f8_noise(models, noise: str, tmp_path: Path) -> None:
    models[noise].save(tmp_path / "m.mercer")
    assert taken(tmp_path / "m.mercer", tmp_path, CHANGES[noise]) == []


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["contaminated", "student_t"])
def test_the_same_draws_in_any_number_of_processes(noise: str, tmp_path: Path) -> None:
    one, two = fitted(noise), fitted(noise, n_jobs=2, checkpoint=tmp_path / "c")
    for name in one.posterior_.variables:
        np.testing.assert_array_equal(one.posterior_.flat(name), two.posterior_.flat(name))
    again = fitted(noise, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(again.predict(X), one.predict(X))


@pytest.mark.one_in(3)
@pytest.mark.filterwarnings("ignore::mercer.errors.MercerWarning")
@pytest.mark.parametrize("noise", ["contaminated", "student_t"])
@pytest.mark.parametrize(
    "y",
    [
        np.where(np.arange(N) < N - 2, 1.0, 5.0),
        np.round(F),
        np.where(WRONG, 1e9, Y),
        np.where(WRONG, 1e40, Y),
        np.zeros(N),
        np.where(np.arange(N) % 2, F, F + 5.0),
        Y[:2],
    ],
    ids=["nearly constant", "ties", "huge", "beyond all", "constant", "half wrong", "two rows"],
)
def test_hard_targets_give_finite_numbers(noise: str, y: np.ndarray) -> None:
    model = fitted(noise, y, n_draws=10, n_chains=1, n_warmup=10)
    assert np.isfinite(model.predict(X, return_std=True)).all()
    assert np.isfinite(model.predict_interval(X)).all()
    if noise == "contaminated":
        p = model.target_error_proba_
        assert ((p >= 0.0) & (p <= 1.0)).all()
        assert np.isfinite(model.expected_target_).all()
        if y.max() > 1e8:
            assert p[WRONG].min() > 0.99
            assert p[~WRONG].mean() < 0.1


def test_of_more_rows_than_learn_the_kernel_all_are_judged() -> None:
    model = fitted("contaminated", kernel_rows=150)
    assert any("all was learned from 150 of 200 rows" in note for note in model.notes_)
    assert model.target_error_proba_[WRONG].min() > 0.9
    assert model.target_error_proba_[~WRONG].mean() < 0.1


def test_of_many_rows_on_a_disk_those_are_named_that_are_likeliest_wrong(monkeypatch) -> None:
    rows = mercer.data.open(np.column_stack([X, Y]))
    model = fitted("contaminated", n_draws=10, n_warmup=5)
    whole = clone(model).fit(rows, rows.names[-1])
    np.testing.assert_array_equal(whole.row_names_.number, np.arange(N))
    monkeypatch.setattr(fitting, "_MOST_NAMED", 9)
    few = clone(model).fit(rows, rows.names[-1])
    at = few.row_names_.number
    proba = whole.target_error_proba_
    np.testing.assert_array_equal(np.sort(proba)[-9:], np.sort(proba[at]))
    assert (np.diff(at) > 0).all()
    for name in ("target_error_proba_", "expected_target_", "expected_target_std_", "recorded_"):
        np.testing.assert_array_equal(getattr(few, name), getattr(whole, name)[at])
    assert any("of 200 rows those 9 are named" in note for note in few.notes_)


def test_many_rows_and_late_ones_are_judged_by_fewer_draws(monkeypatch) -> None:
    used, judge = [], fitting.target_laws
    monkeypatch.setattr(
        fitting, "target_laws", lambda *given: used.append(given[-1]) or judge(*given)
    )
    monkeypatch.setattr(fitting, "_MOST_JUDGED", 30 * N)
    short = {"n_draws": 10, "n_warmup": 5, "n_chains": 1}
    assert not any("judged" in note for note in fitted("contaminated", **short).notes_)
    monkeypatch.setattr(fitting, "is_late", lambda _: True)
    late = fitted("contaminated", **short)
    assert used == [30, 20]
    assert any("200 rows were judged by 20 draws only" in note for note in late.notes_)


def test_notes_say_where_degrees_of_freedom_are_at_their_end() -> None:
    def is_said(model: BaNKRegressor) -> bool:
        return any("degrees of freedom are as few" in note for note in model.notes_)

    one = {"n_chains": 1, "n_frequencies": 32}
    assert is_said(fitted("student_t", np.where(WRONG, 1000.0 * Y, Y), **one))
    y = F + 0.1 * np.random.default_rng(3).normal(size=N)
    assert not is_said(fitted("student_t", y, **one))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("noise", ["contaminated", "student_t"])
def test_rows_on_a_disk_are_learned_from_as_those_in_memory(noise: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows.csv"
    lines = [",".join(map(repr, map(float, row))) for row in np.column_stack([X, Y])]
    path.write_text("a,b,y\n" + "\n".join(lines) + "\n")
    here, there = tiny(noise=noise).fit(X, Y), tiny(noise=noise)
    there.fit(mercer.data.open(path), "y")
    coefs = [model.posterior_.flat("coef_mean") for model in (here, there)]
    np.testing.assert_array_equal(*coefs)
    if noise == "contaminated":
        np.testing.assert_array_equal(there.target_error_proba_, here.target_error_proba_)
        np.testing.assert_array_equal(there.recorded_, Y)


@pytest.mark.parametrize("has_linear_part", [False, True])
def test_products_of_other_frequencies_have_the_weights_of_the_function(
    has_linear_part: bool,
) -> None:
    """Against plain sums: the function is that of its own frequencies in every pass."""
    rng = np.random.default_rng(2)
    known, old, new = rng.standard_normal((3, 4, 2))
    coef = rng.standard_normal(8 + 3 * has_linear_part)
    rows = MemoryRows(X, Y, has_linear_part)
    weighed = WeighedRows(rows, known, coef, lambda _: lambda f, y: (1.0 / (1.0 + f**2), y - f))
    f = plain_design(known, X, has_linear_part) @ coef
    weights = 1.0 / (1.0 + f**2)
    for own in (known, old):
        found = weighed.products(new, own)
        F, G = plain_design(own, X, has_linear_part), plain_design(new, X, False)
        given = np.column_stack([F, (Y - f) / weights])
        np.testing.assert_allclose(found.gram, (given.T * weights) @ given, rtol=1e-9)
        np.testing.assert_allclose(found.across, (G.T * weights) @ given, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.among, (G.T * weights) @ G, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(weighed.gram(own), weighed.products(new[:0], own).gram)


def test_another_law_is_refused() -> None:
    with pytest.raises(UsageError, match="'student_t'"):
        tiny(noise="cauchy").fit(X, Y)


def test_the_plot_marks_what_is_probably_wrong(models) -> None:
    model = models["contaminated"]
    assert "target_errors" in dir(model.plot)
    marked = [a for a in model.plot.target_errors().get_lines() if a.get_gid() == "mark-listed"]
    assert len(marked[0].get_xdata()) == int((model.target_error_proba_ > 0.5).sum())
    assert "target_errors" not in dir(models["student_t"].plot)


def test_reports_say_what_the_noise_is(models, tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    models["contaminated"].report(path)
    assert "Values that are probably wrong" in path.read_text()
    assert "the targets of the training rows, and nothing else" in path.read_text()
    models["student_t"].report(path)
    assert "degrees of freedom (90 % of the draws)" in path.read_text()
    assert "contains no training row" in path.read_text()


@pytest.mark.parametrize("shift", few_first([2.0, 20.0], 20.0))
def test_many_errors_on_one_side_are_no_noise(shift: float) -> None:
    """Of 30 % the interquartile range includes some: chains that took it for noise stayed there."""
    rng = np.random.default_rng(5)
    y = F + 0.1 * rng.normal(size=N)
    y[:60] += shift + 0.2 * rng.normal(size=60)
    model = fitted("contaminated", y, n_chains=2)
    assert model.target_error_proba_[:60].mean() > 0.9
    assert model.target_error_proba_[60:].mean() < 0.2
    assert np.sqrt(np.mean(np.square(model.predict(X) - F))) < 0.5  # 0.6 and 6.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_targets_that_are_skewed_are_not_wrong(seed: int) -> None:
    """Up to 20 robust deviations from the middle, and all right."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(300, 1))
    model = BaNKRegressor(noise="contaminated", n_chains=2, random_state=seed, progress=False)
    model.fit(rows, np.exp(rows[:, 0]) + 0.01 * rng.normal(size=300))
    assert (model.target_error_proba_ > 0.5).sum() <= 3  # 39, 21, 30
    error = model.predict(rows) - np.exp(rows[:, 0])
    assert np.sqrt(np.mean(np.square(error))) < 0.2  # 1.9
