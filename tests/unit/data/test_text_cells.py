"""The cells of one column as text: those of a table that is read whole, in any blocks."""

from __future__ import annotations

import datetime
import gzip
from itertools import chain
from pathlib import Path

import pytest

from mercer.data.encoding import as_levels
from mercer.data.tables import list_folder, read_frame, read_texts
from mercer.errors import DataError


def check(path: Path, column: str, n_rows: int) -> list[str | None]:
    """The cells are those of `read_frame`, in blocks of any size."""
    paths = list_folder(path) if path.is_dir() else [path]
    whole = as_levels(read_frame(path, as_text=(column,)).column(column)).tolist()
    for size in (1, 3, n_rows, n_rows + 1):
        blocks = [block.tolist() for block in read_texts(paths, column, size)]
        assert {len(block) for block in blocks[:-1]} <= {size}
        assert list(chain.from_iterable(blocks)) == whole
    return whole


def test_text_files_of_a_folder_whose_columns_differ_in_order(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,x\n007, 1\n 1.50 ,2\nNA,3\n")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b'x,id\n4,"a,b"\n5,9007199254740993\n'))
    assert check(tmp_path, "id", 5) == ["007", "1.50", None, "a,b", "9007199254740993"]


@pytest.mark.parametrize(
    "cells",
    [
        [1, None, 2**53 + 1],
        [0.5, 2.0, None],
        ["a", "", None],
        [True, False, None],
        [None, None, None],
        [datetime.date(2026, 1, 2), None, datetime.date(2026, 1, 3)],
        [[1], None, [2]],
    ],
)
def test_parquet_of_any_type(tmp_path: Path, cells: list[object]) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"x": [1.0] * 3, "id": cells}), tmp_path / "t.parquet")
    check(tmp_path / "t.parquet", "id", 3)


def test_parquet_of_words_that_are_kept_once(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    words = pa.array(["a", "b", None, "a"]).dictionary_encode()
    pq.write_table(pa.table({"id": words}), tmp_path / "t.parquet", row_group_size=2)
    assert check(tmp_path / "t.parquet", "id", 4) == ["a", "b", None, "a"]


def test_a_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,x\n1\n")
    with pytest.raises(DataError, match="has 1 cells"):
        list(read_texts([tmp_path / "a.csv"], "id", 10))
