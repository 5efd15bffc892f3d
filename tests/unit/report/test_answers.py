from __future__ import annotations

import re

import numpy as np
import pytest

from mercer.data.frame import InputFacts, TableFacts
from mercer.data.row_names import RowNames
from mercer.errors import UsageError
from mercer.estimation.cross_validate import Result
from mercer.estimation.inspection import (
    Effect,
    Effects,
    Importance,
    Inspection,
    PairEffect,
    Values,
)
from mercer.estimation.tasks import CLASSIFICATION
from mercer.plot import effects as plot_effects
from mercer.plot.style import PALETTE
from mercer.posterior.evaluation import HeldClasses
from mercer.report import Report, build_report, render
from mercer.report.answers import (
    answer_sections,
    class_errors_section,
    data_section,
    effects_section,
    importance_section,
    number_errors_section,
    steps_section,
)
from support.fake_estimator import fake_estimator, fake_evaluation
from support.fake_regression import fake_regression


def importance(values, errors, *, n_left_out=0, is_classes=True):
    values = np.asarray(values, dtype=np.float64)
    names = tuple(f"in<{j}>" for j in range(len(values)))
    repeats = values + np.array([[-0.01], [0.0], [0.01]])
    other = values / 10.0, np.asarray(errors) / 10.0
    return Importance(
        names, values, np.asarray(errors), *other, repeats, 120, n_left_out, is_classes
    )


def test_what_decides_is_named_and_what_may_be_chance_is_not():
    section = importance_section(importance([0.01, 0.5, 0.2], [0.02, 0.1, 0.05]))
    assert section.text[0].startswith("“in<1>” and “in<2>” decide")
    assert "120 held-out rows, 3 times each." in section.text[1]
    assert "cover for one another" in section.text[2]
    (table,) = section.tables
    assert [row[0].text for row in table.rows] == ["in<1>", "in<2>", "in<0>"]
    assert [float(cell.text) for cell in table.rows[0][1:4]] == [0.5, 0.1, 0.02]
    assert table.rows[0][4].sort == 5.0  # percentage points


@pytest.mark.parametrize(("n_idle", "is_named"), [(2, True), (39, False)])
def test_of_many_inputs_more_is_asked_before_one_is_named(n_idle, is_named):
    """Of forty that say nothing one is two standard errors above zero more often than not."""
    section = importance_section(importance([0.25, *[0.0] * n_idle], [0.1] * (1 + n_idle)))
    assert ("“in<0>” decides" in section.text[0]) == is_named
    assert f"loss is {2.1 if is_named else 3.0} of its" in section.text[1]


def test_nothing_decides_or_some_inputs_were_not_measured():
    tiny = importance_section(importance([1e-9, 0.5], [1e-12, 0.1]))
    assert tiny.text[0].startswith("“in<1>” decides")
    section = importance_section(importance([0.0, 0.01], [0.1, np.inf], n_left_out=7))
    assert section.text[0].startswith("Without any single input")
    assert "2 inputs that by themselves tell most of the target; 7 more were" in section.text[1]
    assert section.tables[0].rows[0][2].text == "–"
    numbers = importance_section(importance([1.0], [0.1], is_classes=False))
    assert numbers.tables[0].columns[4] == "squared error more"


def test_the_report_has_it_where_somebody_looked():
    seen = Inspection(RowNames.positions(332), importance([0.5, 0.1], [0.1, 0.1]))
    report = build_report(
        fake_estimator(), evaluation=fake_evaluation(), provenance=None, inspection=seen
    )
    assert "importance" in [section.key for section in report.sections]
    nothing = Inspection(RowNames.positions(332), None)
    report = build_report(
        fake_estimator(), evaluation=fake_evaluation(), provenance=None, inspection=nothing
    )
    assert "importance" not in [section.key for section in report.sections]


def evaluation(proba, y, classes):
    y, proba = np.asarray(y), np.asarray(proba, dtype=np.float64)
    result = Result("model", False, (HeldClasses(y, proba),), 0.0)
    return CLASSIFICATION.evaluate("test", classes, [result])


TWO = evaluation([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.55, 0.45]], [0, 0, 1, 1], ("no", "yes"))


def test_errors_of_two_classes_are_counted_and_the_rows_named():
    section = class_errors_section(TWO, RowNames.positions(4))
    assert "Of 4 held-out rows 2 got a wrong class" in section.text[0]
    matrix, by_class, worst, unsure = section.tables
    assert [[cell.text for cell in row] for row in matrix.rows] == [
        ["is “no”", "1", "1"],
        ["is “yes”", "1", "1"],
    ]
    assert [cell.text for cell in by_class.rows[1]][:3] == ["yes", "2", "1"]
    assert [cell.sort for cell in by_class.rows[1]][3:] == [0.5, 0.5]
    assert [row[0].text for row in worst.rows] == ["row 1", "row 3", "row 2", "row 0"]
    assert [cell.text for cell in worst.rows[0]][1:] == ["no", "yes", "40.0\u00a0%", "60.0\u00a0%"]
    assert [row[0].text for row in unsure.rows] == ["row 3", "row 1", "row 2", "row 0"]
    assert section.threshold is not None
    first, second = section.threshold.counts
    assert (first[100], first[600], second[800], second[450]) == (1, 1, 1, 1)
    assert (sum(first), sum(second)) == (2, 2)


def test_rows_without_names_are_not_listed():
    section = class_errors_section(TWO, None)
    assert len(section.tables) == 2
    assert "mercer report MODEL DATA" in section.text[-1]


