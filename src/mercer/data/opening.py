"""Opening a table that need not fit into memory: its numbers, or what encodes it as numbers."""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mercer.atomic import locked, replacing
from mercer.data.arrow import PARQUET, is_arrow, open_parquet
from mercer.data.csv_cache import (
    announce,
    cache_folder,
    folder_of,
    in_folder,
    open_csv,
    read_sealed,
    sum_contents,
    with_this_machine,
    write_header,
    write_sealed,
)
from mercer.data.csv_reader import ZIP, read_blocks
from mercer.data.encoding import (
    LEAVE_OUT,
    ColumnCode,
    Encoder,
    Missing,
    as_levels,
    check_categories,
    fit_encoder,
    no_column,
    refuse_infinite,
)
from mercer.data.files import check_path, first_bytes, printable, quoted, reading
from mercer.data.formats import Dates
from mercer.data.frame import (
    EMPTY,
    Column,
    ColumnBuilder,
    Frame,
    Kind,
    Origin,
    column_of_texts,
    gap_words,
    index_column,
    joined_order,
    null_words,
)
from mercer.data.source import FILL_GAPS, NPY, RowSource, find_file, open_array, open_npy
from mercer.data.tables import csv_blocks, list_folder, parquet_blocks, refuse_foreign
from mercer.errors import DataError, DataWarning, MercerError, UsageError, warn_user

__all__ = ["open_rows"]


