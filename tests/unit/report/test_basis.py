from __future__ import annotations

import numpy as np
import pytest

from mercer import SequentialKernelRegressor
from mercer.errors import MercerWarning
from mercer.report import build_report, render
from mercer.report.basis import describe, sections
from support.fake_regression import fake_regression
from support.followed import followed


def _keyed(model):
    return {section.key: section for section in sections(model)}


def test_the_table_is_the_summary_highest_first() -> None:
    model = followed(d=2, names=("year", "dose"))
    (table,) = _keyed(model)["centres"].tables
    assert table.columns == ("height", "year", "dose")
    summary = model.summarise(10)
    order = np.argsort(-np.abs(summary.coef))
    for row, i in zip(table.rows, order, strict=True):
        values = [cell.sort for cell in row]
        assert values == pytest.approx([summary.coef[i], *summary.centres[i]])


@pytest.mark.parametrize(("d", "n_figures"), [(1, 1), (2, 1), (3, 0)])
def test_centres_are_drawn_in_one_and_two_inputs(d: int, n_figures: int) -> None:
    assert len(_keyed(followed(d=d))["centres"].figures) == n_figures


@pytest.mark.parametrize("d", [1, 2])
def test_rows_that_are_all_alike_have_no_centres_to_draw(d: int) -> None:
    model = SequentialKernelRegressor(n_particles=20, random_state=0)
    with pytest.warns(MercerWarning, match="all columns are constant"):
        model.fit(np.full((25, d), 3.0), np.random.default_rng(0).standard_normal(25))
    part = _keyed(model)["centres"]
    assert not part.figures
    assert not part.tables
    assert "no kernel adds anything" in part.text[-1]


def test_the_pass_says_its_scores() -> None:
    model = followed()
    text = " ".join(_keyed(model)["pass"].text)
    assert "All 120 rows" in text
    assert "which is better" in text


def test_a_few_rows_have_no_course() -> None:
    assert "pass" not in _keyed(followed(n=12))


def test_the_text_says_what_the_file_holds() -> None:
    text = " ".join(describe(followed()))
    assert "20 weighted particles" in text
    assert "the last 120 training rows, standardised" in text


def test_the_whole_report_speaks_of_particles_not_of_chains() -> None:
    model = followed()
    report = build_report(model, evaluation=fake_regression(), provenance=None)
    keys = [section.key for section in report.sections]
    assert keys[-5:] == ["centres", "pass", "chains", "diagnostics", "reproduce"]
    html = render(report)
    assert "20 particles, see Diagnostics" in html
    assert "20 weighted particles" in html
    for words in ("chains agree", "Markov chain", "divergent", "1 chain"):
        assert words not in html


def test_warnings_of_particles_are_shown() -> None:
    from dataclasses import replace

    from mercer.report.chains import weights_text

    found = followed().diagnostics_
    assert "No problem was found" in weights_text(replace(found, warnings=()))[0]
    assert weights_text(replace(found, warnings=("a",)))[0].startswith("1 problem was found")
    assert weights_text(replace(found, warnings=("a", "b")))[0].startswith("2 problems were")
