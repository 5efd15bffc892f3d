"""Rows of Parquet files, by pyarrow, which is optional."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer.data.arrow_reader import decoding, kind_of, need_pyarrow
from mercer.data.frame import Kind, refuse_other_columns, refuse_twins
from mercer.data.source import CHUNK_CELLS, REMEDY, Part, RowSource, index_refusal
from mercer.data.stamps import Stamp
from mercer.data.wording import printable, quoted

__all__ = ["ParquetRows", "open_parquet"]

#: Bytes of each column that are read at once; without it a column of a row group is read whole.
BUFFER_BYTES = 2**16


@dataclass(frozen=True, eq=False, kw_only=True)
class ParquetRows(RowSource):
    """Rows of one or several Parquet files with the same columns.

    A few thousand rows are decoded at a time, on one thread: never a whole row group.
    """

    def _chunks(self, start: int, stop: int) -> Iterator[NDArray[np.float64]]:
        offset = 0
        for part, stamp in zip(self.parts, self.stamps, strict=True):
            low, high = max(start - offset, 0), min(stop - offset, part.n_rows)
            if low < high:
                with decoding(Path(stamp.name)):
                    yield from self._decode(stamp.path, low, high)
            offset += part.n_rows

    def _decode(self, path: str, start: int, stop: int) -> Iterator[NDArray[np.float64]]:
        """Yield some rows of one file."""
        import pyarrow.parquet as pq

        with pq.ParquetFile(path, buffer_size=BUFFER_BYTES, pre_buffer=False) as file:
            sizes = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
            ends = np.cumsum(sizes)
            first, last = np.searchsorted(ends, (start, stop - 1), side="right")
            position = int(ends[first]) - sizes[first]
            for batch in file.iter_batches(
                batch_size=max(1, CHUNK_CELLS // self.n_columns),
                row_groups=list(range(first, last + 1)),
                columns=list(self.names),
                use_threads=False,
            ):
                low, high = max(start - position, 0), min(stop - position, batch.num_rows)
                position += batch.num_rows
                if low < high:
                    yield self._as_matrix(batch.slice(low, high - low))

    def _as_matrix(self, batch: Any) -> NDArray[np.float64]:
        matrix = np.empty((batch.num_rows, self.n_columns))
        for k, name in enumerate(self.names):
            matrix[:, k] = _as_numbers(batch.column(batch.schema.get_field_index(name)))
        return matrix

    def _pick(self, positions: tuple[int, ...]) -> Self:
        return replace(self, names=tuple(self.names[k] for k in positions))


def open_parquet(paths: Sequence[Path], name: str) -> ParquetRows:
    """Make a source of the rows of Parquet files, one after the other.

    Parameters
    ----------
    paths : sequence of Path
        Regular files, at least one.
    name : str
        The file or the folder, as the user named it.

    Raises
    ------
    ImportError
        pyarrow is not installed.
    DataError
        A file is damaged, or has other columns than the first.
    StorageError
        A file cannot be read.
    """
    need_pyarrow(paths[0])
    stamps = tuple(Stamp.of(path) for path in paths)
    parts = []
    kinds: dict[str, Kind] = {}
    refusals: dict[str, str] = {}
    for path in paths:
        n_rows, types = _read_footer(path)
        parts.append(Part(str(path), n_rows))
        if not kinds:
            kinds = {column: kind for column, (kind, _) in types.items()}
        refuse_other_columns(str(paths[0]), tuple(kinds), str(path), tuple(types))
        for column, (kind, words) in types.items():
            where = f"{printable(str(path))}: column {quoted(column)} is"
            if kind not in ("number", "boolean"):
                refusals.setdefault(column, f"{where} {words}, not numbers; {REMEDY}")
            elif kind != kinds[column]:
                refusals.setdefault(
                    column,
                    f"{where} {kind}, but {kinds[column]} in {printable(str(paths[0]))}; write "
                    "the files with the same types",
                )
    names = tuple(kinds)
    refusals |= index_refusal(name, names)
    return ParquetRows(name=name, names=names, parts=tuple(parts), stamps=stamps, refusals=refusals)


def _read_footer(path: Path) -> tuple[int, dict[str, tuple[Kind, str]]]:
    """Return the number of rows and, for each column, what it is, and its type in words."""
    import pyarrow.parquet as pq

    with decoding(path), pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        refuse_twins(str(path), schema.names)
        return file.metadata.num_rows, {
            field.name: (kind_of(field.type), printable(str(field.type))) for field in schema
        }


def _as_numbers(column: Any) -> NDArray[np.float64]:
    """View a column as float64 (NaN for null), without pandas, which pyarrow would load."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.type != pa.float64():
        column = column.cast(pa.float64(), safe=False)
    if column.null_count:
        column = pc.fill_null(column, np.nan)
    return np.frombuffer(column.buffers()[1], np.float64, len(column), column.offset * 8)
