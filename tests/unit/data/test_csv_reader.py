from __future__ import annotations

import datetime
import gzip
import sys
import zipfile
from pathlib import Path

import numpy as np
import openpyxl
import pytest

from mercer.data import csv_reader, files
from mercer.data.frame import INDEX_COLUMNS, Frame, index_column
from mercer.data.tables import read_frame
from mercer.errors import DataError, UsageError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.csv"


def read(path: Path, content: str | bytes) -> Frame:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_frame(path)


def fails(path: Path, content: str | bytes) -> str:
    with pytest.raises(DataError) as caught:
        read(path, content)
    message = str(caught.value)
    assert "data.csv" in message
    assert message.isprintable()
    return message


def test_columns_and_their_kinds(path: Path) -> None:
    frame = read(path, "n,t,b,d\n1,x,true,2024-01-01\n2,y,false,2024-01-02\n")
    assert frame.names == ("n", "t", "b", "d")
    assert [column.kind for column in frame.columns] == ["number", "text", "boolean", "date"]
    assert frame.source == str(path)
    assert frame.origin.line[0] == 2


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_delimiters(path: Path, mark: str) -> None:
    frame = read(path, mark.join("abc") + "\n" + mark.join("123") + "\n")
    assert [column.values[0] for column in frame.columns] == [1.0, 2.0, 3.0]


def test_semicolons_with_decimal_commas(path: Path) -> None:
    assert read(path, "a;b\n1,5;2\n").column("a").values.tolist() == [1.5]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le-bom"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_d15_encodings_and_line_ends(path: Path, encoding: str, end: str) -> None:
    text = end.join(["größe,b", "1,ü", "2,ß", ""])
    data = b"\xff\xfe" + text.encode("utf-16-le") if "bom" in encoding else text.encode(encoding)
    frame = read(path, data)
    assert frame.names == ("größe", "b")
    assert frame.column("b").values.tolist() == ["ü", "ß"]
    assert frame.place(1).endswith("row 2 (line 3)")


def test_d15_quoted_newlines_and_blank_lines_keep_the_line_numbers(path: Path) -> None:
    frame = read(path, '\n"a\nb",c\n\n"x\ny\nz",1\n\n"p, q",2\n')
    assert frame.names == ("a\nb", "c")
    assert frame.column("a\nb").values.tolist() == ["x\ny\nz", "p, q"]
    assert frame.origin.line.tolist() == [5, 9]
    assert frame.origin.row.tolist() == [1, 2]


def test_gzip_by_content(path: Path) -> None:
    assert read(path, gzip.compress(b"a,b\n1,2\n")).n_rows == 1


def test_text_far_down_a_column_of_numbers(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_reader, "BLOCK_CELLS", 4)
    frame = read(path, "a,b\n01,1\n02,2\n03,3\nx,4\n")
    assert frame.column("a").values.tolist() == ["01", "02", "03", "x"]
    assert frame.column("b").values.tolist() == [1, 2, 3, 4]


def test_text_on_demand(path: Path) -> None:
    path.write_text("id,a\n007,1\n")
    frame = read_frame(path, as_text=["id"])
    assert frame.column("id").values.tolist() == ["007"]


def test_d1_one_row(path: Path) -> None:
    assert read(path, "a\n1").n_rows == 1


@pytest.mark.parametrize("content", ["", "\n\n", "﻿", "a,b\n", "a,b"])
def test_d1_nothing_there(path: Path, content: str) -> None:
    words = "the file is empty" if not content.strip("\ufeff\n") else "there is no row of data"
    assert words in fails(path, content)


def test_d1_names_without_header(path: Path) -> None:
    assert "line 1: column 2 has no name" in fails(path, "a,,c\n1,2,3\n")
    assert "write a header line" in fails(path, "5.1,3.5,1\n4.9,3.0,1\n")


def test_names_may_be_whole_numbers(path: Path) -> None:
    assert read(path, "0,1,2\n5,6,7\n").names == ("0", "1", "2")


def test_d4_ragged_rows(path: Path) -> None:
    message = fails(path, "a,b\n1,2\n\n3\n")
    assert message.endswith("row 2 (line 4): has 1 cells, but the header has 2; correct the row")
    assert "has 3 cells" in fails(path, "a,b\n1,2,3\n")


def test_d5_duplicate_header(path: Path) -> None:
    assert "column 'a' is there twice (columns 1 and 3)" in fails(path, "a,b,a\n1,2,3\n")


