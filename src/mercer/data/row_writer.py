"""Writing named columns to CSV or Parquet block by block: constant memory, whole or not at all."""

from __future__ import annotations

import contextlib
import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, TextIO

from numpy.typing import NDArray

from mercer.atomic import replacing
from mercer.data.arrow import need_pyarrow
from mercer.data.files import printable
from mercer.errors import UsageError

__all__ = ["CsvWriter", "ParquetWriter", "RowWriter", "writing_rows"]


#: Rows that a row group of a Parquet file has at least, but for the last one.
ROWS_PER_GROUP = 2**17


class RowWriter(ABC):
    """Takes blocks of rows; all blocks have the same columns."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] | None = None

    def append(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Write the next rows: numbers, booleans or texts, in the columns of the first block."""
        names = tuple(columns)
        if len({len(values) for values in columns.values()}) > 1:
            raise ValueError(f"columns of different lengths: {', '.join(names)}")
        if self._names is None:
            self._names = names
            self._begin(columns)
        elif names != self._names:
            raise ValueError(f"columns {', '.join(names)} after {', '.join(self._names)}")
        self._write(columns)

    def close(self) -> None:
        """Write what belongs at the end; at least one block, if without rows, must have come."""
        if self._names is None:
            raise ValueError("no columns were appended")
        self._end()

    @abstractmethod
    def _begin(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Write what belongs before the first rows."""

    @abstractmethod
    def _write(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Write rows."""

    @abstractmethod
    def _end(self) -> None:
        """Write what belongs after the last rows."""


class CsvWriter(RowWriter):
    """Write CSV to an open text file; numbers with all digits, so that they are read back alike."""

    def __init__(self, stream: TextIO, line_end: str = "\n") -> None:
        super().__init__()
        # A cell with a character of the line's end is put in quotation marks, as \r has to be.
        lines = SimpleNamespace(write=lambda line: stream.write(line[:-2] + line_end))
        self._of_texts = csv.writer(lines, lineterminator="\r\n")
        self._of_numbers = csv.writer(stream, lineterminator=line_end)  # faster

    def _begin(self, columns: Mapping[str, NDArray[Any]]) -> None:
        self._of_texts.writerow(columns)

    def _write(self, columns: Mapping[str, NDArray[Any]]) -> None:
        has_texts = any(values.dtype.kind not in "biuf" for values in columns.values())
        writer = self._of_texts if has_texts else self._of_numbers
        cells = (values.tolist() for values in columns.values())
        writer.writerows(zip(*cells, strict=True))

    def _end(self) -> None:
        pass


class ParquetWriter(RowWriter):
    """Write Parquet to an open binary file; types are those of the first block."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self._stream = stream
        self._writer: Any = None
        self._held: list[Any] = []

    def abandon(self) -> None:
        """Let go of the stream after a failure."""
        if self._writer is not None:
            with contextlib.suppress(OSError, ValueError):
                self._writer.close()

    def _begin(self, columns: Mapping[str, NDArray[Any]]) -> None:
        import pyarrow.parquet as pq

        self._writer = pq.ParquetWriter(self._stream, _as_table(columns).schema)

    def _write(self, columns: Mapping[str, NDArray[Any]]) -> None:
        self._held.append(_as_table(columns).cast(self._writer.schema))
        if sum(table.num_rows for table in self._held) >= ROWS_PER_GROUP:
            self._write_held()

    def _end(self) -> None:
        self._write_held()
        self._writer.close()

    def _write_held(self) -> None:
        import pyarrow as pa

        if self._held:
            self._writer.write_table(pa.concat_tables(self._held), row_group_size=2**62)
            self._held.clear()


def _as_table(columns: Mapping[str, NDArray[Any]]) -> Any:
    import pyarrow as pa

    return pa.table({name: _as_array(values) for name, values in columns.items()})


def _as_array(values: NDArray[Any]) -> Any:
    """Make an Arrow array; what is missing in a whole block may be text in the next one."""
    import pyarrow as pa

    array = pa.array(values.tolist() if values.dtype == object else values)
    return array.cast(pa.string()) if pa.types.is_null(array.type) else array


@contextmanager
def writing_rows(path: Path, line_end: str = "\n") -> Iterator[RowWriter]:
    """Open a file to append blocks of rows to; it is there when the block has ended well.

    Parameters
    ----------
    path : Path
        Ends in .csv or .parquet.
    line_end : str
        Of CSV.

    Yields
    ------
    RowWriter
        To `append` to.

    Raises
    ------
    UsageError
        The name ends in neither.
    ImportError
        It is .parquet, and pyarrow is not installed.
    StorageError
        The file cannot be written; an old one is as it was.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> path = Path(tempfile.mkdtemp()) / "predictions.csv"
    >>> with writing_rows(path) as writer:
    ...     writer.append({"row": np.array([1, 2]), "mean": np.array([0.5, 0.25])})
    ...     writer.append({"row": np.array([3]), "mean": np.array([0.1])})
    >>> path.read_text().split()
    ['row,mean', '1,0.5', '2,0.25', '3,0.1']
    """
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise UsageError(f"{printable(str(path))}: the name must end in .csv or .parquet")
    if suffix == ".parquet":
        need_pyarrow(path, "writing Parquet")
    with replacing(path) as file:
        if suffix == ".parquet":
            parquet = ParquetWriter(file)
            try:
                yield parquet
                parquet.close()
            finally:
                parquet.abandon()
        else:
            text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="")
            writer = CsvWriter(text, line_end)
            yield writer
            writer.close()
            text.flush()
            text.detach()
