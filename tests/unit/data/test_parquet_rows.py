from __future__ import annotations

import datetime
import decimal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mercer.data
from mercer.errors import DataError
from support.row_cases import NAMES, ROWS, write_parquet

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def whole(source: mercer.data.RowSource) -> np.ndarray:
    return np.vstack(list(source.blocks(100)))


def test_numbers_of_any_type(tmp_path: Path) -> None:
    path = tmp_path / "data"
    table = pa.table(
        {
            "whole": pa.array([1, 2, 3], pa.int32()),
            "large": pa.array([1, 2, 2**63], pa.uint64()),
            "half": pa.array([np.float16(0.5), np.float16(1), np.float16(2)], pa.float16()),
            "single": pa.array([0.5, 1.5, 2.5], pa.float32()),
            "money": pa.array([decimal.Decimal("1.25"), 2, 3], pa.decimal128(10, 2)),
            "flag": pa.array([True, False, True]),
            "level": pa.array([7, 9, 7]).dictionary_encode(),
        }
    )
    parquet.write_table(table, path)
    source = mercer.data.open(path)
    assert source.names == tuple(table.column_names)
    expected = [
        [1, 1, 0.5, 0.5, 1.25, 1, 7],
        [2, 2, 1, 1.5, 2, 0, 9],
        [3, 2.0**63, 2, 2.5, 3, 1, 7],
    ]
    np.testing.assert_array_equal(whole(source), expected)


@pytest.mark.one_in(7)
@pytest.mark.parametrize("row_group_size", [1, 7, 100, 999, 5000])
@pytest.mark.parametrize("piece", [1, 13, 200, 4000])
def test_row_groups_do_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row_group_size: int, piece: int
) -> None:
    monkeypatch.setattr("mercer.data.arrow.DECODED_CELLS", 3 * piece)
    write_parquet(tmp_path / "data", ROWS, row_group_size=row_group_size)
    source = mercer.data.open(tmp_path / "data")
    np.testing.assert_array_equal(whole(source), ROWS)
    run = np.vstack(list(source.blocks(90, first=3, last=7)))
    np.testing.assert_array_equal(run, ROWS[270:630])
    np.testing.assert_array_equal(source.take(np.array([0, 500, 501])), ROWS[[0, 500, 501]])