def test_d15_nul(path: Path) -> None:
    assert "line 3: holds a NUL byte" in fails(path, b"a,b\n1,2\n\0,3\n")
    assert "holds a NUL byte" in fails(path, "a,b\n1,2\n".encode("utf-16-le"))


def test_d15_not_utf_8(path: Path) -> None:
    assert "line 2: not UTF-8 text; save the file as UTF-8" in fails(path, b"a,b\n\xe9,2\n")


def test_d15_damaged_utf_16(path: Path) -> None:
    assert "damaged UTF-16" in fails(path, "a,b\n1,2\n".encode("utf-16") + b"\x00\xd8")


def test_d15_quotation_mark_not_closed(path: Path) -> None:
    message = fails(path, 'a,b\n1,2\n"3,4\n5,6\n')
    assert "line 3: " in message
    assert "not closed" in message
    assert "line 2: field larger" in fails(path, f'a,b\n1,"{"x" * 200_000}"\n')


def test_d15_long_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_reader, "MAX_LINE", 1000)
    assert "line 2: longer than 1000 characters" in fails(path, "a\n" + "x" * 5000)


def test_d15_gz_bomb(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_reader, "MAX_TEXT", 100_000)
    bomb = gzip.compress(b"a,b\n" + b"1,2\n" * 1_000_000)
    assert "more than 100000 characters (unpacked)" in fails(path, bomb)
    monkeypatch.setattr(csv_reader, "BLOCK_CELLS", 100)
    monkeypatch.setattr(files, "MAX_CELLS", 1000)
    assert "GiB; fit on fewer rows" in fails(path, bomb)


@pytest.mark.parametrize("cut", [5, 15, 200, -3])
def test_d15_damaged_gzip(path: Path, cut: int) -> None:
    text = "a,b\n" + "".join(f"{np.sqrt(i)},{i}\n" for i in range(2000))
    packed = gzip.compress(text.encode())
    fails(path, packed[:cut])
    flipped = bytearray(packed)
    flipped[cut] ^= 0xFF
    path.write_bytes(flipped)
    if cut == 5:  # the time in the header of gzip, which means nothing
        assert read_frame(path).n_rows == 2000
    else:
        fails(path, bytes(flipped))


def test_d16_control_characters_in_names(path: Path) -> None:
    message = fails(path, "a\x1b[31m,a\x1b[31m\n1,2\n")
    assert "'a\\x1b[31m'" in message


@pytest.mark.parametrize(
    "start",
    [
        b"PK\x03\x04",
        b"\x93NUMPY",
        b"MERCER01",
        b"SQLite format 3\0",
        b"\x89PNG",
        b"%PDF-1",
        b"<html>",
        b"\x80\x05\x95",
    ],
)
def test_other_kinds_of_file(path: Path, start: bytes) -> None:
    assert "save the table as CSV or Parquet" in fails(path, start + b"\x00" * 20)


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_d15_a_long_header(path: Path, mark: str) -> None:
    """Longer than the 131 072 characters that a cell may have, of cells that are not."""
    names = [f"a_rather_long_name_{k}" for k in range(6000)]
    frame = read(path, mark.join(names) + "\n" + mark.join(["1"] * 6000) + "\n")
    assert frame.names == tuple(names)


def test_d15_a_long_cell(path: Path) -> None:
    for text in (
        "a" * 140_000 + "\n1\n",
        '"' + "a," * 70_000 + '",b\n1,2\n',
        "a,b\n1," + "2" * 140_000,
    ):
        with pytest.raises(DataError, match=r"line \d: field larger than field limit \(131072\)"):
            read(path, text)


def test_a_first_column_without_a_name_names_the_rows(path: Path) -> None:
    frame = read(path, ",a\n007,1\n008,2\n")
    assert frame.names == (INDEX_COLUMNS[0], "a")
    assert index_column(frame.names) == "Unnamed: 0"
    assert index_column(("a", "Unnamed: 0")) is None
    assert index_column(("a", "__index_level_0__")) == "__index_level_0__"
    assert "column 2 has no name" in fails(path, "a,\n1,2\n")
    assert "column 2 has no name" in fails(path, ",,a\n1,2,3\n")
    assert "column 1 has no name" in fails(path, ",\n1,2\n")


def test_empty_cells_beyond_the_header_are_no_columns(path: Path) -> None:
    frame = read(path, "a,b,,\n1,2,,\n3,4\n5,6, ,,\n")
    assert frame.names == ("a", "b")
    np.testing.assert_array_equal(frame.column("b").values, [2.0, 4.0, 6.0])
    assert "row 2 (line 3): has 4 cells, but the header has 2: column 3 has no name" in fails(
        path, "a,b\n1,2\n3,4,5,\n"
    )
    assert "has 1 cells, but the header has 2; correct the row" in fails(path, "a,b,\n1\n")


