"""Loops are compiled once on a machine, and also where no folder of the machine may be written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from mercer.numerics import compilation
from support import loops_to_compile
from support.first_run import run_with_cache

_TWICE = """
from mercer.numerics.compilation import compile_first
from support.loops_to_compile import warm_up
told = []
compile_first(told.append, warm_up)
first = len(told)
compile_first(told.append, warm_up)
print(first, len(told))
"""


def test_loops_are_compiled_once_and_said_once(tmp_path: Path) -> None:
    assert run_with_cache(_TWICE, tmp_path)[0].split() == ["1", "1"]
    assert run_with_cache(_TWICE, tmp_path)[0].split() == ["0", "0"]


def test_other_sources_are_compiled_again(tmp_path: Path) -> None:
    run_with_cache(_TWICE, tmp_path)
    (stamp,) = tmp_path.rglob("mercer-loops.sha256")
    stamp.write_text("of another release")
    cached = list(tmp_path.rglob("*.nbi"))
    assert cached
    assert run_with_cache(_TWICE, tmp_path)[0].split() == ["1", "1"]


def test_a_warm_up_that_fails_is_tried_again(monkeypatch, tmp_path: Path) -> None:
    told: list[str] = []
    monkeypatch.setattr(compilation, "_stamp", lambda warm_up: tmp_path / "stamp")
    for _ in range(2):
        compilation.compile_first(told.append, loops_to_compile.fails)
    assert len(told) == 2


def test_without_a_folder_that_can_be_written(tmp_path: Path) -> None:
    """Neither beside the source nor at home: one line, and the answer; nothing is left behind."""
    (tmp_path / "loops.py").write_text(Path(loops_to_compile.__file__).read_text())
    (tmp_path / "__pycache__").write_text("a file where the folder would be")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA", "XDG"))}
    env |= {"HOME": "/proc/none", "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    env |= {"TMPDIR": str(tmp_path)}
    program = "import loops; print(loops.total(3))"
    done = subprocess.run(
        [sys.executable, "-B", "-c", program], env=env, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "3.0", done.stderr
    assert done.stderr.count("no folder for compiled loops can be written") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"loops.py", "__pycache__"}
