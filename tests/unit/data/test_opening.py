from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import mercer
import mercer.data
from mercer import BaNKClassifier, BaNKRegressor, ConvergenceWarning, TableEncoder
from mercer.cli.main import main
from mercer.data import csv_reader, opening, tables
from mercer.data.encoding import fit_encoder
from mercer.data.tables import read_frame
from mercer.errors import DataError, DataWarning, StorageError, UsageError
from support.row_cases import ROWS, write_csv, write_npy, write_parquet
from support.statistics import few_first

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
pq = pytest.importorskip("pyarrow.parquet")


def test_the_first_bytes_say_what_a_file_is(tmp_path: Path) -> None:
    for name, write in [("a", write_csv), ("b", write_parquet), ("c.npy", write_npy)]:
        write(tmp_path / name, ROWS)
        source = mercer.data.open(str(tmp_path / name), cache=tmp_path / "cache")
        np.testing.assert_array_equal(np.vstack(list(source.blocks(300))), ROWS)
        assert source.name == str(tmp_path / name)


def test_a_source_is_open_already() -> None:
    source = mercer.data.open(ROWS)
    assert mercer.data.open(source) is source


@pytest.mark.parametrize("data", [[[1.0]], None, 3])
def test_what_cannot_be_opened(data) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TypeError):
        mercer.data.open(data)


def test_d17_missing(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"no such file or folder$"):
        mercer.data.open(tmp_path / "none.csv")
    (tmp_path / "link").symlink_to(tmp_path / "none.csv")
    with pytest.raises(StorageError, match="the link leads to nothing"):
        mercer.data.open(tmp_path / "link")


def test_d17_pipe_does_not_hang(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    for path in (tmp_path / "a.parquet", tmp_path / "parts" / "a.csv"):
        os.mkfifo(path)
        with pytest.raises(StorageError, match="is a named pipe"):
            mercer.data.open(path)
    with pytest.raises(StorageError, match="is a named pipe"):
        mercer.data.open(tmp_path / "parts")


def test_d17_folder_without_data(tmp_path: Path) -> None:
    (tmp_path / "readme.md").write_text("")
    with pytest.raises(
        StorageError, match="a folder without a CSV, JSON lines, Parquet or Arrow file"
    ):
        mercer.data.open(tmp_path)


def test_folders_of_two_kinds(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", ROWS)
    write_parquet(tmp_path / "b.csv", ROWS)
    with pytest.raises(DataError, match=r"b.csv: is Parquet, but .*a.csv is text; keep one kind"):
        mercer.data.open(tmp_path)
    write_parquet(tmp_path / "c.parquet", ROWS)
    with pytest.raises(DataError, match=r"holds both 'a.csv' and 'c.parquet'; keep one kind"):
        mercer.data.open(tmp_path)


def test_arrow_files(tmp_path: Path) -> None:
    feather.write_feather(pa.table({"a": [1.0]}), tmp_path / "a.feather")
    with pytest.raises(DataError, match=r"a.feather: is an Arrow file.*save it as Parquet"):
        mercer.data.open(tmp_path / "a.feather")


@pytest.mark.parametrize(
    ("start", "words"), [(b"PK\x03\x04", "a spreadsheet"), (b"MERCER01", "a model of mercer")]
)
def test_foreign_files(tmp_path: Path, start: bytes, words: str) -> None:
    (tmp_path / "a.csv").write_bytes(start + b"more")
    with pytest.raises(DataError, match=rf"a.csv: is {words}"):
        mercer.data.open(tmp_path / "a.csv")


@pytest.mark.parametrize("progress", ["auto", False])
def test_nothing_is_said_in_a_pipe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], progress
) -> None:  # type: ignore[no-untyped-def]
    write_csv(tmp_path / "a.csv", ROWS)
    mercer.data.open(tmp_path / "a.csv", cache=tmp_path / "cache", progress=progress)
    assert capsys.readouterr() == ("", "")


