from __future__ import annotations

import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import mercer
from mercer.posterior.draws import Table
from mercer.report import build_report, render
from mercer.report.spectral import describe, sections, spectrum_section
from mercer.spectral.prediction import input_scales
from support.fake_regression import fake_regression
from support.learned import PERIOD, learned

_NAMES = ("year", "dose", "site")


def _keyed(model):
    return {section.key: section for section in sections(model)}


def test_the_table_is_that_of_the_kernel_up_to_one_unit():
    model = learned(names=_NAMES)
    (table,) = _keyed(model)["kernel"].tables
    order = input_scales(model).order
    assert [row[0].text for row in table.rows] == [_NAMES[j] for j in order]
    units = model.standardizer_.units
    middles = (np.arange(400) + 0.5) / 400
    for row, j in zip(table.rows, order, strict=True):
        mean = model.kernel(np.outer(middles, np.eye(3)[j] * units))[0].mean()
        size = input_scales(model).frequency_scales[:, j].mean()
        unit, level, lower, upper, last = (cell.sort for cell in row[1:])
        assert (unit, level, last) == pytest.approx((units[j], mean, size), rel=1e-5)
        assert lower < level < upper
    levels = [row[2].sort for row in table.rows]
    assert levels == sorted(levels)


def test_the_text_says_which_input_matters_and_which_do_not():
    text = " ".join(_keyed(learned(names=_NAMES))["kernel"].text)
    assert (
        "It falls fastest along year: for two rows that differ in it by up to one standard" in text
    )
    flat = [_NAMES[j] for j in input_scales(learned(names=_NAMES)).order[1:]]
    assert sorted(flat) == ["dose", "site"]
    assert f"It hardly falls along {flat[0]} and {flat[1]}." in text
    assert "the straight part may still be steep" in text
    bare = learned(names=_NAMES, linear_part=False)
    text = " ".join(_keyed(bare)["kernel"].text)
    assert "straight part" not in " ".join(describe(bare)) + text


def test_one_input_has_a_drawing_of_the_function_and_no_table():
    kernel = _keyed(learned(d=1))["kernel"]
    assert [len(kernel.figures), len(kernel.tables)] == [2, 0]
    assert "apart it is" in kernel.text[1]
    assert "cause" not in " ".join(kernel.text)
    assert len(_keyed(learned(d=1, standardize="arcsinh"))["kernel"].figures) == 2
    assert len(_keyed(learned())["kernel"].figures) == 1


def test_what_warped_inputs_mean_is_said_where_there_are_some():
    warped = _keyed(learned(names=_NAMES, standardize="yeo-johnson"))
    (words,) = [t for t in warped["kernel"].text if t.startswith("Skewed")]
    assert "bent before use" in words
    assert all(name in words for name in _NAMES)
    assert "around the middle of the data" in warped["spectrum"].figures[0].caption
    plain = _keyed(learned(names=_NAMES, standardize="std"))
    assert not [t for t in plain["kernel"].text if t.startswith("Skewed")]
    assert "middle" not in plain["spectrum"].figures[0].caption


def test_a_spectrum_of_some_of_the_rows_says_what_that_changed():
    model = learned(kernel_rows=60)
    text = _keyed(model)["kernel"].text
    (words,) = [t for t in text if t.startswith("The spectrum was learned on 60 of 120 rows")]
    assert "mean squared error" in words
    assert "average over 4 of them" in describe(model)[0]
    assert not [t for t in _keyed(learned())["kernel"].text if "learned on" in t]
    assert "average over them" in describe(learned())[0]


@pytest.mark.parametrize(
    ("of_kernel", "of_function", "phrase"),
    [
        (1.62, 1.02, "They do agree on the function (R-hat up to 1.02)"),
        (1.62, 1.32, "Nor do they quite agree on the function (R-hat up to 1.32)"),
        (1.03, 1.32, None),
        (None, None, None),
    ],
)
def test_chains_that_differ_in_the_kernel_may_agree_on_the_function(of_kernel, of_function, phrase):
    model = learned()
    rows = (("kernel[0]", 1.0), ("kernel[1]", of_kernel), ("function[0]", of_function))
    table = Table(("name", "rhat"), rows if of_kernel else (("kernel[0]", None),))
    diagnostics = replace(model.diagnostics_, table=table)
    said = _keyed(_with(model, diagnostics_=diagnostics))["kernel"].text
    found = [t for t in said if "chains" in t]
    assert bool(found) is (phrase is not None)
    if phrase:
        assert phrase in found[0]
        assert "R-hat up to 1.62" in found[0]


def _with(model, **changes):
    """The same model, some attributes changed."""
    names = ("kernel", "marginal_spectral_density", "periods")
    methods = {name: getattr(model, name) for name in names}
    return SimpleNamespace(**{**vars(model), **methods, **changes})


def test_noise_is_said_in_units_of_the_target():
    model = learned()
    words = describe(model)[1]
    assert f"standard deviation of {model.noise_std_:.3f}" in words
    (share,) = re.findall(r"about ([\d.]+)\s%", words)
    assert float(share) == pytest.approx(
        100 * (model.noise_std_ / model.target_scale_) ** 2, abs=0.5
    )


@pytest.mark.filterwarnings("ignore:.*constant")
def test_inputs_that_never_change_leave_one_section():
    settings = {"n_frequencies": 4, "n_draws": 3, "n_warmup": 2, "n_chains": 1, "random_state": 0}
    model = mercer.BaNKRegressor(**settings, progress=False)
    model.fit(np.ones((20, 2)), np.arange(20.0))
    (section,) = sections(model)
    assert "no kernel to learn" in section.text[0]


def test_of_many_inputs_thirty_have_a_row():
    model = learned(n=60, d=33, n_draws=4, n_warmup=4)
    found = _keyed(model)
    (table,) = found["kernel"].tables
    assert len(table.rows) == 30
    assert "The first 30 of 33" in table.caption
    assert len(found["spectrum"].figures) == 2


def test_a_report_has_these_sections_and_a_saved_model_the_same(tmp_path):
    model = learned(names=_NAMES)
    model.save(tmp_path / "m.mercer")
    pages = []
    for each in (model, mercer.load(tmp_path / "m.mercer")):
        report = build_report(each, evaluation=fake_regression(n_rows=40), provenance=None)
        pages.append(re.sub(r'id="reproduce".*', "", render(report), flags=re.DOTALL))
    assert pages[0] == pages[1]
    keys = [section.key for section in report.sections]
    assert keys[keys.index("kernel") :] == [
        "kernel",
        "spectrum",
        "chains",
        "diagnostics",
        "reproduce",
    ]
    assert report.title == "Regression with a learned kernel"
    assert "ten fixed differences" in pages[0]


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
