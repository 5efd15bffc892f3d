"""Rows of the catalogue of bad input: exit code, one line, and no file written or changed."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openpyxl
import pytest

from mercer.errors import StorageError
from mercer.posterior.container import read_container, write_container

from .conftest import SPHERE, TINY, Run, write_csv

GOOD = "a,b,label\n1,2,x\n2,1,y\n3,5,x\n4,4,y\n2,2,x\n5,1,y\n"


def fit_text(text: str) -> Callable[[Path], list[object]]:
    def words(folder: Path) -> list[object]:
        path = folder / "d.csv"
        path.write_text(text)
        return [path, "--target", "label"]

    return words


def with_options(*options: str) -> Callable[[Path], list[object]]:
    return lambda folder: [*fit_text(GOOD)(folder), *options]


def fifo(folder: Path) -> list[object]:
    os.mkfifo(folder / "pipe.csv")
    return [folder / "pipe.csv", "--target", "label"]


def empty_folder(folder: Path) -> list[object]:
    (folder / "rows").mkdir()
    return [folder / "rows", "--target", "label"]


def dangling(folder: Path) -> list[object]:
    (folder / "link.csv").symlink_to(folder / "nothing.csv")
    return [folder / "link.csv", "--target", "label"]


FIT_ROWS = {
    "D1-empty": (fit_text(""), 3, "the file is empty"),
    "D1-header-only": (fit_text("a,b,label\n"), 3, "there is no row of data"),
    "D1-one-row": (fit_text("a,b,label\n1,2,x\n"), 3, "only one class"),
    "D1-no-inputs": (fit_text("label\nx\ny\n"), 3, "there is no column left"),
    "D2-one-class": (fit_text("a,label\n1,x\n2,x\n"), 3, "'x'"),
    "D3-empty-cell": (fit_text("a,b,label\n1,2,x\n1,,y\n"), 3, "row 2 (line 3), column 'b'"),
    "D3-nan": (fit_text("a,b,label\nnan,2,x\n1,2,y\n"), 3, "row 1 (line 2), column 'a'"),
    "D3-inf": (fit_text("a,b,label\n1,2,x\ninf,2,y\n"), 3, "row 2 (line 3), column 'a'"),
    "D3-missing-target": (fit_text("a,label\n1,x\n2,\n3,y\n"), 3, "row 2"),
    "D4-date": (
        fit_text("a,label\n01/02/2020,x\n02/02/2020,y\n"),
        3,
        "row 1 (line 2), column 'a': '01/02/2020' may begin with the day or with the month",
    ),
    "D4-money": (fit_text("a,label\n$5,x\n€6,y\n$7,y\n"), 3, "row 2 (line 3), column 'a': '€6'"),
    "D4-names": (fit_text(",a,label\np1,2,x\np1,3,y\n"), 3, "--drop 'Unnamed: 0'"),
    "D4-ragged": (fit_text("a,b,label\n1,2,x\n1,2\n"), 3, "row 2 (line 3)"),
    "D4-stray-text": (fit_text("a,label\n1,x\n2,y\nthree,x\n4,y\n"), 3, "row 3"),
    "D5-duplicate-header": (fit_text("a,a,label\n1,2,x\n3,4,y\n"), 3, "'a'"),
    "D5-no-target": (fit_text("a,lable\n1,x\n2,y\n"), 3, "did you mean 'lable'"),
    "D5-target-twice": (fit_text("label,a,label\nx,2,x\ny,4,y\n"), 3, "'label'"),
    "D13-n-draws": (with_options("--set", "n_draws=0"), 2, "n_draws must be a whole number"),
    "D13-step-size": (with_options("--set", "step_size=0.1"), 2, "n_leapfrog and step_size"),
    "D13-choice": (with_options("--set", "inference=hmcc"), 2, "did you mean 'hmc'"),
    "D13-unknown": (with_options("--set", "n_drawz=3"), 2, "did you mean 'n_draws'"),
    "D13-no-value": (with_options("--set", "n_draws"), 2, "NAME=VALUE"),
    "D13-own-option": (with_options("--set", "random_state=3"), 2, "--seed"),
    "D13-test-size": (with_options("--test-size", "1.5"), 2, "--test-size must be between"),
    "D13-two-splits": (with_options("--test-size", "0.5", "--cv", "3"), 2, "exclude"),
    "D13-no-refit": (with_options("--no-refit"), 2, "--no-refit"),
    "D13-model": (with_options("--model", "gpp"), 2, "did you mean 'gp'"),
    "D13-drop-target": (with_options("--drop", "label"), 2, "target"),
    "D13-drop-unknown": (with_options("--drop", "bb"), 3, "did you mean 'b'"),
    "D13-regression": (
        lambda folder: [*fit_text("a,label\n1,0.5\n2,1.5\n3,7.1\n")(folder), "--model", "sphere"],
        2,
        "model sphere is not for regression",
    ),
    "D2-constant": (
        lambda folder: [*fit_text("a,label\n1,5\n2,5\n3,5\n")(folder), "--task", "regression"],
        3,
        "the target is constant",
    ),
    "D8-huge-target": (fit_text("a,label\n1,0.5\n2,1e200\n3,7.1\n"), 3, "row 2"),
    "D13-many-classes": (
        lambda folder: [
            *fit_text("a,label\n" + "".join(f"{k},c{k}\n" for k in range(51)))(folder),
            *("--model", "gp"),
        ],
        3,
        "51 classes",
    ),
    "D16-control": (fit_text("\x1b[31ma,label\n1,x\n,y\n"), 3, "\\x1b[31ma"),
    "D17-missing": (lambda folder: [folder / "no.csv", "--target", "a"], 6, "no such file"),
    "D17-fifo": (fifo, 6, "named pipe"),
    "D17-empty-folder": (empty_folder, 6, "folder without"),
    "D17-dangling": (dangling, 6, "link"),
    "D17-data-set": (lambda folder: ["breast_cancr", "--target", "a"], 6, "'breast_cancer'"),
}


@pytest.mark.parametrize("row", FIT_ROWS)
def test_fit_refuses(run, tmp_path: Path, row: str) -> None:
    make, expected, words = FIT_ROWS[row]
    out = tmp_path / "old.mercer"
    out.write_bytes(b"as it was")
    code, _, err = run("fit", *TINY, *make(tmp_path), "--out", out, "--report", tmp_path / "r.html")
    assert (code, err.count("\n")) == (expected, 1), err
    assert words in err
    assert "\x1b" not in err
    assert out.read_bytes() == b"as it was"
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize("name", ["no/such/folder/m.mercer", "."])
def test_a_place_that_cannot_be_written_is_refused_before_any_work(
    run, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run("fit", "no-such-data.csv", "--target", "a", "--out", name)
    assert (code, out) == (6, "")
    assert "cannot be written" in err or "no folder" in err


def test_a_write_that_fails_leaves_the_old_file(
    run, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StorageError("cannot write 'm': No space left on device")

    monkeypatch.setattr("mercer.cli.saving.write_model", full)
    out = tmp_path / "m.mercer"
    out.write_bytes(b"as it was")
    code, _, err = run(
        "fit", table, "--target", "label", "--test-size", "0.25", *TINY, "--out", out,
        "--report", tmp_path / "r.html",
    )  # fmt: skip
    assert code == 6
    assert "No space left" in err
    assert out.read_bytes() == b"as it was"
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize("fraction", [0.0, 0.001, 0.3, 0.99])
def test_f1_truncated(run, model: Path, table: Path, tmp_path: Path, fraction: float) -> None:
    whole = model.read_bytes()
    cut = tmp_path / "cut.mercer"
    cut.write_bytes(whole[: int(fraction * len(whole))])
    code, out, err = run("predict", cut, table)
    assert (code, out, err.count("\n")) == (4, "", 1)


def test_f1_any_bit_flipped(run, model: Path, table: Path, tmp_path: Path) -> None:
    whole = model.read_bytes()
    rng = np.random.default_rng(5)
    for position in (0, 8, 40, *rng.integers(48, len(whole), 10)):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << int(rng.integers(8))
        (tmp_path / "bad.mercer").write_bytes(damaged)
        code, out, _ = run("predict", tmp_path / "bad.mercer", table)
        assert (code, out) == (4, "")


def _pickle(path: Path) -> None:
    class Canary:
        def __reduce__(self) -> tuple[object, ...]:
            return (open, (str(path.with_name("canary")), "w"))

    path.write_bytes(pickle.dumps(Canary()))


def _zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", "{}")


@pytest.mark.parametrize(("row", "make"), [("F3-pickle", _pickle), ("F3-zip", _zip)])
@pytest.mark.parametrize("command", ["inspect", "predict", "report"])
def test_foreign_files(run, table: Path, tmp_path: Path, row: str, make, command: str) -> None:
    path = tmp_path / "m.mercer"
    make(path)
    more = {"inspect": [], "predict": [table], "report": ["--out", tmp_path / "r.html"]}[command]
    code, _, err = run(command, path, *more)
    assert code == 4
    assert "not a mercer file" in err
    assert not (tmp_path / "canary").exists()
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize("command", ["predict", "report", "explain", "query"])
def test_arguments_the_other_way_round(run, table: Path, tmp_path: Path, command: str) -> None:
    """The error says so where the data are a model, and only there."""
    model = tmp_path / "m.mercer"
    write_container(model, {"kind": "any"}, {})
    more = {"report": ["--out", tmp_path / "r.html"], "explain": ["--row", 1]}.get(command, [])
    code, _, err = run(command, table, model, *more)
    assert code == 4
    assert f"not a mercer file, but '{model}' is one: the model comes first" in err
    code, _, err = run(command, table, table, *more)
    assert code == 4
    assert "comes first" not in err


@pytest.mark.parametrize(
    ("row", "key", "value", "words"),
    [
        ("F2", "format", 99, "needs mercer >="),
        ("F6", "estimator", "os.system", "unknown estimator"),
        ("F6-list", "estimator", ["x"], "unknown estimator"),
        ("F7", "params", {"n_draws": -1, "evil": 1}, "inconsistent"),
        ("F7-table", "table", {"encoder": 3}, "inconsistent"),
        ("kind", "kind", "salad", "neither"),
    ],
)
def test_hostile_manifests(
    run, model: Path, tmp_path: Path, row: str, key: str, value: object, words: str
) -> None:
    manifest, arrays = read_container(model)
    path = tmp_path / "m.mercer"
    write_container(path, {**manifest, key: value}, arrays)
    code, _, err = run("inspect", path)
    assert code == 4
    assert words in err


def test_f5_a_header_that_claims_much_is_refused_at_once(run, tmp_path: Path) -> None:
    import hashlib
    import json

    header = json.dumps(
        {"x": {"dtype": "F64", "shape": [10**12], "data_offsets": [0, 8 * 10**12]},
         "__metadata__": {"manifest": "{}"}}
    ).encode()  # fmt: skip
    block = len(header).to_bytes(8, "little") + header
    path = tmp_path / "m.mercer"
    path.write_bytes(b"MERCER01" + hashlib.sha256(block).digest() + block)
    code, _, err = run("inspect", path)
    assert code == 4
    assert err.count("\n") == 1


@pytest.mark.parametrize("constant", ["a", "both"])
def test_d9_constant_columns_warn_and_work(run, tmp_path: Path, constant: str) -> None:
    path = tmp_path / "d.csv"
    rng = np.random.default_rng(0)
    rows = [f"1,{2 if constant == 'both' else rng.normal()},{'xy'[i % 2]}" for i in range(24)]
    path.write_text("a,b,label\n" + "\n".join(rows) + "\n")
    code, out, err = run("fit", path, "--target", "label", "--test-size", "0.5", *TINY)
    assert code == 0
    assert err.count("'a'") == err.count("constant") == 1
    assert ("verdict   none: where no input varies" in out) == (constant == "both")
    assert ("mercer compare" in out) == (constant != "both")
    assert err.count("all inputs are constant ('a', 'b')") == (constant == "both")


def test_d14_parquet_gives_the_same_predictions(run, tmp_path: Path, model: Path) -> None:
    pytest.importorskip("pyarrow")
    from pyarrow import csv, parquet

    rows = write_csv(tmp_path / "r.csv")
    parquet.write_table(csv.read_csv(rows), tmp_path / "r.parquet")
    assert run("predict", model, rows)[:2] == run("predict", model, tmp_path / "r.parquet")[:2]


# Standard input, and other kinds of files.


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Give bytes to standard input."""

    def give(content: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))

    return give


