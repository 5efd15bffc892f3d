from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
import stat
import time
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import mercer.data
from mercer.data import csv_cache, csv_reader
from mercer.data.tables import read_frame
from mercer.errors import DataError, MercerError, StorageError
from support.row_cases import NAMES, ROWS, write_csv


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.csv"


@pytest.fixture
def n_parses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list to which each parse of a file adds its name."""
    parsed: list[str] = []
    read_blocks = csv_cache.read_blocks

    def counted(path: Path, **options: bool):  # type: ignore[no-untyped-def]
        parsed.append(path.name)
        return read_blocks(path, **options)

    monkeypatch.setattr(csv_cache, "read_blocks", counted)
    return parsed


def open_(path: Path) -> mercer.data.RowSource:
    return mercer.data.open(path, cache=path.parent / "cache")


def whole(source: mercer.data.RowSource) -> np.ndarray:
    return np.vstack(list(source.blocks(100)))


def cached(path: Path) -> list[str]:
    return sorted(file.name[:5] for file in path.parent.glob("cache/*/*"))


def test_parsed_once(path: Path, n_parses: list[str]) -> None:
    write_csv(path, ROWS)
    first, second = open_(path), open_(path)
    assert n_parses == ["data.csv"]
    np.testing.assert_array_equal(whole(first), ROWS)
    np.testing.assert_array_equal(whole(second), ROWS)
    assert cached(path) == ["facts", "rows-"]
    (folder,) = path.parent.glob("cache/*")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("block_cells", [1, 50, 3000])
@pytest.mark.parametrize("n", [1, 99, 1000])
def test_blocks_of_text_do_not_matter(
    path: Path, monkeypatch: pytest.MonkeyPatch, block_cells: int, n: int
) -> None:
    monkeypatch.setattr(csv_reader, "BLOCK_CELLS", block_cells)
    write_csv(path, ROWS[:n])
    np.testing.assert_array_equal(whole(open_(path)), ROWS[:n])


def test_other_contents_are_parsed_again(path: Path, n_parses: list[str]) -> None:
    """Also where size and time are those of before."""
    write_csv(path, ROWS)
    status = path.stat()
    old = open_(path)
    path.write_text(path.read_text().replace(repr(float(ROWS[9, 1])), "8.0"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    new = open_(path)
    assert n_parses == ["data.csv"] * 2
    assert new.take(np.array([9]))[0, 1] == 8.0
    assert cached(path) == ["facts", "rows-"]
    with pytest.raises(MercerError):
        whole(old)


def test_a_change_that_the_clock_does_not_show(
    path: Path, n_parses: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that a look at the file shows is other than before: its time is too young to tell."""
    write_csv(path, ROWS)
    look = [path.stat().st_size, time.time_ns(), time.time_ns(), 1]
    monkeypatch.setattr(csv_cache, "_look", lambda path: look)
    open_(path)
    path.write_text(path.read_text().replace(repr(float(ROWS[9, 1])), "8.0"))
    assert open_(path).take(np.array([9]))[0, 1] == 8.0
    assert n_parses == ["data.csv"] * 2


