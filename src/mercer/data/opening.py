"""Opening a table of numbers that need not fit into memory."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mercer.data.array_rows import open_array
from mercer.data.arrow_reader import PARQUET, is_arrow
from mercer.data.csv_cache import cache_folder, open_csv
from mercer.data.file_rows import NPY, find_file, open_npy
from mercer.data.files import check_path, reading
from mercer.data.parquet_rows import open_parquet
from mercer.data.source import RowSource
from mercer.data.tables import list_folder, refuse_foreign
from mercer.data.wording import printable
from mercer.errors import DataError

__all__ = ["open_rows"]


def open_rows(
    data: str | os.PathLike[str] | NDArray[Any] | RowSource,
    *,
    cache: str | os.PathLike[str] | None = None,
    progress: bool | Literal["auto"] = "auto",
) -> RowSource:
    """Open a table of numbers to be read in blocks: `mercer.data.open`.

    Nothing but headers is read, except of a text file, which is parsed once into a file of
    8 bytes a number in the cache folder.

    Parameters
    ----------
    data : path, ndarray of shape (n_rows, n_columns) or RowSource
        A Parquet, CSV (also gzipped) or .npy file; a folder of Parquet or of CSV files, taken in
        the order of their names; an array, or a memory map, whose file is then read. What a file
        is, its first bytes say. The columns of an array are called x0, x1, ...
    cache : path, optional
        Folder for parsed text files; `mercer/rows` in `$XDG_CACHE_HOME` or `~/.cache` by default.
        What is in it may be removed at any time that no run reads it.
    progress : bool or "auto"
        Say on standard error where a text file is parsed to, and the size; "auto": on a terminal
        or in a notebook.

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
        A Parquet file, and pyarrow is not installed.

    Examples
    --------
    >>> import numpy as np, mercer.data
    >>> rows = mercer.data.open(np.arange(12.0).reshape(6, 2))
    >>> rows.names, [block.shape for block in rows.blocks(4)]
    (('x0', 'x1'), [(4, 2), (2, 2)])
    >>> rows.select(["x1"]).take([0, 5]).tolist()
    [[1.0], [11.0]]
    """
    if isinstance(data, RowSource):
        return data
    if isinstance(data, np.ndarray):
        return find_file(data) or open_array(data)
    name = os.fspath(data)
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
    refuse_foreign(path, start)
    return "text"
