"""What a row of a stream costs early and late, and the memory of the process at both times."""

from __future__ import annotations

import copy
import time
from typing import Any

import numpy as np

from mercer import SequentialKernelRegressor
from reproduce.fresh import resident_gib
from reproduce.workloads import steady_rows_v1

__all__ = ["CHUNK", "PRIOR", "growth"]

#: Rows in a call.
CHUNK = 1000
#: With which `steady_rows_v1` is learned: ends with about 11 centres.
PRIOR: dict[str, Any] = {"expected_centres": 2.0, "centres_prior": "poisson"}


def growth(
    n_particles: int, n_candidates: int, n_early: int, n_late: int, n_chunks: int
) -> dict[str, Any]:
    """In a process of its own: time rows after ``n_early`` and ``n_late`` others; memory there."""
    parts = iter(range(10**9))
    late = SequentialKernelRegressor(
        n_particles=n_particles, max_candidates=n_candidates, lengthscale=1.5, random_state=0,
        **PRIOR,
    )  # fmt: skip

    def learn_until(n: int) -> float:
        begin = time.perf_counter()
        for _ in range(n // CHUNK):
            late.partial_fit(*steady_rows_v1(CHUNK, next(parts)))
        return time.perf_counter() - begin

    learn_until(n_early)
    early, gib = copy.deepcopy(late), {"early": resident_gib()}
    seconds = learn_until(n_late - n_early)
    gib["late"] = resident_gib()
    centres = {"early": early.n_centres_, "late": late.n_centres_}
    times: dict[str, list[float]] = {"early": [], "late": []}
    for _ in range(n_chunks):
        X, y = steady_rows_v1(CHUNK, next(parts))
        for name, model in (("early", early), ("late", late)):
            begin = time.perf_counter()
            model.partial_fit(X, y)
            times[name].append(time.perf_counter() - begin)
    medians = {name: float(np.median(each)) / CHUNK for name, each in times.items()}
    return {
        "n_particles": n_particles,
        "n_candidates": n_candidates,
        "n_early": n_early,
        "n_late": n_late,
        "early_us": round(1e6 * medians["early"], 1),
        "late_us": round(1e6 * medians["late"], 1),
        "ratio": round(medians["late"] / medians["early"], 3),
        "early_centres": round(centres["early"], 1),
        "late_centres": round(centres["late"], 1),
        "early_gib": round(gib["early"], 4),
        "late_gib": round(gib["late"], 4),
        "minutes": round(seconds / 60.0, 2),
    }