def open_rows(
    data: str | os.PathLike[str] | NDArray[Any] | RowSource,
    *,
    cache: str | os.PathLike[str] | None = None,
    progress: bool | Literal["auto"] = "auto",
    engine: Literal["dask"] | None = None,
    scheduler: str | None = None,
    n_workers: int | None = None,
    target: str | None = None,
    encode: Any = None,
    drop: Collection[str] = (),
    task: Literal["auto", "regression"] = "auto",
    null_values: Iterable[str] | None = None,
) -> RowSource:
    """Open a table to be read in blocks: `mercer.data.open`.

    Nothing but headers is read, except of a text file, which is parsed once into a file of
    8 bytes a number in the cache folder; and of a table that is encoded, which is read twice, by
    workers if there are any, and when it is opened again compared with a checksum.

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
    target : str, optional
        The target: with `encode`, which needs it, the column that is no input; of text, its classes
        are `RowSource.labels`. It comes last then. Rows without it are refused, or left out where
        `encode` does not refuse gaps.
    encode : "auto" or TableEncoder, optional
        How files with text, dates or gaps become numbers, learned from all rows: into a file of
        8 bytes a number in the cache folder. "auto": by `mercer.TableEncoder()` where an input or
        the target is not numbers. A TableEncoder is cloned, and used as it is if it is fitted; here
        its `missing` can be "drop", too, which leaves rows with gaps out.
        `RowSource.encoding` is what was learned, and goes into the model.
    drop : collection of str
        With `encode`: columns that are left out.
    task : {"auto", "regression"}
        With `encode`: what a target of a text file is where whole numbers have leading zeros
        ("01"); "auto": classes, as they are written, "regression": numbers.
    null_values : iterable of str, optional
        What stands for a missing value in files of text, beside an empty cell; by default what
        `encode` says, or the words NA, N/A, n/a, NaN, nan, NULL, null, ? and None.

    Returns
    -------
    RowSource
        True and false are 1 and 0, but as classes. Without `encode` columns of text or of dates may
        be there, as long as they are left out by `select` or `without`.

    Notes
    -----
    Medians that take the place of gaps are those of 2^18 to 2^19 rows, evenly spread, or of all if
    there are fewer; levels and their frequencies are those of all rows, and dates, too, if no more
    than 100 000 of them differ.

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
    if engine not in (None, "dask"):
        raise UsageError(f"engine must be 'dask' or None; got {engine!r}")

    def shared(rows: RowSource) -> RowSource:
        if engine is None:
            return rows
        from mercer.data.dask import share

        return share(rows, scheduler, n_workers)

    def tell(line: str) -> None:
        is_seen = sys.stderr.isatty() or "ipykernel" in sys.modules
        if is_seen if progress == "auto" else progress:
            print(line, file=sys.stderr, flush=True)  # noqa: T201

    folder = cache_folder() if cache is None else Path(cache)
    if null_values is None:
        of_encoder = getattr(encode, "encoding_", encode)
        null_values = getattr(of_encoder, "null_values", None)
    words = null_words(null_values)
    if encode is not None:
        if not isinstance(data, str | os.PathLike):
            raise UsageError("encode is for files; `fit` encodes frames, and arrays are numbers")
        rows = shared(open_rows(data, cache=cache, progress=progress, null_values=words))
        rows = shared(_encoded(rows, data, target, encode, drop, folder, tell, task, words))
        return rows if target is None else _without_gaps(rows)
    if target is not None or drop:
        raise UsageError("target and drop are of encode; see also RowSource.without")
    if engine is not None:
        return shared(open_rows(data, cache=cache, progress=progress, null_values=words))
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
    paths = _files_of(path)
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
    return open_csv(paths, name, cache=folder, tell=tell, null_values=words)


def _files_of(path: Path) -> list[Path]:
    return list_folder(path) if check_path(path) else [path]


def _find_kind(path: Path) -> Literal["Parquet", "NumPy", "text"]:
    """Look at the first bytes of a file."""
    start = first_bytes(path)
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


def column_names(data: str) -> tuple[str, ...]:
    """Name the columns of a table, of which no more than the beginning is read."""
    path, *_ = _files_of(Path(data))
    if _find_kind(path) == "text":
        return tuple(next(read_blocks(path, is_bounded=False)).names)
    return open_rows(data).names


def read_rows(data: str, rows: RowSource, at: NDArray[np.int64], encoder: Encoder) -> Frame:
    """Read some rows of files, ascending positions ``at`` in what was made of them, as a table."""
    raw = open_rows(data, null_values=encoder.null_values)
    files = _Files(raw, tuple(_files_of(Path(data))), encoder.texts(), encoder.null_values)
    wanted, found = raw.positions(*rows.located(at)), []
    for piece in files.pieces():
        _, first, last, position = piece
        if np.diff(np.searchsorted(wanted, (position, position + last - first)))[0] == 0:
            continue
        for position, frame in files.read(piece, encoder.input_names):
            low, high = np.searchsorted(wanted, (position, position + frame.n_rows))
            found.append(frame.take(wanted[low:high] - position))
    columns = (
        Column(name, np.concatenate([frame.column(name).values for frame in found]),
               found[0].column(name).kind)
        for name in encoder.input_names
    )  # fmt: skip
    return Frame.from_columns(list(columns), rows.name)


# A table with text, dates or gaps as numbers. Its encoding is learned in one pass; a second one
# writes the encoded rows into the cache, so that all later ones read numbers. Both take the table
# piece by piece, here or on workers, and put together in pairs what the pieces say.

#: Position of a file, its first row that is meant, that after the last, and the first among all.
_Piece = tuple[int, int, int, int]
#: Yields the position among all rows of the first of some, and these; and so on.
Read = Callable[..., Iterator[tuple[int, Frame]]]
#: Of what was encoded; other versions are encoded again.
_VERSION = 3
#: Rows whose medians take the place of gaps.
_SAMPLE = 2**18
#: Rows of Parquet files that are a piece: those of a row group, as most programs write them.
_ROWS_PER_PIECE = 2**20
#: Different texts of a column that are counted: more are dates or numbers, or names of rows.
_MOST_TEXTS = 100_000


def _encoded(
    rows: RowSource,
    data: str | os.PathLike[str],
    target: str | None,
    encode: Any,
    drop: Collection[str],
    cache: Path,
    tell: Callable[[str], None],
    task: str,
    null_values: frozenset[str],
) -> RowSource:
    """Encode all columns but those dropped and the target, which is the last one then."""
    if encode != "auto" and not hasattr(encode, "dates"):
        raise UsageError(f"encode must be 'auto', a TableEncoder or None; got {encode!r}")
    fitted: Encoder | None = getattr(encode, "encoding_", None)
    missing: Missing = getattr(encode, "missing", "error")
    dates: Dates = getattr(encode, "dates", "auto")
    names, targets = _columns(rows, target, fitted, drop)
    is_open = task == "auto" and not fitted
    codes = [name for name in targets if is_open and rows.kinds.get(name) == "code"]
    categories = () if fitted else find_categories(encode, rows.names, names, rows.name)
    as_text = fitted.texts() if fitted else (*codes, *categories)
    if encode == "auto" and {*rows.refusals, *codes}.isdisjoint([*names, *targets]):
        return rows.select([*names, *targets])
    table = _Files(rows, tuple(_files_of(Path(data))), as_text, null_values)
    content = sum_contents(table.paths, null_values)
    asked = [_VERSION, content, names, targets, [*codes, *categories]]
    asked.append(fitted.to_dict() if fitted else [missing, dates])
    key = hashlib.sha256(json.dumps(asked).encode()).hexdigest()
    path = folder_of(rows.name, cache) / f"encoded-{content[:16]}-{key[:16]}.npy"
    with in_folder(path.parent), locked(path.parent / "encoding", patience=math.inf):
        found = _kept(path)
        if found is None:
            texts = dict.fromkeys(table.texts, False)
            learner = Learner(
                names, targets, texts, missing, dates, categories, rows.n_rows, null_values,
                can_drop=True,
            )  # fmt: skip
            learned = (
                (fitted, [], ())
                if fitted
                else learner.learn(table.read, rows.add_up, rows.name, table.pieces())
            )
            found = _write(table, *learned, targets, path, tell)
        machines = with_this_machine(found["machines"])
        if machines != found["machines"]:
            found["machines"] = machines
            write_sealed(path.with_suffix(".json"), found)
        for other in path.parent.glob("encoded-*.json"):
            is_old = not other.name.startswith(f"encoded-{content[:16]}-")
            if is_old and set(read_sealed(other).get("machines", ())) <= {machines[-1]}:
                other.with_suffix(".npy").unlink(missing_ok=True)
                other.unlink(missing_ok=True)
    for note in found["notes"]:
        warn_user(note, DataWarning)
    source = open_npy(path)
    encoder = Encoder.from_dict(found["encoder"])
    return replace(
        source,
        name=rows.name,
        names=(*encoder.feature_names, *targets),
        parts=rows.parts,
        stamps=(*rows.stamps, *source.stamps),
        encoding=encoder,
        kinds=rows.kinds,
        order=tuple(found["order"]),
        labels={target: tuple(found["labels"]) for target in targets if found["labels"]},
    )


def _without_gaps(rows: RowSource) -> RowSource:
    """Leave out the rows that were encoded as missing values, and say how many."""
    if rows.encoding is None or (missing := rows.encoding.missing) == "error":
        return rows
    gaps = rows.select(rows.names[-1:]).gaps()
    if len(gaps) == 0:
        return rows
    what = "no target, or a missing value," if missing == "drop" else "no target"
    warn_user(f"{len(gaps)} of {rows.n_rows} rows have {what} and were dropped", DataWarning)
    return rows.without_rows(gaps)


def _columns(
    rows: RowSource, target: str | None, fitted: Encoder | None, drop: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Name the inputs, and the target if there is one."""
    header = Frame.of_header(rows.names, rows.name)
    if fitted is not None:
        if drop:
            raise UsageError("a fitted encoder knows its columns; leave drop out")
        for name in fitted.input_names:
            if name not in rows.names:
                raise no_column(rows.name, name, rows.names)
        if target in rows.refusals:
            raise DataError(
                f"{printable(rows.name)}: the target {quoted(target)} is text, whose classes a "
                "fitted encoder does not know; leave target out"
            )
        return fitted.input_names, () if target is None else (header.column(target).name,)
    if target is None:
        raise UsageError("encode needs to know the target: target='name of its column'")
    target = header.column(target).name
    dropped = header.named(drop)
    if target in dropped:
        raise UsageError(f"the target {quoted(target)} is among the columns to drop")
    names = header.without([*dropped, target]).names
    if (index := index_column(names)) is not None:
        raise DataError(rows.refusals[index])
    return names, (target,)


