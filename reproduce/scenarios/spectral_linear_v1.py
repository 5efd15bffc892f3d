"""Seconds and memory of one sweep of BaNK over rows on a disk, from 10^4 to 10^6 of them.

A .npy file of doubles, 20 inputs and the target, opened by `mercer.data.open` and read again in
each sweep, with its checksums, as `BaNKRegressor(kernel_rows=None)` does; 384 frequencies, the
defaults of the estimator. For each size a fresh process: opening, checksums, the products that the
chain starts with, then whole sweeps, of which the median counts (one of 10^6 rows). One thread. A
file is deleted once it is measured. 10^7 rows are one more entry of `SIZES`: a quarter of an hour.

Targets: time grows as the power 1.05 of the number of rows at most (least squares on logarithms
over all sizes, and, since a sweep of few rows is mostly work that does not depend on their number,
without the smallest one too); resident memory stays below 2 GiB at every size.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from reproduce.cells import VARIABLE, measured
from reproduce.fresh import in_fresh_process
from reproduce.workloads import friedman_rows_v1

SEED = 0
TARGETS = {"exponent": 1.05, "gib": 2.0}
# Number of rows -> sweeps that are timed.
SIZES = {10_000: 9, 100_000: 5, 1_000_000: 1}
_ROWS_IN_PART = 100_000


def run() -> dict[str, object]:
    """Measure at all sizes, 384 frequencies."""
    return {"targets": TARGETS, **summary(rows_of(SIZES, 384))}


def rows_of(sizes: dict[int, int], n_frequencies: int) -> list[dict[str, Any]]:
    """Measure some sizes, each with as many sweeps as it says: one row a size."""
    cells = [(n, n_frequencies, n_sweeps) for n, n_sweeps in sizes.items()]
    return measured("spectral-linear-v1", cells, _cell)


def summary(rows: list[dict[str, Any]]) -> dict[str, object]:
    """Fit the exponents; find the largest memory."""
    by_size = sorted(rows, key=lambda row: int(row["n"]))
    return {
        "n_frequencies": rows[0]["n_frequencies"],
        "exponent": _exponent(by_size),
        "exponent_without_the_smallest": _exponent(by_size[1:]),
        "largest_gib": max(row["peak_gib"] for row in rows),
        "rows": rows,
    }


def _exponent(rows: list[dict[str, Any]]) -> float:
    sizes, seconds = np.log([[row["n"], row["sweep_seconds"]] for row in rows]).T
    return round(float(np.polyfit(sizes, seconds, 1)[0]), 3)


def _cell(n: int, n_frequencies: int, n_sweeps: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(dir=os.environ.get(VARIABLE)) as folder:
        path = Path(folder) / "rows.npy"
        _write(path, n)
        result = in_fresh_process(__name__, "sweeps", str(path), n_frequencies, n_sweeps)
    return [{"n": n, "n_frequencies": n_frequencies, **result}]


def _write(path: Path, n: int) -> None:
    table = np.lib.format.open_memmap(path, "w+", np.float64, (n, 21))
    for part, begin in enumerate(range(0, n, _ROWS_IN_PART)):
        rows = slice(begin, min(begin + _ROWS_IN_PART, n))
        table[rows, :20], table[rows, 20], _ = friedman_rows_v1(rows.stop - begin, part)
    table.flush()


def sweeps(path: str, n_frequencies: int, n_sweeps: int) -> dict[str, Any]:
    """In a process of its own: time sweeps over the rows of a file, and one reading of it."""
    import mercer.data
    from mercer.estimation.standardize import fit_standardizer, scale_target
    from mercer.spectral.fitting import compile_loops
    from mercer.spectral.rows import StoredRows
    from reproduce.spectral_chain import spectral_chain

    compile_loops(lambda line: None)
    source = mercer.data.open(path).verified()
    some = source.take(np.arange(min(source.n_rows, 10_000)))
    standardizer = fit_standardizer(some[:, :-1], "auto", source.names[:-1])
    rows = StoredRows(source, standardizer, scale_target(some[:, -1]), has_linear_part=True)
    begin = time.perf_counter()
    for _ in rows.blocks():
        pass
    reading = time.perf_counter() - begin
    sampler, rng = spectral_chain(rows, n_frequencies), np.random.default_rng(SEED)
    state = sampler.init(rng)
    seconds = []
    for _ in range(n_sweeps):
        begin = time.perf_counter()
        state, _ = sampler.step(rng, state)
        seconds.append(time.perf_counter() - begin)
    return {
        "n_sweeps": n_sweeps,
        "sweep_seconds": float(f"{np.median(seconds):.4g}"),
        "reading_seconds": float(f"{reading:.3g}"),
        "gib_of_the_file": round(Path(path).stat().st_size / 2**30, 4),
    }
