"""Missing inputs through the estimator: BNK-21 holds the law itself to account."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer
from mercer import BaNKClassifier, BaNKRegressor, TableEncoder
from mercer.errors import DataError, MercerWarning, UsageError
from support.mangled import set_array, taken
from support.spectral_class_fits import tiny as tiny_classes
from support.spectral_fits import tiny


def rows_with_gaps(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three inputs of which two go together, a third of the first missing, and the target."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    X[:, 1] = 0.95 * X[:, 0] + 0.3 * rng.standard_normal(n)
    y = np.sin(1.5 * X[:, 0]) + 0.1 * rng.standard_normal(n)
    gaps = X.copy()
    gaps[rng.random(n) < 0.3, 0] = np.nan
    gaps[rng.random(n) < 0.1, 2] = np.nan
    return gaps, y, X


X, Y, _ = rows_with_gaps(80)
NEW, Y_NEW, WHOLE = rows_with_gaps(60, seed=1)


def drawing(**changes: Any) -> BaNKRegressor:
    return tiny(missing="posterior", **changes)


@pytest.fixture(scope="module")
def model() -> BaNKRegressor:
    return drawing(n_chains=2).fit(X, Y)


def test_intervals_are_as_wide_as_what_is_known_of_a_row() -> None:
    """A gap that another input tells of costs little, one that nothing tells of all but all."""
    fitted = BaNKRegressor(
        missing="posterior", n_chains=2, n_draws=60, n_warmup=60, thin=1, random_state=0
    ).fit(*rows_with_gaps(200, seed=2)[:2])
    # The first and the last are on a slope, where the input matters.
    rows = np.array([[0.5, 0.475, 0.0], [np.nan, 0.475, 0.0], [np.nan, np.nan, 0.0]])
    mean, std = fitted.predict(rows, return_std=True)
    assert std[0] < 0.2 < std[1] < 0.45 < std[2] < 1.0
    assert np.abs(mean[:2] - np.sin(0.75)).max() < 0.25
    assert abs(mean[2]) < 0.25


def test_a_row_is_predicted_alike_alone_and_among_others(model) -> None:
    together = model.predict(NEW)
    np.testing.assert_allclose([model.predict(row[np.newaxis])[0] for row in NEW[:9]], together[:9])
    assert np.isfinite(together).all()


def test_what_is_written_comes_back(model, tmp_path: Path) -> None:
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    for one, other in zip(again.predict_interval(NEW), model.predict_interval(NEW), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_file_with_a_precision_that_is_none_is_refused(model, tmp_path: Path) -> None:
    path = tmp_path / "m.mercer"
    model.save(path)
    spoilt = set_array("draws/input_precision", lambda P: P - 2.0 * P * np.eye(3))
    assert taken(path, tmp_path, {"not positive definite": spoilt}) == []


def test_any_number_of_processes_gives_the_same_draws(model) -> None:
    other = drawing(n_chains=2, n_jobs=2).fit(X, Y)
    for name in ("frequencies", "input_mean", "input_precision"):
        np.testing.assert_array_equal(
            other.posterior_.variables[name], model.posterior_.variables[name]
        )


def test_a_stopped_run_goes_on_bit_for_bit(model, tmp_path: Path) -> None:
    drawing(n_chains=2, checkpoint=tmp_path, max_seconds=1e-9).fit(X, Y)
    resumed = drawing(n_chains=2, checkpoint=tmp_path).fit(X, Y)
    np.testing.assert_array_equal(resumed.predict(NEW), model.predict(NEW))


def test_rows_without_a_gap_may_have_one_later() -> None:
    fitted = drawing().fit(WHOLE, Y_NEW)
    assert np.isfinite(fitted.predict(np.full((2, 3), np.nan))).all()


def test_frames_keep_gaps_of_numbers_and_say_where_words_are_missing() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    frame["word"] = ["red" if y > 0 else None if y < -0.8 else "blue" for y in Y]
    fitted = drawing().fit(frame, Y)
    assert fitted.feature_labels_ == ("a", "b", "c", "word=red", "word (missing)")
    assert isinstance(fitted.encoder_, TableEncoder)
    assert np.isfinite(fitted.predict(frame)).all()


def test_several_outputs_share_the_inputs() -> None:
    fitted = drawing().fit(X, np.column_stack([Y, -Y]))
    assert fitted.predict(NEW).shape == (60, 2)
    np.testing.assert_allclose(fitted.output(1).predict(NEW), fitted.predict(NEW)[:, 1])


def test_contributions_of_a_row_with_a_gap_add_up(model) -> None:
    found = model.explain(NEW[:12])
    np.testing.assert_allclose(
        found.contributions.sum(axis=1), found.prediction - found.baseline, atol=1e-8
    )


def test_a_report_of_rows_with_gaps(model, tmp_path: Path) -> None:
    page = model.report(tmp_path / "r.html", NEW, Y_NEW).read_text()
    assert "What decides" in page
    assert ">nan<" not in page.lower()


def test_rows_to_ask_for_may_have_gaps(model) -> None:
    assert len(set(model.query(NEW, 5).tolist())) == 5


LABELS = np.where(Y > 0.3, "high", np.where(Y < -0.3, "low", "mid"))
OF_CLASSES: dict[str, dict[str, Any]] = {
    "classes": {},
    "in order": {"ordered": ["low", "mid", "high"]},
    "joint moves": {"sampler": "joint"},
}


def classifier(**changes: Any) -> BaNKClassifier:
    return tiny_classes(missing="posterior", **changes)


@pytest.mark.parametrize("how", OF_CLASSES)
def test_classes_of_rows_with_gaps(how: str, tmp_path: Path) -> None:
    model = classifier(**OF_CLASSES[how]).fit(X, LABELS)
    proba = model.predict_proba(NEW)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.predict_proba(NEW[3:4]), proba[3:4])
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.predict_proba(NEW), proba)
    assert model.posterior_.variables["input_precision"].shape[-2:] == (3, 3)
    found = model.explain(NEW[:10])
    np.testing.assert_allclose(
        found.contributions.sum(axis=1), found.prediction - found.baseline, atol=1e-8
    )


def test_a_stopped_run_of_classes_goes_on_bit_for_bit(tmp_path: Path) -> None:
    whole = classifier().fit(X, LABELS)
    classifier(checkpoint=tmp_path, max_seconds=1e-9).fit(X, LABELS)
    resumed = classifier(checkpoint=tmp_path).fit(X, LABELS)
    np.testing.assert_array_equal(resumed.predict_proba(NEW), whole.predict_proba(NEW))


def test_a_class_is_as_sure_as_what_is_known_of_a_row() -> None:
    """A gap that another input tells of costs little; what nothing tells of are shares."""
    gaps, y, _ = rows_with_gaps(250, seed=2)
    model = BaNKClassifier(
        missing="posterior", n_chains=2, n_draws=40, n_warmup=40, random_state=0
    ).fit(gaps, y > 0.0)
    rows = np.array([[0.8, 0.76, 0.0], [np.nan, 0.76, 0.0], [np.nan, np.nan, 0.0]])
    all_known, guessed, unknown = model.predict_proba(rows)[:, 1]
    assert all_known > 0.93
    assert 0.8 < guessed < all_known
    assert abs(unknown - 0.5) < 0.12


def test_counts_of_rows_with_gaps() -> None:
    counts = np.random.default_rng(5).poisson(np.exp(1.0 + np.sin(1.5 * WHOLE[:, 0]))) * 1.0
    model = drawing(noise="negative_binomial").fit(NEW, counts)
    mean, std = model.predict(np.array([[1.0, np.nan, 0.0], [np.nan] * 3]), return_std=True)
    assert np.isfinite(mean).all()
    assert std[1] > 0.5


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"noise": "student_t"}, "normal noise"),
        ({"kernel_rows": 50}, "80 for kernel_rows of 50"),
    ],
)
def test_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        drawing(**changes).fit(X, Y)


def test_infinity_is_no_gap() -> None:
    rows = np.where(np.isnan(X), np.inf, X)
    with pytest.raises(DataError, match="infinity"):
        drawing().fit(rows, Y)
    with pytest.raises(UsageError, match="missing must be"):
        tiny(missing="impute").fit(X, Y)


@pytest.mark.parametrize("value", [np.nan, 3.0])
def test_a_column_that_is_constant_or_empty_says_nothing(value: float) -> None:
    rows, new = X.copy(), NEW.copy()
    rows[:, 1] = new[:, 1] = value
    rows[:5, 1] = np.nan
    with pytest.warns(MercerWarning, match="say nothing and are ignored: 'x1'"):
        fitted = drawing().fit(rows, Y)
    predicted = fitted.predict(new)
    new[:, 1] = np.nan
    np.testing.assert_array_equal(fitted.predict(new), predicted)


def test_a_gap_is_an_error_unless_it_is_to_be_drawn() -> None:
    with pytest.raises(DataError, match="NaN: row"):
        tiny().fit(X, Y)
