"""What a limit on the candidates costs: ``max_candidates=256`` beside all inputs, n = 5000.

Two data sets: `sinc_rows_v1`, one input, noise of 0.1; `friedman_rows_v1`, its first eight columns,
of which five matter. One pass each with the same three length scales (each square half of the one
before; the usual nine at most take three times the memory), everything else as it comes, in a fresh
process. The error is that of the posterior mean against the function without noise, at 2000 other
inputs; coverage is the share of their noisy targets in the 90 % interval. Means over two sets of
rows, since one error scatters by several per cent.

Targets: the error with 256 candidates at most 5 % above that with all, coverage within 3 points
of it. One thread. Where all inputs are candidates, most of the time goes into the sums of the new
ones, O(n^2) a row: an hour in all; use ``--cache``.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import SequentialKernelRegressor
from reproduce.cells import measured
from reproduce.fresh import in_fresh_process
from reproduce.workloads import friedman_rows_v1, sinc_rows_v1

SEED = 0

TARGETS = {"error_ratio": 1.05, "coverage_difference": 0.03}
LEVEL = 0.9
N_COLUMNS = 8
# The longest length scale, in standard deviations of the inputs.
LONGEST = {"sinc": 0.4, "friedman": 4.0}
_N_TEST = 2000

Array = NDArray[np.float64]
Rows = list[dict[str, Any]]


def run() -> dict[str, object]:
    """Measure at 5000 rows."""
    return {"targets": TARGETS, "level": LEVEL, **summary(rows_of(5000, 256, n_repeats=2))}


def rows_of(n: int, n_candidates: int, n_repeats: int) -> Rows:
    """Fit with so many candidates and with all rows: one row for each set of rows and limit."""
    limits = (n_candidates, n)
    cells = [(data, n, r, seed) for data in LONGEST for seed in range(n_repeats) for r in limits]
    return measured("basis-candidates-v1", cells, _cell)


def summary(rows: Rows) -> dict[str, object]:
    """Means over the sets of rows; the largest ratio of errors and difference of coverage."""
    means = []
    for data in dict.fromkeys(row["data"] for row in rows):
        own = [row for row in rows if row["data"] == data]
        few, all_ = (_means(own, r) for r in sorted({row["n_candidates"] for row in own}))
        means.append(
            {
                "data": data,
                "n": own[0]["n"],
                "few": few,
                "all": all_,
                "error_ratio": round(few["rmse_of_function"] / all_["rmse_of_function"], 3),
                "coverage_difference": round(few["coverage"] - all_["coverage"], 4),
            }
        )
    return {
        "largest_error_ratio": max(each["error_ratio"] for each in means),
        "largest_coverage_difference": max(abs(each["coverage_difference"]) for each in means),
        "means": means,
        "rows": rows,
    }


def _means(rows: Rows, n_candidates: int) -> dict[str, float]:
    own = [row for row in rows if row["n_candidates"] == n_candidates]
    keys = ("rmse_of_function", "coverage", "n_centres", "seconds", "peak_gib")
    means = {key: float(f"{np.mean([row[key] for row in own]):.4g}") for key in keys}
    return {"n_candidates": n_candidates, **means}


def _cell(data: str, n: int, n_candidates: int, seed: int) -> Rows:
    result = in_fresh_process(__name__, "fitted", data, n, n_candidates, seed)
    return [{"data": data, "n": n, "n_candidates": n_candidates, "seed": seed, **result}]


def fitted(data: str, n: int, n_candidates: int, seed: int) -> dict[str, Any]:
    """In a process of its own: one pass over the rows, then the test rows."""
    from mercer.basis.learner import compile_loops

    compile_loops(lambda line: None)
    X, y, _ = _rows(data, n, 2 * seed)
    X_test, y_test, f_test = _rows(data, _N_TEST, 2 * seed + 1)
    model = SequentialKernelRegressor(
        lengthscale=[LONGEST[data] * 2.0 ** (-0.5 * i) for i in range(3)],
        max_candidates=n_candidates, random_state=seed, progress=False,
    )  # fmt: skip
    begin = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - begin
    lower, upper = model.predict_interval(X_test, LEVEL)
    errors = model.predict(X_test) - f_test
    return {
        "rmse_of_function": float(f"{np.sqrt(np.mean(errors**2)):.4g}"),
        "coverage": round(float(np.mean((lower <= y_test) & (y_test <= upper))), 4),
        "n_centres": round(model.n_centres_, 1),
        "seconds": round(seconds, 2),
    }


def _rows(data: str, n: int, part: int) -> tuple[Array, Array, Array]:
    """Inputs, targets, and these without their noise; each part is other rows."""
    if data == "sinc":
        return sinc_rows_v1(n, part)
    X, y, f = friedman_rows_v1(n, part)
    return X[:, :N_COLUMNS].astype(np.float64), y, f
