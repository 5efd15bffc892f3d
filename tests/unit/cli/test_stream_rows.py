"""Lines of a stream, as CSV or JSON."""

from __future__ import annotations

import os

import pytest

from mercer.cli import stream_rows as module
from mercer.cli.stream_rows import MAX_LINE, Line, LineSource, Parser, Row, Wanted
from mercer.data.frame import null_words
from mercer.errors import DataError, StorageError, UsageError

# Lines.


def read_all(*pieces: bytes) -> list[tuple[int, str, str]]:
    """What a pipe gives whose writer writes in these pieces."""
    reader, writer = os.pipe()
    source = LineSource(reader, "a pipe")
    found = []
    for piece in pieces:
        for begin in range(0, len(piece), 2**15):
            os.write(writer, piece[begin : begin + 2**15])
            assert source.wait(0.0)
            found += source.read()
    os.close(writer)
    while not source.is_over:
        found += source.read()
    os.close(reader)
    return [tuple(line) for line in found]


def test_lines_come_whole_however_they_were_written() -> None:
    expected = [(1, "a,b", ""), (2, "", ""), (3, "ü,2", ""), (4, "end", "")]
    text = "a,b\r\n\nü,2\nend".encode()
    assert read_all(text) == expected
    assert read_all(*(text[k : k + 1] for k in range(len(text)))) == expected
    assert read_all(text + b"\n") == expected


def test_lines_that_are_no_text_are_found_one_by_one() -> None:
    found = read_all(b"a\n\xff\nb\0\nc\n")
    assert [(number, text) for number, text, _ in found] == [(1, "a"), (2, ""), (3, ""), (4, "c")]
    assert ["UTF-8" in found[1][2], "NUL" in found[2][2], found[3][2]] == [True, True, ""]


@pytest.mark.parametrize("ending", [b"\n", b""])
def test_a_line_without_end_takes_no_memory_and_spoils_itself_only(ending: bytes) -> None:
    long = b"x" * (3 * MAX_LINE)
    found = read_all(b"a\n", long, ending, b"b\n" if ending else b"")
    assert [text for _, text, _ in found] == (["a", "", "b"] if ending else ["a", ""])
    assert "longer than" in found[1][2]


def test_a_line_just_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LINE", 10)
    found = read_all(b"0123456789\n01234567890\nb\n")
    assert [bool(problem) for _, _, problem in found] == [False, True, False]


def test_a_wait_ends_when_it_is_woken() -> None:
    reader, writer = os.pipe()
    wake, end = os.pipe()
    source = LineSource(reader, "a pipe", wake)
    assert not source.wait(0.0)
    os.write(end, b"\0")
    assert not source.wait(60.0)
    for descriptor in (reader, writer, wake, end):
        os.close(descriptor)


def test_what_cannot_be_read_is_named(tmp_path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(StorageError, match="somewhere: cannot be read"):
        LineSource(descriptor, "somewhere").read()
    os.close(descriptor)


# Csv rows.


def wanted(**own) -> Wanted:
    fields = {"id_column": None, "drop": (), "needed": None, "is_series": False}
    return Wanted("a pipe", "y", **{**fields, **own})


def parser(header: str, told: list[str] | None = None, **own) -> Parser:
    tell = ([] if told is None else told).append
    return Parser(wanted(**own), tell, Line(1, header))


def test_columns_are_chosen_by_the_header() -> None:
    rows = parser("name,a,y,b,c", id_column="name", drop=("b,c",))
    assert rows.inputs == ("a",)
    assert rows.rows([Line(2, "n, 1,2,3,4")]) == [Row(1, 2, ("1",), "2", "n")]


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


# Json rows.


def json_parser(told: list[str] | None = None, **own) -> Parser:
    fields = {"id_column": "id", "drop": (), "needed": None, "is_series": False}
    tell = ([] if told is None else told).append
    return Parser(Wanted("a pipe", "y", **{**fields, **own}), tell)


def read(rows: Parser, *texts: str) -> list[Row]:
    return rows.rows([Line(k, text) for k, text in enumerate(texts, start=1)])


def test_values_become_cells() -> None:
    (row,) = read(json_parser(), '{"id": 7, "a": 0.1, "b": true, "c": "red", "d": 1e-7, "y": -3}')
    assert row == Row(1, 1, ("0.1", "true", "red", "1e-07"), "-3", 7)


def test_the_first_object_with_an_input_says_what_there_is() -> None:
    rows = json_parser()
    first, late, absent, missing = read(
        rows, '{"id": 1, "y": 2}', '{"id": 1, "a": 2, "y": null}', '{"a": 3, "id": 2}', '{"id": 3}'
    )
    assert (first.is_late, late.is_late) == (True, False)
    assert absent == Row(3, 3, ("3",), None, 2)
    assert missing.problem == "there is no key 'a'"
    with pytest.raises(DataError, match="no column 'id'"):
        read(json_parser(), '{"a": 2, "y": 3}')


def test_literal_names_of_a_late_target() -> None:
    rows = json_parser()
    _, late = read(rows, '{"id": 1, "a": 2, "y": null}', '{"id": 1, "target": 2}')
    assert late == Row(2, 2, (), "2", 1, True)
    rows = json_parser(id_column=None)
    lines = '{"id": 1, "a": 2, "target": 2}', '{"id": 1, "target": 2}', '{"id": 1}'
    row, other, bare = read(rows, *lines)
    assert (row.is_late, bare.problem) == (False, "there is no key 'a'")
    hint = "; if this is the target of an earlier row, use --id 'id'"
    assert other.problem == f"{bare.problem}{hint}"


@pytest.mark.parametrize("target", ["id", "target"])
def test_the_only_input_may_have_such_a_name(target: str) -> None:
    other = "id" if target == "target" else "target"
    rows = Parser(Wanted("a pipe", target, None, (), None, is_series=False), [].append)
    found = read(rows, f'{{"{other}": 1, "{target}": 2}}', f'{{"{other}": 3, "{target}": 4}}')
    assert found == [Row(1, 1, ("1",), "2"), Row(2, 2, ("3",), "4")]


def test_other_keys_are_told_once() -> None:
    told: list[str] = []
    rows = json_parser(told, drop=("k",))
    read(
        rows,
        '{"id": 1, "a": 2, "k": 1}',
        '{"id": 1, "a": 2, "z": 1, "k": 2}',
        '{"id": 1, "a": 2, "z": 1}',
    )
    assert told == ["keys that the model does not use: 'z'"]


def test_a_series_needs_no_other_key() -> None:
    rows = json_parser(is_series=True)
    assert read(rows, '{"id": 1, "y": 2}') == [Row(1, 1, (), "2", 1)]


def test_words_for_a_missing_value() -> None:
    wanted = Wanted("it", "y", None, (), None, False, null_values=null_words("-9"))
    parser = Parser(wanted, lambda words: None, Line(1, "a,b,y"))
    rows = parser.rows([Line(2, "None,-9,NA"), Line(3, "1, 2 ,-9")])
    assert [(row.cells, row.target) for row in rows] == [(("None", ""), "NA"), (("1", "2"), None)]
