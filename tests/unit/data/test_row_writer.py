from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from mercer.data import row_writer
from mercer.data.row_writer import CsvWriter, writing_rows
from mercer.data.tables import read_frame
from mercer.errors import StorageError, UsageError

pytest.importorskip("pyarrow")


def block(start: int, n: int) -> Mapping[str, np.ndarray]:
    rng = np.random.default_rng(start)
    return {
        "row": np.arange(start, start + n),
        "label": np.array([f"class, {k % 3}\n" for k in range(n)], dtype=object),
        "mean": rng.standard_normal(n) * 10.0 ** rng.integers(-30, 30, n),
        "flag": np.arange(n) % 2 == 0,
    }


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".CSV"])
def test_what_is_written_is_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(row_writer, "ROWS_PER_GROUP", 12)
    path = tmp_path / f"out{suffix}"
    blocks = [block(1, 10), block(11, 10), block(21, 0), block(21, 7)]
    with writing_rows(path) as writer:
        for columns in blocks:
            writer.append(columns)
        assert not path.exists()
    frame = read_frame(path)
    assert frame.names == ("row", "label", "mean", "flag")
    for name in ("row", "mean", "flag"):
        expected = np.concatenate([columns[name] for columns in blocks])
        np.testing.assert_array_equal(frame.column(name).values, expected)
    labels = [text.strip() for columns in blocks for text in columns["label"]]
    assert [text.strip() for text in frame.column("label").values] == labels
    assert os.listdir(tmp_path) == [path.name]


def test_rows_are_collected_into_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet as pq

    monkeypatch.setattr(row_writer, "ROWS_PER_GROUP", 12)
    path = tmp_path / "out.parquet"
    with writing_rows(path) as writer:
        for k in range(7):
            writer.append(block(5 * k, 5))
    metadata = pq.read_metadata(path)
    sizes = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
    assert sizes == [15, 15, 5]


def test_texts_of_which_the_first_block_has_none(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    with writing_rows(tmp_path / "out.parquet") as writer:
        writer.append({"id": np.array([None, None], dtype=object)})
        writer.append({"id": np.array(["a"], dtype=object)})
    assert parquet.read_table(tmp_path / "out.parquet")["id"].to_pylist() == [None, None, "a"]


def test_csv_as_it_is() -> None:
    stream = io.StringIO()
    writer = CsvWriter(stream)
    writer.append({"row": np.array([1, 2]), "mean": np.array([0.1, 1e-300])})
    writer.append({"row": np.array([3]), "mean": np.array([2.0])})
    assert stream.getvalue() == "row,mean\n1,0.1\n2,1e-300\n3,2.0\n"


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("wrong"), OSError(28, "full")])
def test_a_failure_leaves_the_old_file(tmp_path: Path, suffix: str, error: BaseException) -> None:
    path = tmp_path / f"out{suffix}"
    path.write_text("old")

    def write() -> None:
        with writing_rows(path) as writer:
            writer.append(block(1, 10))
            raise error

    with pytest.raises(StorageError if isinstance(error, OSError) else type(error)):
        write()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"a": np.ones(2), "b": np.ones(3)}, "different lengths: a, b"),
        ({"b": np.ones(2)}, "columns b after a"),
        ({"a": np.ones(2), "b": np.ones(2)}, "columns a, b after a"),
    ],
)
def test_blocks_that_do_not_fit(
    tmp_path: Path, suffix: str, columns: dict[str, np.ndarray], words: str
) -> None:
    path = tmp_path / f"out{suffix}"

    def write() -> None:
        with writing_rows(path) as writer:
            writer.append({"a": np.ones(2)})
            writer.append(columns)

    with pytest.raises(ValueError, match=words):
        write()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_nothing_written(tmp_path: Path, suffix: str) -> None:
    with (
        pytest.raises(ValueError, match="no columns were appended"),
        writing_rows(tmp_path / f"out{suffix}"),
    ):
        pass
    assert os.listdir(tmp_path) == []


def test_names_that_end_otherwise(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match=r"must end in .csv or .parquet"),
        writing_rows(tmp_path / "out.xlsx"),
    ):
        pass


def test_r11_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with (
        pytest.raises(ImportError, match=r"pip install 'mercer\[arrow\]'"),
        writing_rows(tmp_path / "out.parquet"),
    ):
        pass
    assert os.listdir(tmp_path) == []


def test_a_carriage_return_stays_in_its_cell(tmp_path: Path) -> None:
    path, cells = tmp_path / "out.csv", ["one\rtwo", "a\r\nb", "plain"]
    with writing_rows(path) as writer:
        writer.append({"x\ry": np.array(cells, dtype=object), "n": np.arange(3)})
    assert path.read_bytes() == b'"x\ry",n\n"one\rtwo",0\n"a\r\nb",1\nplain,2\n'
    frame = read_frame(path)
    assert frame.columns[1].values.tolist() == [0.0, 1.0, 2.0]
    assert frame.columns[0].values.tolist() == cells
