from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from mercer import GPClassifier, GPRegressor
from mercer.errors import UsageError
from mercer.report import build, build_report
from support.fake_estimator import fake_estimator, fake_evaluation, provenance
from support.fake_regression import fake_regression
from support.ridge_model.estimator import RidgeRegressor

_ORDER = [
    "scores", "reliability", "coverage", "errors", "fit",
    "relevance", "chains", "diagnostics", "reproduce",
]  # fmt: skip


def test_sections_come_in_order_with_or_without_an_evaluation():
    full = build_report(fake_estimator(), evaluation=fake_evaluation(), provenance=provenance())
    bare = build_report(fake_estimator(n_draws=30), evaluation=None, provenance=None)
    assert [s.key for s in full.sections] == _ORDER
    assert [s.key for s in bare.sections] == [key for key in _ORDER if key != "errors"]
    assert full.subtitle == "diabetic in pima_tr.csv · 200 rows · 7 inputs"
    assert bare.subtitle == ""
    assert [len(s.figures) for s in full.sections] == [0, 1, 1, 0, 0, 1, 2, 0, 0]
    assert all(f.caption and f.alt for s in full.sections for f in s.figures)


def test_tiles_of_a_sound_fit_ask_for_no_attention():
    tiles = build_report(fake_estimator(), evaluation=fake_evaluation(), provenance=None).tiles
    assert [t.label for t in tiles] == ["Error rate", "Log score", "Calibration error", "Sampling"]
    assert not any(t.needs_attention for t in tiles)
    assert "level with the best baseline" in tiles[0].note
    assert tiles[3].value == "no warnings"


def test_tiles_of_a_bad_fit_ask_for_it():
    estimator = fake_estimator(shift=5.0)
    evaluation = fake_evaluation(noise=6.0)
    tiles = build_report(estimator, evaluation=evaluation, provenance=None).tiles
    assert tiles[0].needs_attention
    assert "behind the best baseline" in tiles[0].note
    assert tiles[3].needs_attention
    assert tiles[3].value == f"{len(estimator.diagnostics_.warnings)} warnings"


def test_without_scores_a_tile_says_so():
    tiles = build_report(fake_estimator(), evaluation=None, provenance=None).tiles
    assert (tiles[0].label, tiles[0].value) == ("Held-out scores", "none")


def test_an_estimator_of_another_kind_is_refused():
    @dataclass
    class Pipeline:
        pass

    with pytest.raises(UsageError, match=r"no report for Pipeline, only for GPClassifier"):
        build_report(Pipeline(), evaluation=None, provenance=None)


def test_a_regressor_has_sections_and_tiles_of_its_own(monkeypatch):
    method = build._Method("Lines", "", lambda model: ("A line.",), lambda model, audit: ())
    monkeypatch.setitem(build._METHODS, "RidgeRegressor", method)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    model = RidgeRegressor(random_state=0, n_draws=300).fit(X, X[:, 0] + rng.normal(size=40))
    full = build_report(model, evaluation=fake_regression(), provenance=provenance())
    bare = build_report(model, evaluation=None, provenance=None)
    order = ["scores", "predictions", "intervals", "fit", "chains", "diagnostics", "reproduce"]
    assert [section.key for section in full.sections] == order
    assert [section.key for section in bare.sections] == order
    assert [tile.label for tile in full.tiles] == [
        "Root mean squared error", "Log score", "Inside 90 % intervals", "Sampling"
    ]  # fmt: skip
    facts = [row[0].text for row in full.sections[3].tables[0].rows]
    assert "Target" in facts
    assert "Classes" not in facts


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_fitted_model_writes_its_own_report(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    given = {"kernel": "rbf", "inference": "map", "progress": False, "random_state": 0}
    model = GPRegressor(**given) if kind == "numbers" else GPClassifier(**given)
    y = y if kind == "numbers" else np.where(y > 0.0, "yes", "no")
    model.fit(X[:40], y[:40])
    model.report(tmp_path / "r.html", X[40:], y[40:])
    page = (tmp_path / "r.html").read_text()
    assert "20 rows that were given" in page
    assert 'id="importance"' in page or "decides" in page
    model.report(tmp_path / "plain.html")
    assert (tmp_path / "plain.html").exists()
    with pytest.raises(UsageError, match="both X_test and y_test"):
        model.report(tmp_path / "r.html", X)
    with pytest.raises(UsageError, match="one target for each row"):
        model.report(tmp_path / "r.html", X, y[:40])


def test_where_no_input_varies_there_is_no_verdict():
    y = np.arange(20) % 2
    with pytest.warns(UserWarning, match="constant"):
        model = GPClassifier(inference="map", kernel="rbf", random_state=0).fit(np.ones((20, 1)), y)
    report = build_report(model, evaluation=fake_evaluation(noise=6.0), provenance=None)
    assert report.sections[0].key == "scores"
    words = " ".join(report.sections[0].text)
    assert "no model tells one row from another" in words
    assert "baseline" not in words + report.tiles[0].note
    assert not report.tiles[0].needs_attention
