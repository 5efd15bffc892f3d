"""Text tables as sources of rows: parsed once, block by block, into a cache of float64.

The file lies in a cache folder, row by row, so that later passes parse nothing. It belongs to the
contents of the text files: while their sizes and times are as they were it is used at once; when
these differ the contents are summed; when the sum differs too the file is made again. The same
holds of the file of numbers itself, so that an edited one is not believed. Times of the last moment
prove nothing, since the clock of a file system may stand still for that long, or be that of a
server that is behind: then contents are summed. So they are on another machine than the last one,
under whose paths other files may lie; what machines share is not removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from mercer.atomic import replacing
from mercer.data.csv_reader import CsvBlock, read_blocks
from mercer.data.files import Stamp, place, printable, quoted, reading
from mercer.data.frame import (
    CODE,
    MISSING,
    parse_number,
    parse_numbers,
    refuse_other_columns,
    refuse_twins,
)
from mercer.data.source import REMEDY, FileRows, Part, index_refusal, no_rows, open_npy
from mercer.errors import MercerError, StorageError

# The cells of one column of a text table as numbers, block by block.


class NumberColumn:
    """Turn the cells of a column into numbers (true is 1, false 0).

    `stray` is None, or says where the first cell that is no number stands, among the cells that
    were added with it, and what is wrong with it. That cell and all later ones are NaN. `has_code`
    says whether a whole number had leading zeros.
    """

    def __init__(self, null_values: frozenset[str]) -> None:
        self._null_values = null_values
        self.stray: tuple[int, str] | None = None
        self.has_code = False
        self.kind: Literal["number", "boolean"] | None = None

    def add(self, cells: Sequence[str], *, has_decimal_comma: bool) -> NDArray[np.float64]:
        """Take the next cells; NaN where one is missing."""
        if self.stray is None:
            numbers, nulls = None, self._null_values
            if self.kind != "boolean":
                numbers = self._keep("number", parse_numbers(cells, has_decimal_comma, nulls))
                if numbers is not None and not self.has_code:
                    whole = np.flatnonzero(numbers == np.floor(numbers)).tolist()
                    self.has_code = any(CODE.fullmatch(cells[k].strip()) for k in whole)
            if numbers is None and self.kind != "number":
                numbers = self._keep("boolean", _parse_booleans(cells, nulls))
            if numbers is not None:
                return numbers
            position = next(k for k, cell in enumerate(cells) if self._is_stray(cell))
            wanted = "true or false" if self.kind == "boolean" else "a number"
            self.stray = position, f"{quoted(cells[position].strip())} is not {wanted}"
        return np.full(len(cells), np.nan)

    def _keep(
        self, kind: Literal["number", "boolean"], numbers: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        """Let the first value decide what the column is."""
        if numbers is not None and not np.isnan(numbers).all():
            self.kind = kind
        return numbers

    def _is_stray(self, cell: str) -> bool:
        cell = cell.strip()
        if cell in self._null_values:
            return False
        if self.kind == "boolean":
            return cell.lower() not in ("true", "false")
        return parse_number(cell) is None


def _parse_booleans(
    cells: Sequence[str], null_values: frozenset[str]
) -> NDArray[np.float64] | None:
    values = {"true": 1.0, "false": 0.0}
    texts = [cell.strip() for cell in cells]
    try:
        return np.array([np.nan if text in null_values else values[text.lower()] for text in texts])
    except KeyError:
        return None


#: Of the files in the cache; others are made again.
_VERSION = 5
#: Nanoseconds for which the clock of a file system may stand still, or be behind.
_TICK = 120_000_000_000


@dataclass(frozen=True)
class _Facts:
    """What is known of a parsed table next to its numbers, as JSON can hold it."""

    version: int
    content: str  # sum of the files
    rows: str  # sum of the file of numbers
    null_values: list[str]
    names: list[str]
    n_rows: list[int]
    kinds: dict[str, str]  # as `RowSource` has them
    strays: dict[str, list[Any]]  # position of the file, row, line, and what is wrong there
    files: list[str] = field(default_factory=list)
    looks: list[list[int]] = field(default_factory=list)  # size, two times and inode of each file
    rows_look: list[int] = field(default_factory=list)
    seen: int = 0  # when files were looked at, in nanoseconds
    machines: list[str] = field(default_factory=list)  # that used this folder, the last one last


def cache_folder() -> Path:
    """Name the folder for parsed tables: `mercer/rows` in `$XDG_CACHE_HOME`, or in `~/.cache`."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "mercer" / "rows"


