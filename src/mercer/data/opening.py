"""Opening a table of numbers that need not fit into memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mercer.data.arrow import BUFFER_BYTES, PARQUET, as_column, decoding, is_arrow, open_parquet
from mercer.data.csv_cache import cache_folder, open_csv
from mercer.data.csv_reader import ZIP, read_blocks
from mercer.data.encoding import as_levels
from mercer.data.files import check_path, printable, reading
from mercer.data.frame import ColumnBuilder
from mercer.data.source import NPY, RowSource, find_file, open_array, open_npy
from mercer.data.tables import list_folder, refuse_foreign
from mercer.errors import DataError, UsageError

__all__ = ["open_rows", "read_texts"]


# The cells of one column of files as text, block by block, as a table that is read whole has them.
#
# Sources of rows hold numbers only: names of rows, and labels that are words, come from here.

#: Cells of a Parquet file that are decoded at once.
_BATCH = 2**13


def read_texts(
    paths: Sequence[Path], column: str, rows_per_block: int
) -> Iterator[NDArray[np.object_]]:
    """Read one column of CSV (also gzipped) or Parquet files in blocks, one file after the other.

    Texts are as they stand, such as "007"; None where the cell is missing.
    """
    cells = chain.from_iterable(chain.from_iterable(_pieces(path, column) for path in paths))
    while taken := list(islice(cells, rows_per_block)):
        block = np.empty(len(taken), dtype=object)
        block[:] = taken
        yield block


def _pieces(path: Path, column: str) -> Iterator[NDArray[Any]]:
    """Yield the cells of one file in pieces of any length."""
    with reading(path), open(path, "rb") as stream:
        start = stream.read(16)
    return _parquet_pieces(path, column) if is_arrow(start) else _csv_pieces(path, column)


def _csv_pieces(path: Path, column: str) -> Iterator[NDArray[Any]]:
    for block in read_blocks(path, is_bounded=False):
        builder = ColumnBuilder(column, is_text=True, is_held=False, has_decimal_comma=False)
        builder.add(block.columns[block.names.index(column)])
        yield builder.finish().values


def _parquet_pieces(path: Path, column: str) -> Iterator[NDArray[Any]]:
    import pyarrow.parquet as pq

    with (
        decoding(path),
        pq.ParquetFile(path, buffer_size=BUFFER_BYTES, pre_buffer=False) as file,
    ):
        for batch in file.iter_batches(batch_size=_BATCH, columns=[column], use_threads=False):
            values = batch.column(batch.schema.get_field_index(column))
            yield as_levels(as_column(column, values, is_text=True))


def open_rows(
    data: str | os.PathLike[str] | NDArray[Any] | RowSource,
    *,
    cache: str | os.PathLike[str] | None = None,
    progress: bool | Literal["auto"] = "auto",
    engine: Literal["dask"] | None = None,
    scheduler: str | None = None,
    n_workers: int | None = None,
) -> RowSource:
    """Open a table of numbers to be read in blocks: `mercer.data.open`.

    Nothing but headers is read, except of a text file, which is parsed once into a file of
    8 bytes a number in the cache folder.

    Parameters
    ----------
    data : path, ndarray of shape (n_rows, n_columns) or RowSource
        A Parquet or .npy file, CSV or JSON lines (both also packed, .gz or .zst), a spreadsheet; a
        folder of Parquet or of text files, taken in the order of their names; an array, or a memory
        map, whose file is then read. What a file is, its first bytes say. The columns of an array
        are called x0, x1, ...
    cache : path, optional
        Folder for parsed text files; `mercer/rows` in `$XDG_CACHE_HOME` or `~/.cache` by default.
        What is in it may be removed at any time that no run reads it.
    progress : bool or "auto"
        Say on standard error where a text file is parsed to, and the size; "auto": on a terminal
        or in a notebook.
    engine : {"dask"}, optional
        "dask": passes over the rows are made by the workers of a Dask cluster, which must see the
        files under the same path. The numbers are the same to the last bit.
    scheduler : str, optional
        Address of the cluster's scheduler. By default that of this process's
        `distributed.Client`; if there is none, workers on this machine are started.
    n_workers : int, optional
        How many are started; one a core by default.

    Returns
    -------
    RowSource
        Its columns of true and false are 1 and 0. Columns of text or of dates may be there, as
        long as they are left out by `select` or `without`.

    Raises
    ------
    DataError
        It is not a table that can be used; says file, row, column and remedy.
    StorageError
        It cannot be read, or the cache not be written.
    ImportError
        A Parquet file, and pyarrow is not installed; or an engine that is not.
    ClusterError
        No scheduler answers there, or its workers have other versions.

    Examples
    --------
    >>> import numpy as np, mercer.data
    >>> rows = mercer.data.open(np.arange(12.0).reshape(6, 2))
    >>> rows.names, [block.shape for block in rows.blocks(4)]
    (('x0', 'x1'), [(4, 2), (2, 2)])
    >>> rows.select(["x1"]).take([0, 5]).tolist()
    [[1.0], [11.0]]
    """
    if engine is not None:
        from mercer.data.dask import share

        if engine != "dask":
            raise UsageError(f"engine must be 'dask' or None; got {engine!r}")
        return share(open_rows(data, cache=cache, progress=progress), scheduler, n_workers)
    if isinstance(data, RowSource):
        return data
    if isinstance(data, np.ndarray):
        return find_file(data) or open_array(data)
    name = os.fspath(data)
    if name == "-":
        raise UsageError(
            "standard input can be read once, and these rows are read again and again"
            "; save them to a file"
        )
    path = Path(name)
    paths = list_folder(path) if check_path(path) else [path]
    kinds = {part: _find_kind(part) for part in paths}
    kind = kinds[paths[0]]
    for part in paths:
        if kinds[part] != kind:
            raise DataError(
                f"{printable(str(part))}: is {kinds[part]}, but {printable(str(paths[0]))} is "
                f"{kind}; keep one kind"
            )
    if kind == "Parquet":
        return open_parquet(paths, name)
    if kind == "NumPy":
        return open_npy(path)

    def tell(line: str) -> None:
        is_seen = sys.stderr.isatty() or "ipykernel" in sys.modules
        if is_seen if progress == "auto" else progress:
            print(line, file=sys.stderr, flush=True)  # noqa: T201

    folder = cache_folder() if cache is None else Path(cache)
    return open_csv(paths, name, cache=folder, tell=tell)


def _find_kind(path: Path) -> Literal["Parquet", "NumPy", "text"]:
    """Look at the first bytes of a file."""
    with reading(path), open(path, "rb") as stream:
        start = stream.read(16)
    if start.startswith(PARQUET):
        return "Parquet"
    if start.startswith(NPY):
        return "NumPy"
    if is_arrow(start):
        raise DataError(
            f"{printable(str(path))}: is an Arrow file, which is not read in blocks; save it as "
            "Parquet"
        )
    if not start.startswith(ZIP):
        refuse_foreign(path, start)
    return "text"