def test_old_files_are_not_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once all times are older than a tick of the clock, contents are not summed any more."""
    write_csv(path, ROWS)
    old = [path.stat().st_size, 5, 5, 1]
    monkeypatch.setattr(csv_cache, "_look", lambda path: old)
    open_(path)
    monkeypatch.delattr(csv_cache, "sum_contents")
    np.testing.assert_array_equal(whole(open_(path)), ROWS)


def test_a_file_that_is_only_touched_or_copied_is_not_parsed_again(
    path: Path, n_parses: list[str]
) -> None:
    write_csv(path, ROWS)
    open_(path)
    os.utime(path, (1e9, 1e9))
    open_(path)
    copy = path.with_name("copy.csv")
    shutil.copy(path, copy)
    copy.replace(path)
    np.testing.assert_array_equal(whole(open_(path)), ROWS)
    assert n_parses == ["data.csv"]


def test_a_folder_with_one_file_more(tmp_path: Path, n_parses: list[str]) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    write_csv(folder / "a.csv", ROWS[:10])
    open_(folder)
    write_csv(folder / "b.csv", ROWS[10:20])
    np.testing.assert_array_equal(whole(open_(folder)), ROWS[:20])
    (folder / "a.csv").rename(folder / "c.csv")
    np.testing.assert_array_equal(whole(open_(folder)), np.vstack([ROWS[10:20], ROWS[:10]]))
    assert n_parses == ["a.csv", "a.csv", "b.csv", "b.csv", "c.csv"]


def damage_facts(folder: Path) -> None:
    (folder / "facts.json").write_text("{")


def other_facts(folder: Path) -> None:
    (folder / "facts.json").write_text(json.dumps({"version": 1}))


def older_version(folder: Path) -> None:
    facts = json.loads((folder / "facts.json").read_text())
    (folder / "facts.json").write_text(json.dumps({**facts, "version": 0}))


def rows_gone(folder: Path) -> None:
    next(folder.glob("rows-*")).unlink()


def rows_cut(folder: Path) -> None:
    file = next(folder.glob("rows-*"))
    os.truncate(file, file.stat().st_size - 8)


def edited_facts(folder: Path) -> None:
    facts = (folder / "facts.json").read_text()
    (folder / "facts.json").write_text(facts.replace('"x0"', '"x9"'))


def rows_edited(folder: Path) -> None:
    """Other numbers, of the same size, at the same time."""
    file = next(folder.glob("rows-*"))
    status = file.stat()
    rows = np.load(file, mmap_mode="r+")
    rows[9, 1] += 1.0
    rows.flush()
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def rows_of_another_table(folder: Path) -> None:
    np.save(next(folder.glob("rows-*")), ROWS[:5])


@pytest.mark.parametrize(
    "harm",
    [
        damage_facts,
        other_facts,
        edited_facts,
        older_version,
        rows_gone,
        rows_cut,
        rows_edited,
        rows_of_another_table,
    ],
)
def test_a_damaged_cache_is_made_again(path: Path, n_parses: list[str], harm) -> None:  # type: ignore[no-untyped-def]
    write_csv(path, ROWS)
    open_(path)
    harm(next(path.parent.glob("cache/*")))
    np.testing.assert_array_equal(whole(open_(path)), ROWS)
    assert n_parses == ["data.csv"] * 2


def test_an_interrupted_parse_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_csv(path, ROWS)
    monkeypatch.setattr(csv_reader, "BLOCK_CELLS", 300)
    calls = iter(range(10))
    add = csv_cache._Parser.add

    def stopping(self, k, block):  # type: ignore[no-untyped-def]
        if next(calls) == 5:
            raise KeyboardInterrupt
        return add(self, k, block)

    with monkeypatch.context() as patch:
        patch.setattr(csv_cache._Parser, "add", stopping)
        with pytest.raises(KeyboardInterrupt):
            open_(path)
    assert list(path.parent.glob("cache/*/*")) == []
    assert list(path.parent.glob("cache/*/.*")) == []
    np.testing.assert_array_equal(whole(open_(path)), ROWS)


def test_two_that_parse_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is first, the numbers of both stay: they have the same name and bytes."""
    write_csv(path, ROWS)
    add = csv_cache._Parser.add
    others: list[mercer.data.RowSource] = []

    def overtaken(self, k, block):  # type: ignore[no-untyped-def]
        if not others:
            monkeypatch.setattr(csv_cache._Parser, "add", add)
            others.append(open_(path))
        return add(self, k, block)

    monkeypatch.setattr(csv_cache._Parser, "add", overtaken)
    np.testing.assert_array_equal(whole(open_(path)), ROWS)
    np.testing.assert_array_equal(whole(others[0]), ROWS)
    assert cached(path) == ["facts", "rows-"]


def test_a_file_that_changes_while_it_is_parsed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_csv(path, ROWS)
    add = csv_cache._Parser.add

    def changing(self, k, block):  # type: ignore[no-untyped-def]
        with open(path, "a") as file:
            file.write("1,2,3\n")
        return add(self, k, block)

    monkeypatch.setattr(csv_cache._Parser, "add", changing)
    with pytest.raises(DataError, match=r"data.csv: changed while it was being read"):
        open_(path)


@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz"])
def test_the_size_is_said_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(csv_reader, "BLOCK_CELLS", 30_000)
    path = tmp_path / name
    rows = np.tile(ROWS, (100, 1))
    write_csv(path, rows)
    mercer.data.open(path, cache=tmp_path / "cache", progress=True)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"{path}: parsed once, into {tmp_path / 'cache'}" in said
    if path.suffix == ".csv":
        assert "(about 3 MiB)" in said  # 2.3
    mercer.data.open(path, cache=tmp_path / "cache", progress=True)
    assert capsys.readouterr().err == ""


