from __future__ import annotations

import json
from datetime import date

import numpy as np
import pytest

from mercer.data.encoding import ColumnCode, as_levels, fit_code
from mercer.data.formats import CellFormat
from mercer.data.frame import Column
from mercer.errors import ModelFileError


def texts(*values: str | None) -> Column:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return Column("x", array, "text")


def test_one_column_for_each_level() -> None:
    code = fit_code(texts("b", "a", "c", "a"), has_fill=False)
    assert code.feature_names == ("x=a", "x=b", "x=c")
    X = code.encode(np.array(["c", "a", "other"], dtype=object))
    third = -1.0 / 3.0  # one more corner of the simplex of three levels
    np.testing.assert_array_equal(X, [[0, 0, 1], [1, 0, 0], [third, third, third]])


def test_one_column_for_two_levels() -> None:
    code = fit_code(texts("male", "female"), has_fill=False)
    assert code.feature_names == ("x=male",)
    X = code.encode(np.array(["male", "female", "other"], dtype=object))
    np.testing.assert_array_equal(X, [[1], [0], [0.5]])


def test_frequencies_of_many_levels() -> None:
    names = [f"v{i}" for i in range(51)]
    code = fit_code(texts(*names, *names[:1] * 49), has_fill=False)
    assert code.feature_names == ("x (frequency)",)
    X = code.encode(np.array(["v0", "v50", "other"], dtype=object))
    np.testing.assert_allclose(X, [[0.5], [0.01], [0]])


def test_many_levels_and_free_text_are_said() -> None:
    assert fit_code(texts(*"abcdefghij"), has_fill=False).note() is None
    words = fit_code(texts(*"abcdefghijk"), has_fill=False).note()
    assert words == "column 'x': 11 levels of text, an input each"
    for n in (24, 60):
        free = fit_code(texts(*(f"it broke after day {k}" for k in range(n))), has_fill=False)
        assert str(free.note()).endswith("free text is not read, only told apart: better left out")


def test_what_keeps_numbers_with_a_unit_from_being_read_is_said() -> None:
    cells = [f"{k}.5 kmpl" for k in range(60)]
    odd = str(fit_code(texts(*cells, "17.3 km/kg"), has_fill=False).note())
    assert odd.endswith("in training; most are numbers in kmpl, but '17.3 km/kg' is not")
    mixed = str(fit_code(texts(*cells, *(f"{k} km/kg" for k in range(61))), has_fill=False).note())
    assert "km/kg, but '0.5 kmpl' is not" in mixed
    even = str(fit_code(texts(*cells, *(f"{k} km/kg" for k in range(60))), has_fill=False).note())
    assert even.endswith("encoded by their frequency in training")


def test_what_takes_the_place_of_a_missing_value() -> None:
    assert fit_code(texts("a", "b", "b", None), has_fill=True).fill == "b"
    number = Column("x", np.array([1.0, 5.0, np.nan, 2.0]), "number")
    assert fit_code(number, has_fill=True).fill == 2.0
    assert fit_code(number, has_fill=False).fill is None
    boolean = Column("x", np.array([1.0, 1.0, np.nan, 0.0]), "boolean")
    assert fit_code(boolean, has_fill=True).fill == 1.0


def test_cells_of_any_kind_as_text() -> None:
    assert as_levels(Column("x", np.array([1.0, 2.5, np.nan]), "number")).tolist() == [
        "1",
        "2.5",
        None,
    ]
    assert as_levels(Column("x", np.array([1.0, 0.0]), "boolean")).tolist() == ["true", "false"]


@pytest.mark.parametrize("has_fill", [True, False])
def test_written_and_read(has_fill: bool) -> None:
    for column in (texts("a", "b"), texts(*map(str, range(60)))):
        code = fit_code(column, has_fill=has_fill)
        assert ColumnCode.from_dict(json.loads(json.dumps(code.to_dict()))) == code


def test_dates_of_many_years() -> None:
    """Against the calendar of Python."""
    dates = [date(1, 1, 1), date(1900, 2, 28), date(1969, 12, 31), date(2000, 2, 29)]
    dates.append(date(9999, 12, 31))
    days = np.array([(each - date(1970, 1, 1)).days for each in dates], dtype=float)
    written = CellFormat("date", order="iso")
    code = fit_code(Column("x", days + 0.75, "number"), has_fill=True, written=written)
    assert code.parts == ("year", "month", "weekday", "days")
    expected = [[d.year, d.month, d.isoweekday()] for d in dates]
    X = code.encode(days + 0.75)
    np.testing.assert_array_equal(X[:, :3], expected)
    np.testing.assert_array_equal(X[:, 3], days - days[0] + 0.75)
    assert ColumnCode.from_dict(json.loads(json.dumps(code.to_dict()))) == code


DATE = {
    "written": CellFormat("date", order="iso").to_dict(),
    "kind": "date",
    "levels": [],
    "parts": ["year"],
}


@pytest.mark.parametrize(
    "change",
    [
        {"parts": []},
        {"parts": ["year", "year"]},
        {"parts": ["century"]},
        {"parts": [["year"]]},
        {"parts": "year"},
        {"parts": None},
        {"origin": 1e9},
        {"origin": float("nan")},
        {"origin": 0.5},
        {"origin": "0"},
        {"fill": 1e9},
        {"fill": "2024-01-01"},
        {"written": None},
        {"written": {}},
        {"written": CellFormat("number", "$").to_dict()},
        {"kind": "number"},
        {"kind": "levels", "levels": ["a"]},
    ],
)
def test_f8_fields_of_dates_that_do_not_fit(change: dict[str, object]) -> None:
    fields = fit_code(texts("a", "b"), has_fill=False).to_dict() | DATE
    assert ColumnCode.from_dict(fields).parts == ("year",)
    with pytest.raises(ModelFileError, match="inconsistent"):
        ColumnCode.from_dict(fields | change)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "pickle"},
        {"kind": []},
        {"name": 3},
        {"levels": []},
        {"levels": "ab"},
        {"levels": None},
        {"levels": ["a", "a"]},
        {"levels": ["a", 1]},
        {"frequencies": [0.5]},
        {"frequencies": None},
        {"kind": "frequency"},
        {"kind": "frequency", "frequencies": [0.5, float("nan")]},
        {"kind": "frequency", "frequencies": [0.5, True]},
        {"fill": 1.0},
        {"kind": "number", "levels": [], "fill": "a"},
        {"more": 1},
    ],
)
def test_f8_fields_that_do_not_fit(change: dict[str, object]) -> None:
    fields = fit_code(texts("a", "b"), has_fill=False).to_dict() | change
    with pytest.raises(ModelFileError, match="inconsistent"):
        ColumnCode.from_dict(fields)
    with pytest.raises(ModelFileError, match="inconsistent"):
        ColumnCode.from_dict([])
