"""What every source of rows promises; a new one joins by one line in ``support.row_cases``."""

from __future__ import annotations

import dataclasses
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mercer.data
from mercer.data import source as source_module
from mercer.data.source import RowSource
from mercer.errors import DataError, StorageError, UsageError
from support.row_cases import NAMES, ROWS, SOURCES, overwrite

pytest.importorskip("pyarrow")

each_source = pytest.mark.parametrize("kind", SOURCES)
on_disk = pytest.mark.parametrize("kind", [kind for kind, (_, file) in SOURCES.items() if file])


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a thousand rows be many: pieces of 37 rows, checksums of 128."""
    for name in ("source.CHUNK_CELLS", "arrow.DECODED_CELLS"):
        monkeypatch.setattr(f"mercer.data.{name}", 37 * 3)
    monkeypatch.setattr(source_module, "CHECK_CELLS", 128 * 3)


def make(kind: str, folder: Path) -> RowSource:
    return SOURCES[kind][0](folder)


def whole(source: RowSource, rows_per_block: int = 100) -> np.ndarray:
    return np.vstack(list(source.blocks(rows_per_block)))


@each_source
@pytest.mark.parametrize("is_verified", [False, True])
@pytest.mark.parametrize("n", [1, 7, 128, 300, 999, 1000, 5000])
def test_the_blocks_are_those_of_the_rows(
    tmp_path: Path, kind: str, n: int, is_verified: bool
) -> None:
    source = make(kind, tmp_path)
    source = source.verified() if is_verified else source
    blocks = list(source.blocks(n))
    assert [len(block) for block in blocks] == [len(ROWS[k : k + n]) for k in range(0, 1000, n)]
    assert len(blocks) == source.n_blocks(n)
    for block in blocks:
        assert block.dtype == np.float64
        assert block.flags.c_contiguous
        assert block.flags.writeable
    np.testing.assert_array_equal(np.vstack(blocks), ROWS)


@each_source
@pytest.mark.parametrize("is_verified", [False, True])
def test_a_run_of_blocks(tmp_path: Path, kind: str, is_verified: bool) -> None:
    source = make(kind, tmp_path)
    source = source.verified() if is_verified else source
    for first, last in [(0, 0), (0, 3), (3, 9), (8, 10), (9, None), (10, 10)]:
        blocks = list(source.blocks(110, first=first, last=last))
        expected = ROWS[110 * first : None if last is None else 110 * last]
        np.testing.assert_array_equal(np.vstack([*blocks, np.empty((0, 3))]), expected)


@each_source
def test_columns_in_the_order_that_is_asked_for(tmp_path: Path, kind: str) -> None:
    source = make(kind, tmp_path)
    assert (source.n_rows, source.n_columns, source.names) == (1000, 3, NAMES)
    turned = source.select(["x2", "x0"])
    assert turned.names == ("x2", "x0")
    np.testing.assert_array_equal(whole(turned), ROWS[:, [2, 0]])
    np.testing.assert_array_equal(whole(turned.select(["x0"])), ROWS[:, [0]])
    np.testing.assert_array_equal(whole(source.without(["x1"])), ROWS[:, [0, 2]])
    np.testing.assert_array_equal(whole(source.select(["x1"])), ROWS[:, [1]])
    np.testing.assert_array_equal(whole(source), ROWS)


@each_source
def test_columns_that_are_not_there(tmp_path: Path, kind: str) -> None:
    source = make(kind, tmp_path)
    with pytest.raises(DataError, match="no column 'x01'; did you mean 'x"):
        source.select(["x0", "x01"])
    with pytest.raises(DataError, match="no column 'y'; the columns are 'x0', 'x1', 'x2'"):
        source.without(["y"])
    with pytest.raises(DataError, match="'x0' is there twice"):
        source.select(["x0", "x0"])
    with pytest.raises(DataError, match="no column is left"):
        source.without(NAMES)


@each_source
@pytest.mark.parametrize("is_verified", [False, True])
def test_rows_at_positions(tmp_path: Path, kind: str, is_verified: bool) -> None:
    source = make(kind, tmp_path)
    source = source.verified() if is_verified else source
    for rows in ([], [0], [999], [0, 999], [5, 5, 6], range(1000), range(3, 1000, 17)):
        np.testing.assert_array_equal(source.take(np.array(rows)), ROWS[list(rows)])
    for wrong in ([-1], [1000], [3, 2]):
        with pytest.raises(UsageError, match="ascending positions among the 1000 rows"):
            source.take(np.array(wrong))


@each_source
@pytest.mark.parametrize("is_verified", [False, True])
def test_rows_that_are_left_out(tmp_path: Path, kind: str, is_verified: bool) -> None:
    source = make(kind, tmp_path)
    source = source.verified() if is_verified else source
    for rows in ([], [0], [999], [0, 1, 2, 500, 999], range(999), range(3, 1000, 17)):
        left_out, rest = np.array(rows, dtype=int), np.delete(ROWS, list(rows), axis=0)
        less = source.without_rows(left_out)
        assert less.n_rows == len(rest)
        np.testing.assert_array_equal(whole(less), rest)
        np.testing.assert_array_equal(whole(less.verified().select(["x2"])), rest[:, [2]])
        assert less.digest() == mercer.data.open(rest).digest()
    again = source.without_rows(np.arange(0, 1000, 2)).without_rows(np.arange(0, 500, 2))
    np.testing.assert_array_equal(whole(again), ROWS[3::4])
    places = zip(again.located(np.arange(250)), source.located(np.arange(3, 1000, 4)), strict=True)
    assert all(np.array_equal(found, expected) for found, expected in places)
    assert len(source.gaps()) == 0
    if kind != "rows left out":
        at = np.array([0, 1, 500, 999])
        np.testing.assert_array_equal(source.positions(*source.located(at)), at)
    for wrong in ([-1], [1000], [3, 2], [5, 5]):
        with pytest.raises(UsageError, match="ascending positions among the 1000 rows"):
            source.without_rows(np.array(wrong))
    with pytest.raises(DataError, match="no row of data"):
        source.without_rows(np.arange(1000))


@each_source
def test_blocks_that_are_not_there(tmp_path: Path, kind: str) -> None:
    source = make(kind, tmp_path)
    with pytest.raises(UsageError, match="at least 1"):
        source.blocks(0)
    for first, last in [(0, 11), (-1, 3), (5, 4)]:
        with pytest.raises(UsageError, match="not among the 10 blocks"):
            source.blocks(100, first=first, last=last)


def test_the_digest_is_that_of_the_numbers(tmp_path: Path) -> None:
    digests = set()
    for kind in SOURCES:
        folder = tmp_path / kind
        folder.mkdir()
        source = make(kind, folder)
        digests |= {source.digest(), source.verified().digest()}
    assert len(digests) == 1
    other = ROWS.copy()
    other[17, 2] = np.nextafter(other[17, 2], 9.0)
    for rows in (other, ROWS[:-1], ROWS[:, :2], ROWS[:, [1, 0, 2]], ROWS[[1, 0, *range(2, 1000)]]):
        digests.add(mercer.data.open(rows).digest())
    assert len(digests) == 6


@pytest.mark.one_in(4)
@each_source
def test_a_copy_in_another_process_reads_the_same(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = make(kind, Path()).select(["x2", "x1"]).verified()
    pickled = pickle.dumps(source)
    if SOURCES[kind][1]:
        assert len(pickled) < 3000
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).take(range(900, 903)).tolist())"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    small = "import mercer.data.source as s; s.CHECK_CELLS = 128 * 3; "
    done = subprocess.run(
        [sys.executable, "-c", small + code],
        input=pickled, capture_output=True, check=True, timeout=60, cwd=elsewhere,
    )  # fmt: skip
    assert done.stdout.decode().strip() == str(ROWS[900:903, [2, 1]].tolist())


@each_source
def test_frozen(tmp_path: Path, kind: str) -> None:
    source = make(kind, tmp_path)
    with pytest.raises(dataclasses.FrozenInstanceError):
        source.names = ("a",)  # type: ignore[misc]


@on_disk
@pytest.mark.parametrize("reads", ["blocks", "a run of blocks", "take"])
def test_dist_7_other_contents_of_the_same_size_and_time(
    tmp_path: Path, kind: str, reads: str
) -> None:
    """The mutant is the source that is not verified: it does not notice."""
    plain = make(kind, tmp_path)
    verified = plain.verified()
    assert verified.verified() is verified
    np.testing.assert_array_equal(whole(verified), ROWS)
    overwrite(tmp_path, SOURCES[kind][1], 700, 2)

    def read(source: RowSource) -> np.ndarray:
        if reads == "blocks":
            return whole(source)
        if reads == "a run of blocks":
            return np.vstack(list(source.blocks(100, first=7, last=8)))
        return source.take(np.array([3, 705]))

    with pytest.raises(DataError, match="changed while it was being read") as caught:
        read(verified)
    message = str(caught.value)
    assert message.isprintable()
    assert str(tmp_path) in message
    if "folder" in kind:
        assert "b.csv" in message or "b.parquet" in message
    read(plain)
    assert plain.digest() != verified.digest()


@on_disk
def test_dist_7_rows_that_are_not_read_are_not_checked(tmp_path: Path, kind: str) -> None:
    source = make(kind, tmp_path).verified()
    overwrite(tmp_path, SOURCES[kind][1], 700, 2)
    blocks = list(source.blocks(100, first=0, last=3))
    np.testing.assert_array_equal(np.vstack(blocks), ROWS[:300])


@pytest.mark.parametrize("kind", ["array", "Fortran order"])
def test_dist_7_an_array_that_changes(tmp_path: Path, kind: str) -> None:
    source = make(kind, tmp_path).verified()
    source.array[700, 2] = 0.5  # type: ignore[attr-defined]
    with pytest.raises(DataError, match="array: changed while it was being read"):
        whole(source)


def read_file(tmp_path: Path, kind: str) -> Path:
    """The file that the user named, or one of the folder."""
    if kind == "csv":
        return tmp_path / "rows.csv"
    if kind == "csv folder":
        return tmp_path / "parts" / "b.csv"
    return tmp_path / SOURCES[kind][1]


@on_disk
@pytest.mark.parametrize("is_verified", [False, True])
def test_dist_7_another_size_or_time(tmp_path: Path, kind: str, is_verified: bool) -> None:
    source = make(kind, tmp_path)
    source = source.verified() if is_verified else source
    path = read_file(tmp_path, kind)
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000_000))
    with pytest.raises(DataError, match=rf"{path.name}: changed while it was being read"):
        whole(source)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    whole(source)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(DataError, match=rf"{path.name}: changed while it was being read"):
        source.take(np.array([0]))
    path.unlink()
    with pytest.raises(StorageError, match=rf"{path.name}: cannot be read \(no such file"):
        whole(source)


@on_disk
def test_dist_7_a_change_during_the_pass(tmp_path: Path, kind: str) -> None:
    blocks = make(kind, tmp_path).blocks(100)
    path = read_file(tmp_path, kind)
    next(blocks)
    path.write_bytes(path.read_bytes()[:700])
    with pytest.raises(DataError, match=rf"{path.name}: changed while it was being read"):
        list(blocks)


@each_source
def test_columns_of_a_verified_source_are_verified(tmp_path: Path, kind: str) -> None:
    source = make(kind, tmp_path)
    picked = source.verified().select(["x2", "x0"])
    assert picked.is_verified
    assert picked.checksums == source.select(["x2", "x0"]).verified().checksums
    np.testing.assert_array_equal(whole(picked), ROWS[:, [2, 0]])


@on_disk
def test_dist_7_a_change_before_columns_are_selected(tmp_path: Path, kind: str) -> None:
    source = make(kind, tmp_path).verified()
    overwrite(tmp_path, SOURCES[kind][1], 700, 2)
    with pytest.raises(DataError, match="changed while it was being read"):
        source.select(["x0"])


@each_source
def test_places(tmp_path: Path, kind: str) -> None:
    source = make(kind, tmp_path)
    words = source.place(450, "x1")
    row = 51 if "folder" in kind else 454 if kind == "rows left out" else 451
    assert words.endswith(f", row {row}, column 'x1'")
    with pytest.raises(IndexError):
        source.place(1000)


def test_the_smallest_table() -> None:
    source = mercer.data.open(np.array([[2.0]])).verified()
    assert [block.tolist() for block in source.blocks(3)] == [[[2.0]]]
    assert source.take(np.array([0])).tolist() == [[2.0]]
