from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from mercer.data import csv_reader, files
from mercer.data.frame import INDEX_COLUMNS, Frame, index_column
from mercer.data.tables import read_frame
from mercer.errors import DataError


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
    assert frame.first_row == 2


@pytest.mark.parametrize("mark", [",", ";", "\t"])
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
    assert "found 0 sample(s)" in fails(path, content)


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


@pytest.mark.parametrize("start", [b"PK\x03\x04", b"\x93NUMPY", b"MERCER01", b"SQLite format 3\0"])
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
