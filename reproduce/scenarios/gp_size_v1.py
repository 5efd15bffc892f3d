"""What more rows cost a GP classifier.

`gp_draw_v1` with ten inputs, 1000, 2000 and 5000 rows, one BLAS thread, as `GPClassifier`
takes, each in a fresh process: one gradient of Laplace's evidence at the hyperparameters that the
labels were made with, the search of the most probable hyperparameters, and the largest memory of
the process. The target is 16 GiB.

Two minutes.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from mercer.gp.hyperparameters import find_maximum, kernel_prior
from mercer.gp.laplace import HyperparameterPosterior
from mercer.kernels.stationary import SquaredExponentialARD
from reproduce.cells import measured
from reproduce.fresh import in_fresh_process
from reproduce.workloads import gp_draw_v1

SEED = 0
SIZES, N_INPUTS = (1000, 2000, 5000), 10
TARGET_GIB = 16.0
_N_GRADIENTS = 3

Rows = list[dict[str, Any]]


def run() -> dict[str, object]:
    """Measure all sizes."""
    return summary(sizes(SIZES))


def sizes(numbers: tuple[int, ...]) -> Rows:
    """Time and memory: a row for each number of rows."""
    return measured("gp-size-v1", [("size", n) for n in numbers], _size)


def summary(sizes: Rows) -> dict[str, object]:
    """All rows, and the largest memory beside its target."""
    return {
        "target_gib": TARGET_GIB,
        "largest_gib": max(row["peak_gib"] for row in sizes),
        "sizes": sizes,
    }


def _size(_: str, n: int) -> Rows:
    return [{"n": n, **in_fresh_process(__name__, "searched", n)}]


def searched(n: int) -> dict[str, float]:
    """In a process of its own: gradients, then a whole search."""
    kernel, prior = SquaredExponentialARD(), kernel_prior(N_INPUTS)
    few, labels, theta = gp_draw_v1(50, N_INPUTS, 1.0)
    find_maximum(HyperparameterPosterior(few, labels, kernel, prior), with_covariance=False)
    X, y, theta = gp_draw_v1(n, N_INPUTS, 1.0)
    model = HyperparameterPosterior(X, y, kernel, prior)
    times = []
    for _ in range(_N_GRADIENTS):
        begin = time.perf_counter()
        model.evaluate(theta)
        times.append(time.perf_counter() - begin)
    begin = time.perf_counter()
    maximum = find_maximum(model, with_covariance=False)
    seconds = time.perf_counter() - begin
    return {
        "gradient_seconds": float(f"{np.median(times):.4g}"),
        "search_seconds": float(f"{seconds:.4g}"),
        "is_converged": maximum.is_converged,
    }
