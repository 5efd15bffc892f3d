from __future__ import annotations

import datetime
import sys
from pathlib import Path

import numpy as np
import pytest

from mercer.data import files
from mercer.data.encoding import fit_encoder
from mercer.data.tables import read_frame
from mercer.errors import DataError

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
ipc = pytest.importorskip("pyarrow.ipc")
parquet = pytest.importorskip("pyarrow.parquet")


def table():  # type: ignore[no-untyped-def]
    day = datetime.date(2024, 1, 31)
    return pa.table(
        {
            "whole": pa.array([1, None, 3], pa.int32()),
            "half": pa.array([np.float16(0.5), None, np.float16(2)], pa.float16()),
            "money": pa.array([1, 2, None], pa.decimal128(10, 2)),
            "flag": pa.array([True, None, False]),
            "text": pa.array(["a", "", None]),
            "level": pa.array(["x", "y", "x"]).dictionary_encode(),
            "day": pa.array([day, None, day]),
            "when": pa.array([1, 2, None], pa.timestamp("ns")),
            "list": pa.array([[1], None, [2, 3]]),
            "nothing": pa.nulls(3),
        }
    )


def write(path: Path, kind: str) -> Path:
    if kind == "parquet":
        parquet.write_table(table(), path)
    elif kind == "feather":
        feather.write_feather(table(), path)
    else:
        with ipc.new_stream(path, table().schema) as stream:
            stream.write_table(table())
    return path


@pytest.mark.parametrize("kind", ["parquet", "feather", "stream"])
def test_types(tmp_path: Path, kind: str) -> None:
    frame = read_frame(write(tmp_path / "data", kind))
    kinds = {column.name: column.kind for column in frame.columns}
    assert kinds == {
        "whole": "number",
        "half": "number",
        "money": "number",
        "flag": "boolean",
        "text": "text",
        "level": "text",
        "day": "date",
        "when": "date",
        "list": "other",
        "nothing": "number",
    }
    nan = np.nan
    np.testing.assert_array_equal(frame.column("whole").values, [1, nan, 3])
    np.testing.assert_array_equal(frame.column("half").values, [0.5, nan, 2])
    np.testing.assert_array_equal(frame.column("money").values, [1, 2, nan])
    np.testing.assert_array_equal(frame.column("flag").values, [1, nan, 0])
    np.testing.assert_array_equal(frame.column("nothing").values, [nan] * 3)
    assert frame.column("text").values.tolist() == ["a", None, None]
    assert frame.column("level").values.tolist() == ["x", "y", "x"]
    assert frame.column("day").values.tolist() == ["2024-01-31", None, "2024-01-31"]
    assert frame.column("list").is_missing.tolist() == [False, True, False]
    assert frame.place(2).endswith("data, row 3")


def test_text_on_demand(tmp_path: Path) -> None:
    frame = read_frame(write(tmp_path / "data.parquet", "parquet"), as_text=["whole"])
    assert frame.column("whole").values.tolist() == ["1", None, "3"]


def test_damaged_offsets(tmp_path: Path) -> None:
    path = tmp_path / "data"
    feather.write_feather(pa.table({"a": ["first", "second"]}), path, compression="uncompressed")
    offsets = np.array([0, 5, 11], np.int32).tobytes()
    data = path.read_bytes()
    assert data.count(offsets) == 1
    path.write_bytes(data.replace(offsets, np.array([0, 5, 2**30], np.int32).tobytes()))
    with pytest.raises(DataError, match="cannot be decoded"):
        read_frame(path)


@pytest.mark.parametrize("kind", ["parquet", "feather", "stream"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_truncated(tmp_path: Path, kind: str, share: float) -> None:
    path = write(tmp_path / "data", kind)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    with pytest.raises(
        DataError, match=r"data: cannot be decoded \(.*\); write it again"
    ) as caught:
        read_frame(path)
    assert str(caught.value).isprintable()


def test_d1_no_columns_and_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    parquet.write_table(pa.table({}), path)
    with pytest.raises(DataError, match=r"has no columns"):
        read_frame(path)
    parquet.write_table(table().slice(0, 0), path)
    with pytest.raises(DataError, match=r"no row of data"):
        read_frame(path)


def test_d5_duplicate_columns(tmp_path: Path) -> None:
    path = tmp_path / "data.arrow"
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with ipc.new_stream(path, twice.schema) as stream:
        stream.write_table(twice)
    with pytest.raises(DataError, match="'a' is there twice"):
        read_frame(path)


def test_d12_size_is_checked_before_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_CELLS", 10)
    with pytest.raises(DataError, match="3 rows and more of 10 columns"):
        read_frame(write(tmp_path / "data.parquet", "parquet"))


def test_r11_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "data.parquet", "parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'mercer\[arrow\]'"):
        read_frame(path)


@pytest.mark.parametrize("package", ["pandas", "polars"])
@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_files_of_data_frames(tmp_path: Path, package: str, kind: str) -> None:
    frames = pytest.importorskip(package)
    path = tmp_path / "data"
    data = frames.DataFrame({"a": [1, 2], "s": ["x", None], "c": ["u", "v"]})
    if package == "pandas":
        data["c"] = data["c"].astype("category")
        getattr(data, f"to_{kind}")(path)
    else:
        data = data.with_columns(frames.col("c").cast(frames.Categorical))
        data.write_parquet(path) if kind == "parquet" else data.write_ipc(path)
    frame = read_frame(path)
    assert frame.column("a").values.tolist() == [1.0, 2.0]
    assert frame.column("s").values.tolist() == ["x", None]
    assert frame.column("c").values.tolist() == ["u", "v"]


def test_dates_of_parquet_are_those_of_text(tmp_path: Path) -> None:
    """Also with a time zone; dates of any text are understood once the order is known."""
    days = [datetime.date(2023, 12, 31), datetime.date(2024, 2, 1)]
    when = [datetime.datetime(2024, 1, 1, 6, tzinfo=datetime.UTC)] * 2
    money = pa.array([1234, 5], pa.decimal128(10, 2))
    columns = {"day": days, "n": money, "when": pa.array(when, pa.timestamp("ns", tz="UTC"))}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    encoder = fit_encoder(read_frame(tmp_path / "a.parquet"))
    X = encoder.transform(read_frame(tmp_path / "a.parquet")).X
    assert X[:, :5].tolist() == [[2023, 12, 7, 0, 1234], [2024, 2, 4, 32, 5]]
    text = "day,n,when\n31/12/2023,{},2024-01-01T06:00Z\n01/02/2024,5,2024-01-01T08:00+02:00\n"
    (tmp_path / "a.csv").write_text(text.format(1234))
    other = fit_encoder(read_frame(tmp_path / "a.csv"))
    for path in ("a.csv", "a.parquet"):
        frame = read_frame(tmp_path / path, as_written=other.texts())
        np.testing.assert_array_equal(other.transform(frame).X, X)
    (tmp_path / "b.csv").write_text('n\n"1,234"\n5\n')
    grouped = fit_encoder(read_frame(tmp_path / "b.csv"))
    frame = read_frame(tmp_path / "a.parquet", as_written=grouped.texts())
    assert grouped.transform(frame).X.tolist() == [[1234.0], [5.0]]