def _kept(path: Path) -> dict[str, Any] | None:
    """Read what was encoded before; None where that is not whole."""
    found = read_sealed(path.with_suffix(".json"))
    try:
        return found if found["rows"] == sum_contents([path]) else None
    except (LookupError, MercerError):
        return None


@dataclass(frozen=True)
class _Files:
    """A table in files, whose numbers are known as a source of rows."""

    rows: RowSource
    paths: tuple[Path, ...]
    as_text: tuple[str, ...]  # columns that are read as they stand, numbers or not
    null_values: frozenset[str]

    @property
    def texts(self) -> tuple[str, ...]:
        """Columns that are text, or are to be."""
        return (*self.rows.refusals, *self.as_text)

    def pieces(self) -> list[_Piece]:
        """Cut the table: text into its files, Parquet into runs of rows."""
        pieces, position = [], 0
        for k, (path, part) in enumerate(zip(self.paths, self.rows.parts, strict=True)):
            step = _ROWS_PER_PIECE if is_arrow(first_bytes(path)) else max(1, part.n_rows)
            for row in range(0, part.n_rows, step):
                pieces.append((k, row, min(row + step, part.n_rows), position + row))
            position += part.n_rows
        return pieces

    def read(self, piece: _Piece, names: Sequence[str]) -> Iterator[tuple[int, Frame]]:
        """Read some columns, a few thousand rows at a time: (position, rows); text as it stands."""
        texts = [name for name in names if name in self.texts]
        numbers = [name for name in names if name not in texts]
        k, row, stop, position = piece
        path = self.paths[k]
        is_parquet = is_arrow(first_bytes(path))
        source = self.rows.select(numbers) if numbers and not is_parquet else None
        blocks = (
            parquet_blocks(path, names, row, stop, as_text=self.as_text)
            if is_parquet
            else csv_blocks(path, texts, self.null_values)
        )
        for lines, columns in blocks:
            n = len(lines)
            if source is not None:
                pieces = source._chunks(position, position + n)
                block = np.concatenate([piece.copy() for piece in pieces])
                for j, name in enumerate(numbers):
                    columns[name] = Column(name, block[:, j], "number")
            at = np.arange(row + 1, row + n + 1, dtype=np.int64)
            origin = Origin((str(path),), np.zeros(n, np.int32), at, lines)
            yield position, Frame(tuple(columns[name] for name in names), self.rows.name, origin)
            position, row = position + n, row + n
        for stamp in self.rows.stamps:
            stamp.check()