PEAK = """
import re, sys
from pathlib import Path
import pyarrow.parquet
import mercer.data

def peak():  # in MB; that of getrusage starts at the peak of the parent
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1e3

start = peak()
source = mercer.data.open(sys.argv[1])
total = sum(float(block[:, 0].sum()) for block in source.verified().blocks(8192))
print(peak() - start, total)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
@pytest.mark.parametrize("kind", few_first(["npy", "npy of columns", "parquet"], "parquet"))
def test_memory_of_a_pass(tmp_path: Path, kind: str) -> None:
    """200 MB in one row group; the mutant is reading it whole."""
    rows = np.random.default_rng(6).standard_normal((1_250_000, 20))
    path = tmp_path / "data"
    if kind == "parquet":
        write_parquet(path, rows, [f"c{k}" for k in range(20)], row_group_size=len(rows))
    else:
        write_npy(path.with_suffix(".npy"), rows if kind == "npy" else np.asfortranarray(rows))
        path = path.with_suffix(".npy")
    assert _peak(PEAK, path, rows) < 100.0
    if kind == "parquet":
        mutant = PEAK.replace("source.verified().blocks(8192)", "source.blocks(source.n_rows)")
        assert _peak(mutant, path, rows) > 150.0


def _peak(code: str, path: Path, rows: np.ndarray) -> float:
    """Run the code on a file that holds the rows; the memory it takes at most, in MB."""
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    peak, total = map(float, done.stdout.split())
    assert abs(total - rows[:, 0].sum()) < 1e-6
    return peak


CAPPED = """
import resource, sys
import numpy as np
import mercer.data

resource.setrlimit(resource.RLIMIT_AS, (3 * 2**29, 3 * 2**29))
source = mercer.data.open(sys.argv[1])
total = sum(float(block[:, 0].sum()) for block in source.blocks(8192))
print(source.n_rows, total)
"""


@pytest.mark.slow
def test_dist_6_address_space_of_a_quarter_of_the_matrix(tmp_path: Path) -> None:
    """6 GiB, of which the disk holds nothing but one row; 1.5 GiB may be addressed."""
    n = 6 * 2**30 // 160
    with open(tmp_path / "rows.npy", "wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (n, 20)}
        np.lib.format.write_array_header_1_0(file, header)
        file.seek(160 * (n - 1), os.SEEK_CUR)
        file.write(np.full(20, 0.5).tobytes())
    done = subprocess.run(
        [sys.executable, "-c", CAPPED, str(tmp_path / "rows.npy")],
        capture_output=True, text=True, check=True, timeout=300,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.stdout.split() == [str(n), "0.5"]


def test_json_lines_in_blocks(tmp_path: Path) -> None:
    text = "\n".join(f'{{"a": {i}, "b": {i / 4}, "w": "x"}}' for i in range(9)).encode()
    for name, content in (("t.jsonl", text), ("t.jsonl.gz", gzip.compress(text))):
        (tmp_path / name).write_bytes(content)
        rows = mercer.data.open(tmp_path / name, cache=tmp_path / "cache").without(["w"])
        assert rows.names == ("a", "b")
        blocks = list(rows.blocks(5))
        assert [block.shape for block in blocks] == [(5, 2), (4, 2)]
        assert np.concatenate(blocks)[:, 1].tolist() == [i / 4 for i in range(9)]


def test_standard_input_is_not_opened_in_blocks() -> None:
    with pytest.raises(UsageError, match="can be read once"):
        mercer.data.open("-")


# Tables with text, dates and gaps, which are encoded once into the cache.


def _mixed(n: int = 900) -> Any:
    """Make a table that the encoder has something to do with, in every file another level."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=n)
    x[rng.choice(n, 40, replace=False)] = np.nan
    city = rng.choice(["Rome", "Oslo", "Lima"], n)
    city[-3:] = ["Bonn", "", "Bonn"]
    days = np.datetime64("2024-01-30") + rng.integers(0, 400, n)
    return pd.DataFrame(
        {
            "day": [str(day) for day in days],
            "code": [f"A{k}" if k % 3 else f"{k:03d}" for k in rng.integers(0, 90, n)],
            "price": [f"${price:.2f}" for price in rng.gamma(2.0, 900.0, n)],
            "x": x,
            "city": [name or None for name in city],
            "sex": rng.choice(["f", "m"], n),
            "y": rng.normal(size=n),
        }
    )


