"""The command that a verdict ends with can be pasted into a shell, and works."""

from __future__ import annotations

import html
import importlib
import json
import shlex
from pathlib import Path

import pytest

from mercer.cli.main import main
from mercer.cli.saving import compare_step, fit_step

from ..conftest import TINY

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
    found = importlib.import_module(f"mercer.cli.{name}").command
    return found.make_context(name, words).params


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
