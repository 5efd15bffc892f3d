"""BaNK classifies a million rows: minutes, memory and log score, beside peers.

10^6 rows of 20 inputs in memory, double precision; the log odds are Friedman's first function less
14.4. Every fit is that of a user, on two cores, in a fresh process; minutes count from the arrays
to the fitted model. Scores are of 100 000 fresh rows, beside those of the law that made the labels.

* ``BaNKClassifier(n_frequencies=160, kernel_rows=20_000, n_draws=40, n_warmup=20, n_chains=2,
  n_jobs=2)``: the spectrum from 20 000 rows, coefficients of four draws from all of them.
* `RBFSampler(n_components=320)`, as many features, and `LogisticRegression` on all rows; width and
  penalty are those that do best on 10 000 rows, learned on 10 000 others.
* `HistGradientBoostingClassifier` of at most 500 trees, with its own early stopping.

The budget is 15 minutes and 8 GiB.
"""

from __future__ import annotations

from typing import Any

from reproduce.cells import measured
from reproduce.fresh import in_fresh_process

SEED = 0
BUDGET = {"minutes": 15.0, "gib": 8.0}

N_ROWS, N_TEST = 1_000_000, 100_000
_BANK = {
    "n_frequencies": 160, "kernel_rows": 20_000, "n_draws": 40, "n_warmup": 20, "n_chains": 2,
}  # fmt: skip
# Method -> threads of BLAS and OpenMP, and its setting; mercer's two processes have one each.
METHODS: dict[str, tuple[int, Any]] = {
    "mercer": (1, _BANK),
    "features": (2, 320),
    "trees": (2, 500),
}


def run() -> dict[str, object]:
    """Fit everything."""
    return {"budget": BUDGET, "n": N_ROWS, "d": 20, "rows": rows_of(METHODS, N_ROWS, N_TEST)}


def rows_of(methods: dict[str, tuple[int, Any]], n_rows: int, n_test: int) -> list[dict[str, Any]]:
    """Measure some methods: one row each."""

    def cell(method: str, n: int, n_new: int) -> list[dict[str, Any]]:
        n_threads, setting = methods[method]
        result = in_fresh_process(
            "reproduce.million_classes", f"fit_{method}", n, n_new, setting, n_threads=n_threads
        )
        return [{"method": method, **result, "peak_gib": round(result["peak_gib"], 3)}]

    return measured("spectral-million-v1", [(name, n_rows, n_test) for name in methods], cell)