def _write_parts(folder: Path, frame: Any, kind: str) -> Path:
    folder.mkdir()
    for k, rows in enumerate((slice(0, 400), slice(400, None))):
        part = frame.iloc[rows]
        if kind == "csv":
            part.to_csv(folder / f"{k}.csv", index=False)
        else:
            part.to_parquet(folder / f"{k}.parquet", index=False, row_group_size=97)
    return folder


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("missing", ["impute", "indicator"])
def test_encoded_rows_are_those_of_the_encoder_in_memory(
    tmp_path: Path, kind: str, missing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_reader, "BLOCK_CELLS", 700)  # blocks of a hundred rows
    monkeypatch.setattr(tables, "_BATCH", 100)
    monkeypatch.setattr(opening, "_ROWS_PER_PIECE", 170)
    frame = _mixed()
    folder = _write_parts(tmp_path / "parts", frame, kind)
    encoder = TableEncoder(missing=missing)
    rows = mercer.data.open(folder, encode=encoder, target="sex", cache=tmp_path / "cache")
    inputs = frame.drop(columns="sex")
    expected = clone(encoder).fit(inputs)
    assert rows.encoding == expected.encoding_
    assert rows.names == (*expected.get_feature_names_out(), "sex")
    assert rows.labels == {"sex": ("f", "m")}
    X = np.vstack(list(rows.blocks(64)))
    np.testing.assert_array_equal(X[:, :-1], expected.transform(inputs))
    np.testing.assert_array_equal(X[:, -1], frame["sex"] == "m")
    few = mercer.data.open(
        folder, encode=encoder, target="y", drop=["sex", "day"], cache=tmp_path / "cache"
    )
    np.testing.assert_array_equal(np.vstack(list(few.blocks(900)))[:, -1], frame["y"])
    assert "day" not in few.encoding.input_names  # type: ignore[union-attr]


def test_new_rows_are_encoded_as_those_learned_from(tmp_path: Path) -> None:
    frame = _mixed()
    learned = TableEncoder(missing="impute").fit(frame.iloc[:600])
    new = frame.iloc[600:]
    new.to_csv(tmp_path / "new.csv", index=False)
    with pytest.warns(DataWarning, match=r"'city': 2 rows hold a level that was not .*'Bonn'"):
        rows = mercer.data.open(tmp_path / "new.csv", encode=learned, cache=tmp_path / "cache")
    with pytest.warns(DataWarning):
        np.testing.assert_array_equal(next(rows.blocks(300)), learned.transform(new))


