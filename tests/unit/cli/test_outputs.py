"""What commands write: checks before, rows, next steps, settings."""

from __future__ import annotations

import csv
import html
import json
import os
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

from mercer import GPClassifier
from mercer.cli import outputs as rows_out
from mercer.cli import saving
from mercer.cli.commands import cli
from mercer.cli.fitting import make_estimator, parse_settings, parse_value
from mercer.cli.main import main
from mercer.cli.outputs import (
    appending_rows,
    check_format,
    check_outputs,
    for_spreadsheet,
    write_rows,
)
from mercer.cli.saving import compare_step, fit_step
from mercer.errors import UsageError
from support.forked import Forked

from .conftest import TINY

# No command writes over what it reads, or twice to one file, by whatever names.


FIT = ("fit", "d.csv", "--target", "y")
AUDIT = ("audit", "d.csv", "--target", "y")
CASES = {
    "out over data": (*FIT, "--out", "d.csv"),
    "report over data": (*FIT, "--report", "./d.csv"),
    "report over out": (*FIT, "--out", "new", "--report", "sub/../new"),
    "out over test": (*FIT, "--test", "t.csv", "--out", "t.csv"),
    "report over test": (*FIT, "--test", "t.csv", "--report", "link_to_t.csv"),
    "symbolic link": (*FIT, "--out", "link_to_d.csv"),
    "link not there yet": (*FIT, "--out", "new", "--report", "link_to_new"),
    "hard link": (*FIT, "--out", "hard_d.csv"),
    "absolute": (*FIT, "--out", "{here}/d.csv"),
    "checkpoint's own": (*FIT, "--checkpoint", "state", "--out", "state/run.json"),
    "inside the checkpoint": (*FIT, "--checkpoint", "state", "--report", "state/fit/r.html"),
    "data in the checkpoint": ("fit", "state/fit/c.csv", "--target", "y", "--checkpoint", "state"),
    "part of a folder": ("fit", "parts", "--target", "y", "--out", "parts/a.csv"),
    "link to a part": ("fit", "parts", "--target", "y", "--out", "hard_part"),
    "new part": ("audit", "parts", "--target", "y", "--out", "parts/audit.csv"),
    "audit over data": (*AUDIT, "--out", "d.csv"),
    "audit over its report": (*AUDIT, "--out", "new.csv", "--report", "new.csv"),
    "a report that is no page": (*FIT, "--report", "new.txt"),
    "audit's checkpoint": (*AUDIT, "--checkpoint", "state", "--report", "state/run.json"),
    "predict over model": ("predict", "m.csv", "d.csv", "--out", "m.csv"),
    "predict over data": ("predict", "m.csv", "d.csv", "--out", "d.csv"),
    "query over model": ("query", "m.csv", "d.csv", "--out", "m.csv"),
    "query over pool": ("query", "m.csv", "d.csv", "--out", "link_to_d.csv"),
    "report over model": ("report", "m.csv", "--out", "m.csv"),
    "report over its data": ("report", "m.csv", "d.csv", "--out", "d.csv"),
    "stream over input": ("stream", "d.csv", "--target", "y", "--save", "d.csv"),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for folder in ("sub", "parts", "state", "state/fit"):
        Path(folder).mkdir()
    table = "a,y\n" + "".join(f"{k},{'uv'[k % 2]}\n" for k in range(30))
    for name in ("d.csv", "t.csv", "m.csv", "parts/a.csv", "parts/b.csv", "state/fit/c.csv"):
        Path(name).write_text(table)
    Path("link_to_d.csv").symlink_to("d.csv")
    Path("link_to_t.csv").symlink_to("t.csv")
    Path("link_to_new").symlink_to("sub/../new")
    os.link("d.csv", "hard_d.csv")
    os.link("parts/b.csv", "hard_part")
    return tmp_path


def contents(folder: Path) -> dict[str, str]:
    return {str(path): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("words", CASES.values(), ids=CASES)
def test_it_is_refused_in_one_line_and_nothing_is_touched(
    here: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    before = contents(here)
    code = main([word.replace("{here}", str(here)) for word in words])
    said, err = capsys.readouterr()
    assert code == 2
    assert said == ""
    assert err.count("\n") == 1
    assert "name a" in err
    assert contents(here) == before


@pytest.mark.parametrize(
    ("writes", "reads", "checkpoint"),
    [
        ({"--out": "new.csv", "--report": "new.html"}, {"DATA": "d.csv", "--test": "d.csv"}, None),
        ({"--save": "m.csv"}, {"INPUT": None, "--load": "m.csv"}, None),
        ({"--out": "parts/m.mercer"}, {"DATA": "parts"}, None),
        ({"--out": "wine"}, {"DATA": "iris"}, None),  # names of data sets are no paths
        ({"--out": "state/m.mercer"}, {"DATA": "d.csv"}, "state"),
        ({"--out": "t.csv"}, {"DATA": "d.csv"}, "not/there/yet"),
    ],
)
def test_what_destroys_nothing_is_allowed(here: Path, writes, reads, checkpoint) -> None:
    paths = {option: Path(name) for option, name in writes.items()}
    check_outputs(paths, reads, checkpoint=None if checkpoint is None else Path(checkpoint))


def test_the_load_of_a_stream_is_not_its_input(here: Path) -> None:
    with pytest.raises(UsageError, match=r"--save m.csv and INPUT m.csv are the same file"):
        check_outputs({"--save": Path("m.csv")}, {"INPUT": "m.csv", "--load": "m.csv"})


@pytest.mark.skipif(not os.path.exists("/dev/fd/0"), reason="needs /dev/fd")
@pytest.mark.parametrize(
    ("words", "stdin", "stdout"),
    [
        (("stream", "--target", "y", "--save", "d.csv"), "d.csv", None),
        pytest.param(("predict", "m.csv", "d.csv"), None, "d.csv", marks=pytest.mark.slow),
        pytest.param(
            ("predict", "m.csv", "d.csv", "--out", "t.csv"), None, "t.csv", marks=pytest.mark.slow
        ),
    ],
    ids=["saved over standard input", "written over data", "both to one file"],
)
def test_standard_streams_are_files_too(here: Path, words, stdin, stdout) -> None:
    before = contents(here)
    with open(stdin or os.devnull) as source, open(stdout or os.devnull, "a") as sink:
        process = Forked(["mercer", *words], stdin=source, stdout=sink, text=True)
        _, err = process.communicate(timeout=60.0)
    assert process.wait() == 2, err
    assert "are the same file" in err
    assert contents(here) == before


# Columns as CSV, JSON and Parquet.


COLUMNS = {
    "name": np.array(["a,b", 'c"d', "e\nf", "g", "h"], dtype=object),
    "value": np.array([0.1, 1e-300, -2.0, 3.0, 4.0]),
    "is_listed": np.array([True, False, True, False, True]),
}


@pytest.mark.parametrize("block", [2, 5, 100])
def test_csv_is_the_same_in_any_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys, block: int
) -> None:
    monkeypatch.setattr(rows_out, "_BLOCK", block)
    path = tmp_path / "rows.csv"
    write_rows(path, COLUMNS)
    with open(path, newline="") as stream:
        header, *rows = list(csv.reader(stream))
    assert header == list(COLUMNS)
    assert [row[0] for row in rows] == COLUMNS["name"].tolist()
    assert [float(row[1]) for row in rows] == COLUMNS["value"].tolist()
    assert rows[0][2] == "True"
    write_rows(None, COLUMNS)
    assert capsys.readouterr().out == path.read_text()


def test_json_and_parquet_hold_the_same(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    write_rows(tmp_path / "rows.json", COLUMNS)
    write_rows(tmp_path / "rows.parquet", COLUMNS)
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert rows == parquet.read_table(tmp_path / "rows.parquet").to_pylist()
    assert rows[2] == {"name": "e\nf", "value": -2.0, "is_listed": True}


def test_no_rows_leave_the_header(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.csv", {"a": np.zeros(0), "b": np.zeros(0)})
    assert (tmp_path / "rows.csv").read_text() == "a,b\n"


@pytest.mark.parametrize("is_terminal", [False, True])
def test_blocks_on_standard_output(capsys, monkeypatch: pytest.MonkeyPatch, is_terminal) -> None:
    """As `write_rows` shows them; a label does not steer a terminal."""
    columns = {"label": np.array(["a", "\x1b[31m", "\u202e"], dtype=object), "x": np.arange(3.0)}
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal, raising=False)
    write_rows(None, columns)
    whole = capsys.readouterr().out
    with appending_rows(None) as writer:
        for rows in (slice(0, 2), slice(2, 3)):
            writer.append({name: values[rows] for name, values in columns.items()})
    assert capsys.readouterr().out == whole
    assert ("\x1b" in whole) is not is_terminal


def test_cells_that_a_spreadsheet_would_run_are_disarmed_and_numbers_stay() -> None:
    cells = ["=1+2", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1"]
    plain = ["b", "", None, "-5", "+1.5e3", "-.5", "a=b", "1-2"]
    columns = {
        "=x": np.array([*cells, *plain], dtype=object),
        "n": np.array([-1.5] * 15),
        "k": np.array(["-1", "=2"] + ["x"] * 13),
    }
    safe = for_spreadsheet(columns)
    assert list(safe) == ["'=x", "n", "k"]
    assert safe["'=x"].tolist() == [*(f"'{cell}" for cell in cells), *plain]
    assert safe["n"] is columns["n"]
    assert safe["k"].tolist()[:3] == ["-1", "'=2", "x"]


def test_only_csv_is_for_spreadsheets(tmp_path: Path) -> None:
    check_format(tmp_path / "a.csv", is_for_spreadsheet=True)
    for name in ("a.json", "a.parquet"):
        with pytest.raises(UsageError, match=r"--for-spreadsheet is for \.csv"):
            check_format(tmp_path / name, is_for_spreadsheet=True)


# The command that a verdict ends with can be pasted into a shell, and works.


NAME = "pat's & co $HOME.csv"
TARGET = 'is "ill"; rm'


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    lines = [f"{k % 7},{k % 3 + (k % 2)},p{k},{'ab'[k % 2]}" for k in range(40)]
    quoted = TARGET.replace('"', '""')
    Path(NAME).write_text(f'x,z,name,"{quoted}"\n' + "\n".join(lines) + "\n")
    return NAME


OPTIONS = ["--drop", "z", "--id", "name", "--seed", "7", "--cv", "2", "--task", "classification"]


def parsed(command: str) -> dict:
    """Return the parameters that the shell would hand to the command."""
    program, name, *words = shlex.split(command)
    assert program == "mercer"
    return cli.commands[name].make_context(name, words).params


def test_the_table_and_its_options_are_kept(table: str) -> None:
    words = [
        "fit",
        table,
        "--target",
        TARGET,
        *OPTIONS,
        "--set",
        "n_draws=20",
        "--report",
        "r.html",
    ]
    step = compare_step(words)
    assert step is not None
    found = parsed(step.command)
    assert (found["data"], found["target"], found["cv"], found["seed"]) == (table, TARGET, 2, 7)
    assert (found["drop"], found["id_column"], found["task"]) == (("z",), "name", "classification")
    assert found["settings"] == ("n_draws=20",)
    kept = fit_step(["compare", *words[1:-2], "--set", "n_particles=9"], "gp", is_kept=True)
    assert kept is not None
    assert parsed(kept.command)["settings"] == ("n_draws=20",)  # gp has no particles
    Path("model.mercer").write_text("mine")
    again = fit_step(["compare", *words[1:-2]], "gp", is_kept=True)
    assert again is not None
    assert parsed(again.command)["out"] == Path("model-2.mercer")


@pytest.mark.parametrize("given", [["--out", "m.mercer"], ["-o", "m.mercer"], ["-om.mercer"]])
def test_the_next_run_overwrites_nothing(
    given: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.mercer").write_text("mine")
    words = saving._anew(["fit", "d.csv", "--target", "y", *given])
    assert words == ["fit", "d.csv", "--target", "y", "--out", "m-2.mercer"]
    assert parsed(shlex.join(["mercer", *words]))["out"] == Path("m-2.mercer")


def test_a_table_that_is_not_there_is_not_proposed(table: str) -> None:
    assert compare_step(["fit", "gone.csv", "--target", "y"]) is None
    assert compare_step(["query", table, "--target", TARGET]) is None
    assert compare_step([]) is None
    named = compare_step(["fit", "gone.csv", "--target", TARGET], data=table)
    assert named is not None
    assert parsed(named.command)["data"] == table


def test_fit_report_and_compare_end_with_commands_that_work(table: str, capsys) -> None:
    files = ["--out", "m.mercer", "--report", "r.html"]
    words = ["fit", table, "--target", TARGET, *OPTIONS, *TINY[:-2], *files]
    assert main(words) == 0
    said = capsys.readouterr().out
    (line,) = [line for line in said.splitlines() if line.startswith("next ")]
    command = line.removeprefix("next").strip()
    assert said.index("of the difference") < said.index(line)
    few = ["--models", "gp,dummy,logistic", "--json"]
    assert main([*shlex.split(command)[1:], *few]) == 0
    found = json.loads(capsys.readouterr().out)
    assert main([*shlex.split(found["next"])[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["next"].startswith("mercer compare ")
    assert main(["report", "m.mercer", "--out", "again.html"]) == 0
    for page in ("r.html", "again.html"):
        assert command in html.unescape(Path(page).read_text())


def test_encodings_and_sheets_are_kept(table: str, tmp_path: Path) -> None:
    (tmp_path / "b.xlsx").touch()
    for data in (table, "b.xlsx:March"):
        step = compare_step(["fit", data, "--target", TARGET, "--encoding", "cp1252"])
        assert step is not None
        found = parsed(step.command)
        assert (found["data"], found["encoding"]) == (data, "cp1252")
    assert compare_step(["fit", "-", "--target", TARGET]) is None  # what was piped in is gone


# Settings.


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-2", -2),
        ("0.5", 0.5),
        ("1e3", 1000.0),
        ("True", True),
        ("none", None),
        ("x y", "x y"),
        ("1,9", (1.0, 9.0)),
        ("1,a", "1,a"),
        ("learn per class", "learn per class"),
    ],
)
def test_values_keep_their_type(text: str, value: object) -> None:
    found = parse_value(text)
    assert found == value
    assert type(found) is type(value)


def test_the_last_of_a_name_counts() -> None:
    assert parse_settings(["a=1", "a=2", "b=c=d"]) == {"a": 2, "b": "c=d"}


def test_settings_go_before_what_is_common() -> None:
    made = make_estimator(GPClassifier, {"n_chains": 2}, {"n_chains": 3, "random_state": 5})
    assert (made.n_chains, made.random_state) == (2, 5)
    with pytest.raises(UsageError, match="--checkpoint"):
        make_estimator(GPClassifier, {"checkpoint": "x"}, {})
    with pytest.raises(UsageError, match="standardize must be one of"):
        make_estimator(GPClassifier, {"standardize": "maybe"}, {})
