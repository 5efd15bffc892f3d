from __future__ import annotations

import math

import pytest

from mercer.report.spectral import spectrum_section
from mercer.spectral.prediction import input_scales
from support.learned import PERIOD, learned


def _section(model):
    return spectrum_section(model, input_scales(model))


def test_groups_are_those_of_the_model_with_the_inputs_that_matter():
    model = learned(d=5)
    (table,) = _section(model).tables
    shown = {model.feature_labels_[j] for j in input_scales(model).order[:3]}
    rows = [row for row in model.components_.rows if row[2] in shown and row[0] <= 5]
    assert len(table.rows) == len(rows)
    for drawn, (group, share, name, frequency, spread) in zip(table.rows, rows, strict=True):
        assert drawn[2].text == name
        numbers = [drawn[k].sort for k in (0, 1, 4, 5)]
        assert numbers == pytest.approx([group, share, abs(frequency), spread])
    assert "Of 5 inputs, those that matter most" in table.caption


def test_a_period_is_that_of_a_frequency_apart_from_zero_and_not_too_long():
    model = learned(d=1)
    unit = model.standardizer_.units[0]
    (table,) = _section(model).tables
    periods = []
    for row in table.rows:
        size, spread = row[4].sort, row[5].sort
        if size > spread and 2 * math.pi / size <= 4 * unit:
            assert row[3].sort == pytest.approx(2 * math.pi / size)
            periods.append(row[3].sort)
        else:
            assert (row[3].text, row[3].sort) == ("–", 1e300)
    assert len(periods) < len(table.rows)
    assert "matter most" not in table.caption


def test_the_period_that_most_draws_have_is_said_in_words():
    model = learned(d=1)
    ((_, period, lower, upper, probability),) = model.periods().rows
    assert lower < PERIOD < upper
    assert period == pytest.approx(PERIOD, abs=0.2)
    share = f"{probability:.2f}".removeprefix("0")
    words = f"X0: a period of {period:.4g}, between {lower:.4g} and {upper:.4g}"
    assert any(f"{words}, with probability {share}." in text for text in _section(model).text)


def test_a_warped_input_has_no_period():
    (table,) = _section(learned(d=1, standardize="yeo-johnson")).tables
    assert {row[3].text for row in table.rows} == {"–"}
    assert learned(d=1, standardize="yeo-johnson").periods().rows == ()


def test_densities_are_of_the_inputs_along_which_the_kernel_falls_fastest(drawn):
    model = learned()
    figures = _section(model).figures
    assert len(figures) == 2
    first, second = input_scales(model).order[:2]
    assert f"frequencies of x{first}." in figures[0].caption
    assert f"density of x{second}, second of 3 inputs" in figures[1].alt
    assert f"frequency of x{first}," in figures[0].svg
    assert len(_section(learned(d=1)).figures) == 1