def test_empty_row_groups_and_files(tmp_path: Path) -> None:
    schema = pa.schema([(name, pa.float64()) for name in NAMES])
    with parquet.ParquetWriter(tmp_path / "b.parquet", schema) as writer:
        for rows in (ROWS[:0], ROWS[:3], ROWS[:0], ROWS[3:5]):
            writer.write_table(pa.table(dict(zip(NAMES, rows.T, strict=True))))
    for name in ("a", "c"):
        write_parquet(tmp_path / f"{name}.parquet", ROWS[:0])
    source = mercer.data.open(tmp_path)
    np.testing.assert_array_equal(whole(source), ROWS[:5])
    np.testing.assert_array_equal(source.take(np.array([4])), ROWS[[4]])
    assert source.place(4).endswith("b.parquet, row 5")


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (pa.array([1.0, None, 3.0]), "row 2, column 'a': missing value"),
        (pa.array([1, None, 3]), "row 2, column 'a': missing value"),
        (pa.array([True, None, True]), "row 2, column 'a': missing value"),
        (pa.array([1.0, 2.0, np.nan]), "row 3, column 'a': missing value"),
        (pa.array([1.0, 2.0, -np.inf]), "row 3, column 'a': infinite"),
        (pa.nulls(3), "row 1, column 'a': missing value"),
        (pa.array([1, None, 1]).dictionary_encode(), "row 2, column 'a': missing value"),
    ],
    ids=["null", "whole null", "boolean null", "nan", "inf", "nothing", "level null"],
)
def test_d3_gaps(tmp_path: Path, cells, words: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "data.parquet"
    parquet.write_table(pa.table({"a": cells, "b": [1, 2, 3]}), path)
    with pytest.raises(DataError, match=rf"data.parquet, {words}"):
        whole(mercer.data.open(path))
    assert whole(mercer.data.open(path).select(["b"])).tolist() == [[1], [2], [3]]


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (pa.array(["x", "y"]), "string"),
        (pa.array(["x", "y"]).dictionary_encode(), "dictionary"),
        (pa.array([datetime.date(2024, 1, 31)] * 2), "date32"),
        (pa.array([1, 2], pa.timestamp("ns")), "timestamp"),
        (pa.array([[1], [2]]), "list"),
        (pa.array([{"u": 1}, {"u": 2}]), "struct"),
    ],
)
def test_d4_columns_of_something_else(tmp_path: Path, cells, words: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "data.parquet"
    parquet.write_table(pa.table({"a": cells, "b": [1, 2]}), path)
    source = mercer.data.open(path)
    with pytest.raises(
        DataError, match=rf"column 'a' is {words}.*, not numbers; leave it out with \.without"
    ):
        source.blocks(5)
    assert whole(source.without(["a"])).tolist() == [[1], [2]]


def test_names_with_points_and_nested_neighbours(tmp_path: Path) -> None:
    path = tmp_path / "data"
    table = pa.table({"a.b": [1.0, 2.0], "a": [{"b": 5.0}, {"b": 6.0}], "a.c": [3.0, 4.0]})
    parquet.write_table(table, path)
    source = mercer.data.open(path).select(["a.c", "a.b"])
    assert whole(source).tolist() == [[3.0, 1.0], [4.0, 2.0]]
    parquet.write_table(pa.table({"a": [1.0], "a.b": [2.0]}), path)
    assert whole(mercer.data.open(path).select(["a"])).tolist() == [[1.0]]


def test_d5_duplicate_columns(tmp_path: Path) -> None:
    path = tmp_path / "data"
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    parquet.write_table(twice, path)
    with pytest.raises(DataError, match=r"data: column 'a' is there twice \(columns 1 and 2\)"):
        mercer.data.open(path)


def test_d1_nothing(tmp_path: Path) -> None:
    path = tmp_path / "data"
    parquet.write_table(pa.table({"a": pa.array([], pa.float64())}), path)
    with pytest.raises(DataError, match=r"data: there is no row of data"):
        mercer.data.open(path)
    parquet.write_table(pa.table({}), path)
    with pytest.raises(DataError, match=r"data: no column is left"):
        mercer.data.open(path)


def test_files_whose_columns_differ(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", ROWS)
    write_parquet(tmp_path / "b.parquet", ROWS, ("x0", "x1", "z"))
    with pytest.raises(DataError, match=r"b.parquet: column 'x2' of .*a.parquet is missing"):
        mercer.data.open(tmp_path)
    write_parquet(tmp_path / "b.parquet", np.hstack([ROWS, ROWS[:, :1]]), (*NAMES, "z"))
    with pytest.raises(DataError, match=r"b.parquet: column 'z' is not in .*a.parquet"):
        mercer.data.open(tmp_path)


def test_files_whose_types_differ(tmp_path: Path) -> None:
    first = pa.table({"a": [1.5], "b": [True], "c": [1.0]})
    parquet.write_table(first, tmp_path / "1.parquet")
    parquet.write_table(pa.table({"a": [2], "b": [1], "c": ["x"]}), tmp_path / "2.parquet")
    source = mercer.data.open(tmp_path)
    assert whole(source.select(["a"])).tolist() == [[1.5], [2.0]]
    with pytest.raises(
        DataError, match=r"2.parquet: column 'b' is number, but boolean in .*1.parquet"
    ):
        source.select(["b"])
    with pytest.raises(DataError, match=r"2.parquet: column 'c' is string, not numbers"):
        source.select(["c"])


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_d15_truncated(tmp_path: Path, share: float) -> None:
    path = tmp_path / "data.parquet"
    write_parquet(path, ROWS)
    content = path.read_bytes()
    path.write_bytes(content[: max(4, int(len(content) * share))])
    with pytest.raises(DataError, match=r"data.parquet: cannot be decoded \(.*\)"):
        mercer.data.open(path)


def test_d15_damaged_pages(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    parquet.write_table(pa.table({"a": ROWS[:, 0], "b": ROWS[:, 1]}), path)
    content = bytearray(path.read_bytes())
    content[4:60] = b"\xff" * 56
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"data.parquet: cannot be decoded \(.*\)"):
        whole(mercer.data.open(path))


def test_r11_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_parquet(tmp_path / "data", ROWS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"data: reading Parquet .*pip install 'mercer\[arrow\]'"):
        mercer.data.open(tmp_path / "data")


def test_pandas_stays_unloaded(tmp_path: Path) -> None:
    write_parquet(tmp_path / "data", ROWS)
    code = (
        "import sys, mercer.data; "
        f"n = len(list(mercer.data.open({str(tmp_path / 'data')!r}).blocks(300))); "
        "print(n, 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["4", "False"]
