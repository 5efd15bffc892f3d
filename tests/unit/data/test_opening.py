from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mercer.data
from mercer.errors import DataError, StorageError, UsageError
from support.row_cases import ROWS, write_csv, write_npy, write_parquet

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")


def test_the_first_bytes_say_what_a_file_is(tmp_path: Path) -> None:
    for name, write in [("a", write_csv), ("b", write_parquet), ("c.npy", write_npy)]:
        write(tmp_path / name, ROWS)
        source = mercer.data.open(str(tmp_path / name), cache=tmp_path / "cache")
        np.testing.assert_array_equal(np.vstack(list(source.blocks(300))), ROWS)
        assert source.name == str(tmp_path / name)


def test_a_source_is_open_already() -> None:
    source = mercer.data.open(ROWS)
    assert mercer.data.open(source) is source


@pytest.mark.parametrize("data", [[[1.0]], None, 3])
def test_what_cannot_be_opened(data) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TypeError):
        mercer.data.open(data)


def test_d17_missing(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"no such file or folder$"):
        mercer.data.open(tmp_path / "none.csv")
    (tmp_path / "link").symlink_to(tmp_path / "none.csv")
    with pytest.raises(StorageError, match="the link leads to nothing"):
        mercer.data.open(tmp_path / "link")


def test_d17_pipe_does_not_hang(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    for path in (tmp_path / "a.parquet", tmp_path / "parts" / "a.csv"):
        os.mkfifo(path)
        with pytest.raises(StorageError, match="is a named pipe"):
            mercer.data.open(path)
    with pytest.raises(StorageError, match="is a named pipe"):
        mercer.data.open(tmp_path / "parts")


def test_d17_folder_without_data(tmp_path: Path) -> None:
    (tmp_path / "readme.md").write_text("")
    with pytest.raises(
        StorageError, match="a folder without a CSV, JSON lines, Parquet or Arrow file"
    ):
        mercer.data.open(tmp_path)


def test_folders_of_two_kinds(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", ROWS)
    write_parquet(tmp_path / "b.csv", ROWS)
    with pytest.raises(DataError, match=r"b.csv: is Parquet, but .*a.csv is text; keep one kind"):
        mercer.data.open(tmp_path)
    write_parquet(tmp_path / "c.parquet", ROWS)
    with pytest.raises(DataError, match=r"holds both 'a.csv' and 'c.parquet'; keep one kind"):
        mercer.data.open(tmp_path)


def test_arrow_files(tmp_path: Path) -> None:
    feather.write_feather(pa.table({"a": [1.0]}), tmp_path / "a.feather")
    with pytest.raises(DataError, match=r"a.feather: is an Arrow file.*save it as Parquet"):
        mercer.data.open(tmp_path / "a.feather")


@pytest.mark.parametrize(
    ("start", "words"), [(b"PK\x03\x04", "a spreadsheet"), (b"MERCER01", "a model of mercer")]
)
def test_foreign_files(tmp_path: Path, start: bytes, words: str) -> None:
    (tmp_path / "a.csv").write_bytes(start + b"more")
    with pytest.raises(DataError, match=rf"a.csv: is {words}"):
        mercer.data.open(tmp_path / "a.csv")


@pytest.mark.parametrize("progress", ["auto", False])
def test_nothing_is_said_in_a_pipe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], progress
) -> None:  # type: ignore[no-untyped-def]
    write_csv(tmp_path / "a.csv", ROWS)
    mercer.data.open(tmp_path / "a.csv", cache=tmp_path / "cache", progress=progress)
    assert capsys.readouterr() == ("", "")


PEAK = """
import re, sys
from pathlib import Path
import pyarrow.parquet
import mercer.data

def peak():  # in MB; that of getrusage starts at the peak of the parent
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1e3

start = peak()
source = mercer.data.open(sys.argv[1])
total = sum(float(block[:, 0].sum()) for block in source.verified().blocks(8192))
print(peak() - start, total)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
@pytest.mark.parametrize("kind", ["npy", "npy of columns", "parquet"])
def test_memory_of_a_pass(tmp_path: Path, kind: str) -> None:
    """200 MB in one row group; the mutant is reading it whole."""
    rows = np.random.default_rng(6).standard_normal((1_250_000, 20))
    path = tmp_path / "data"
    if kind == "parquet":
        write_parquet(path, rows, [f"c{k}" for k in range(20)], row_group_size=len(rows))
    else:
        write_npy(path.with_suffix(".npy"), rows if kind == "npy" else np.asfortranarray(rows))
        path = path.with_suffix(".npy")
    assert _peak(PEAK, path, rows) < 100.0
    if kind == "parquet":
        mutant = PEAK.replace("source.verified().blocks(8192)", "source.blocks(source.n_rows)")
        assert _peak(mutant, path, rows) > 150.0


def _peak(code: str, path: Path, rows: np.ndarray) -> float:
    """Run the code on a file that holds the rows; the memory it takes at most, in MB."""
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    peak, total = map(float, done.stdout.split())
    assert abs(total - rows[:, 0].sum()) < 1e-6
    return peak


CAPPED = """
import resource, sys
import numpy as np
import mercer.data

resource.setrlimit(resource.RLIMIT_AS, (3 * 2**29, 3 * 2**29))
source = mercer.data.open(sys.argv[1])
total = sum(float(block[:, 0].sum()) for block in source.blocks(8192))
print(source.n_rows, total)
"""


@pytest.mark.slow
def test_dist_6_address_space_of_a_quarter_of_the_matrix(tmp_path: Path) -> None:
    """6 GiB, of which the disk holds nothing but one row; 1.5 GiB may be addressed."""
    n = 6 * 2**30 // 160
    with open(tmp_path / "rows.npy", "wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (n, 20)}
        np.lib.format.write_array_header_1_0(file, header)
        file.seek(160 * (n - 1), os.SEEK_CUR)
        file.write(np.full(20, 0.5).tobytes())
    done = subprocess.run(
        [sys.executable, "-c", CAPPED, str(tmp_path / "rows.npy")],
        capture_output=True, text=True, check=True, timeout=300,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.stdout.split() == [str(n), "0.5"]


def test_json_lines_in_blocks(tmp_path: Path) -> None:
    text = "\n".join(f'{{"a": {i}, "b": {i / 4}, "w": "x"}}' for i in range(9)).encode()
    for name, content in (("t.jsonl", text), ("t.jsonl.gz", gzip.compress(text))):
        (tmp_path / name).write_bytes(content)
        rows = mercer.data.open(tmp_path / name, cache=tmp_path / "cache").without(["w"])
        assert rows.names == ("a", "b")
        blocks = list(rows.blocks(5))
        assert [block.shape for block in blocks] == [(5, 2), (4, 2)]
        assert np.concatenate(blocks)[:, 1].tolist() == [i / 4 for i in range(9)]


def test_standard_input_is_not_opened_in_blocks() -> None:
    with pytest.raises(UsageError, match="can be read once"):
        mercer.data.open("-")
