from __future__ import annotations

import math

import numpy as np
import pytest

from mercer import GPClassifier
from mercer.data.files import listing
from mercer.posterior.draws import Table
from mercer.report import build_report, render
from mercer.report.section import (
    Cell,
    column,
    count,
    duration,
    from_table,
    ordinal,
    percent,
)


def test_a_table_gets_words_and_keeps_what_it_is_sorted_by():
    table = Table(("name", "rhat", "flag"), (("a", 1.00412, True), ("b", None, False)))
    named = from_table("words", table, headings={"rhat": "R-hat"}, decimals={"rhat": 3})
    assert named.columns == ("name", "R-hat", "flag")
    assert named.rows[0] == (Cell("a", "a"), Cell("1.004", 1.00412), Cell("1", 1.0))
    assert named.rows[1][1] == Cell("–", "")


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.195, 0.0938, 0.0073], ["0.1950", "0.0938", "0.0073"]),
        ([541.4, 293.5], ["541", "294"]),
        ([1.0, -2.5, 1.25], ["1.00", "−2.50", "1.25"]),
        ([3.0, 12.0], ["3", "12"]),
        ([12345.6, 99999.9], ["12\u202f346", "100\u202f000"]),
        ([0.5, 3e-9], ["0.500", "3e-09"]),
        ([1e300, 1.0], ["1e+300", "1"]),
        ([1.0234e9, -1.0251e9], ["1\u202f023\u202f400\u202f000", "−1\u202f025\u202f100\u202f000"]),
        ([1.02341e20, 1.02342e20, 3e20], ["1.02341e+20", "1.02342e+20", "3e+20"]),
        ([None, math.nan, math.inf], ["–", "–", "–"]),
        ([0.0, 0.0, 0.3], ["0.0000", "0.0000", "0.3000"]),
        ([], []),
    ],
)
def test_a_column_has_one_number_of_decimals(values, texts):
    assert column(values) == texts


def test_decimals_can_be_given():
    assert column([1.0049, None], decimals=3) == ["1.005", "–"]


def test_other_words():
    assert count(1234567) == "1\u202f234\u202f567"
    assert percent(0.5, 0) == "50\u00a0%"
    assert duration(59.97) == "1\u00a0min 0\u00a0s"
    assert duration(3599.7) == "1\u00a0h 0\u00a0min"
    assert listing([]) == ""
    assert listing(list("abcde"), most=3) == "a, b, c and 2 more"
    assert [ordinal(i) for i in (2, 6, 7)] == ["second", "sixth", "7th"]


# The report of a model that is one point: no chains, and it says so.


def test_a_maximum_has_a_report_without_chains() -> None:
    rng = np.random.default_rng(0)
    model = GPClassifier(kernel="rbf", inference="map").fit(
        rng.standard_normal((20, 2)), np.arange(20) % 2
    )
    page = render(build_report(model, evaluation=None, provenance=None))
    assert "Trace and rank plots" not in page
    assert "1 draws" not in page
    assert "one point, nothing drawn, see Diagnostics" in page
    assert "Nothing was sampled" in page
