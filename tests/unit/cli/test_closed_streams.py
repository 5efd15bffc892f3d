"""Standard streams that are closed: a quiet end with one exit code, and no file is spoilt."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.forked import Forked

if os.name != "posix":
    pytest.skip("closing streams is for POSIX shells", allow_module_level=True)

MERCER = f"'{sys.executable}' -m mercer.cli.main"
CLOSED = 141  # 128 + SIGPIPE


def shell(words: str) -> tuple[int, str]:
    """Run words of a shell; returns code and what came on standard error.

    Python's output is buffered, as it is for most: what is left there fails once more.
    """
    done = subprocess.run(
        ["bash", "-c", "unset PYTHONUNBUFFERED; " + words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("words", ["--help", "fit --help", "--version", "datasets"])
def test_closed_standard_output_ends_quietly(words: str) -> None:
    assert shell(f"{MERCER} {words} >&-") == (CLOSED, "")
    if words != "datasets":  # which loads all that reads tables
        assert shell(f"{MERCER} {words} >&- 2>&- <&-") == (CLOSED, "")


def finish(words: list[object], **given: Any) -> tuple[int, str]:
    """Run the command without a shell; returns code and what came on standard error."""
    process = Forked(["mercer", *map(str, words)], text=True, **given)
    _, err = process.communicate(timeout=60.0)
    return process.wait(), err


def test_whoever_reads_no_more_ends_it_too(model: Path, table: Path, tmp_path: Path) -> None:
    big = tmp_path / "big.csv"
    head, *lines = table.read_text().splitlines()
    big.write_text("\n".join([head, *(lines * 80)]) + "\n")
    process = Forked(["mercer", "predict", str(model), str(big)], text=True)
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(60.0) == CLOSED
    err = process.stderr.read()
    process.stderr.close()
    process.stdin.close()
    assert "Traceback" not in err
    assert "error: " not in err
    code, err = finish(["predict", model, table, "--json"], closed=[1])
    assert (code, "rror:" in err) == (CLOSED, False)


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        pytest.param("| head -1", CLOSED, "", marks=pytest.mark.slow),
        ("> /dev/full", 6, "standard output: No space left on device"),
    ],
)
def test_a_fit_is_saved_whatever_becomes_of_its_words(
    table: Path, tmp_path: Path, end: str, code: int, said: str
) -> None:
    out, page = tmp_path / "m.mercer", tmp_path / "m.html"
    words = ["fit", table, "--target", "label", "--model", "gp", "--set", "inference=map"]
    words += ["--set", "kernel=rbf", "--test-size", "0.3", "--jobs", "1"]
    words += ["--out", out, "--report", page]
    if end.startswith(">"):
        with open(end.removeprefix("> "), "w") as full:
            got, err = finish(words, stdout=full)
    else:
        got, err = shell(f"set -o pipefail; {MERCER} {shlex.join(map(str, words))} {end}")
    assert (got, said in err) == (code, True), err
    assert out.exists()
    assert page.exists()


def test_files_do_not_get_the_number_of_a_closed_stream(
    run, model: Path, table: Path, tmp_path: Path
) -> None:
    out, plain = tmp_path / "a.csv", tmp_path / "b.csv"
    assert finish(["predict", model, table, "--out", out], closed=[0, 1, 2])[0] == 0
    assert run("predict", model, table, "--out", plain)[0] == 0
    assert out.read_bytes() == plain.read_bytes()


def test_an_error_is_said_where_only_standard_output_is_closed(tmp_path: Path) -> None:
    code, err = finish(["inspect", tmp_path / "gone"], closed=[1])
    assert code == 6
    assert err.count("\n") == 1
    assert finish(["inspect", tmp_path / "gone"], closed=[2]) == (6, "")
