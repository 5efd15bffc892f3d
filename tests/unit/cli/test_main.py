from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import json
import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import pytest

from mercer.cli import doctor
from mercer.cli.commands import cli
from mercer.cli.options import TableOptions
from support.forked import Forked

COMMANDS = (
    "fit", "predict", "explain", "report", "inspect", "audit", "query", "compare", "reproduce",
    "datasets", "doctor", "completion",
)  # fmt: skip


def test_version(run) -> None:
    code, out, _ = run("--version")
    assert (code, out.strip()) == (0, f"mercer {importlib.metadata.version('mercer')}")


def in_fresh_python(words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", words], capture_output=True, text=True, check=False
    )


def test_help_lists_the_commands_and_loads_nothing_heavy() -> None:
    words = (
        "import sys, time; from mercer.cli.main import main; code = main(['--help']); "
        "heavy = {'numpy', 'sklearn', 'rich', 'scipy', 'matplotlib'} & set(sys.modules); "
        "sys.stderr.write(str(time.process_time())); sys.exit(code or len(heavy))"
    )
    done = in_fresh_python(words)
    assert done.returncode == 0
    assert float(done.stderr) < 3.0  # CPU seconds; 0.3 on a machine of 2024
    for name in COMMANDS:
        assert f"\n  {name} " in done.stdout


def test_the_script_looks_for_garbage_once_a_command_is_imported() -> None:
    """What was imported is set apart, or each search would go through it again."""
    words = (
        "import gc, sys; from mercer.cli import doctor, run; seen = []; "
        "doctor.run = lambda **_: seen.append((gc.isenabled(), gc.get_freeze_count() > 10_000)); "
        "sys.argv = ['mercer', 'doctor']\ntry: run()\nfinally: print(seen)"
    )
    done = in_fresh_python(words)
    assert (done.returncode, done.stdout.strip()) == (0, "[(True, True)]")


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
        (["fit", "iris"], "Missing option '--target'. `mercer inspect DATA` lists the columns."),
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


def test_every_command_is_declared_with_the_options_that_its_work_takes() -> None:
    for name, command in cli.commands.items():
        given = {option.name for option in command.params if option.expose_value}
        work = command.callback
        if name not in ("completion", "datasets"):  # which are whole where they are declared
            work = importlib.import_module(f"mercer.cli.{name}").run
        parameters = inspect.signature(work).parameters.values()
        named = {each.name for each in parameters if each.kind is not each.VAR_KEYWORD}
        if "table" in named:
            given = given - {each.name for each in fields(TableOptions)} | {"table"}
        assert given == named or (given > named and len(named) < len(parameters)), name


def test_the_doctor_says_versions_and_that_nothing_is_wrong(run, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("MERCER_DATA", raising=False)
    monkeypatch.setattr("joblib.cpu_count", lambda: 1000)
    (tmp_path / "mercer" / "rows").mkdir(parents=True)
    (tmp_path / "mercer" / "rows" / "a.npy").write_bytes(bytes(2_500_000))
    code, out, _ = run("doctor")
    assert code == 0
    for words in (f"numpy {importlib.metadata.version('numpy')}", "usable of", " thread"):
        assert words in out
    assert f"2.5 MB of parsed text files, in {tmp_path}" in out
    assert out.splitlines()[-1].endswith("nothing is wrong")
    given = json.loads(run("doctor", "--json")[1])
    assert given["n_wrong"] == 0
    assert {"mercer", "python", "packages", "loops", "rows"} <= {
        f["name"] for f in given["findings"]
    }


def test_the_doctor_names_what_is_wrong_and_the_remedy(run, monkeypatch, tmp_path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("MERCER_DATA", str(tmp_path / "none"))
    absent = {"arrow": ("no-such-package", "no_such_module", "Parquet")}
    monkeypatch.setattr("mercer.cli.doctor.EXTRAS", absent)
    monkeypatch.setattr("joblib.cpu_count", lambda: 0)
    code, out, _ = run("doctor")
    assert code == 0
    assert "pip install 'mercer[arrow]', for Parquet" in out
    wrong = [line for line in out.splitlines() if line.startswith("wrong")]
    for words in ("set XDG_CACHE_HOME", "no such folder", "set OMP_NUM_THREADS"):
        assert any(words in line for line in wrong), words
    assert "nothing is wrong" not in out


@pytest.mark.parametrize("n_gpus", [0, 2])
def test_the_doctor_names_the_gpus_that_device_may_name(monkeypatch, n_gpus: int) -> None:
    cuda = SimpleNamespace(device_count=lambda: n_gpus, get_device_name=lambda i: f"Card {i}")
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    pytest.importorskip("array_api_compat")
    (found,) = doctor._devices()
    words = "Card 0 (cuda:0), Card 1 (cuda:1), for --set device=cuda of spectral"
    assert (found.words, found.remedy) == (words if n_gpus else "none that PyTorch can use", "")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (found,) = doctor._devices()
    assert found.remedy == "pip install 'mercer[torch]'"


def test_the_doctor_looks_at_every_extra_of_users() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    of_developers = {"bench", "docs", "test"}
    assert doctor.EXTRAS.keys() == project["optional-dependencies"].keys() - of_developers


def test_the_doctor_says_which_package_is_broken(run, monkeypatch) -> None:
    monkeypatch.setattr("mercer.cli.doctor.NEEDED", {"numpy": "numpy", "scipy": "no_such_module"})
    code, out, err = run("doctor")
    assert (code, out) == (6, "")
    assert "scipy cannot be imported" in err
    assert "pip install --force-reinstall scipy" in err


def completed(words: list[str], **more: str) -> list[str]:
    """What bash would be offered for the last of the words."""
    told = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    env = os.environ | told | {"_MERCER_COMPLETE": "bash_complete"} | more
    process = Forked(["mercer"], env=env, text=True)
    said, err = process.communicate(timeout=60.0)
    assert (process.wait(), err) == (0, "")
    return [line.partition(",")[2] for line in said.split()]


def test_words_are_completed(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("bmi,blood,sick\n1,2,3\n")
    assert completed(["mercer", "co"]) == ["compare", "completion"]
    assert completed(["mercer", "fit", "breast"]) == ["breast_cancer"]
    assert completed(["mercer", "fit", "iris", "--model", "s"]) == ["spectral", "sphere", "stack"]
    assert completed(["mercer", "fit", str(table), "--target", "b"]) == ["bmi", "blood"]
    assert completed(["mercer", "fit", "iris", "--target", "t"]) == ["target"]
    assert completed(["mercer", "fit", "no.csv", "--target", "t"]) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_lines_for_a_shell_are_right(run, shell: str) -> None:
    code, out, err = run("completion", shell)
    assert (code, err) == (0, "")
    assert f"_MERCER_COMPLETE={shell}_complete" in out.replace("_MERCER_COMPLETE ", "")
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=out, text=True, check=True)


def test_carets_stand_under_what_they_mark(run) -> None:
    how = "--target", "target", "--model", "gp", "--set", "kernel=rbf + matren32*periodic"
    code, _, err = run("fit", "iris", *how)
    assert code == 2
    assert err.endswith("\n    rbf + matren32*periodic\n          ^^^^^^^^\n")
    assert err.count("\n") == 3