def test_a_model_of_encoded_rows_takes_frames(tmp_path: Path) -> None:
    frame = _mixed()
    frame["city"] = frame["city"].fillna("Rome")
    frame["x"] = frame["x"].fillna(0.0)
    folder = _write_parts(tmp_path / "parts", frame, "csv")
    given: Any = {"n_frequencies": 4, "n_draws": 8, "n_warmup": 8, "n_chains": 1}
    rows = mercer.data.open(
        folder, encode="auto", target="sex", drop=["code"], cache=tmp_path / "cache"
    )
    model = BaNKClassifier(**given, random_state=0).fit(rows, "sex")
    inputs = frame.drop(columns=["sex", "code"])
    held = BaNKClassifier(**given, random_state=0).fit(inputs, frame["sex"])
    assert list(model.classes_) == ["f", "m"]
    np.testing.assert_allclose(model.predict_proba(inputs), held.predict_proba(inputs), rtol=1e-10)
    model.save(tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    with pytest.raises(DataError, match="'sex' is text; it needs a classifier"):
        BaNKRegressor(**given).fit(rows, "sex")


def test_encoded_rows_are_kept_and_follow_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = _mixed()
    path, cache = tmp_path / "a.csv", tmp_path / "cache"
    frame.to_csv(path, index=False)
    given: Any = {"encode": TableEncoder("impute"), "target": "y", "cache": cache}
    first = mercer.data.open(path, **given)
    digest, written = first.digest(), Path(first.path)  # type: ignore[attr-defined]
    with monkeypatch.context() as patched:
        patched.setattr(opening.Learner, "learn", None)  # what is there is taken
        assert mercer.data.open(path, **given).digest() == digest
    with open(written, "r+b") as file:  # an edited file is not believed
        file.seek(-8, os.SEEK_END)
        file.write(np.float64(17.0).tobytes())
    assert mercer.data.open(path, **given).digest() == digest
    frame.loc[0, "y"] += 1.0
    frame.to_csv(path, index=False)
    broken = written.with_name("encoded-broken.json")
    broken.write_bytes(b"\xff")
    assert mercer.data.open(path, **given).digest() != digest
    assert not broken.exists()
    assert not written.exists()  # what was made of other contents goes
    with pytest.raises((DataError, StorageError)):
        list(first.blocks(100))


def test_what_cannot_be_encoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    _mixed().to_csv(path, index=False)
    given: Any = {"cache": tmp_path / "cache"}
    with pytest.raises(UsageError, match="encode needs to know the target"):
        mercer.data.open(path, encode="auto", **given)
    with pytest.raises(UsageError, match="target and drop are of encode"):
        mercer.data.open(path, target="y", **given)
    with pytest.raises(UsageError, match="'y' is among the columns to drop"):
        mercer.data.open(path, encode="auto", target="y", drop=["x", "y"], **given)
    with pytest.raises(UsageError, match="encode is for files"):
        mercer.data.open(ROWS, encode="auto", target="x0")
    with pytest.raises(DataError, match=r"a.csv, row \d+ \(line \d+\), column 'x': missing value"):
        mercer.data.open(path, encode="auto", target="y", **given)
    words = r"column 'city': missing value; fill it in, or leave such rows out$"
    with pytest.raises(DataError, match=rf"row 899 \(line 900\), {words}"):
        mercer.data.open(path, encode="auto", target="city", drop=["x", "code"], **given)
    with pytest.raises(DataError, match="no column 'Y'; did you mean 'y'"):
        mercer.data.open(path, encode="auto", target="Y", **given)
    with pytest.raises(UsageError, match="not 'posterior'"):
        mercer.data.open(path, encode=TableEncoder("posterior"), target="y", **given)
    times = pd.DataFrame({"a": ["x", "y"], "y": pd.to_timedelta([1, 2], "h")})
    times.to_parquet(tmp_path / "times.parquet")
    with pytest.raises(DataError, match="column 'y': the target is neither numbers nor text"):
        mercer.data.open(tmp_path / "times.parquet", encode="auto", target="y", **given)
    endless = tmp_path / "endless.csv"
    endless.write_text("a,b,y\n" + "x,1,1\n" * 20_000 + "x,inf,1\n")
    with pytest.raises(DataError, match=r"row 20001 \(line 20002\), column 'b': infinite"):
        mercer.data.open(endless, encode="auto", target="y", **given)
    monkeypatch.setattr(opening, "_MOST_TEXTS", 20)
    with pytest.raises(DataError, match="'code' has more than 20 different texts, as names of"):
        mercer.data.open(path, encode=TableEncoder("impute"), target="y", **given)
    names = mercer.data.open(
        path, encode=TableEncoder("impute"), target="y", drop=["code"], **given
    )
    assert "price" in names.names  # numbers may be as different as they like


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(("missing", "target"), [("impute", "y"), ("drop", "y"), ("drop", "city")])
def test_rows_that_lack_what_is_needed_are_left_out(
    tmp_path: Path, kind: str, missing: Any, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left is as in files without them, and a row is called as in its own file."""
    monkeypatch.setattr(opening, "_ROWS_PER_PIECE", 70)
    frame = _of_shops_frame()
    rng = np.random.default_rng(2)
    for name in frame:
        frame[name] = frame[name].astype(object if name in ("flag", "city") else float)
        frame.loc[rng.random(len(frame)) < 0.1, name] = None
    frame.loc[70:139, target] = None  # a whole piece
    needed = [target] if missing == "impute" else list(frame)
    is_kept = frame[needed].notna().all(axis=1).to_numpy()
    _halves(frame, np.ones(400, dtype=bool), tmp_path / "all", kind)
    _halves(frame, is_kept, tmp_path / "kept", kind)
    given: Any = {"target": target, "cache": tmp_path / "cache", "encode": TableEncoder(missing)}
    kept = mercer.data.open(tmp_path / "kept", **given)
    for _ in range(2):  # the second time from the cache
        with pytest.warns(DataWarning, match=rf"^{400 - is_kept.sum()} of 400 rows have no target"):
            rows = mercer.data.open(tmp_path / "all", **given)
        assert (rows.encoding, rows.names, rows.labels) == (kept.encoding, kept.names, kept.labels)
        np.testing.assert_array_equal(
            np.vstack(list(rows.blocks(50))), np.vstack(list(kept.blocks(50)))
        )
        assert rows.digest() == kept.digest()
    some = np.array([3, 60, rows.n_rows - 1])
    read = opening.read_rows(str(tmp_path / "all"), rows, some, rows.encoding)
    for name in read.names:
        cells = frame[name].to_numpy()[np.flatnonzero(is_kept)[some]]
        column = read.column(name)
        assert (column.is_missing == pd.isna(cells)).all()
        assert [str(cell) for cell in cells[~column.is_missing]] == [
            str(bool(cell) if name == "flag" else cell)
            for cell in column.values[~column.is_missing]
        ]
    at = np.flatnonzero(is_kept)[-1]
    assert rows.place(rows.n_rows - 1) == f"{tmp_path / 'all' / '1'}.{kind}, row {at - 249}"


def test_files_without_any_row_that_could_be_learned(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b,y\n" + "1,,\n2,5,\n" * 20)
    given: Any = {"target": "y", "cache": tmp_path / "cache"}
    with pytest.raises(DataError, match="every row has no target; choose another column"):
        mercer.data.open(path, encode=TableEncoder("impute"), **given)
    path.write_text("a,b,y\n" + "1,,3\n2,5,\n" * 20)
    with pytest.raises(DataError, match="every row has no target or a missing value; leave out"):
        mercer.data.open(path, encode=TableEncoder("drop"), **given)


def test_dates_without_end_are_looked_at_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order of time, as tables are, the first ones are of one year, and have no gap."""
    n = 600
    days = np.arange("2023-12-01", "2027", dtype="datetime64[D]")[:n].astype(str).astype(object)
    days[n - 1] = None
    pd.DataFrame({"day": days, "y": np.arange(n)}).to_csv(tmp_path / "a.csv", index=False)
    monkeypatch.setattr(opening, "_MOST_TEXTS", 20)
    monkeypatch.setattr(opening, "_SAMPLE", 60)
    rows = mercer.data.open(
        tmp_path / "a.csv",
        encode=TableEncoder("indicator"),
        target="y",
        cache=tmp_path / "cache",
    )
    assert rows.names == (
        "day (year)",
        "day (month)",
        "day (day of week)",
        "day (days since 2023-12-01)",
        "day (missing)",
        "y",
    )


@pytest.mark.parametrize(
    "cells",
    [
        ["x", "z"] * 90 + ["1", "2", "3", "4"] * 5,
        ["oops"] * 195 + ["1 %", "2 %", "3 %", "4 %", "5 %"],
        ["none"] * 180 + [f"2024-01-{day:02d}" for day in range(1, 21)],
        ["7"] * 180 + [f"w{k}" for k in range(20)],
        ["2024-01-05"] * 150 + [f"w{k}" for k in range(50)],
    ],
)
def test_what_most_cells_are_says_what_a_column_is(tmp_path: Path, cells: list[str]) -> None:
    """Most of the rows, as in memory, not of the different texts."""
    frame = pd.DataFrame({"a": cells, "y": np.arange(len(cells))})
    frame.to_csv(tmp_path / "a.csv", index=False)
    given: Any = {"encode": "auto", "target": "y", "cache": tmp_path / "cache"}
    try:
        expected = TableEncoder().fit(frame[["a"]]).encoding_
    except DataError as error:
        words = str(error).partition(": ")[2].partition(";")[0]
        with pytest.raises(DataError, match=re.escape(words)):
            mercer.data.open(tmp_path / "a.csv", **given)
    else:
        assert mercer.data.open(tmp_path / "a.csv", **given).encoding == expected


def test_two_may_open_at_once(tmp_path: Path) -> None:
    _mixed().to_csv(tmp_path / "a.csv", index=False)
    mercer.data.open(tmp_path / "a.csv", cache=tmp_path / "cache")

    def opened(_: int) -> str:
        encoder = TableEncoder("impute")
        rows = mercer.data.open(
            tmp_path / "a.csv", encode=encoder, target="y", cache=tmp_path / "cache"
        )
        return rows.digest()

    with ThreadPoolExecutor(3) as pool:
        assert len(set(pool.map(opened, range(3)))) == 1


def test_a_target_is_the_one_that_was_named(tmp_path: Path) -> None:
    frame = _mixed()
    frame.to_csv(tmp_path / "a.csv", index=False)
    given: Any = {"cache": tmp_path / "cache", "drop": ["code"]}
    rows = mercer.data.open(
        tmp_path / "a.csv", encode=TableEncoder("impute"), target="sex", **given
    )
    with pytest.raises(DataError, match="was opened for the target 'sex', not 'y'"):
        BaNKClassifier().fit(rows, "y")
    fitted = TableEncoder("impute").fit(frame.drop(columns=["sex", "code"]))
    with pytest.raises(DataError, match="the target 'sex' is text, whose classes"):
        mercer.data.open(tmp_path / "a.csv", encode=fitted, target="sex")
    with pytest.raises(UsageError, match="knows its columns; leave drop out"):
        mercer.data.open(tmp_path / "a.csv", encode=fitted, **given)
    for wrong in ("yes", False):
        with pytest.raises(UsageError, match="encode must be 'auto', a TableEncoder or None"):
            mercer.data.open(tmp_path / "a.csv", encode=wrong, target="sex")


def test_numbers_need_no_encoding(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", ROWS)
    rows = mercer.data.open(
        tmp_path / "a.csv", encode="auto", target="x1", drop=["x0"], cache=tmp_path / "cache"
    )
    assert rows.encoding is None
    assert rows.names[-1] == "x1"
    assert not list((tmp_path / "cache").glob("*/encoded-*"))


def test_a_stray_text_is_found(tmp_path: Path) -> None:
    frame = _mixed()[["x", "y"]].fillna(0.0)
    frame["x"] = frame["x"].astype(object)
    frame.loc[500, "x"] = "n.a."
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(
        DataError, match=r"row 501 \(line 502\), column 'x': 'n.a.' is not a number"
    ):
        mercer.data.open(tmp_path / "a.csv", encode="auto", target="y", cache=tmp_path / "cache")


def test_levels_that_are_all_numbers_in_new_rows(tmp_path: Path) -> None:
    frame = pd.DataFrame({"zip": ["01", "02", "x", "y"], "a": [1.0, 2.0, 3.0, 4.0]})
    learned = TableEncoder().fit(frame)
    frame.iloc[:2].to_csv(tmp_path / "new.csv", index=False)
    rows = mercer.data.open(tmp_path / "new.csv", encode=learned, cache=tmp_path / "cache")
    np.testing.assert_array_equal(next(rows.blocks(9)), learned.transform(frame)[:2])


def test_classes_with_leading_zeros_are_what_is_written(tmp_path: Path) -> None:
    """As `mercer fit` reads them in memory; for a regression they are numbers."""
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"{k},{k % 3}\n" for k in range(30)))
    (tmp_path / "b.csv").write_text("x,y\n" + "0.5, 01\n" * 4)
    (tmp_path / "cache").mkdir()
    table = tmp_path / "t"
    table.mkdir()
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).rename(table / name)
    given: Any = {"encode": "auto", "target": "y", "cache": tmp_path / "cache"}
    rows = mercer.data.open(table, **given)
    assert rows.labels == {"y": ("0", "01", "1", "2")}
    assert rows.take(np.array([0, 2, 33]))[:, 1].tolist() == [0.0, 3.0, 1.0]
    numbers = mercer.data.open(table, task="regression", **given)
    assert numbers.take(np.array([0, 2, 33]))[:, 1].tolist() == [0.0, 2.0, 1.0]
    assert mercer.data.open(table, **{**given, "target": "x"}).labels == {}


