"""BaNK on rows that only a disk holds: minutes, memory and error, beside peers.

50 million rows of 20 inputs and a target, single precision, in Parquet files of a million rows:
Friedman's first function and noise (`friedman_rows_v1`). Fewer rows where the disk is too small.
The fit is that of a user, on two cores, in a fresh process: `mercer.data.open` of the folder,
`BaNKRegressor(kernel_rows=50_000, full_draws=4, n_jobs=2)` and else the defaults: the spectrum
from 50 000 rows, coefficients from all. Minutes count from opening to the fitted model; memory is
the resident memory of all processes together. Targets: 4 GiB, 60 minutes.

Errors on 100 000 fresh rows: mean squared errors over the variance of the targets, of which noise
alone is 0.04, and against the function without noise over its variance. Peers, two threads each:

* `RBFSampler(n_components=768)` and ridge regression by normal equations over all rows, read by the
  same reader; length scale and penalty are those that do best on 10 000 rows, learned on 40 000.
* `HistGradientBoostingRegressor` with 500 trees and no early stopping on the first 5 million rows,
  about what 4 GiB hold.

Hours, in steps: use ``--cache``. There the files of rows are kept, and the fit has its checkpoint
and goes on from it; minutes and memory are then those of all attempts together. All of it is
deleted in the end.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import Any

from reproduce.cells import VARIABLE, measured
from reproduce.fresh import in_fresh_process
from reproduce.large_rows import BYTES_IN_ROW, LargeSizes, write_rows

SEED = 0
NEEDS_PACKAGES = ("pyarrow",)
TARGETS = {"gib": 4.0, "minutes": 60.0}

# Method -> threads of BLAS and OpenMP; mercer's two processes have one each.
METHODS = {"mercer": 1, "features": 2, "trees": 2}
_SHARE_OF_DISK = 0.8
_MILLION = 1_000_000


def run(n_rows: int = 50 * _MILLION) -> dict[str, object]:
    """Write the rows, fit everything, delete them."""
    with _folder() as folder:
        n = _fitting(folder, n_rows)
        rows = rows_of(tuple(METHODS), LargeSizes(n_rows=n), folder)
    return {"targets": TARGETS, "n": n, "d": 20, "rows": rows}


def rows_of(methods: tuple[str, ...], sizes: LargeSizes, folder: Path) -> list[dict[str, Any]]:
    """Measure some methods: one row each."""
    cell = functools.partial(_cell, folder, sizes)
    return measured("spectral-large-v1", [(name, *astuple(sizes)) for name in methods], cell)


def _cell(folder: Path, sizes: LargeSizes, method: str, *_: Any) -> list[dict[str, Any]]:
    write_rows(folder, sizes)
    attempts = _Attempts(folder / "attempts.json") if method == "mercer" else None
    result = in_fresh_process(
        "reproduce.large_rows", f"fit_{method}", str(folder), list(astuple(sizes)),
        n_threads=METHODS[method], watch=attempts or (lambda gib: None),
    )  # fmt: skip
    if attempts is not None:
        result["minutes"] += attempts.minutes
        result["peak_gib"] = max(result["peak_gib"], attempts.gib)
    result["minutes"] = float(f"{result['minutes']:.4g}")
    return [{"method": method, **result}]


class _Attempts:
    """Minutes and memory of earlier attempts, kept in a file while the present one runs."""

    def __init__(self, path: Path) -> None:
        known = json.loads(path.read_text()) if path.exists() else {}
        self.minutes, self.gib = known.get("minutes", 0.0), known.get("gib", 0.0)
        self._path, self._begin = path, time.monotonic()

    def __call__(self, gib: float) -> None:
        minutes = self.minutes + (time.monotonic() - self._begin) / 60.0
        temporary = self._path.with_suffix(".new")
        temporary.write_text(json.dumps({"minutes": minutes, "gib": max(gib, self.gib)}))
        temporary.replace(self._path)


@contextmanager
def _folder() -> Iterator[Path]:
    """Give a folder in the cache, which outlives a run that is stopped, or a temporary one."""
    cache = os.environ.get(VARIABLE)
    if cache is None:
        with tempfile.TemporaryDirectory() as name:
            yield Path(name)
        return
    folder = Path(cache) / "spectral-large-v1"
    folder.mkdir(parents=True, exist_ok=True)
    yield folder
    shutil.rmtree(folder)


def _fitting(folder: Path, n_rows: int) -> int:
    """Whole millions of rows that the disk has room for, at most so many."""
    held = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    room = _SHARE_OF_DISK * (shutil.disk_usage(folder).free + held)
    return min(n_rows, int(room / BYTES_IN_ROW) // _MILLION * _MILLION)
