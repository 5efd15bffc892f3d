"""`BaNKRegressor(noise="auto")` where errors have heavy tails; a factor is `test_lognormal`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student_t
from sklearn.base import clone

import mercer
from mercer.estimation.numbers import gain_of_tails, gains_of_noise, likeliest_noise
from mercer.estimation.standardize import LeftOut
from mercer.posterior.positive_laws import LOGNORMAL, STUDENT, VARYING
from mercer.spectral.settings import varying_law

MODEL = mercer.BaNKRegressor(
    n_frequencies=16, n_draws=10, n_warmup=10, n_chains=1, random_state=0, progress=False
)
RNG = np.random.default_rng(4)
X = RNG.uniform(-2.0, 2.0, (240, 2))
F = np.sin(2.0 * X[:, 0]) + X[:, 1]
SPREAD = np.where(X[:, 0] > 0.0, 0.5, 0.05)
NORMAL, HEAVY = 0.2 * RNG.standard_normal(240), 0.2 * RNG.standard_t(2.2, 240)


def gains(errors: np.ndarray, y: np.ndarray, *laws: str) -> dict[str, float]:
    """Of targets whose law by the others is normal with the errors' spread."""

    def left_out(z: np.ndarray) -> LeftOut:
        scaled, stds = errors / y.std(), np.full(len(z), errors.std() / y.std())
        return norm.logpdf(scaled, 0.0, stds), z - scaled, stds, float(scaled.var())

    return gains_of_noise(y, left_out, laws)


def test_heavy_tails_are_chosen_where_what_is_left_out_is_likelier_so(tmp_path: Path) -> None:
    model, heavy = clone(MODEL).fit(X, F + HEAVY), clone(MODEL).set_params(noise=STUDENT)
    assert (model.noise, model.noise_) == ("auto", STUDENT)
    assert model.notes_[0].startswith("noise has heavy tails: targets left out are likelier so")
    heavy.fit(X, F + HEAVY)
    np.testing.assert_array_equal(model.predict(X), heavy.predict(X))
    assert model.notes_[1:] == heavy.notes_
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    assert (again.noise, again.noise_) == ("auto", STUDENT)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    page = model.report(tmp_path / "r.html", X, F + HEAVY).read_text()
    assert "degrees of freedom" in page
    far, wide = 1e6 * (F + HEAVY) + 1e8, clone(MODEL)
    assert wide.fit(X, far).noise_ == STUDENT  # whatever the unit, above 0 or not


def test_noise_that_depends_on_the_inputs_is_chosen_where_it_does(tmp_path: Path) -> None:
    y = F + 5.0 * SPREAD * NORMAL
    model, varying = clone(MODEL).fit(X, y), clone(MODEL).set_params(noise=VARYING)
    assert (model.noise, model.noise_) == ("auto", VARYING)
    assert model.notes_[0].startswith("noise depends on the inputs: targets left out are likelier")
    np.testing.assert_array_equal(model.predict(X), varying.fit(X, y).predict(X))
    model.save(tmp_path / "m.mercer")
    assert mercer.load(tmp_path / "m.mercer").noise_ == VARYING
    wide, narrow = (np.diff(model.predict_interval(X[X[:, 0] * s > 0.4]), axis=0) for s in (1, -1))
    assert np.median(wide) > 3.0 * np.median(narrow)


def test_a_variance_left_out_is_that_of_the_other_rows() -> None:
    """An error changes no law of the rows left out with it, and laws are near the true ones."""
    errors = SPREAD * NORMAL / 0.2
    logs, truth = varying_law(errors, X), norm.logpdf(errors, 0.0, SPREAD)
    even = norm.logpdf(errors, 0.0, errors.std())
    assert logs.mean() > even.mean() + 0.5 * (truth.mean() - even.mean())
    assert logs.mean() < truth.mean()
    assert varying_law(NORMAL, X).mean() < norm.logpdf(NORMAL, 0.0, NORMAL.std()).mean() + 0.03
    hasty = varying_law(errors, X, deadline=-1.0)
    assert even.mean() < hasty.mean() < logs.mean()
    changed = errors.copy()
    changed[10] *= 1.5
    other = varying_law(changed, X)
    with_it = np.arange(240) % 5 == 0
    assert other[10] != logs[10]
    with_it[10] = False
    np.testing.assert_array_equal(other[with_it], logs[with_it])
    assert (other[np.arange(240) % 5 != 0] != logs[np.arange(240) % 5 != 0]).any()


