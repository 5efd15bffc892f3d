from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from mercer.cli.stream_model import (
    Coder,
    Reporter,
    Tally,
    encoding_notes,
    learn_encoder,
    read_number,
    refuse_text,
)
from mercer.cli.stream_rows import Line, Parser, Row, Wanted
from mercer.data.encoding import ColumnCode, Encoder, fit_encoder
from mercer.data.frame import Frame, column_of_texts
from mercer.data.tables import read_frame
from mercer.errors import DataError


def rows_of(*cells: tuple[str, ...]) -> list[Row]:
    return [Row(k, k + 1, each) for k, each in enumerate(cells, start=1)]


def parser_of(*names: str, comma: bool = False, told: list[str] | None = None) -> Parser:
    """A parser of rows with these inputs."""
    wanted = Wanted("a pipe", "y", None, (), None, is_series=False)
    header = (";" if comma else ",").join([*names, "y"])
    return Parser(wanted, ([] if told is None else told).append, Line(1, header))


def coder(codes, names, *, comma: bool = False, told: list[str] | None = None) -> Coder:
    said = [] if told is None else told
    reporter = Reporter(
        lambda _, words: said.append(words), "a pipe", is_fatal=False, tally=Tally()
    )
    missing = "impute" if any(code.fill is not None for code in codes) else "error"
    return Coder(Encoder(tuple(codes), missing), parser_of(*names, comma=comma), reporter)


def test_decimal_commas_are_read_cell_by_cell() -> None:
    code = ColumnCode("a", "number")
    X, problems = coder([code], ["a"], comma=True).encode(rows_of(("1,5",), ("2.5",), ("3",)))
    assert (X.ravel().tolist(), problems) == ([1.5, 2.5, 3.0], {})
    with pytest.raises(ValueError, match="'1,5' is not a number"):
        read_number("1,5", has_decimal_comma=False)


@pytest.mark.parametrize("cell", ["nan", "NAN", "inf", "1e400", "1_000", "one", "1e151"])
def test_numbers_that_are_none(cell: str) -> None:
    with pytest.raises(ValueError):
        read_number(cell, has_decimal_comma=False)


def test_rows_are_encoded_as_tables_are() -> None:
    cells = [("1", "red", "true"), ("2", "blue", "false"), ("3", "grey", "true")]
    encoder = learn_encoder(parser_of("a", "k", "f"), rows_of(*cells), "a pipe")
    names = encoder.input_names
    X, _ = coder(encoder.codes, names).encode(rows_of(*cells))
    columns = [
        column_of_texts(n, c, is_text=False)
        for n, c in zip(names, zip(*cells, strict=True), strict=True)
    ]
    numbers = type(columns[0])("a", np.array([1.0, 2.0, 3.0]), "number")
    frame = Frame.from_columns([numbers, *columns[1:]], "a table")
    np.testing.assert_array_equal(X, encoder.transform(frame).X)


def test_columns_may_stand_elsewhere_and_fills_are_used() -> None:
    codes = [ColumnCode("a", "number", fill=2.5), ColumnCode("f", "boolean", fill=1.0)]
    X, problems = coder(codes, ["f", "z", "a"]).encode(rows_of(("0", "x", "NA"), ("", "x", "1")))
    assert (X.tolist(), problems) == ([[2.5, 0.0], [1.0, 1.0]], {})


def test_each_row_has_its_own_problem() -> None:
    codes = [
        ColumnCode("a", "number"),
        ColumnCode("f", "boolean"),
        ColumnCode("k", "levels", ("blue", "red")),
    ]
    told: list[str] = []
    rows = rows_of(("1", "maybe", "red"), ("", "x", "red"), ("1", "1", ""), ("1", "0", "green"))
    X, problems = coder(codes, ["a", "f", "k"], told=told).encode(rows)
    assert problems == {
        0: "column 'f': 'maybe' is neither true nor false; the model needs true or false (1 or 0) "
        "here",
        1: "column 'a': missing value",
        2: "column 'k': missing value",
    }
    assert np.isfinite(X).all()
    assert len(told) == 1


