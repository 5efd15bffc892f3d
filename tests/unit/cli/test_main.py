from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mercer.cli import main as module
from mercer.cli.main import main

COMMANDS = (
    "fit", "predict", "explain", "report", "inspect", "audit", "query", "compare", "reproduce",
    "datasets",
)  # fmt: skip


def test_version(run) -> None:
    code, out, _ = run("--version")
    assert (code, out.strip()) == (0, f"mercer {importlib.metadata.version('mercer')}")


def test_help_lists_the_commands_and_loads_nothing_heavy() -> None:
    words = (
        "import sys; from mercer.cli.main import main; code = main(['--help']); "
        "heavy = {'numpy', 'sklearn', 'rich', 'scipy', 'matplotlib'} & set(sys.modules); "
        "sys.exit(code or len(heavy))"
    )
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert time.monotonic() - started < 3.0  # 0.3 s on an idle machine
    for name in COMMANDS:
        assert f"\n  {name} " in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help(run, name: str) -> None:
    code, out, _ = run(name, "--help")
    assert code == 0
    assert out.startswith(f"Usage: mercer {name}")


def test_no_command_shows_the_help(run) -> None:
    code, _, err = run()
    assert code == 2
    assert "Commands:" in err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["ft"], "did you mean 'fit'"),
        (["fit", "iris", "--tarrget", "target"], "--target"),
        (["fit", "iris"], "--target"),
        (["compare", "iris", "--target", "target", "--metric", "log"], "log_score"),
    ],
)
def test_misspelt_words_are_usage_errors_on_one_line(run, words: list[str], hint: str) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert hint in err


def test_an_unexpected_error_is_one_line(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("mercer.data.named.list_named", broken)
    code, _, err = run("datasets")
    assert code == 1
    assert "internal error: ZeroDivisionError: a bug" in err
    assert "--debug" in err
    assert err.count("\n") == 1
    code, _, err = run("datasets", "--debug")
    assert code == 1
    assert "Traceback" in err


def test_a_reader_that_closes_early_sees_no_traceback(model: Path, tmp_path: Path) -> None:
    from .conftest import write_csv

    rows = write_csv(tmp_path / "many.csv", n=5000)
    words = f"{sys.executable} -m mercer.cli.main predict {model} {rows} | head -n 1"
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("row,prediction")
    assert "Traceback" not in done.stderr
    assert "Broken" not in done.stderr


def test_commands_that_do_not_exist_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module._COMMANDS, "absent", "Not there.")
    assert main(["absent"]) == 2
