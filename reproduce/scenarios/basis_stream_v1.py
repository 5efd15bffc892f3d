"""Rows a second that `SequentialKernelRegressor` learns from a stream, and whether that falls.

`steady_rows_v1`: three inputs, noise of half the height of the wave; a Poisson prior of mean 2,
which ends with about 11 centres (the record says how many).

* Rates: 250 particles, 256 candidates, length scales learned (up to nine) or one fixed, forgetting
  1 and 0.998. Each learns 2000 rows, so that all candidates are there; then come calls of
  ``partial_fit`` with 1000 rows each, and calls with one row. Contenders learn in turn; the median
  of the long calls counts, median and 99th percentile of the short ones.
* River's BayesianLinearRegression learns rows of 20 columns, with ``smoothing=0.998`` where mercer
  forgets; its columns are made beforehand.
* The limit: what a row adds to the sums of products of 257 columns at each length scale, alone, by
  BLAS (dsyrk of eight rows at a time, since the sums pass through memory once for all of them).
* Growth: 50 particles, 64 candidates, one length scale, to 10^6 rows in a fresh process. A copy of
  the model waits at 10^4 rows until the other has got there; then both learn chunks of 1000 in
  turn, and the medians are compared. Memory is that of the process at both times.

* Classes: the first 2500 rows of River's Phishing, Bananas and ImageSegments by
  `SequentialKernelClassifier` with its defaults, three seeds, one row a call after the 200 that it
  learns its scales from: rows a CPU second, 99th percentile of a row's CPU milliseconds, log score.

One thread. Targets: 2000 rows a second and 99 % of rows under 5 ms, in the slowest of the four
settings; a row at 10^6 costs 1.2 times one at 10^4 at most. A quarter of an hour, mostly growth.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas
from threadpoolctl import threadpool_limits

from mercer import SequentialKernelClassifier, SequentialKernelRegressor
from reproduce.cells import measured
from reproduce.fresh import in_fresh_process
from reproduce.stream_growth import CHUNK, PRIOR
from reproduce.timing import interleaved
from reproduce.workloads import steady_rows_v1

SEED = 0
NEEDS_PACKAGES = ("river",)

TARGETS = {
    "rows_per_second": 2000.0,
    "percentile_99_ms": 5.0,
    "ratio_of_growth": 1.2,
    "rows_per_second_of_classes": 500.0,
}
STREAMS = ("Phishing", "Bananas", "ImageSegments")
_SCALE_ROWS = 200
FORGETTING = (1.0, 0.998)
_LENGTHSCALES: dict[str, Any] = {"learned": "learn", "fixed": 1.5}
_N_LEVELS = {"learned": 9, "fixed": 1}
_N_COLUMNS = 20
_ROWS_OF_A_BLOCK = 8

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """Rates at 250 particles and 256 candidates; growth to 10^6 rows."""
    rates = measured("basis-stream-v1", [("rates", 250, 256, 2000, 10, 5)], _cell)
    growth = measured("basis-stream-v1", [("growth", 50, 64, 10_000, 1_000_000, 10)], _cell)
    cells = [("classes", name, seed, 2500) for name in STREAMS for seed in range(3)]
    classes = measured("basis-stream-v1", cells, _cell)
    return {"targets": TARGETS, **summary(rates, growth), "classes": classes}


def summary(rates: list[dict[str, Any]], growth: list[dict[str, Any]]) -> dict[str, object]:
    """All rows, and the figures that have targets."""
    ours = [row for row in rates if row["method"] == "mercer"]
    return {
        "rows_per_second": min(row["rows_per_second"] for row in ours),
        "percentile_99_ms": max(row["percentile_99_ms"] for row in ours),
        "ratio_of_growth": growth[0]["ratio"],
        "rates": rates,
        "growth": growth[0],
    }


def _cell(kind: str, *sizes: Any) -> list[dict[str, Any]]:
    if kind == "growth":
        return [in_fresh_process("reproduce.stream_growth", "growth", *sizes)]
    with threadpool_limits(limits=1):
        return [classes(*sizes)] if kind == "classes" else rates(*sizes)


def classes(name: str, seed: int, n_rows: int) -> dict[str, Any]:
    """Predict and learn the first rows of one of River's streams of classes, one a call."""
    from river import datasets

    pairs = [(list(x.values()), label) for x, label in getattr(datasets, name)().take(n_rows)]
    X = np.array([inputs for inputs, _ in pairs], dtype=np.float64)
    y = np.unique([label for _, label in pairs], return_inverse=True)[1]
    model = SequentialKernelClassifier(scale_rows=_SCALE_ROWS, random_state=seed)
    model.prequential(X[:_SCALE_ROWS], y[:_SCALE_ROWS], classes=np.unique(y))
    seconds, scores, n_wrong = [], [], 0
    for t in range(_SCALE_ROWS, len(y)):
        begin = time.process_time()
        row = model.prequential(X[t : t + 1], y[t : t + 1])
        seconds.append(time.process_time() - begin)
        scores.append(float(row.log_density[0]))
        n_wrong += int(row.prediction[0] != y[t])
    return {
        "stream": name,
        "seed": seed,
        "n_classes": int(y.max()) + 1,
        "rows_per_cpu_second": float(f"{len(seconds) / sum(seconds):.4g}"),
        "median_ms": float(f"{1e3 * np.median(seconds):.3g}"),
        "percentile_99_ms": float(f"{1e3 * np.percentile(seconds, 99):.3g}"),
        "slowest_ms": float(f"{1e3 * max(seconds):.3g}"),
        "log_score": round(float(np.mean(scores)), 4),
        "errors": round(n_wrong / len(seconds), 4),
    }


