"""A program run in a process of its own, with an empty or a filled cache of compiled loops."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_with_cache(program: str, cache: Path) -> tuple[str, str]:
    """What the program writes to standard output and standard error."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr


def check_first_run(program: str, cache: Path) -> None:
    """The run that compiles gives the bits of the next one, and is the only one that says so."""
    first, said = run_with_cache(program, cache)
    again, silence = run_with_cache(program, cache)
    assert first == again
    assert "compiling the inner loops" in said
    assert "compiling" not in silence