def test_no_rows_have_no_problems() -> None:
    X, problems = coder([ColumnCode("a", "number")], ["a"]).encode([])
    assert (X.shape, problems) == ((0, 1), {})


def test_most_cells_say_what_a_column_is() -> None:
    rows = rows_of(*[(str(k), f"t{k}") for k in range(10)], ("x", "t"), ("inf", "t"))
    encoder = learn_encoder(parser_of("a", "k"), rows, "a pipe")
    assert [code.kind for code in encoder.codes] == ["number", "levels"]
    _, problems = coder(encoder.codes, ["a", "k"]).encode(rows)
    assert list(problems) == [10, 11]
    assert "'x' is not a number" in problems[10]


def test_dates_and_money_are_those_of_tables(tmp_path: Path) -> None:
    """What is not written as the first rows have it spoils its own row only."""
    cells = [("31/12/2023", "5%", "$1,000.50"), ("01/02/2024", "7.5%", "($3)")]
    rows = rows_of(*cells, ("03/02/2024", "8%", "$2"))
    names = ("day", "rate", "price")
    encoder = learn_encoder(parser_of(*names), rows, "a pipe")
    lines = [",".join(f'"{cell}"' for cell in row.cells) for row in rows]
    (tmp_path / "t.csv").write_text("\n".join([",".join(names), *lines]))
    frame = read_frame(tmp_path / "t.csv")
    whole = fit_encoder(frame)
    assert whole == encoder
    own = coder(encoder.codes, names)
    X, problems = own.encode(rows)
    assert not problems
    np.testing.assert_array_equal(X, whole.transform(frame).X)
    strange = rows_of(
        ("12/31/2024", "5%", "$1"), ("", "5%", "$1"), ("2024-01-01", "5%", "1"), *cells
    )
    X, problems = own.encode(strange)
    assert list(problems) == [0, 1, 2]
    assert "column 'day': '12/31/2024' is not a date (day/month/year)" in problems[0]
    assert problems[1] == "column 'day': missing value"
    assert "column 'price': '1' is not a number written as '$1,234.5'" in problems[2]
    np.testing.assert_array_equal(X[3:], whole.transform(frame).X[:2])
    with pytest.raises(DataError, match="--warmup above 0"):
        refuse_text(encoder, "a pipe")


def test_no_usable_row_and_dates_are_refused() -> None:
    with pytest.raises(DataError, match="none of the first 6 rows"):
        learn_encoder(
            parser_of("a", "b", "c"),
            rows_of(*[("x", "1", "1"), ("1", "x", "1"), ("1", "1", "x")] * 2),
            "a pipe",
        )
    with pytest.raises(DataError, match="column 'd': '01/02/2024' may begin"):
        learn_encoder(parser_of("d"), rows_of(("01/02/2024",)), "a pipe")


def test_what_is_said_of_text() -> None:
    rows = rows_of(*[(f"t{k}",) for k in range(12)])
    encoder = learn_encoder(parser_of("k"), rows, "a pipe")
    assert "another text in each" in encoding_notes(encoder, 12)[0]
    assert encoding_notes(encoder, 13) == []
    with pytest.raises(DataError, match="--warmup above 0"):
        refuse_text(encoder, "a pipe")


def test_a_first_column_without_a_name_names_the_rows() -> None:
    wanted = Wanted("a pipe", "y", None, (), None, is_series=False)
    told: list[str] = []
    rows = Parser(wanted, told.append, Line(1, ",a,y"))
    assert (rows.inputs, len(told)) == (("a",), 1)
    assert "column 'Unnamed: 0', which has no name: the names of the rows" in told
    assert [row.id for row in rows.rows([Line(2, "p1,5,1"), Line(3, "p2,6,0")])] == ["p1", "p2"]
    needed = dataclasses.replace(wanted, needed=("Unnamed: 0", "a"))
    assert Parser(needed, told.append, Line(1, ",a,y")).inputs == ("Unnamed: 0", "a")
    dropped = dataclasses.replace(wanted, drop=("Unnamed: 0",))
    assert Parser(dropped, told.append, Line(1, ",a,y")).inputs == ("a",)
    with pytest.raises(DataError, match="column 2 has no name"):
        Parser(wanted, told.append, Line(1, "a,,y"))
