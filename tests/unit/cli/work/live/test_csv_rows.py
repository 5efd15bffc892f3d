from __future__ import annotations

import pytest

from mercer.cli.stream_rows import Line, Parser, Row, Wanted
from mercer.errors import DataError, UsageError


def wanted(**own) -> Wanted:
    fields = {"id_column": None, "drop": (), "needed": None, "is_series": False}
    return Wanted("a pipe", "y", **{**fields, **own})


def parser(header: str, told: list[str] | None = None, **own) -> Parser:
    tell = ([] if told is None else told).append
    return Parser(wanted(**own), tell, Line(1, header))


def test_columns_are_chosen_by_the_header() -> None:
    rows = parser("name,a,y,b,c", id_column="name", drop=("b,c",))
    assert rows.inputs == ("a",)
    assert rows.rows([Line(2, "n, 1,2,3,4")]) == [Row(1, 2, (" 1",), "2", "n")]


def test_blank_lines_are_no_rows_and_quoted_cells_are_read() -> None:
    rows = parser("a,b,y").rows([Line(2, " "), Line(3, '"1,5","say ""x""",?')])
    assert rows == [Row(1, 3, ("1,5", 'say "x"'), None)]


@pytest.mark.parametrize("text", ['1,"2', '1,"2"x,3', "1,2", "1,2,3,4"])
def test_a_line_that_does_not_fit_is_a_row_with_a_problem(text: str) -> None:
    (row,) = parser("a,b,y").rows([Line(2, text)])
    assert row.problem


def test_nothing_but_a_name_and_a_target_is_late() -> None:
    rows = parser("name,a,b,y", id_column="name")
    late = [
        row.is_late for row in rows.rows([Line(2, "n,,NA,3"), Line(3, "n,,1,3"), Line(4, "n,,,")])
    ]
    assert late == [True, False, False]
    series = parser("name,a,y", id_column="name", is_series=True)
    assert not series.rows([Line(2, "n,,3")])[0].is_late


def test_a_loaded_model_needs_its_columns_and_no_target() -> None:
    told: list[str] = []
    rows = parser("z,b,a", told, needed=("a", "b"))
    assert (rows.inputs, told) == (("a", "b"), ["columns that the model does not use: 'z'"])
    assert rows.rows([Line(2, "9,2,1")]) == [Row(1, 2, ("1", "2"), None)]
    with pytest.raises(DataError, match="column 'b' is missing"):
        parser("a,y", needed=("a", "b"))
    with pytest.raises(DataError, match="no column 'y'"):
        parser("a,b", needed=("a", "b"), is_series=True)


def test_the_target_is_neither_dropped_nor_a_name() -> None:
    with pytest.raises(UsageError, match="--id"):
        wanted(id_column="y")
    with pytest.raises(UsageError, match="is the target"):
        parser("a,y", drop=("a, y",))


def test_a_name_has_its_limit() -> None:
    (row,) = parser("name,a,y", id_column="name").rows([Line(2, "n" * 101 + ",1,2")])
    assert "longer than 100" in row.problem
