"""Compiled loops before a test needs them: once for all workers, or in a cache of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def compile_all() -> None:
    """Fill Numba's cache, each loop once, so that no two workers compile the same one.

    Those of a method that are not done run in a process of their own, as many at a time as there
    are cores, the longest first.
    """
    from mercer.basis import learner as basis
    from mercer.gp import laplace
    from mercer.numerics.compilation import compile_first
    from mercer.spectral import fitting as spectral
    from mercer.sphere import fitting as sphere

    warm_ups = [
        (basis.compile_now, basis.compile_classes_now),
        (sphere.compile_now, sphere.compile_several, sphere.compile_circle),
        (laplace.compile_now, laplace.compile_softmax_now),
        (spectral.compile_now, spectral.compile_mixture_now, spectral.compile_classes_now),
    ]
    compile_first(print)  # what is cached of other sources goes
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda of_one: compile_first(lambda line: None, *of_one), warm_ups))


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
