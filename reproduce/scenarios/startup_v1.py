"""Whole processes: ``mercer --help`` (target 0.5 s), import, first compilation (10 s)."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

import numpy as np

SEED = 0

_HELP = [sys.executable, "-m", "mercer.cli.main", "--help"]
_IMPORT = [sys.executable, "-c", "import mercer"]
_BARE = [sys.executable, "-c", "pass"]
_FIRST_FIT = [
    sys.executable,
    "-c",
    "import time; b = time.perf_counter(); import numpy as np; from mercer import GPClassifier;"
    "X = np.arange(20.0).reshape(10, 2); y = np.arange(10) % 2;"
    "settings = dict(n_draws=4, n_warmup=0, n_chains=1, random_state=0, progress=False);"
    "GPClassifier(kernel='rbf', **settings).fit(X, y);"
    "print(time.perf_counter() - b)",
]


def run() -> dict[str, object]:
    """Median of nine runs each; compilation in an empty cache, three times."""
    first, second = [], []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
            first.append(_printed(_FIRST_FIT, environment))
            second.append(_printed(_FIRST_FIT, environment))
    return {
        "help_seconds": _median(_HELP),
        "import_seconds": _median(_IMPORT),
        "bare_python_seconds": _median(_BARE),
        "target_help_seconds": 0.5,
        "first_fit_with_compilation_seconds": round(float(np.median(first)), 2),
        "first_fit_from_cache_seconds": round(float(np.median(second)), 2),
        "target_compilation_seconds": 10.0,
    }


def _median(command: list[str]) -> float:
    times = []
    for _ in range(9):
        begin = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - begin)
    return round(float(np.median(times)), 3)


def _printed(command: list[str], environment: dict[str, str]) -> float:
    out = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return float(out.stdout)
