from __future__ import annotations

import re

import numpy as np
import pytest

import mercer
from mercer.data.row_names import RowNames
from mercer.estimation.inspection import Inspection
from mercer.posterior.labels import audit_labels
from mercer.report import build_report, render
from mercer.report.sphere import describe, sections
from support.audited import audited, two_clusters
from support.fake_estimator import provenance


def _keyed(model, audit=None):
    return {section.key: section for section in sections(model, audit)}


def test_sections_of_two_inputs_and_of_three():
    assert list(_keyed(audited())) == ["labels", "noise", "models", "boundaries"]
    assert list(_keyed(audited(d=3))) == ["labels", "noise", "models"]
    assert "a drawing of the rows" in describe(audited())[1]
    assert "a drawing of the rows" not in describe(audited(d=3))[1]


def test_shares_of_wrong_labels_are_told_from_rates():
    model = audited()
    expected = f"{100 * model.label_error_proba_.mean():.1f}"
    assert f"of the rows here {expected}" in _keyed(model)["noise"].text[0]


def test_suspects_are_those_of_the_estimator_in_falling_order():
    model = audited()
    (table,) = _keyed(model)["labels"].tables
    p = model.label_error_proba_
    order = np.argsort(-p, kind="stable")[: max(5, np.count_nonzero(p >= 0.01))]
    assert table.columns == ("row", "recorded", "suggested", "P(wrong)", "listed")
    shown = [int(row[0].text) for row in table.rows]  # equally suspect rows come in any order
    assert len(set(shown)) == len(order)
    assert p[shown] == pytest.approx(p[order])
    assert [row[3].sort for row in table.rows] == pytest.approx(p[order].tolist())
    for row, i in zip(table.rows, shown, strict=True):
        assert {row[1].text, row[2].text} == {"no", "yes"}
        assert row[1].text == model.recorded_[i]


def test_the_list_and_the_numbers_of_the_rows_are_those_of_the_audit():
    model = audited()
    numbers = np.arange(40) + 101
    names = RowNames("file", numbers, ("a.csv",), 0 * numbers)
    audit = audit_labels(model.label_proba_, model.recorded_, model.classes_, fdr=0.5, names=names)
    labels = _keyed(model, audit)["labels"]
    assert f"has {audit.n_listed} of 40" in labels.text[0]
    listed = [row[0].text for row in labels.tables[0].rows if row[4].text == "yes"]
    assert listed == [str(row) for row in audit.row[: audit.n_listed]]
    assert min(map(int, listed)) > 100


def test_an_empty_list_is_said():
    model = audited()
    p = np.where(model.recorded_[:, None] == model.classes_, 0.8, 0.2)
    labels = _keyed(model, audit_labels(p, model.recorded_, model.classes_))["labels"]
    assert "No row is listed" in labels.text[0]


def test_several_classes_have_the_probability_of_the_suggestion():
    model = audited()
    p = np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]])
    audit = audit_labels(p, np.array(["a", "a"]), np.array(["a", "b", "c"]))
    (table,) = _keyed(model, audit)["labels"].tables
    assert table.columns[3:5] == ("P(wrong)", "P(suggested)")
    assert [cell.sort for cell in table.rows[0]][3:5] == pytest.approx([0.8, 0.5])


def test_the_rate_is_learned_or_given(drawn):
    learned = _keyed(audited())["noise"]
    rates = audited().posterior_.flat("noise_rate")
    low, high = 100 * np.quantile(rates, (0.05, 0.95), axis=0)
    text = learned.text[0].split("Further")[0]
    found = [float(x) for x in re.findall(r"[\d.]+(?=\s%)", text)]
    said = [[100 * rates[:, c].mean(), 90, low[c], high[c]] for c in range(rates.shape[1])]
    assert found == pytest.approx(np.ravel(said), abs=0.051)
    assert "posterior mean" in learned.figures[0].svg
    given = _keyed(audited(noise_rate=0.1))["noise"]
    assert "given, not learned: 10.0" in given.text[0]
    assert "interval" not in given.text[0]
    assert "posterior mean" not in given.figures[0].svg
    by_class = _keyed(audited(noise_rate="learn per class"))["noise"]
    assert "of the rows that are “no” (90" in by_class.text[0]


