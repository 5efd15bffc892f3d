from __future__ import annotations

import numpy as np

from mercer.data.row_names import RowNames
from mercer.estimation.inspection import Importance, Inspection
from mercer.report import build_report
from mercer.report.answers import importance_section
from support.fake_estimator import fake_estimator, fake_evaluation


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


def test_nothing_decides_or_some_inputs_were_not_measured():
    section = importance_section(importance([0.0, 0.01], [0.1, np.inf], n_left_out=7))
    assert section.text[0].startswith("Without any single input")
    assert "7 more were not measured" in section.text[1]
    assert section.tables[0].rows[0][2].text == "–"
    numbers = importance_section(importance([1.0], [0.1], is_classes=False))
    assert numbers.tables[0].columns[4] == "squared error more"


def test_the_report_has_it_where_somebody_looked():
    seen = Inspection(RowNames.positions(200), importance([0.5, 0.1], [0.1, 0.1]))
    report = build_report(
        fake_estimator(), evaluation=fake_evaluation(), provenance=None, inspection=seen
    )
    assert "importance" in [section.key for section in report.sections]
    nothing = Inspection(RowNames.positions(200), None)
    report = build_report(
        fake_estimator(), evaluation=fake_evaluation(), provenance=None, inspection=nothing
    )
    assert "importance" not in [section.key for section in report.sections]
