"""The same table of numbers in every place from which rows are read in blocks."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

import mercer.data
from mercer.data.source import RowSource

NAMES = ("x0", "x1", "x2")
ROWS = np.random.default_rng(31).standard_normal((1000, 3))
ROWS[:, 1] = np.arange(1000)


def write_csv(path: Path, rows: np.ndarray, names=NAMES) -> None:
    lines = [",".join(names), *(",".join(map(repr, row)) for row in rows.tolist())]
    text = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def write_parquet(path: Path, rows: np.ndarray, names=NAMES, row_group_size: int = 300) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(dict(zip(names, rows.T, strict=True)))
    plain = {"use_dictionary": False, "compression": "NONE", "write_statistics": False}
    pq.write_table(table, path, row_group_size=row_group_size, **plain)


def write_npy(path: Path, rows: np.ndarray) -> None:
    np.save(path, rows)


def _open(folder: Path, name: str) -> RowSource:
    return mercer.data.open(folder / name, cache=folder / "cache")


def in_memory(folder: Path) -> RowSource:
    return mercer.data.open(ROWS.copy())


def fortran_order(folder: Path) -> RowSource:
    return mercer.data.open(np.asfortranarray(ROWS))


def npy_file(folder: Path) -> RowSource:
    write_npy(folder / "rows.npy", ROWS)
    return _open(folder, "rows.npy")


def npy_of_columns(folder: Path) -> RowSource:
    write_npy(folder / "rows.npy", np.asfortranarray(ROWS))
    return _open(folder, "rows.npy")


def memory_map(folder: Path) -> RowSource:
    wide = np.hstack([np.zeros((1001, 2)), np.vstack([np.zeros((1, 3)), ROWS])])
    write_npy(folder / "rows.npy", wide)
    return mercer.data.open(np.load(folder / "rows.npy", mmap_mode="r")[1:, 2:])


def csv_file(folder: Path) -> RowSource:
    write_csv(folder / "rows.csv", ROWS)
    return _open(folder, "rows.csv")


def csv_folder(folder: Path) -> RowSource:
    (folder / "parts").mkdir()
    write_csv(folder / "parts" / "b.csv", ROWS[400:, ::-1], NAMES[::-1])
    write_csv(folder / "parts" / "a.csv.gz", ROWS[:400])
    return _open(folder, "parts")


def parquet_file(folder: Path) -> RowSource:
    write_parquet(folder / "rows.parquet", ROWS)
    return _open(folder, "rows.parquet")


def parquet_folder(folder: Path) -> RowSource:
    (folder / "parts").mkdir()
    write_parquet(folder / "parts" / "b.parquet", ROWS[400:, ::-1], NAMES[::-1])
    write_parquet(folder / "parts" / "a.parquet", ROWS[:400])
    return _open(folder, "parts")


def rows_left_out(folder: Path) -> RowSource:
    """The first and the last ones, too, and more in a row than are read at once."""
    left_out = np.array([0, 1, 37, 500, *range(600, 645), 1049])
    more = np.full((1050, 3), 9.5)
    more[np.delete(np.arange(1050), left_out)] = ROWS
    write_parquet(folder / "rows.parquet", more)
    return _open(folder, "rows.parquet").without_rows(left_out)


#: Name: how it is made in a folder, and the file (or pattern of it) that is read.
SOURCES: dict[str, tuple[Callable[[Path], RowSource], str]] = {
    "array": (in_memory, ""),
    "Fortran order": (fortran_order, ""),
    "npy": (npy_file, "rows.npy"),
    "npy of columns": (npy_of_columns, "rows.npy"),
    "memory map": (memory_map, "rows.npy"),
    "csv": (csv_file, "cache/*/rows-*.npy"),
    "csv folder": (csv_folder, "cache/*/rows-*.npy"),
    "parquet": (parquet_file, "rows.parquet"),
    "parquet folder": (parquet_folder, "parts/b.parquet"),
    "rows left out": (rows_left_out, "rows.parquet"),
}


def overwrite(folder: Path, pattern: str, row: int, column: int) -> None:
    """Change one number where it lies; size and time of the file stay as they are."""
    (path,) = folder.glob(pattern)
    status = path.stat()
    old = ROWS[row, column].tobytes()
    content = path.read_bytes()
    assert content.count(old) == 1
    path.write_bytes(content.replace(old, np.float64(0.5).tobytes()))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_mtime_ns == status.st_mtime_ns
    assert path.stat().st_size == status.st_size