@pytest.mark.parametrize(
    ("first", "second"), [(["a", "b"], [1, 2]), ([1, 2], ["a", "b"]), ([1, 2], [True, False])]
)
def test_a_parquet_file_with_a_column_of_another_type_is_named(
    tmp_path: Path, first: list[Any], second: list[Any]
) -> None:
    gap = [None, None]
    for k, cells in enumerate((gap, first, second)):
        table = pa.table({"x": cells, "y": [1.5, 2.5]})
        pq.write_table(table, tmp_path / f"{k}.parquet")
    given: Any = {"encode": TableEncoder("impute"), "target": "y", "cache": tmp_path / "cache"}
    with pytest.raises(
        DataError, match=r"2\.parquet, column 'x': holds .*, and .* in .*1\.parquet"
    ):
        mercer.data.open(tmp_path, **given)
    (tmp_path / "2.parquet").unlink()
    here = TableEncoder("impute").fit(pd.DataFrame({"x": [None, None, *first]})).encoding_
    assert mercer.data.open(tmp_path, **given).encoding == here


def _graded(parts: list[tuple[list[Any], list[str]]], folder: Path) -> None:
    """Files with grades of an ordered category, each with its own levels."""
    folder.mkdir()
    for k, (cells, levels) in enumerate(parts):
        grade = pd.Categorical(cells, categories=levels, ordered=True)
        frame = pd.DataFrame({"x": np.arange(len(cells)) / 7, "grade": grade})
        frame.to_parquet(folder / f"{k}.parquet", index=False)


