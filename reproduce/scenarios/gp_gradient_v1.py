"""The whole gradient of the Laplace evidence, from the fixed cold start, in Cholesky factors.

The limit: one ``dpotrf`` of the same size. Target: at most 8.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from mercer.gp.hyperparameters import kernel_prior
from mercer.gp.laplace import HyperparameterPosterior
from mercer.kernels.stationary import SquaredExponentialARD
from reproduce.timing import interleaved
from reproduce.workloads import gp_draw_v1

SEED = 0
TARGET = 8.0


def run() -> dict[str, object]:
    """Ratio of medians for each n, d and signal variance."""
    rows = []
    for n, repeat in ((200, 20), (500, 8), (1000, 3)):
        for d in (1, 10, 50):
            for log_variance in (1.0, 3.0):
                rows.append(_measure(n, d, log_variance, repeat))
    at_prior_mean = [row["ratio"] for row in rows if row["log_signal_variance"] == 1.0]
    return {
        "target_ratio": TARGET,
        "largest_ratio_at_prior_mean": max(at_prior_mean),
        "largest_ratio": max(row["ratio"] for row in rows),
        "rows": rows,
    }


def _measure(n: int, d: int, log_variance: float, repeat: int) -> dict[str, float]:
    X, y, theta = gp_draw_v1(n, d, log_variance)
    model = HyperparameterPosterior(X, y, SquaredExponentialARD(), kernel_prior(d))
    B = np.asfortranarray(np.eye(n) + 0.25 * SquaredExponentialARD().gram(theta, X))
    times = interleaved(
        {
            "dpotrf": lambda: lapack.dpotrf(B, lower=1, clean=0),
            "gradient": lambda: model.evaluate(theta),
        },
        n_rounds=15,
        repeat=repeat,
    )
    return {
        "n": n,
        "d": d,
        "log_signal_variance": log_variance,
        "dpotrf_ms": round(1e3 * times["dpotrf"], 4),
        "gradient_ms": round(1e3 * times["gradient"], 4),
        "ratio": round(times["gradient"] / times["dpotrf"], 2),
    }