def test_models_that_were_compared_come_with_their_shares():
    one = _keyed(audited())["models"]
    assert "One model was given" in one.text[0]
    assert [row[0].text for row in one.tables[0].rows] == ["rbf"]
    assert one.tables[0].rows[0][-1].sort == 1.0


@pytest.mark.parametrize("how", ["std", "robust", "arcsinh", "yeo-johnson"])
def test_boundaries_are_drawn_over_rows_in_the_units_of_the_inputs(how, monkeypatch):
    drawn = []
    monkeypatch.setattr("mercer.report.sphere.svg", lambda *given, **_: drawn.append(given) or "")
    assert "boundaries" in _keyed(audited(standardize=how))
    np.testing.assert_allclose(drawn[-1][3], two_clusters(d=2)[0], rtol=1e-7, atol=1e-15)


def _dot(X, Z):
    return X @ Z.T


def test_a_model_of_a_kernel_of_ones_own_says_that_no_file_holds_it():
    model = audited(kernel=_dot, nugget=0.1, d=3)
    assert "cannot be saved" in describe(model)[1]
    assert "no training row, but the labels of all" in describe(audited(kernel="linear"))[1]
    assert "contains training rows" in describe(audited())[1]


def test_drawn_rows_are_in_the_units_of_the_inputs(drawn):
    raw = _keyed(audited())["boundaries"].figures[0].svg
    standardised = _keyed(audited(standardize="std"))["boundaries"].figures[0].svg
    ticks = [re.findall(r">(−?\d)</text>", svg) for svg in (raw, standardised)]
    assert ticks[0] == ticks[1]
    assert "−3" in ticks[0]


def test_a_saved_model_gives_the_same_report(tmp_path):
    model = audited()
    model.save(tmp_path / "m.mercer")
    loaded = mercer.load(tmp_path / "m.mercer")
    html = [
        render(build_report(each, evaluation=None, provenance=None)) for each in (model, loaded)
    ]
    parts = [re.sub(r'id="reproduce".*', "", page, flags=re.DOTALL) for page in html]
    assert parts[0] == parts[1]


def test_an_audit_has_its_own_headline_and_no_held_out_sections():
    model = audited()
    audit = audit_labels(model.label_proba_, model.recorded_, model.classes_, fdr=0.2)
    inspection = Inspection(audit.names, steps=(("To mend them, run:", "mercer review t.csv"),))
    given = {"evaluation": None, "provenance": provenance(), "audit": audit}
    report = build_report(model, **given, inspection=inspection)
    keys = [section.key for section in report.sections]
    assert keys[:3] == ["labels", "next", "fit"]
    assert report.sections[0].tables[0].is_open
    assert "mercer review t.csv" in render(report)
    assert not {"scores", "reliability", "coverage"} & set(keys)
    assert report.title == "Audit of labels: Kernel Gibbs classifier"
    assert [tile.label for tile in report.tiles] == ["Rows to check", "Labels wrong", "Sampling"]
    assert report.tiles[0].value == str(audit.n_listed)


def test_without_a_curve_of_evidence_the_report_says_why():
    """Of three classes there is none, and of rates that differ between rows."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 2)) + 4.0 * (np.arange(30) % 3)[:, np.newaxis]
    tiny = {"lengthscale": 1.0, "nugget": 0.0, "n_draws": 10, "n_warmup": 10, "n_chains": 1}
    three = mercer.KernelGibbsClassifier(**tiny, random_state=0).fit(X, np.arange(30) % 3)
    noise = _keyed(three)["noise"]
    assert not noise.figures
    assert "more than two classes" in noise.text[1]
    rates = np.full(30, 0.1)
    rates[:3] = 0.0
    two = mercer.KernelGibbsClassifier(**tiny, noise_rate=rates, random_state=0)
    noise = _keyed(two.fit(X, np.arange(30) % 3 > 0))["noise"]
    assert bool(noise.figures) != any("no curve of evidence" in words for words in noise.text)
