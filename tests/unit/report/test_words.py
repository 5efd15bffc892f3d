from __future__ import annotations

import math

import pytest

from mercer.report.section import column, count, duration, listing, ordinal, percent


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
