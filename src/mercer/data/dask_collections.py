"""Dask arrays and frames as rows that workers hold, and predictions of them in their partitions."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer.data.dask import (
    ClusterRows,
    add_up_on,
    client_of,
    connect,
    distributed_package,
    level_of_bytes,
    results_of,
    telling,
)
from mercer.data.encoding import Encoder
from mercer.data.files import place
from mercer.data.frame import Frame, null_words, refuse_twins
from mercer.data.opening import Learner, Read, encode_piece, find_categories
from mercer.data.source import ArrayRows, Part, RowSource, check_array
from mercer.errors import DataError, MercerError, UsageError
from mercer.numerics.cholesky import one_blas_thread
from mercer.numerics.sums import ROWS_PER_TERM

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class HeldRows(ClusterRows):
    """Rows of a Dask collection, which lie in the memory of the workers."""

    keys: tuple[str, ...]  # of arrays of 2^level blocks each, the last of what is left
    level: int
    columns: tuple[int, ...]  # which of their columns, in order
    # Workers hold the arrays as long as these live; another process knows the keys only.
    futures: tuple[Any, ...] = field(default=(), repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "futures": ()}

    def without_rows(self, rows: NDArray[np.integer[Any]]) -> RowSource:
        """Refuse it: a collection knows better how."""
        raise UsageError(f"{self.name}: leave the rows out of the Dask collection, and open it")

    @property
    def _largest_level(self) -> int:
        return self.level

    def _given(self, client: Any) -> Callable[[int, int], Any]:
        futures = self.futures or tuple(
            distributed_package().Future(key, client) for key in self.keys
        )
        ends = np.cumsum([part.n_rows for part in self.parts])

        def given(start: int, stop: int) -> tuple[Any, slice, _Slice]:
            at, low = divmod(start, ROWS_PER_TERM << self.level)
            first = int(np.searchsorted(ends, start, side="right"))
            last = int(np.searchsorted(ends, stop))
            slice_ = _Slice(
                name=self.name, names=self.names, columns=self.columns,
                parts=(Part(self.name, stop - start),), array=_NO_ARRAY,
                checksums=self.checksums[start // self._check_rows : -(-stop // self._check_rows)],
                owners=self.parts[first : last + 1],
                skipped=start - (int(ends[first - 1]) if first else 0),
            )  # fmt: skip
            return futures[at], slice(low, low + stop - start), slice_

        return given

    def _chunks(self, start: int, stop: int) -> Iterator[Array]:
        client = client_of(self.scheduler)
        given = self._given(client)
        for first in range(start // ROWS_PER_TERM, -(-stop // ROWS_PER_TERM)):
            low, high = first * ROWS_PER_TERM, min((first + 1) * ROWS_PER_TERM, self.n_rows)
            future, rows, _ = given(low, high)
            with telling(self.scheduler, self.name):
                block = results_of(client, [client.submit(_cut, future, rows, self.columns)])[0]
            yield block[max(start - low, 0) : stop - low]

    def _pick(self, positions: tuple[int, ...]) -> Self:
        return replace(
            self,
            names=tuple(self.names[k] for k in positions),
            columns=tuple(self.columns[k] for k in positions),
        )


def _cut(array: Array, rows: slice, columns: tuple[int, ...]) -> Array:
    return np.ascontiguousarray(array[rows][:, columns])


_NO_ARRAY = np.empty((0, 0))  # until the worker has the rows


@dataclass(frozen=True, eq=False, kw_only=True)
class _Slice(ArrayRows):
    """Some rows of `HeldRows`, for a worker; the first is row ``skipped`` of the first owner."""

    owners: tuple[Part, ...]
    skipped: int

    def place(self, row: int, column: str | None = None) -> str:
        """Name the partition of a row, and its number there."""
        row += self.skipped
        for owner in self.owners:
            if row < owner.n_rows:
                return place(owner.name, row + 1, 0, column)
            row -= owner.n_rows
        raise IndexError(row)


def open_collection(
    X: Any,
    y: Any = None,
    name: str = "X",
    *,
    read: Callable[..., Frame] | None = None,
    encode: Any = None,
) -> HeldRows:
    """Keep a Dask array or frame, and possibly a further column of targets, on the workers.

    Parameters
    ----------
    X : dask.array.Array of shape (n, d), or dask.dataframe.DataFrame
    y : dask.array.Array of shape (n,), dask.dataframe.Series or scalar, optional
        The last column, called "y"; a str, or number, is the name of a column of the frame.
    read : callable, optional
        (partition, its name, columns whose strings stay what they are) -> Frame. Without it, text
        is refused.
    encode : TableEncoder, optional
        How inputs of text become numbers; without it they are refused.

    Raises
    ------
    DataError
        A column is not numbers, the lengths of chunks are not known, or not those of `y`.
    """
    import dask.array as da

    scheduler = connect()
    client = client_of(scheduler)
    called = "y"
    if y is not None and np.ndim(y) == 0:
        if y not in getattr(X, "columns", ()):
            raise DataError(f"{name}: there is no column {y!r} to be the target")
        X, y, called = X.drop(columns=[y]), X[y], str(y)
    encoding: Encoder | None = None
    labels = order = tuple[str, ...]()
    if read is not None and encode is not None and _has_words(X, encode.missing):
        array, encoding, _, _ = _encoded(X, name, client, read, encode)
        names = encoding.feature_names
    else:
        names, array = _as_array(X, name, client)
    if y is not None:
        if not hasattr(y, "dask"):
            y = da.from_array(np.asanyarray(y), chunks=-1)  # type: ignore[no-untyped-call]
        if y.ndim == 1:
            y = y.to_frame() if hasattr(y, "to_frame") else y[:, np.newaxis]
        called = called if called not in names else "target"
        if read is not None and _has_words(y):
            target, _, labels, order = _encoded(y, "y", client, read)
        else:
            target = _as_array(y, "y", client)[1]
        if target.shape != (len(array), 1):
            n = len(target) if target.shape[1] == 1 else target.shape
            raise DataError(f"y has {n} values, {name} {len(array)} rows; give one for each row")
        names = (*names, called)
    n_columns = len(names)
    level = level_of_bytes(8 * n_columns)
    sizes = array.chunks[0]
    if y is not None:
        array = da.concatenate([array, target], axis=1)  # type: ignore[no-untyped-call]
    array = array.rechunk({0: ROWS_PER_TERM << level, 1: -1})
    futures = tuple(client.compute(array.to_delayed().ravel().tolist()))
    rows = HeldRows(
        name=name, names=names, scheduler=scheduler,
        parts=tuple(Part(f"{name}, partition {k}", int(n)) for k, n in enumerate(sizes)),
        keys=tuple(future.key for future in futures), futures=futures,
        level=level, columns=tuple(range(n_columns)), encoding=encoding,
        labels={called: labels} if labels else {}, order=order,
    )  # fmt: skip
    with telling(scheduler, name):  # what fails in making them fails here
        results_of(client, [client.submit(len, future) for future in futures])
    return rows


def _chunk(values: Any, called: str, block_info: Any) -> Array:
    """Return a chunk as numbers, NaN where it is masked; refuse another shape than declared."""
    whole = block_info[None]
    if np.shape(values) != whole["chunk-shape"]:
        raise DataError(
            f"{called}, partition {whole['chunk-location'][0]}: has the shape {np.shape(values)}, "
            f"and was to have {whole['chunk-shape']}"
        )
    return np.asarray(np.ma.filled(values.astype(np.float64), np.nan))


def _as_array(data: Any, name: str, client: Any) -> tuple[tuple[str, ...], Any]:
    """Turn a Dask array or frame into names of columns and an array (n, d) of known chunks."""
    if data.ndim != 2:
        raise DataError(f"{name} has {data.ndim} dimension(s); a table has rows and columns")
    if hasattr(data, "to_dask_array"):
        columns = tuple(map(str, data.columns))
        refuse_twins(name, columns)
        for column, dtype in data.dtypes.items():
            if not _is_number(dtype):
                raise DataError(
                    f"{name}, column {column!r}: holds {dtype}, not numbers; leave it out, or "
                    "encode it before"
                )
        return columns, _numbers_of(data, name, client)
    names = check_array(name, data.dtype, data.shape)
    if np.isnan(data.shape[0]):
        raise DataError(
            f"{name}: the lengths of its chunks are not known; call {name}.compute_chunk_sizes() "
            "before"
        )
    return names, data.map_blocks(_chunk, called=name, dtype=np.float64)


def _numbers_of(frame: Any, name: str, client: Any) -> Any:
    """Have the workers make an array of each partition of a frame, where each holds numbers."""
    held, called = _held(frame, name, client)
    columns = tuple(frame.columns)
    futures = client.map(_numbers, held, [columns] * len(held), called, pure=False)
    return _joined(futures, called, len(columns), client)


def _held(frame: Any, name: str, client: Any) -> tuple[list[Any], list[str]]:
    """Keep the partitions of a frame, as they are, on the workers; name each."""
    called = [f"{name}, partition {k}" for k in range(frame.npartitions)]
    return client.compute(frame.simplify().to_delayed(optimize_graph=False)), called


def _gathered(futures: list[Any], called: list[str]) -> list[Any]:
    """Wait for what is made of each partition; the first that fails is named."""
    found = []
    for future, name in zip(futures, called, strict=True):
        try:
            found.append(future.result())
        except (MercerError, CancelledError, OSError):
            raise
        except Exception as error:  # whatever reads a partition raises what it likes
            words = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            raise DataError(f"{name}: cannot be read as the others are; {words}") from error
    return found


def _joined(futures: list[Any], called: list[str], n_columns: int, client: Any) -> Any:
    """Join arrays on the workers, one a partition."""
    import dask.array as da

    sizes = _gathered(client.map(len, futures, pure=False), called)
    arrays = [
        da.from_delayed(future, (size, n_columns), np.float64)  # type: ignore[no-untyped-call]
        for future, size in zip(futures, sizes, strict=True)
    ]
    return da.concatenate(arrays)  # type: ignore[no-untyped-call]


def _is_number(dtype: Any) -> bool:
    return getattr(dtype, "kind", "O") in "biuf"


def _refuse_lack(part: Any, columns: tuple[Any, ...], name: str) -> None:
    missing = [column for column in columns if column not in part.columns]
    if missing:
        raise DataError(f"{name}: there is no column {missing[0]!r}, which other partitions have")


def _numbers(part: Any, columns: tuple[Any, ...], name: str) -> Array:
    """Turn a partition into numbers; a column that is missing or holds something else is named."""
    _refuse_lack(part, columns, name)
    numbers = np.empty((len(part), len(columns)))
    for j, column in enumerate(columns):
        values = part[column]
        if not _is_number(values.dtype) and len(part):
            raise DataError(
                f"{name}, column {column!r}: holds {values.dtype}, not numbers as in other "
                f"partitions, such as {values.iloc[0]!r}"
            )
        numbers[:, j] = values.to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers


# Frames with text: each partition tells what it holds, then all are encoded alike.


def _has_words(data: Any, missing: str = "error") -> bool:
    """Whether a frame has columns that are not numbers, or gaps that are to be filled."""
    if not hasattr(data, "to_dask_array") or data.ndim != 2:
        return False
    return missing != "error" or not all(map(_is_number, data.dtypes))


def _encoded(
    frame: Any, name: str, client: Any, read: Callable[..., Frame], encode: Any = None
) -> tuple[Any, Encoder, tuple[str, ...], tuple[str, ...]]:
    """Encode a frame on the workers: inputs, or, without ``encode``, a target.

    Returns an array, the encoder, and the classes and their order.
    """
    columns, names = tuple(frame.columns), [str(column) for column in frame.columns]
    refuse_twins(name, names)
    categories = find_categories(encode, names, names, name)
    texts = {str(c): c for c in columns if str(c) in categories or not _is_number(frame[c].dtype)}
    is_guessed = {
        c: c not in categories and not hasattr(frame[key].dtype, "categories")
        for c, key in texts.items()
    }
    held, called = _held(frame, name, client)
    sizes = _gathered(client.map(len, held, pure=False), called)
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    inputs, targets = ([], names) if encode is None else (names, [])
    missing: Any = getattr(encode, "missing", "error")
    dates: Any = getattr(encode, "dates", "auto")
    null_values = null_words(getattr(encode, "null_values", None))
    n_rows = sum(sizes)
    learner = Learner(inputs, targets, is_guessed, missing, dates, categories, n_rows, null_values)
    read_part = functools.partial(_read_part, read, columns, texts, not inputs)
    reader = functools.partial(read_part, tuple(texts))
    add_up = functools.partial(add_up_on, str(client.scheduler.address), name)
    encoder, labels, order = learner.learn(reader, add_up, name, held, called, starts)
    reader = functools.partial(read_part, encoder.texts() if inputs else targets if labels else ())
    encode_part = functools.partial(_encode_part, reader, encoder, targets, labels)
    arrays = client.map(encode_part, held, called, starts, pure=False)
    array = _joined(arrays, called, len(encoder.feature_names) + len(targets), client)
    return array, encoder, tuple(labels), order


def _read_part(
    read: Callable[..., Frame],
    columns: tuple[Any, ...],
    texts: Mapping[str, Any],
    is_target: bool,
    as_text: Collection[str],
    part: Any,
    name: str,
    start: int,
    names: Sequence[str],
) -> Iterator[tuple[int, Frame]]:
    """Read a partition, if it has rows, which count from 1, and its position among all."""
    if not len(part):
        return
    _refuse_lack(part, columns, name)
    _numbers(part, tuple(column for column in columns if str(column) not in texts), name)
    categories = getattr(part.dtypes.iloc[0], "categories", None) if is_target else None
    if categories is not None and _is_number(categories.dtype):  # labels
        part = part.astype(object)
    frame = read(part[list(columns)], name, as_text)
    yield start, replace(frame, origin=replace(frame.origin, row=frame.origin.row + 1))


def _encode_part(
    read: Read, encoder: Encoder, targets: list[str], labels: list[str], *part: Any
) -> Array:
    """Encode a partition: its inputs, or the target."""
    blocks = [block for block, _ in encode_piece(read, encoder, targets, labels, *part)]
    return np.vstack([np.empty((0, len(encoder.feature_names) + len(targets))), *blocks])


# Predictions.


def each_partition(call: Callable[[Any, Any], Any], model: Any, X: Any, one: Any) -> Any:
    """Let a model answer each partition of a collection: lazy arrays of what it says of the rows.

    Parameters
    ----------
    call : callable
        (model, rows) -> an array, or a tuple of arrays, of an entry a row each.
    model : object
        Sent once to each worker that computes.
    X : dask.array.Array of shape (n, d), or dask.dataframe.DataFrame
    one : ndarray, or tuple of such
        What is said of one row.
    """
    import dask.array as da
    from dask.delayed import delayed

    if X.ndim != 2:
        raise DataError(f"X has {X.ndim} dimension(s); a table of rows and columns is needed")
    is_frame = hasattr(X, "to_dask_array")
    parts = X.to_delayed() if is_frame else X.rechunk({1: -1}).to_delayed().ravel()
    sizes = [np.nan] * len(parts) if is_frame else X.chunks[0]
    held = delayed(model, name=f"model-{uuid.uuid4().hex}", traverse=False)
    answer = delayed(_answer, pure=False)
    answers = [answer(call, held, part, one) for part in parts]

    def joined(k: int | None, like: NDArray[Any]) -> Any:
        arrays = [
            da.from_delayed(  # type: ignore[no-untyped-call]
                each if k is None else each[k], (size, *like.shape[1:]), like.dtype
            )
            for each, size in zip(answers, sizes, strict=True)
        ]
        return da.concatenate(arrays)  # type: ignore[no-untyped-call]

    if isinstance(one, tuple):
        return tuple(joined(k, like) for k, like in enumerate(one))
    return joined(None, one)


def _answer(call: Callable[[Any, Any], Any], model: Any, part: Any, one: Any) -> Any:
    """Answer one partition; of one without rows, what is said of no row."""
    if len(part) == 0:
        return tuple(each[:0] for each in one) if isinstance(one, tuple) else one[:0]
    with one_blas_thread():
        return call(model, part)