def test_d12_no_room(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_csv(path, ROWS)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(0, 0, 10_000))
    with pytest.raises(StorageError, match=r"data.csv takes about 1 MiB there, and 0.0 GiB are"):
        open_(path)
    assert list(path.parent.glob("cache/*/.*")) == []


def test_a_cache_that_cannot_be_made(path: Path) -> None:
    write_csv(path, ROWS)
    (path.parent / "cache").write_text("not a folder")
    with pytest.raises(StorageError, match=r"cannot be made .*set XDG_CACHE_HOME"):
        open_(path)


def test_the_folder_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "there"))
    write_csv(tmp_path / "data.csv", ROWS)
    mercer.data.open(tmp_path / "data.csv")
    assert len(list(tmp_path.glob("there/mercer/rows/*/rows-*.npy"))) == 1
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert csv_cache.cache_folder() == tmp_path / ".cache" / "mercer" / "rows"


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_columns_of_text_and_of_dates_may_be_left_out(path: Path) -> None:
    source = open_(write(path, "n,t,b,d\n\n1,x,true,2024-01-01\n2,y,false,2024-01-02\n"))
    assert source.names == ("n", "t", "b", "d")
    assert whole(source.without(["t", "d"])).tolist() == [[1, 1], [2, 0]]
    for name, cell in [("t", "x"), ("d", "2024-01-01")]:
        with pytest.raises(
            DataError,
            match=rf"data.csv, row 1 \(line 3\), column '{name}': '{cell}' is not a number; leave "
            r"it out with .without\(...\), or open it with encode='auto'",
        ):
            source.select(["n", name])


def test_d4_a_stray_text_far_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_reader, "BLOCK_CELLS", 4)
    folder = tmp_path / "parts"
    folder.mkdir()
    write(folder / "a.csv", "a,b\n" + "1,2\n" * 9)
    write(folder / "b.csv", "b,a\n" + "1,2\n" * 6 + "\n3,oops\n4,4\n")
    for _ in range(2):  # parsed, and from the cache
        with pytest.raises(
            DataError, match=r"b.csv, row 7 \(line 9\), column 'a': 'oops' is not a number"
        ):
            open_(folder).blocks(3)


@pytest.mark.parametrize(("cell", "words"), [("", "missing"), ("?", "missing"), ("1e999", "inf")])
def test_d3_gaps(path: Path, cell: str, words: str) -> None:
    source = open_(write(path, f"a,b\n1,2\n3,4\n5,{cell}\n"))
    with pytest.raises(DataError, match=rf"data.csv, row 3, column 'b': {words}"):
        whole(source)


def test_semicolons_with_decimal_commas(path: Path) -> None:
    assert whole(open_(write(path, "a;b\n1,5;2\n"))).tolist() == [[1.5, 2.0]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"the file is empty"),
        ("a,b\n", r"there is no row of data"),
        ("a,a\n1,2\n", r"column 'a' is there twice \(columns 1 and 2\)"),
        ("a,b\n1,2\n3\n", r"row 2 \(line 3\): has 1 cells, but the header has 2"),
        ("a,\n1,2\n", "column 2 has no name"),
        ("1.5,2\n3,4\n", "write a header line"),
        (b"a,b\n1,\xff\n", "not UTF-8 text"),
        (b"a,b\n1,\0\n", "NUL byte"),
        (gzip.compress(b"a,b\n" + b"1,2\n" * 999, mtime=0)[:-9], "ends in the middle|damaged gzip"),
    ],
)
def test_d1_d5_d15_what_is_no_table(path: Path, text: str | bytes, words: str) -> None:
    with pytest.raises(DataError, match=rf"data.csv.*{words}") as caught:
        open_(write(path, text))
    assert str(caught.value).isprintable()
    assert list(path.parent.glob("cache/*/*")) == []


