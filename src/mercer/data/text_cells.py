"""The cells of one column of files as text, block by block, as a table that is read whole has them.

Sources of rows hold numbers only: names of rows, and labels that are words, come from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.arrow_reader import as_column, decoding, is_arrow
from mercer.data.column_code import as_levels
from mercer.data.csv_reader import read_blocks
from mercer.data.files import reading
from mercer.data.infer import ColumnBuilder
from mercer.data.parquet_rows import BUFFER_BYTES

__all__ = ["read_texts"]

#: Cells of a Parquet file that are decoded at once.
_BATCH = 2**13


def read_texts(
    paths: Sequence[Path], column: str, rows_per_block: int
) -> Iterator[NDArray[np.object_]]:
    """Read one column of text or Parquet files, one after the other.

    Parameters
    ----------
    paths : sequence of Path
        CSV files, also gzipped, or Parquet files, that have the column.
    column : str
        Its name.
    rows_per_block : int
        Cells in a block; the last block has what is left.

    Yields
    ------
    ndarray of shape (rows_per_block,)
        Texts, "007" as it stands; None where the cell is missing.

    Raises
    ------
    DataError
        A file is damaged.
    StorageError
        A file cannot be read.
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