def folder_of(name: str, cache: Path) -> Path:
    """Name the folder of one table in the cache."""
    return cache / hashlib.sha256(os.fsencode(os.path.abspath(name))).hexdigest()[:16]


def open_csv(
    paths: Sequence[Path],
    name: str,
    *,
    cache: Path,
    tell: Callable[[str], None],
    null_values: frozenset[str],
) -> FileRows:
    """Make a source of the rows of text files, one after the other.

    Each table has a folder of its own in the folder `cache`; `tell` is given one line, with the
    size, before a file is written there.
    """
    stamps = tuple(Stamp.of(path) for path in paths)
    files = [stamp.path for stamp in stamps]
    folder = folder_of(name, cache)
    seen = time.time_ns()
    looks = [_look(path) for path in paths]
    facts = _load(folder)
    before = facts.machines if facts else []
    is_read_so = facts is not None and facts.null_values == sorted(null_values)
    if facts is None or not is_read_so or not _is_unchanged(facts, folder, files, looks):
        content = sum_contents(paths, null_values)
        rows = _rows_path(folder, content)
        if facts is None or facts.content != content or sum_contents([rows]) != facts.rows:
            with in_folder(folder):
                facts = _parse(rows, paths, name, content, null_values, tell)
            for stamp in stamps:
                stamp.check()
        machines = with_this_machine(before)
        facts = replace(
            facts, files=files, looks=looks, rows_look=_look(rows), seen=seen, machines=machines
        )
        _save(folder, facts)
    return replace(
        open_npy(_rows_path(folder, facts.content)),
        name=name,
        names=tuple(facts.names),
        parts=tuple(Part(str(path), n) for path, n in zip(paths, facts.n_rows, strict=True)),
        stamps=stamps,
        kinds=facts.kinds,
        refusals={
            column: f"{place(str(paths[k]), row, line, column)}: {reason}; {REMEDY}"
            for column, (k, row, line, reason) in facts.strays.items()
        }
        | index_refusal(name, facts.names),
    )


def with_this_machine(machines: Sequence[str]) -> list[str]:
    """Put this machine at the end of those that used a part of the cache."""
    this = platform.node()
    return [*(each for each in machines if each != this), this]


def _rows_path(folder: Path, content: str) -> Path:
    return folder / f"rows-{content[:16]}.npy"


def _look(path: Path) -> list[int]:
    """Look at a file; unlike the time of its contents, that of its entry cannot be set back."""
    with reading(path):
        status = os.stat(path)
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _is_unchanged(facts: _Facts, folder: Path, files: list[str], looks: list[list[int]]) -> bool:
    """Whether sizes and times say that neither the text nor the numbers changed since."""
    then = [*facts.looks, facts.rows_look]
    now = [*looks, _look(_rows_path(folder, facts.content))]
    is_settled = all(max(look[1:3]) < facts.seen - _TICK for look in then)
    is_here = facts.machines[-1] == platform.node()
    return is_here and facts.files == files and now == then and is_settled


def sum_contents(paths: Sequence[Path], null_values: frozenset[str] = MISSING) -> str:
    """SHA-256 over the sums of the files, gzipped or not, as they are on disk, and other words."""
    sha = hashlib.sha256(b"" if null_values == MISSING else repr(sorted(null_values)).encode())
    for path in paths:
        with reading(path), open(path, "rb") as file:
            sha.update(hashlib.file_digest(file, "sha256").digest())
    return sha.hexdigest()


def _load(folder: Path) -> _Facts | None:
    """Read what is in the cache; None where that is nothing, or not whole."""
    try:
        facts = _Facts(**read_sealed(folder / "facts.json"))
        rows = open_npy(_rows_path(folder, facts.content))
        shape = (sum(facts.n_rows), len(facts.names))
    except (OSError, ValueError, TypeError, MercerError):
        return None
    return facts if facts.version == _VERSION and (rows.n_rows, rows.n_columns) == shape else None