def test_d5_duplicates_in_a_later_file(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    write(folder / "a.csv", "a,b\n1,2\n")
    write(folder / "b.csv", "a,b,a\n1,2,3\n")
    with pytest.raises(DataError, match=r"b.csv: column 'a' is there twice"):
        open_(folder)
    write(folder / "b.csv", "a,c\n1,2\n")
    with pytest.raises(DataError, match=r"b.csv: column 'b' of .*a.csv is missing"):
        open_(folder)


def test_files_without_rows_among_others(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    write(folder / "a.csv", "x0,x1,x2\n")
    write_csv(folder / "b.csv", ROWS)
    write(folder / "c.csv", "x2,x1,x0\n")
    source = open_(folder)
    np.testing.assert_array_equal(whole(source), ROWS)
    assert source.place(0, "x1").endswith("b.csv, row 1, column 'x1'")
    assert source.names == NAMES


def test_text_beyond_the_limit_of_what_is_read_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_reader, "MAX_TEXT", 1000)
    write_csv(path, ROWS)
    np.testing.assert_array_equal(whole(open_(path)), ROWS)


numbers = st.sampled_from(["1", "-2.5", "1e-300", " 7 ", "true", "FALSE", "NA", "", "inf", "x"])


@seed(12)
@settings(max_examples=120)
@given(rows=st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8), n=st.integers(1, 20))
def test_the_same_as_the_table_that_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[tuple[str, str]], n: int
) -> None:
    """Column by column: the same numbers, or both say that they are none."""
    monkeypatch.setattr(csv_reader, "BLOCK_CELLS", n)
    path = write(tmp_path / "data.csv", "a,b\n" + "".join(f"{a},{b}\n" for a, b in rows))
    frame = read_frame(path)
    source = open_(path)
    for name in "ab":
        column = frame.column(name)
        is_number = column.kind in ("number", "boolean")
        is_whole = is_number and np.isfinite(column.values).all()
        with contextlib.nullcontext() if is_whole else pytest.raises(DataError):
            np.testing.assert_array_equal(whole(source.select([name]))[:, 0], column.values)
        assert is_number or name in source.refusals or column.is_missing.all()


def test_the_names_of_rows_are_no_input(path: Path) -> None:
    source = open_(write(path, ",a\n7,1\n8,2\n"))
    assert whole(source.without(["Unnamed: 0"])).tolist() == [[1.0], [2.0]]
    for columns in (["Unnamed: 0"], ["a", "Unnamed: 0"]):
        with pytest.raises(DataError, match="'Unnamed: 0' has no name, and is taken for the names"):
            source.select(columns)


@pytest.mark.parametrize("cells", [["12%", "3%"], ["$1", "$2"], ["01/02/2024", "31/02/2024"]])
def test_what_only_a_whole_column_tells_is_refused(path: Path, cells: list[str]) -> None:
    """Blocks do not remember how a column is written: it is never read in another way."""
    source = open_(write(path, "a\n" + "\n".join(cells) + "\n"))
    with pytest.raises(DataError, match=r"row 1 .* is not a number; .*encode='auto'"):
        source.select(["a"])


def test_another_machine_neither_believes_times_nor_removes_what_is_read(
    path: Path, monkeypatch: pytest.MonkeyPatch, n_parses: list[str]
) -> None:
    """A home folder that machines share, and a file of the same path on the disk of each."""
    write_csv(path, ROWS)
    monkeypatch.setattr(csv_cache, "_look", lambda path: [path.stat().st_size, 5, 5, 1])
    monkeypatch.setattr(csv_cache.platform, "node", lambda: "first")
    here = open_(path)
    text = path.read_text()
    path.write_text(text.replace(repr(float(ROWS[9, 1])), "8.0"))
    monkeypatch.setattr(csv_cache.platform, "node", lambda: "second")
    there = open_(path)
    assert n_parses == ["data.csv"] * 2
    assert there.take(np.array([9]))[0, 1] == 8.0
    assert cached(path) == ["facts", "rows-", "rows-"]
    path.write_text(text)
    os.utime(path, ns=(0, here.stamps[0].mtime))
    np.testing.assert_array_equal(whole(here), ROWS)


def test_encoded_rows_of_another_machine_stay(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for k, machine in enumerate(("first", "second", "second")):
        path.write_text("a,y\n" + f"{k}x,1\ny,2\n")
        monkeypatch.setattr(csv_cache.platform, "node", lambda: machine)  # noqa: B023
        mercer.data.open(path, cache=path.parent / "cache", encode="auto", target="y")
        assert len(list(path.parent.glob("cache/*/encoded-*.npy"))) == min(k + 1, 2)
