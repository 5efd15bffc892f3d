from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mercer.data.tables import read_frame
from mercer.errors import DataError, StorageError


def write(folder: Path, **contents: str) -> Path:
    for name, content in contents.items():
        (folder / f"{name}.csv").write_text(content)
    return folder


def test_folder_in_the_order_of_names(tmp_path: Path) -> None:
    write(tmp_path, part2="b,a\ny,3\n", part1="a,b\n1,x\n\n2,x\n", part3="a,b\n")
    (tmp_path / "notes.txt").write_text("not data")
    (tmp_path / ".hidden.csv").write_text("z\n1\n")
    frame = read_frame(tmp_path)
    assert frame.column("a").values.tolist() == [1, 2, 3]
    assert frame.column("b").values.tolist() == ["x", "x", "y"]
    assert frame.place(1) == f"{tmp_path / 'part1.csv'}, row 2 (line 4)"
    assert frame.place(2) == f"{tmp_path / 'part2.csv'}, row 1 (line 2)"
    assert frame.source == str(tmp_path)


def test_folder_with_kinds_that_differ(tmp_path: Path) -> None:
    write(tmp_path, p1="a,b\n01,1\n", p2="a,b\nx,\n", p3="a,b\n,2\n")
    frame = read_frame(tmp_path)
    assert frame.column("a").values.tolist() == ["01", "x", None]
    assert frame.column("b").kind == "number"
    np.testing.assert_array_equal(frame.column("b").values, [1, np.nan, 2])


def test_folder_with_a_part_without_values(tmp_path: Path) -> None:
    write(tmp_path, p1="a,b\n,1\n", p2="a,b\nx,1\n")
    assert read_frame(tmp_path).column("a").values.tolist() == [None, "x"]


def test_folder_with_columns_that_differ(tmp_path: Path) -> None:
    write(tmp_path, p1="a,b\n1,2\n", p2="a\n1\n")
    with pytest.raises(DataError, match=r"p2.csv: column 'b' of .*p1.csv is missing"):
        read_frame(tmp_path)
    write(tmp_path, p2="a,b,c\n1,2,3\n")
    with pytest.raises(DataError, match=r"p2.csv: column 'c' is not in .*p1.csv"):
        read_frame(tmp_path)


def test_d17_folder_without_data(tmp_path: Path) -> None:
    (tmp_path / "readme.md").write_text("")
    with pytest.raises(
        StorageError, match="a folder without a CSV, JSON lines, Parquet or Arrow file"
    ):
        read_frame(tmp_path)
    (tmp_path / "sub.csv").mkdir()
    with pytest.raises(StorageError, match=r"sub.csv: is a folder"):
        read_frame(tmp_path)


def test_d17_folder_with_two_kinds(tmp_path: Path) -> None:
    write(tmp_path, a="x\n1\n")
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"holds both 'a.csv' and 'b.parquet'"):
        read_frame(tmp_path)


def test_d1_folder_without_rows(tmp_path: Path) -> None:
    write(tmp_path, a="x\n", b="x\n")
    with pytest.raises(DataError, match="no row of data"):
        read_frame(tmp_path)


def test_unknown_name_names_the_nearest() -> None:
    with pytest.raises(StorageError, match=r"iriss: .*; did you mean 'iris'\?"):
        read_frame("iriss")
    with pytest.raises(StorageError, match="`mercer datasets` lists"):
        read_frame("qqqqqq")


def test_a_path_goes_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "iris").write_text("a\n1\n")
    assert read_frame("iris").names == ("a",)
    assert read_frame("wine").n_rows == 178


def test_nothing_optional_is_loaded() -> None:
    code = (
        "import sys, mercer.data, mercer.data.encoding, mercer.data.target; "
        "print([m for m in ('pandas', 'polars', 'pyarrow', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
