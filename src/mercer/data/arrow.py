"""Parquet and Arrow (Feather) files by pyarrow, which is optional: as tables, and by blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer.data.files import Stamp, check_size, printable, quoted, reading
from mercer.data.frame import Column, Frame, Kind, Origin, refuse_other_columns, refuse_twins
from mercer.data.source import REMEDY, Part, RowSource, index_refusal
from mercer.errors import INSTALL, DataError

PARQUET = b"PAR1"
ARROW_FILE = b"ARROW1"
ARROW_STREAM = b"\xff\xff\xff\xff"
TEXT_TYPES = ("string", "large_string", "string_view")


def is_arrow(start: bytes) -> bool:
    """Whether a file that starts with these bytes is Parquet or Arrow."""
    return start.startswith((PARQUET, ARROW_FILE, ARROW_STREAM))


def read_arrow(
    path: Path, *, as_text: frozenset[str] = frozenset(), name: str | None = None
) -> Frame:
    """Read a Parquet or Arrow file whole, possibly without rows; columns in `as_text` become text.

    Nulls, NaN and empty text are missing; a type without numbers, text or dates gives a column of
    kind "other". Messages call the file `name`.
    """
    file = Path(name or path)
    need_pyarrow(file)
    with decoding(file):
        table = _read_table(path)
        table.validate(full=True)  # or damaged offsets would be followed
        columns = tuple(
            as_column(name, values, is_text=name in as_text)
            for name, values in zip(table.column_names, table.columns, strict=True)
        )
    if not columns:
        raise DataError(f"{printable(str(file))}: has no columns")
    return Frame(columns, str(file), Origin.of_file(str(file), np.zeros(table.num_rows, np.int64)))


def need_pyarrow(path: Path, doing: str = "reading Parquet and Arrow files") -> None:
    """Raise an ImportError that names the extra to install, where pyarrow is missing."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ImportError(
            f"{printable(str(path))}: {doing} needs pyarrow; {INSTALL.format('arrow')}"
        ) from None


@contextmanager
def decoding(path: Path) -> Iterator[None]:
    """Turn errors of pyarrow and of the operating system while reading into typed ones."""
    import pyarrow as pa

    with reading(path):
        try:
            yield
        except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            reason = (str(error).splitlines() or [""])[0]
            raise DataError(
                f"{printable(str(path))}: cannot be decoded ({printable(reason)}); write it again"
            ) from None


def kind_of(arrow_type: Any) -> Kind:
    """Say what the cells of a column of this Arrow type are; nothing but nulls is numbers."""
    from pyarrow import types

    if types.is_dictionary(arrow_type):
        return kind_of(arrow_type.value_type)
    if types.is_boolean(arrow_type):
        return "boolean"
    if (
        types.is_null(arrow_type)
        or types.is_integer(arrow_type)
        or types.is_floating(arrow_type)
        or types.is_decimal(arrow_type)
    ):
        return "number"
    if str(arrow_type) in TEXT_TYPES or types.is_time(arrow_type):
        return "text"
    return "date" if types.is_date(arrow_type) or types.is_timestamp(arrow_type) else "other"


def _read_table(path: Path) -> Any:
    with open(path, "rb") as stream:
        start = stream.read(8)
        stream.seek(0)
        if start.startswith(PARQUET):
            import pyarrow.parquet

            parquet = pyarrow.parquet.ParquetFile(stream)
            check_size(path, parquet.metadata.num_rows, parquet.metadata.num_columns)
            return parquet.read()
        import pyarrow.ipc

        is_file = start.startswith(ARROW_FILE)
        with (
            pyarrow.ipc.open_file(stream) if is_file else pyarrow.ipc.open_stream(stream) as batches
        ):
            return batches.read_all()


def as_column(name: str, values: Any, *, is_text: bool) -> Column:
    """Make a column of an Arrow array; with ``is_text``, of its cells as text."""
    import pyarrow as pa
    from pyarrow import types

    order: tuple[str, ...] = ()
    if types.is_dictionary(values.type):
        order = _order_of(values) if values.type.ordered else ()
        values = pa.array(values.to_pylist(), type=values.type.value_type)
    arrow_type = values.type
    kind = kind_of(arrow_type)
    if is_text and not types.is_nested(arrow_type) and not types.is_null(arrow_type):
        return Column(name, _objects(values), "text", order=order)
    if kind == "boolean" or types.is_null(arrow_type):
        numbers = [np.nan if value is None else float(value) for value in values.to_pylist()]
        return Column(name, np.array(numbers), kind)
    if kind == "number":
        numbers = values.cast(pa.float64(), safe=False).to_numpy()
        return Column(name, np.array(numbers, dtype=np.float64), kind)
    if kind in ("text", "date"):
        return Column(name, _objects(values), kind, order=order)
    unusable = np.full(len(values), str(arrow_type), dtype=object)
    unusable[np.array(values.is_null())] = None
    return Column(name, unusable, "other")


