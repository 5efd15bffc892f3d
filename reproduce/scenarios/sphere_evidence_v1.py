"""Log evidence of every noise rate from .001 up, from one tempered run, against what is exact.

Equicorrelated rows, G = (I + 11')/2 with all labels +1: the truth is a one-dimensional integral.
Error: the largest over ten rates, the median and the largest of it over seeds. Targets: 0.1 nat in
2 s for n <= 100, 0.5 nat in 20 s at n = 1000. For standard normal rows of rank 100 with 10 % of
the labels flipped, where nothing is exact: the spread between seeds.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp
from threadpoolctl import threadpool_limits

from mercer.sphere.tempering import Tempering, climb_errors
from reproduce.workloads import noisy_rows_v1

SEED = 0
RATES = np.array([0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4])
TARGETS = {20: (0.1, 2.0), 100: (0.1, 2.0), 1000: (0.5, 20.0)}
_LADDERS = {20: Tempering(32, 3000), 100: Tempering(32, 2000), 1000: Tempering(24, 500)}
_N_SEEDS = 10

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """Every size, ten seeds each."""
    with threadpool_limits(limits=1):
        rows = [_equicorrelated(n) for n in TARGETS]
        rows.append(_spread(1000, 100))
    return {"targets": {str(n): target for n, target in TARGETS.items()}, "rows": rows}


def _equicorrelated(n: int) -> dict[str, Any]:
    L = np.linalg.cholesky(0.5 * np.eye(n) + 0.5)
    exact = np.array([_exact(n, float(q)) for q in RATES])
    errors, seconds = [], []
    for seed in range(_N_SEEDS):
        values, elapsed = _curve(L, _LADDERS[n], seed)
        errors.append(np.abs(values - exact).max())
        seconds.append(elapsed)
    return {
        "data": "equicorrelated",
        "n": n,
        "median_error": round(float(np.median(errors)), 3),
        "largest_error": round(float(np.max(errors)), 3),
        "seconds": round(float(np.median(seconds)), 2),
    }


def _spread(n: int, r: int) -> dict[str, Any]:
    L, _ = noisy_rows_v1(n, r, 0.1)
    runs = [_curve(L, Tempering(24, 400), seed) for seed in range(3)]
    values = np.array([run[0] for run in runs])
    return {
        "data": "standard normal rows, r = 100, 10 % flipped",
        "n": n,
        "largest_sd_between_seeds": round(float(values.std(axis=0, ddof=1).max()), 3),
        "seconds": round(float(np.median([run[1] for run in runs])), 2),
    }


def _curve(L: Array, ladder: Tempering, seed: int) -> tuple[Array, float]:
    begin = time.process_time()
    law = climb_errors(np.random.default_rng(seed), L, ladder).law()
    values = law.curve(RATES).log_evidence
    return values, time.process_time() - begin


def _exact(n: int, q: float) -> float:
    """Log of E (q^e (1 - q)^(n - e)) by the trapezoid rule over the common part."""
    z, width = np.linspace(-12.0, 12.0, 200_001, retstep=True)
    right, wrong = np.log1p(-q) + log_ndtr(z), np.log(q) + log_ndtr(-z)
    log_integrand = n * np.logaddexp(right, wrong) - 0.5 * z * z - 0.5 * np.log(2.0 * np.pi)
    return float(logsumexp(log_integrand) + np.log(width))