@pytest.mark.parametrize(
    "errors",
    [NORMAL, RNG.exponential(0.4, 240) ** 2, RNG.uniform(-0.5, 0.5, 240)],
    ids=["normal", "skewed", "uniform"],
)
def test_else_they_are_not(errors: np.ndarray) -> None:
    """Of errors on one side the function of a Student's t law would not be the mean."""
    assert clone(MODEL).fit(X, F + errors).noise_ == "normal"


def test_what_would_not_teach_all_rows_is_not_chosen() -> None:
    y = F + HEAVY
    assert clone(MODEL).set_params(kernel_rows=239).fit(X, y).noise_ == "normal"
    assert clone(MODEL).set_params(kernel_rows=240).fit(X, y).noise_ == STUDENT
    gaps = X.copy()
    gaps[::9, 1] = np.nan
    assert clone(MODEL).set_params(missing="posterior").fit(gaps, y).noise_ == "normal"
    assert clone(MODEL).fit(X, np.column_stack([y, y])).noise_ == "normal"


def test_tails_gain_what_the_likeliest_law_of_the_errors_gains() -> None:
    """Beside the maximum over centre, scale and degrees of freedom that SciPy finds."""
    y = 3.0 * F + HEAVY
    df, centre, scale = student_t.fit(HEAVY)
    best = student_t.logpdf(HEAVY, df, centre, scale) - norm.logpdf(HEAVY, 0.0, HEAVY.std())
    found = gains(HEAVY, y, STUDENT, LOGNORMAL)
    assert set(found) == {STUDENT}
    np.testing.assert_allclose(found[STUDENT], best.mean(), atol=0.01)
    assert gains(HEAVY, y, LOGNORMAL) == {}
    assert gains(NORMAL, y, STUDENT) == {}
    assert gains(HEAVY[:19], y[:19], STUDENT) == {}
    assert gains(HEAVY, np.full(240, 2.0), STUDENT) == {}


@pytest.mark.parametrize(
    ("df", "larger", "is_taken"), [(2.5, 2.0, True), (2.5, 2.5, False), (4.5, 1.8, False)]
)
def test_a_centre_that_is_off_is_worth_its_gain(df: float, larger: float, is_taken: bool) -> None:
    """Errors that are larger on one side, by which squared errors grow."""
    errors = student_t.ppf((np.arange(240) + 0.5) / 240, df)
    errors = np.where(errors > 0.0, larger * errors, errors)
    own = student_t.fit(errors)
    logs = norm.logpdf(errors, errors.mean(), errors.std())
    gain = float((student_t.logpdf(errors, *own) - logs).mean())
    off = (own[1] - errors.mean()) / errors.std()
    assert gain > 0.02
    assert (off**2 <= min(0.04, gain / 5.0)) == is_taken
    found = gain_of_tails(errors, logs)
    assert found == (pytest.approx(gain, abs=0.01) if is_taken else 0.0)


def test_errors_that_are_nothing_but_for_some_rows_have_tails() -> None:
    errors = np.where(np.arange(240) % 12 == 0, HEAVY, 0.0)
    found = gains(errors, F + errors, STUDENT)
    assert np.isfinite(found[STUDENT])
    assert found[STUDENT] > 1.0


def test_of_several_laws_the_likeliest_is_named() -> None:
    """A factor before others that gain no more than twice as much."""
    law, (note,) = likeliest_noise({STUDENT: 0.25, VARYING: 0.5})
    assert law == VARYING
    assert "by 0.50 nats each" in note
    assert likeliest_noise({STUDENT: 0.25, VARYING: 0.5, LOGNORMAL: 0.25})[0] == LOGNORMAL
    assert likeliest_noise({STUDENT: 0.25, VARYING: 0.5, LOGNORMAL: 0.24})[0] == VARYING
    assert likeliest_noise({}) == ("normal", ())