def _order_of(values: Any) -> tuple[str, ...]:
    """Levels of an ordered dictionary array, where all its chunks have the same."""
    chunks = getattr(values, "chunks", [values])
    orders = {tuple(map(str, chunk.dictionary.to_pylist())) for chunk in chunks}
    return orders.pop() if len(orders) == 1 else ()


def _objects(values: Any) -> Any:
    """Texts as an object array; None where the cell is null or empty."""
    import pyarrow as pa

    texts = np.empty(len(values), dtype=object)
    if str(values.type) not in TEXT_TYPES:
        values = values.cast(pa.string())
    texts[:] = [text or None for text in values.to_pylist()]
    return texts


# Rows of Parquet files, by pyarrow, which is optional.

#: Bytes of each column that are read at once; without it a column of a row group is read whole.
BUFFER_BYTES = 2**16
#: Rows that are decoded at once, and cells at most, 8 MiB: each column of them costs some calls.
DECODED_ROWS, DECODED_CELLS = 2**13, 2**20


def read_batches(
    path: Path, names: Sequence[str], n_rows: int, start: int = 0, stop: int | None = None
) -> Iterator[Any]:
    """Decode some columns of a Parquet file from a row to before another, ``n_rows`` at a time."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, buffer_size=BUFFER_BYTES, pre_buffer=False) as file:
        sizes = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
        ends = np.cumsum(sizes)
        stop = file.metadata.num_rows if stop is None else stop
        first, last = np.searchsorted(ends, (start, stop - 1), side="right")
        position = int(ends[first - 1]) if first else 0
        for batch in file.iter_batches(
            n_rows, list(range(first, last + 1)), list(names), use_threads=False
        ):
            low, high = max(start - position, 0), min(stop - position, batch.num_rows)
            position += batch.num_rows
            if low < high:
                yield batch.slice(low, high - low)


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
                size = max(1, min(DECODED_ROWS, DECODED_CELLS // self.n_columns))
                with decoding(Path(stamp.name)):
                    for batch in read_batches(Path(stamp.path), self.names, size, low, high):
                        yield self._as_matrix(batch)
            offset += part.n_rows

    def _as_matrix(self, batch: Any) -> NDArray[np.float64]:
        matrix = np.empty((batch.num_rows, self.n_columns))
        for k, name in enumerate(self.names):
            matrix[:, k] = _as_numbers(batch.column(batch.schema.get_field_index(name)))
        return matrix

    def _pick(self, positions: tuple[int, ...]) -> Self:
        return replace(self, names=tuple(self.names[k] for k in positions))


def open_parquet(paths: Sequence[Path], name: str) -> ParquetRows:
    """Make a source of the rows of Parquet files with the same columns, one after the other.

    `name` is the file or the folder, as the user named it.
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
    refusals |= index_refusal(name, names := tuple(kinds))
    return ParquetRows(
        name=name, names=names, parts=tuple(parts), stamps=stamps, refusals=refusals, kinds=kinds
    )


def _read_footer(path: Path) -> tuple[int, dict[str, tuple[Kind, str]]]:
    """Return the number of rows and, for each column, what it is, and its type in words."""
    import pyarrow.parquet as pq

    with decoding(path), pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        refuse_twins(str(path), schema.names)
        return file.metadata.num_rows, {
            field.name: (kind_of(field.type), printable(str(field.type))) for field in schema
        }


def _as_numbers(column: Any) -> NDArray[Any]:
    """View a column as numbers (NaN for null), without pandas, which pyarrow would load."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    is_plain = pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
    if column.null_count or not is_plain:
        column = column.cast(pa.float64(), safe=False)
    if column.null_count:
        column = pc.fill_null(column, np.nan)
    dtype = np.dtype(column.type.to_pandas_dtype())
    return np.frombuffer(column.buffers()[1], dtype, len(column), column.offset * dtype.itemsize)