# Other encodings.


def test_the_encoding_that_is_named_is_read(path: Path) -> None:
    path.write_bytes("größe,b\n1,ü\n".encode("latin-1"))
    message = fails(path, path.read_bytes())
    assert "line 1: not UTF-8 text" in message
    assert "latin-1" in message
    frame = read_frame(path, encoding="latin-1")
    assert (frame.names, frame.column("b").values.tolist()) == (("größe", "b"), ["ü"])
    path.write_bytes("a,b\n1,ü\n".encode("utf-8-sig"))  # the mark says what the file is
    assert read_frame(path, encoding="latin-1").column("b").values.tolist() == ["ü"]
    path.write_text("a\n1\n")
    with pytest.raises(UsageError, match="no encoding 'latin-11'"):
        read_frame(path, encoding="latin-11")
    path.write_bytes(b"a,b\n1,\x81\n")
    with pytest.raises(DataError, match="line 2: not CP1252 text"):
        read_frame(path, encoding="cp1252")


# JSON lines.


@pytest.mark.parametrize("name", ["data.jsonl", "data.csv"])
def test_json_lines_by_name_and_by_content(tmp_path: Path, name: str) -> None:
    lines = [
        '{"n": 1.5, "t": "x, y", "b": true, "d": "2024-01-01"}',
        "",
        '{"n": null, "t": "z", "late": 7, "b": false, "d": "2024-01-02"}',
    ]
    (tmp_path / name).write_text("\n".join(lines))
    frame = read_frame(tmp_path / name)
    assert frame.names == ("n", "t", "b", "d", "late")
    assert [c.kind for c in frame.columns] == ["number", "text", "boolean", "date", "number"]
    assert frame.column("t").values.tolist() == ["x, y", "z"]
    np.testing.assert_equal(frame.column("n").values, [1.5, np.nan])
    np.testing.assert_equal(frame.column("late").values, [np.nan, 7.0])
    assert frame.place(1, "n").endswith("row 2 (line 3), column 'n'")


def test_json_lines_are_what_csv_is(path: Path) -> None:
    same = ["1", "0.1", "1e300", "-7", "12345678901234567890"]
    rows = [f'{{"a": {number}, "b": "k{i}"}}' for i, number in enumerate(same)]
    text = "\n".join(rows)
    frame = read(path, text)
    csv_frame = read(path, "a,b\n" + "\n".join(f"{x},k{i}" for i, x in enumerate(same)))
    assert frame.column("a").values.tolist() == csv_frame.column("a").values.tolist()
    assert read(path, gzip.compress(text.encode())).column("b").values.tolist()[-1] == "k4"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "is not JSON"),
        ("[1]", "no object with names and values"),
        ('{"a": [1]}', "column 'a': neither a number nor text"),
        ('{"a": NaN}', "NaN is no number that JSON has"),
        ('{"a": 1, "a": 2}', "key 'a' is there twice"),
        ('{"a": ' + 9999 * "[", "is n"),  # nested too deeply, or not JSON
    ],
)
def test_json_lines_that_cannot_be_used(path: Path, line: str, words: str) -> None:
    message = fails(path, '{"a": 1}\n\n' + line + "\n")
    assert "row 2 (line 3)" in message
    assert words in message


@pytest.mark.parametrize("text", ['[{"a": 1}]', "[\n{}\n]", "[[1, 2]]"])
def test_a_json_array_is_refused_with_the_remedy(path: Path, text: str) -> None:
    assert "write JSON lines" in fails(path, text)


def test_headers_that_look_a_little_like_json_are_csv(path: Path) -> None:
    assert read(path, "{a},[b]\n1,2\n").names == ("{a}", "[b]")


# Zstandard.


def test_zstd_by_content(path: Path) -> None:
    zstd = csv_reader._zstd(path)
    packed = zstd.compress(b"a,b\n1,2\n") + zstd.compress(b"3,4\n")  # two frames
    skipped = b"\x5a\x2a\x4d\x18\x03\x00\x00\x00abc"  # a frame of something else
    for content in (packed, skipped + packed):
        assert read(path, content).column("b").values.tolist() == [2.0, 4.0]
    assert "ends in the middle" in fails(path, packed[:-3])
    assert "damaged zstd file" in fails(path, packed[:8] + b"\xff" * 99)