def as_json_lines(table: Path) -> bytes:
    with open(table, newline="") as stream:
        return "\n".join(json.dumps(row) for row in csv.DictReader(stream)).encode()


def test_tables_from_standard_input(run, table: Path, model: Path, tmp_path: Path, piped) -> None:
    _, wanted, _ = run("predict", model, table)

    for content in (table.read_bytes(), as_json_lines(table), gzip.compress(table.read_bytes())):
        piped(content)
        code, out, err = run("predict", model, "-")
        assert (code, out) == (0, wanted), err
    assert wanted.startswith("row,prediction")
    piped(table.read_bytes())
    saved = tmp_path / "m.mercer"
    code, out, _ = run("fit", "-", "--target", "label", "--out", saved, "--cv", "2", *TINY)
    assert code == 0
    assert "standard input" in out
    piped(table.read_bytes())
    code, out, _ = run("audit", "-", "--target", "label", *SPHERE)
    assert code == 0
    assert "standard input" in out
    piped(table.read_bytes())
    report = tmp_path / "r.html"
    assert run("report", saved, "-", "--out", report)[0] == 0
    assert "standard input" in report.read_text()


def test_standard_input_that_cannot_be_used(run, table: Path, model: Path, piped) -> None:
    code, _, err = run("fit", "-", "--target", "label", "--test", "-")
    assert code == 2
    assert "DATA and --test are both standard input" in err
    piped(b"")
    assert "standard input: the file is empty" in run("predict", model, "-")[2]
    piped(b"a,b\n1,2,3\n")
    code, _, err = run("predict", model, "-")
    assert code == 3
    assert "standard input, row 1 (line 2)" in err
    piped(table.read_bytes())
    code, _, err = run("fit", "-", "--target", "label", "--engine", "dask")
    assert code == 2
    assert "can be read once" in err