def test_errors_of_several_and_of_many_classes():
    section = class_errors_section(evaluation(np.eye(3), [0, 1, 1], "abc"), None)
    assert section.threshold is None
    assert "“b” was taken for “c”: 1 of 2 rows" in section.text[0]
    assert section.tables[1].rows[2][3].text == "–"  # of the class that did not come
    perfect = class_errors_section(evaluation(np.eye(3), [0, 1, 2], "abc"), None)
    assert perfect.text[0] == "No held-out row got a wrong class."
    many = class_errors_section(evaluation(np.eye(13), [1, *range(1, 13)], "abcdefghijklm"), None)
    assert [cell.text for cell in many.tables[0].rows[0]] == ["b", "a", "1", "50.0\u00a0%"]


def test_the_worst_numbers_are_named():
    found = fake_regression()
    section = number_errors_section(found, RowNames.positions(len(found.rows.y)))
    worst, unsure = section.tables
    assert len(worst.rows) == 30
    assert worst.rows[0][0].sort == int(found.rows.log_density.argmin())
    assert unsure.rows[0][0].sort == int(found.rows.std.argmax())
    assert "of the sum of squared errors" in section.text[0]


def test_a_page_holds_the_counts_that_its_sliders_need():
    page = render(Report("t", "", (), (class_errors_section(TWO, None),)))
    assert 'class="threshold" hidden' in page
    assert page.count("“yes”") >= 4


def effects(n_classes):
    rng = np.random.default_rng(0)
    number = Values("in<0>", np.array([0]), np.linspace(0, 1, 5)[:, np.newaxis], ())
    levels = Values("in<1>", np.array([1, 2]), np.eye(2), ("a$", "b<"))
    n_lines = 1 if n_classes < 3 else n_classes

    def curve(values):
        mean = rng.random((n_lines, len(values.points)))
        return Effect(values, mean, mean - 0.1, mean + 0.2, mean - 0.3, mean + 0.3)

    outputs = () if n_classes == 0 else ("yes",) if n_classes == 2 else ("k", "l", "m")
    pair = PairEffect(number, levels, rng.random((5, 2)), 0.2, 0.9, 10)
    return Effects((curve(number), curve(levels)), pair, outputs, 20)


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_how_inputs_act_is_drawn_and_said(n_classes, drawn):
    section = effects_section(effects(n_classes))
    words = {
        0: "The prediction,",
        2: "The probability of “yes”",
        3: "The probability of each class",
    }
    assert section.text[0].startswith(words[n_classes])
    assert ("Dashed" in section.text[1]) == (n_classes < 3)
    assert "change what the other does" in section.text[3]
    curves, pair = section.figures
    ids = re.findall(r'id="([^"]+)"', curves.svg)
    assert len(ids) == len(set(ids))
    assert "mark-curve-0-0" in ids
    assert ("mark-curve-0-2" in ids) == (n_classes == 3)
    assert "mark-map" in pair.svg
    assert "over 10 rows" in pair.caption
    cells = pair.svg[pair.svg.index("mark-map") : pair.svg.index("matplotlib.axis")]
    assert not any(colour in cells for colour in PALETTE.values())  # the dark changes these


def test_no_curve_is_no_section():
    seen = Inspection(RowNames.positions(332), None, Effects((), None, (), 0))
    assert answer_sections(None, seen) == ()
    with pytest.raises(UsageError, match="no input varies"):
        plot_effects(seen.effects)


def facts(**changes):
    inputs = (
        InputFacts("a", "number", 0, 50, "0 to 1, median 0.5", (0, 1, 8), 0.4),
        InputFacts("b$", "text", 3, 2, "red 70 %, blue 30 %", (7, 3), 0.99),
    )
    plain = {"n_rows": 100, "inputs": inputs, "target": "Words.", "pairs": (), "n_twins": 0}
    return TableFacts(**(plain | changes))


def test_what_the_data_are():
    section = data_section(facts(pairs=(("a", "c", -0.97),), n_twins=7))
    assert section.text[0] == "Words."
    assert "1 of 2 inputs has missing values, “b$”: 3.0\u00a0% of the rows" in section.text[1]
    assert "“a” and “c” (−0.97)" in section.text[2]
    assert "7 rows have the inputs of another row" in section.text[3]
    assert "“b$” alone gives 99\u00a0% of the target" in section.warnings[0]
    (table,) = section.tables
    assert [cell.text for cell in table.rows[0]] == [
        "a", "number", "–", "50", "▁▂█", "0 to 1, median 0.5", "40\u00a0%"
    ]  # fmt: skip


def test_values_far_off_are_told():
    section = data_section(facts(far=("'a' of row 3 is 57, of all others 1 to 2",)))
    assert section.warnings[-1].startswith("Far off: 'a' of row 3 is 57")


def test_sound_data_have_no_warning():
    few = facts(inputs=facts().inputs[:1], n_twins=1)
    section = data_section(few)
    assert (section.text, section.warnings) == (("Words.",), ())


def test_what_next_is_a_sentence_and_a_command_each():
    section = steps_section((("Because, run:", "mercer audit 'a b.csv'"), ("Then:", "x")))
    assert "the most urgent first" in section.text[0]
    page = render(Report("t", "", (), (section,)))
    assert "<p>Because, run:</p>" in page
    assert "mercer audit &#39;a b.csv&#39;" in page