SHOPS = ["shop", "size", "flag", "city"]


def _of_shops_frame() -> pd.DataFrame:
    """Codes that are numbers, sizes with a fraction, true or false, many texts."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"a": rng.normal(size=400), "shop": rng.integers(1, 61, 400)})
    frame["size"] = rng.choice([1.5, 2.0], 400)
    frame["flag"] = rng.random(400) < 0.5
    frame["city"] = [f"city {k}" for k in rng.integers(60, size=400)]
    frame["y"] = rng.normal(size=400)
    return frame


def _halves(frame: pd.DataFrame, is_kept: Any, folder: Path, kind: str) -> None:
    """Write the rows that are kept into two files."""
    folder.mkdir()
    for k, half in enumerate((slice(250), slice(250, None))):
        part = frame[half][is_kept[half]]
        if kind == "csv":
            part.to_csv(folder / f"{k}.csv", index=False)
        else:
            part.to_parquet(folder / f"{k}.parquet", index=False)


def _of_shops(folder: Path, kind: str) -> Path:
    _halves(_of_shops_frame(), np.ones(400, dtype=bool), folder, kind)
    return folder


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_categories_of_rows_on_a_disk_are_those_in_memory(tmp_path: Path, kind: str) -> None:
    folder = _of_shops(tmp_path / "rows", kind)
    given: Any = {"target": "y", "cache": tmp_path / "cache"}
    rows = mercer.data.open(folder, encode=TableEncoder(categories=SHOPS), **given)
    frame = read_frame(folder, as_text=SHOPS)
    inputs = frame.without(["y"])
    expected = fit_encoder(inputs, categories=SHOPS)
    assert rows.encoding is not None
    assert rows.encoding.codes == expected.codes
    assert sum(name.startswith("shop=") for name in rows.names) == 60
    found = np.vstack(list(rows.blocks(100)))
    np.testing.assert_array_equal(found[:, :-1], expected.transform(inputs).X)
    again = mercer.data.open(folder, encode=TableEncoder.of(rows.encoding), **given)
    np.testing.assert_array_equal(np.vstack(list(again.blocks(100))), found)
    without = mercer.data.open(folder, encode=TableEncoder(), **given)
    assert "shop" in without.names  # one input; what is in the cache is not taken for the other


@pytest.mark.parametrize(
    ("categories", "words"),
    [
        (["shops"], "no column 'shops'; did you mean 'shop'"),
        (["y"], "category 'y' is no input: it is the target or left out"),
        ("shop", "categories are names of columns, not 'shop'"),
    ],
)
def test_what_is_no_category_of_rows_on_a_disk(tmp_path: Path, categories: Any, words: str) -> None:
    folder = _of_shops(tmp_path / "rows", "csv")
    with pytest.raises((DataError, UsageError), match=words):
        mercer.data.open(folder, encode=TableEncoder(categories=categories), target="y")


def test_ordered_categories_of_parquet_keep_their_order(tmp_path: Path) -> None:
    levels = ["low", "mid", "high", "top"]
    cells = ["mid", "low", "high", "low"] * 9
    _graded([(cells, levels), ([None] * 2, ["no"]), (cells, levels[:3])], tmp_path / "t")
    given: Any = {"cache": tmp_path / "cache", "target": "grade", "encode": "auto"}
    assert read_frame(tmp_path / "t").column("grade").order == tuple(levels)
    (tmp_path / "t" / "1.parquet").unlink()
    rows = mercer.data.open(tmp_path / "t", **given)
    assert (rows.labels["grade"], rows.order) == (("high", "low", "mid"), tuple(levels))
    assert mercer.data.open(tmp_path / "t", **given).order == tuple(levels)
    short = {"n_frequencies": 4, "n_draws": 2, "n_warmup": 2, "n_chains": 1, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = BaNKClassifier(**short, ordered=True, progress=False).fit(rows, "grade")
    assert model.classes_.tolist() == ["high", "low", "mid"]
    assert model.class_order_.tolist() == ["low", "mid", "high"]
    assert any("low, mid, high (that of the Categorical)" in note for note in model.notes_)
    _graded([(cells, levels), (cells, levels[::-1])], tmp_path / "other")
    assert read_frame(tmp_path / "other").column("grade").order == ()
    assert mercer.data.open(tmp_path / "other", **given).order == ()


def test_the_command_line_learns_the_order_of_a_parquet_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _graded([(["mid", "low", "high", "low"] * 9, ["low", "mid", "high"])], tmp_path / "t")
    out = tmp_path / "m.mercer"
    words = ["fit", tmp_path / "t", "--target", "grade", "--model", "spectral", "--out", out]
    words += ["--test-size", "0.3", "--set", "ordered=true", "--set", "n_frequencies=4"]
    words += ["--jobs", "1"]
    assert main([*map(str, words), "--set", "n_draws=4", "--set", "n_warmup=4"]) == 0
    assert "an ordered category, low, mid, high" in capsys.readouterr().out
    assert mercer.load(out).class_order_.tolist() == ["low", "mid", "high"]


def test_words_for_a_missing_value(tmp_path: Path) -> None:
    """They belong to what is cached: the same file is read anew for others."""
    path, cache = tmp_path / "t.csv", tmp_path / "cache"
    lines = [f"{('None', 'NA', 'EU')[k % 3]},{k if k % 4 else -9},{k}" for k in range(12)]
    path.write_text("\n".join(["land,x,y", *lines]))
    numbers = mercer.data.open(path, cache=cache).select(["x"])
    assert numbers.take([0, 1]).tolist() == [[-9.0], [1.0]]
    holes = mercer.data.open(path, cache=cache, null_values=["-9"]).select(["x"])
    assert np.isnan(np.concatenate([*holes._chunks(0, 12)])[:, 0]).sum() == 3
    encoder = TableEncoder("impute", null_values=["-9"])
    rows = mercer.data.open(path, cache=cache, target="y", encode=encoder)
    assert rows.names == ("land=EU", "land=NA", "land=None", "x", "y")
    assert rows.take([0]).tolist() == [[0.0, 0.0, 1.0, 6.0, 0.0]]
    frame = pd.read_csv(path, keep_default_na=False)
    frame["x"] = frame["x"].astype(str)
    learned = TableEncoder.of(rows.encoding)
    np.testing.assert_array_equal(
        learned.transform(frame[["land", "x"]]), rows.select(rows.names[:-1]).take(range(12))
    )
    assert "land" in mercer.data.open(path, cache=cache, null_values=["EU", "NA"]).refusals
    with pytest.raises(DataError, match="missing value"):
        mercer.data.open(path, cache=cache, target="y", encode=TableEncoder())