def rates(
    n_particles: int, n_candidates: int, n_before: int, n_chunks: int, n_single: int
) -> list[dict[str, Any]]:
    """Learn some rows, then chunks, then single rows: one row of the table a contender.

    Parameters
    ----------
    n_particles, n_candidates : int
    n_before : int
        Rows that are not timed.
    n_chunks, n_single : int
        Parts of 1000 rows: learned in one call; learned in as many calls.
    """
    sizes = {"n_particles": n_particles, "max_candidates": n_candidates}
    contenders: list[_Mercer | _River] = [
        _Mercer(name, forgetting, sizes) for name in _LENGTHSCALES for forgetting in FORGETTING
    ]
    contenders += [_River(forgetting) for forgetting in FORGETTING]
    for each in contenders:
        each.learn(*steady_rows_v1(n_before))
    chunks = _in_turn(contenders, range(n_chunks), CHUNK)
    single = _in_turn(contenders, range(n_chunks, n_chunks + n_single), 1)
    limits = {name: _limit(levels, n_candidates) for name, levels in _N_LEVELS.items()}
    return [
        {
            **each.named(),
            "rows_per_second": float(f"{CHUNK / np.median(of_chunks):.4g}"),
            "median_ms": float(f"{1e3 * np.median(of_rows):.3g}"),
            "percentile_99_ms": float(f"{1e3 * np.percentile(of_rows, 99):.3g}"),
            "sums_alone_ms": limits.get(each.lengthscale),
        }
        for each, of_chunks, of_rows in zip(contenders, chunks, single, strict=True)
    ]


def _in_turn(contenders: list[Any], parts: range, n_rows: int) -> list[list[float]]:
    """Seconds of each call of each, with so many rows; all learn a part before the next one."""
    seconds: list[list[float]] = [[] for _ in contenders]
    for part in parts:
        X, y = steady_rows_v1(CHUNK, part)
        for each, own in zip(contenders, seconds, strict=True):
            calls = (slice(i, i + n_rows) for i in range(0, CHUNK, n_rows))
            own.extend(each.learn(X[rows], y[rows]) for rows in calls)
    return seconds


class _Mercer:
    """A regressor of a stream; ``learn`` returns the seconds that the call took."""

    def __init__(self, lengthscale: str, forgetting: float, sizes: dict[str, int]) -> None:
        self.lengthscale, self._forgetting = lengthscale, forgetting
        self.model = SequentialKernelRegressor(
            lengthscale=_LENGTHSCALES[lengthscale], forgetting=forgetting, random_state=SEED,
            **PRIOR, **sizes,
        )  # fmt: skip

    def learn(self, X: Array, y: Array) -> float:
        begin = time.perf_counter()
        self.model.partial_fit(X, y)
        return time.perf_counter() - begin

    def named(self) -> dict[str, Any]:
        return {
            "method": "mercer",
            "lengthscale": self.lengthscale,
            "forgetting": self._forgetting,
            "n_centres": round(self.model.n_centres_, 1),
        }


class _River:
    """River's linear regression on columns that are made beforehand."""

    def __init__(self, forgetting: float) -> None:
        from river.linear_model import BayesianLinearRegression

        self.lengthscale, self._forgetting = "", forgetting
        self._centres = steady_rows_v1(_N_COLUMNS)[0]
        smoothing = None if forgetting == 1.0 else forgetting
        self.model = BayesianLinearRegression(smoothing=smoothing)

    def learn(self, X: Array, y: Array) -> float:
        squares = ((X[:, np.newaxis] - self._centres) ** 2).sum(axis=2)
        rows = [dict(enumerate(row)) for row in np.exp(-0.5 * squares).tolist()]
        begin = time.perf_counter()
        for row, target in zip(rows, y.tolist(), strict=True):
            self.model.learn_one(row, target)
        return time.perf_counter() - begin

    def named(self) -> dict[str, Any]:
        return {
            "method": f"River, {_N_COLUMNS} columns",
            "lengthscale": "",
            "forgetting": self._forgetting,
            "n_centres": None,
        }


def _limit(n_levels: int, n_candidates: int) -> float:
    """Milliseconds that adding a row to the sums of all levels takes, eight at a time."""
    order = n_candidates + 1
    rows = np.asfortranarray(np.random.default_rng(SEED).random((order, _ROWS_OF_A_BLOCK)))
    sums = [np.zeros((order, order), order="F") for _ in range(n_levels)]

    def add() -> None:
        for one in sums:
            blas.dsyrk(1.0, rows, beta=1.0, c=one, overwrite_c=1)

    seconds = interleaved({"sums": add}, n_rounds=15, repeat=3)["sums"]
    return float(f"{1e3 * seconds / _ROWS_OF_A_BLOCK:.3g}")