def test_standard_input_that_is_a_terminal(run, model: Path, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    code, _, err = run("predict", model, "-")
    assert code == 2
    assert "is a terminal" in err


def test_encodings_and_spreadsheets_of_commands(run, table: Path, model: Path, tmp_path) -> None:
    rows = list(csv.reader(table.read_text().splitlines()))
    odd = tmp_path / "odd.csv"
    odd.write_bytes("\n".join(",".join([*row, "ü"]) for row in rows).encode("latin-1"))
    code, _, err = run("predict", model, odd)
    assert code == 3
    assert "line 1: not UTF-8 text" in err
    assert "latin-1" in err
    code, out, _ = run("predict", model, odd, "--encoding", "latin-1")
    assert (code, out) == (0, run("predict", model, table)[1])
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "b.xlsx")
    for name in ("b.xlsx", "b.xlsx:Sheet"):
        assert run("predict", model, tmp_path / name)[1] == out
    code, _, err = run("predict", model, tmp_path / "b.xlsx:Sheat")
    assert code == 3
    assert "did you mean 'Sheet'" in err


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--kernel", "arguments of a model are given by --set kernel=VALUE"),
        ("--n-draws", "by --set n_draws=VALUE"),
        ("--random-state", "Did you mean '--seed'?"),
        ("--n_jobs", "Did you mean '--jobs'?"),
        ("--test_size", "'--test-size'"),
    ],
)
def test_an_argument_of_a_model_typed_as_an_option(run: Run, option: str, said: str) -> None:
    code, _, err = run("fit", "iris", "--target", "target", option, "3")
    assert code == 2
    assert said in err


def test_an_unknown_option_where_no_model_is_set(run: Run) -> None:
    code, _, err = run("predict", "m.mercer", "iris", "--kernel", "rbf")
    assert code == 2
    assert "--set" not in err