def _seal(fields: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def write_sealed(path: Path, fields: dict[str, Any]) -> None:
    """Write facts, and a SHA-256 of them by which damaged ones are known."""
    with replacing(path) as file:
        file.write(json.dumps({**fields, "sum": _seal(fields)}).encode())


def read_sealed(path: Path) -> dict[str, Any]:
    """Read facts; none where they are not there, or not as they were written."""
    try:
        fields: dict[str, Any] = json.loads(path.read_bytes())
        return fields if fields.pop("sum") == _seal(fields) else {}
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return {}


def _save(folder: Path, facts: _Facts) -> None:
    """Write the facts, and remove the numbers of earlier contents, if no other machine has any."""
    write_sealed(folder / "facts.json", asdict(facts))
    kept = _rows_path(folder, facts.content)
    if len(facts.machines) > 1:
        return
    with contextlib.suppress(OSError):
        for path in folder.glob("rows-*.npy"):
            if path != kept:
                path.unlink()


@contextlib.contextmanager
def in_folder(folder: Path) -> Iterator[None]:
    """Make a folder of the cache for what is written there; on failure leave none that is empty."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"{printable(str(folder))}: cannot be made ({error.strerror}); name another "
            "folder with cache=..., or set XDG_CACHE_HOME"
        ) from None
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            folder.rmdir()  # if it is empty
        raise


def _parse(
    target: Path,
    paths: Sequence[Path],
    name: str,
    content: str,
    null_values: frozenset[str],
    tell: Callable[[str], None],
) -> _Facts:
    parser = _Parser([str(path) for path in paths], null_values)
    with replacing(target) as file:
        for k, path in enumerate(paths):
            for block in read_blocks(path, is_bounded=False):
                numbers = parser.add(k, block)
                if file.tell() == 0:
                    n_bytes = sum(os.path.getsize(path) for path in paths)
                    announce(name, target, numbers.nbytes * n_bytes // block.position, tell)
                    write_header(file, numbers.shape)
                file.write(numbers.tobytes())
        if not any(parser.n_rows):
            raise no_rows(name)
        file.seek(0)
        write_header(file, (sum(parser.n_rows), len(parser.columns)))
    return _Facts(
        version=_VERSION,
        content=content,
        rows=sum_contents([target]),
        null_values=sorted(null_values),
        names=list(parser.columns),
        n_rows=parser.n_rows,
        kinds={k: "code" if c.has_code else c.kind or "number" for k, c in parser.columns.items()},
        strays=parser.strays,
    )


class _Parser:
    """Turn blocks of cells into numbers, and count."""

    def __init__(self, files: list[str], null_values: frozenset[str]) -> None:
        self.files = files
        self._null_values = null_values
        self.columns: dict[str, NumberColumn] = {}
        self.n_rows = [0] * len(files)
        self.strays: dict[str, list[Any]] = {}

    def add(self, k: int, block: CsvBlock) -> NDArray[np.float64]:
        """Take the next block of file `k`; return its numbers, the columns as in file 0."""
        if not self.columns:
            refuse_twins(self.files[0], block.names)
            self.columns = {name: NumberColumn(self._null_values) for name in block.names}
        if self.n_rows[k] == 0:
            refuse_twins(self.files[k], block.names)
            refuse_other_columns(self.files[0], tuple(self.columns), self.files[k], block.names)
        cells = dict(zip(block.names, block.columns, strict=True))
        numbers = np.empty((len(block.lines), len(self.columns)))
        for position, (name, column) in enumerate(self.columns.items()):
            numbers[:, position] = column.add(
                cells[name], has_decimal_comma=block.has_decimal_comma
            )
            if column.stray and name not in self.strays:
                row, reason = column.stray
                self.strays[name] = [k, self.n_rows[k] + row + 1, block.lines[row], reason]
        self.n_rows[k] += len(block.lines)
        return numbers


def announce(name: str, target: Path, n_bytes: int, tell: Callable[[str], None]) -> None:
    """Say how large the file will be, or refuse when there is no room for it."""
    folder = printable(str(target.parent))
    size = f"{n_bytes / 2**30:.1f} GiB" if n_bytes >= 2**30 else f"{-(-n_bytes // 2**20)} MiB"
    n_free = shutil.disk_usage(target.parent).free
    if n_bytes > n_free:
        raise StorageError(
            f"{folder}: {printable(name)} takes about {size} there, and "
            f"{n_free / 2**30:.1f} GiB are free; name another folder with cache=..., or save the "
            "table as Parquet"
        )
    tell(f"{printable(name)}: parsed once, into {folder} (about {size})")


def write_header(file: BinaryIO, shape: tuple[int, ...]) -> None:
    """Write the header of a .npy file; its length does not depend on the number of rows."""
    npy.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