class _Texts:
    """The different texts of a column, how often each is there, and where it stands first."""

    def __init__(
        self, name: str, learn: Callable[..., Encoder], *, is_target: bool, is_guessed: bool
    ) -> None:
        self.name = name
        self._learn = learn  # `fit_encoder` of this column
        self._is_target = is_target
        self._is_guessed = is_guessed
        self._counts: Counter[str | None] = Counter()
        self._places: list[tuple[str, int, int]] = []
        self.kind: Kind | None = None  # as long as all cells are missing
        self.first = ""  # the file of the first cell that is there
        self.orders: set[tuple[str, ...]] = set()  # of ordered categories
        self._is_endless = False  # numbers or dates may be as different as they like

    def add(self, frame: Frame, chosen: NDArray[np.bool_]) -> None:
        """Take the next rows; of numbers and dates without end, those chosen, and gaps."""
        column, origin = frame.column(self.name), frame.origin
        if not column.is_missing.all():
            self._agree(column.kind, origin.files[0])
            self.orders.add(column.order)
        for row, cell in enumerate(as_levels(column)):
            if cell not in self._counts:
                if len(self._counts) >= _MOST_TEXTS:
                    self._refuse_names(frame.source)
                    if cell is not None and not chosen[row]:
                        continue
                where = origin.files[0], int(origin.row[row]), int(origin.line[row])
                self._places.append(where)
            self._counts[cell] += 1

    def join(self, later: _Texts, source: str) -> None:
        """Take what another has learned of later rows; of texts without end, ever fewer."""
        if later.kind is not None:
            self._agree(later.kind, later.first)
        self.orders |= later.orders
        for k, (cell, where) in enumerate(zip(list(later._counts), later._places, strict=True)):
            if cell not in self._counts:
                if len(self._counts) >= _MOST_TEXTS:
                    self._refuse_names(source)
                    if k % (1 + len(self._counts) // _MOST_TEXTS):
                        continue
                self._places.append(where)
            self._counts[cell] += later._counts[cell]

    def _agree(self, kind: Kind, file: str) -> None:
        """Take what the cells of a file are; refuse another kind than that of those before."""
        if kind == "other" and self._is_target:
            raise DataError(
                f"{printable(file)}, column {quoted(self.name)}: the target is neither numbers nor "
                "text; turn it into one of them first"
            )
        if self.kind not in (None, kind):
            raise DataError(
                f"{printable(file)}, column {quoted(self.name)}: holds {kind}, and {self.kind} in "
                f"{printable(self.first)}; give all the same type"
            )
        self.kind, self.first = kind, self.first or file

    def _refuse_names(self, source: str) -> None:
        """Refuse a column of more words, or classes, than are counted."""
        if self._is_endless:
            return
        if self._is_target or self.code(source).is_text:
            raise DataError(
                f"{printable(source)}: column {quoted(self.name)} has more than {_MOST_TEXTS} "
                f"different texts, as names of rows do; {LEAVE_OUT}"
            )
        self._is_endless = True

    @property
    def levels(self) -> list[str]:
        """The texts, sorted."""
        return sorted(cell for cell in self._counts if cell is not None)

    def code(self, source: str) -> ColumnCode:
        """Learn the encoding of the column."""
        files, rows, lines = zip(*self._places, strict=True)
        places = {file: k for k, file in enumerate(dict.fromkeys(files))}
        origin = Origin(
            tuple(places),
            np.array([places[file] for file in files], dtype=np.int32),
            np.array(rows, dtype=np.int64),
            np.array(lines, dtype=np.int64),
        )
        cells = column_of_texts(self.name, list(self._counts), is_text=True)
        cells = replace(cells, kind=self.kind or "text")
        if (self._is_guessed and self.kind != "other") or self.kind in ("number", "boolean"):
            builder = ColumnBuilder(self.name, null_values=EMPTY)
            builder.add([cell or "" for cell in self._counts])
            cells = builder.finish()
        frame = Frame((cells,), source, origin)
        counts = np.array(list(self._counts.values()), dtype=np.int64)
        # What most cells are says what the column is.
        shares = np.maximum(
            1, counts if counts.sum() <= _SAMPLE else counts * _SAMPLE // counts.sum()
        )
        cells_of_rows = frame.take(np.repeat(np.arange(len(counts)), shares))
        return self._learn(frame, like=self._learn(cells_of_rows), counts=counts).codes[0]


class Learner:
    """What rows, as they come, say of how columns become numbers, and of a target that is text.

    Parameters
    ----------
    names, targets : sequence of str
        Inputs, and the target, if any.
    texts : mapping of str to bool
        Those of them that are text, and whether its cells tell that they are numbers or dates.
    categories : collection of str
        Those texts of which each level is an input, however many they are.
    n_rows : int
        How many rows there are: of a few hundred thousand at most the median is taken.
    null_values : frozenset of str
        Words that stand for a missing value.
    can_drop : bool
        Whether rows can be left out: those without the target, unless gaps are errors, and with
        `missing` "drop" all that have a gap.
    """

    def __init__(
        self,
        names: Sequence[str],
        targets: Sequence[str],
        texts: Mapping[str, bool],
        missing: Missing,
        dates: Dates,
        categories: Collection[str],
        n_rows: int,
        null_values: frozenset[str],
        *,
        can_drop: bool = False,
    ) -> None:
        if missing not in (known := ("error", "impute", "indicator", *("drop",) * can_drop)):
            raise UsageError(f"here missing must be one of {', '.join(known)}, not {missing!r}")
        self.names, self.targets, self.texts = tuple(names), tuple(targets), texts
        self._refusing = () if can_drop and missing != "error" else self.targets
        self._n_kept = 0
        self._missing: Missing = missing
        self._null_values = null_values
        self._step = max(1, n_rows // _SAMPLE)
        learn = functools.partial(fit_encoder, missing=missing, dates=dates)
        self._columns = {
            name: _Texts(
                name,
                functools.partial(learn, categories=(name,) if name in categories else ()),
                is_target=name in targets,
                is_guessed=texts[name],
            )
            for name in (*names, *targets)
            if name in texts
        }
        self.numbers = [name for name in names if name not in texts]
        self._has_gap = dict.fromkeys(self.numbers, False)
        self._first: dict[str, NDArray[np.float64]] = {}  # a value, where none was chosen
        self._sampled: dict[str, list[NDArray[np.float64]]] = {name: [] for name in self.numbers}

    def add(self, frame: Frame, position: int) -> None:
        """Take the next rows, the first of which has this position among all."""
        for name in () if self._missing != "error" else self.names:
            _refuse_gap(frame, name, FILL_GAPS)
        for name in self._refusing:
            _refuse_gap(frame, name, "leave such rows out")
        chosen = np.zeros(frame.n_rows, dtype=bool)
        chosen[-position % self._step :: self._step] = True
        kept = _kept_rows(frame, self.names, self.targets, self._missing)
        self._n_kept += len(kept)
        if len(kept) < frame.n_rows:
            frame, chosen = frame.take(kept), chosen[kept]
        for text in self._columns.values():
            text.add(frame, chosen)
        for name in self.numbers:
            refuse_infinite(frame, frame.column(name))
            values = frame.column(name).values
            is_there = ~np.isnan(values)
            self._has_gap[name] |= not is_there.all()
            if name not in self._first and is_there.any():
                self._first[name] = values[is_there][:1]
            if self._missing != "error":
                self._sampled[name].append(values[is_there & chosen])

    def _of_piece(self, read: Read, *piece: Any) -> Learner:
        own = copy.deepcopy(self)
        for position, frame in read(*piece, names=[*self.names, *self.targets]):
            own.add(frame, position)
        return own

    def _joined(self, later: Learner, source: str) -> Learner:
        """Return what both have learned, of which the other had later rows."""
        both = copy.deepcopy(self)
        for name, text in both._columns.items():
            text.join(later._columns[name], source)
        for name in self.numbers:
            both._has_gap[name] |= later._has_gap[name]
            both._sampled[name] += later._sampled[name]
        both._first = later._first | self._first
        both._n_kept += later._n_kept
        return both

    def learn(
        self, read: Read, add_up: Callable[..., Learner], source: str, *pieces: Iterable[Any]
    ) -> tuple[Encoder, list[str], tuple[str, ...]]:
        """Learn from all pieces of a table by `RowSource.add_up`.

        Returns the encoding of the inputs, the classes of a target of text, and their order.
        """
        plus = functools.partial(Learner._joined, source=source)
        return add_up(functools.partial(self._of_piece, read), plus, *pieces)._learned(source)

    def _learned(self, source: str) -> tuple[Encoder, list[str], tuple[str, ...]]:
        if self._n_kept == 0:
            why = "no target; choose another column"
            if self._missing == "drop":
                why = "no target or a missing value; leave out the columns that lack most"
            raise DataError(f"{printable(source)}: every row has {why}")
        texts = self._columns
        codes = {name: text.code(source) for name, text in texts.items() if name in self.names}
        for name in self.numbers:
            values = np.concatenate([np.empty(0), *self._sampled[name]])
            values = values if len(values) else self._first.get(name, np.array([np.nan]))
            one = Frame.from_columns([Column(name, values, "number")], source)
            code = fit_encoder(one, missing=self._missing).codes[0]
            has_indicator = self._has_gap[name] and self._missing == "indicator"
            codes[name] = replace(code, has_indicator=has_indicator)
        words = [texts[name] for name in self.targets if name in texts]
        labels = [level for text in words if text.kind in ("text", "date") for level in text.levels]
        order = tuple(level for text in words for level in joined_order(text.orders))
        inputs = tuple(codes[name] for name in self.names)
        return Encoder(inputs, self._missing, null_values=self._null_values), labels, order


def find_categories(
    encode: Any, names: Iterable[str], inputs: Collection[str], source: str
) -> tuple[str, ...]:
    """Find the columns that an encoder, if it is one, takes for categories, all of them inputs."""
    asked = check_categories(getattr(encode, "categories", ()))
    found = Frame.of_header(tuple(names), source).named(asked)
    for name in found:
        if name not in inputs:
            raise UsageError(f"category {quoted(name)} is no input: it is the target or left out")
    return tuple(found)


def _refuse_gap(frame: Frame, name: str, remedy: str) -> None:
    column = frame.column(name)
    if (is_missing := column.is_missing).any():
        where = frame.place(int(np.argmax(is_missing)), name)
        words = f"missing value; fill it in, or {remedy}{gap_words(column)}"
        raise DataError(f"{where}: {words}")


def _kept_rows(
    frame: Frame, names: Sequence[str], targets: Sequence[str], missing: Missing
) -> NDArray[np.int64]:
    """Find the rows that have a target and, where others are dropped, no gap; else all."""
    is_kept = np.ones(frame.n_rows, dtype=bool)
    for name in {"error": (), "drop": (*targets, *names)}.get(missing, targets):
        is_kept &= ~frame.column(name).is_missing
    return np.flatnonzero(is_kept)


def encode_piece(
    read: Read, encoder: Encoder, targets: Sequence[str], labels: Sequence[str], *piece: Any
) -> Iterator[tuple[NDArray[np.float64], Mapping[str, tuple[str, ...]]]]:
    """Encode a piece: some rows of inputs, then targets, and cells that were not in training.

    Of a target with classes, their positions. Rows that are left out are missing values.
    """
    width = len(encoder.feature_names)
    for _, frame in read(*piece, names=[*encoder.input_names, *targets]):
        rows = _kept_rows(frame, encoder.input_names, targets, encoder.missing)
        kept = frame if len(rows) == frame.n_rows else frame.take(rows)
        block = np.full((frame.n_rows, width + len(targets)), np.nan)
        encoded = encoder.transform(kept) if encoder.codes and len(rows) else None
        if encoded is not None:
            block[rows, :width] = encoded.X
        for k, name in enumerate(targets):
            values = kept.column(name).values
            at = np.searchsorted(labels, values.astype(str)) if labels else values
            block[rows, width + k] = at
        yield block, {} if encoded is None else encoded.unseen


def _write(
    table: _Files,
    encoder: Encoder,
    labels: list[str],
    order: tuple[str, ...],
    targets: Sequence[str],
    path: Path,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Write the encoded rows, and beside them what was learned; return that."""
    n_rows, n_columns = table.rows.n_rows, len(encoder.feature_names) + len(targets)
    pieces = table.pieces()
    with replacing(path) as file:
        announce(table.rows.name, path, 8 * n_rows * n_columns, tell)
        write_header(file, (n_rows, n_columns))
        start = file.tell()
        file.truncate(start + 8 * n_rows * n_columns)
        encode = functools.partial(encode_piece, table.read, encoder, targets, labels)
        write = functools.partial(_write_piece, Path(file.name), encode)
        starts = [start + 8 * n_columns * position for *_, position in pieces]
        unseen = table.rows.add_up(write, _plus, starts, pieces)
    return {
        "encoder": encoder.to_dict(),
        "labels": labels,
        "order": order,
        "notes": encoder.notes_of_unseen(unseen),
        "rows": sum_contents([path]),
        "machines": [],
    }


_Unseen = dict[str, tuple[int, str]]  # of a column: cells with a level not in training, the first


def _write_piece(path: Path, encode: Callable[..., Any], start: int, piece: _Piece) -> _Unseen:
    """Write the encoded rows of a piece from some byte on."""
    counts: _Unseen = {}
    with reading(path), open(path, "r+b") as file:
        file.seek(start)
        for block, unseen in encode(piece):
            file.write(block.tobytes())
            counts = _plus(counts, {k: (len(v), v[0]) for k, v in unseen.items() if v})
    return counts


def _plus(counts: _Unseen, later: _Unseen) -> _Unseen:
    both = {k: (counts[k][0] + later[k][0], counts[k][1]) for k in counts.keys() & later.keys()}
    return later | counts | both
