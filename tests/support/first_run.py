"""Compiled loops before a test needs them: once for all workers, or in a cache of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# The longest first: two are compiled at a time. What a later one calls, an earlier has compiled.
WARM_UPS = [
    ("basis", "compile_now"),
    ("sphere", "compile_several"),
    ("spectral", "compile_now"),
    ("gp", "compile_softmax_now"),
    ("sphere", "compile_now"),
    ("gp", "compile_now"),
    ("basis", "compile_classes_now"),
    ("sphere", "compile_circle"),
    ("spectral", "compile_mixture_now"),
    ("spectral", "compile_classes_now"),
]


def compile_all() -> None:
    """Fill Numba's cache, each loop once, so that no two workers compile the same one."""
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(_compile, WARM_UPS))


def _compile(warm_up: tuple[str, str]) -> None:
    method, function = warm_up
    module = "classification" if method == "gp" else "compilation"
    program = (
        "from mercer.numerics.compilation import compile_first\n"
        f"from mercer.{method}.{module} import {function}\n"
        f"compile_first(print, {function})"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


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