def test_zstd_without_the_package(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = csv_reader._zstd(path).compress(b"a,b\n1,2\n")
    for name in ("compression", "backports"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"data.csv: .*pip install 'mercer\[zstd\]'"):
        read(path, packed)


# Spreadsheets.


def write_sheets(path: Path, sheets: dict[str, list[list[object]]], **state: str) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        sheet.sheet_state = state.get(title, "visible")
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_cells_of_a_spreadsheet(tmp_path: Path) -> None:
    day, moment = datetime.date(2024, 1, 31), datetime.datetime(2024, 2, 1, 12, 30)
    rows = [
        [],
        ["n", "t", "b", "d", "when"],
        [1, "x", True, day, moment],
        [],
        [0.1, None, False, datetime.date(2024, 2, 1), datetime.datetime(2024, 2, 2)],
    ]
    frame = read_frame(write_sheets(tmp_path / "book.xlsx", {"one": rows}))
    kinds = ["number", "text", "boolean", "date", "date"]
    assert [column.kind for column in frame.columns] == kinds
    assert frame.column("n").values.tolist() == [1.0, 0.1]
    assert frame.column("d").values.tolist() == ["2024-01-31", "2024-02-01"]
    assert frame.column("when").values.tolist() == ["2024-02-01 12:30:00", "2024-02-02"]
    assert frame.column("t").values.tolist() == ["x", None]
    assert frame.place(1, "t").endswith("book.xlsx, row 2 (line 5), column 't'")


def test_the_sheet_that_is_read(tmp_path: Path) -> None:
    sheets = {"notes": [["x"], [0]], "a b": [["x"], [1]], "c": [["x"], [2]]}
    book = write_sheets(tmp_path / "book.xlsx", sheets, notes="hidden")
    assert read_frame(book).column("x").values.tolist() == [1.0]
    assert read_frame(f"{book}:c").column("x").values.tolist() == [2.0]
    assert read_frame(f"{book}:notes").column("x").values.tolist() == [0.0]
    with pytest.raises(DataError, match=r"no sheet 'C d'; (did you mean|there are)"):
        read_frame(f"{book}:C d")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([["a", "b"], [1, 2, 3]], "row 1 (line 2): has 3 cells, but the header has 2"),
        ([["a", "b"], [1, "#DIV/0!"]], "row 1 (line 2), column 'b': holds the error #DIV/0!"),
        ([["a", None, "b"], [1, 2, 3]], "column 2 has no name"),
        ([["a", "b"]], "there is no row of data"),
        ([], "the file is empty"),
    ],
)
def test_spreadsheets_that_cannot_be_used(tmp_path: Path, rows: list, words: str) -> None:
    book = write_sheets(tmp_path / "book.xlsx", {"s": rows})
    with pytest.raises(DataError) as caught:
        read_frame(book)
    assert words in str(caught.value)
    assert "book.xlsx" in str(caught.value)


def test_archives_that_are_no_spreadsheet(tmp_path: Path, monkeypatch) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.csv", "a,b\n1,2\n")
    with pytest.raises(DataError, match="zip archive, but no spreadsheet"):
        read_frame(tmp_path / "a.zip")
    book = write_sheets(tmp_path / "book.xlsx", {"s": [["a"], [1]]})
    (tmp_path / "cut.xlsx").write_bytes(book.read_bytes()[:-200])
    with pytest.raises(DataError, match=r"cut\.xlsx: .*cannot be decoded"):
        read_frame(tmp_path / "cut.xlsx")
    (tmp_path / "t.csv").write_text("a\n1\n")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ImportError, match=r"pip install 'mercer\[excel\]'"):
        read_frame(book)


def test_the_line_by_which_excel_is_told_the_separator(path: Path) -> None:
    for text in ("sep=;\na;b\n1,5;2\n", '"sep=;"\r\na;b\r\n1,5;2\r\n', "SEP=|\na|b\n1.5|2\n"):
        frame = read(path, text)
        assert frame.names == ("a", "b")
        assert [column.values.tolist() for column in frame.columns] == [[1.5], [2.0]]
        assert frame.origin.line[0] == 3
    assert read(path, "sep=a\n1\n2\n").names == ("sep=a",)


@pytest.mark.parametrize("line", [r'{"a": "\ud800"}', r'{"a": "x", "\uDC00b": 1}'])
def test_half_a_character_is_refused(path: Path, line: str) -> None:
    text = '{"a": "\\ud83d\\ude00 \\u00e9"}\n' + line + "\n"
    assert "row 2 (line 2): column" in fails(path, text)
    assert "half of a character" in fails(path, text)
    assert read(path, text.splitlines()[0]).columns[0].values.tolist() == ["\N{GRINNING FACE} é"]
