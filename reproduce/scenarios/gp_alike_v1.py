"""A table of categories: what rows that are alike cost a Gaussian process.

Rows of three categories with 3, 2 and 2 levels, so that 12 differ, as indicators; log odds of a
class are a sum over levels and of two of them together. Default fits, those of one kernel, and
scikit-learn's classifier with a weight for each input (starting from ones), which has a latent
value for each row. Log scores are means over seeds and 2000 other rows, in nats, lower is better;
"best" is that of the probabilities that made the labels. Target: at 1000 rows faster than
scikit-learn's, log score no worse. Five minutes.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from threadpoolctl import threadpool_limits

from mercer import GPClassifier
from reproduce.cells import measured

SEED = 0
N_ROWS, N_SEEDS, N_TEST = (300, 1000), 3, 2000
LEVELS = (3, 2, 2)

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """CPU seconds and log scores by rows and method."""
    cells = [(n, seed) for n in N_ROWS for seed in range(N_SEEDS)]
    with threadpool_limits(limits=1):
        return summary(measured("gp-alike-v1", cells, _cell))


def summary(rows: list[dict[str, Any]]) -> dict[str, object]:
    """Medians of seconds, means of log scores."""
    found = []
    for n, method in dict.fromkeys((row["n"], row["method"]) for row in rows):
        own = [row for row in rows if (row["n"], row["method"]) == (n, method)]
        found.append({
            "n": n,
            "method": method,
            "seconds": float(f"{np.median([row['seconds'] for row in own]):.3g}"),
            "log_score": round(float(np.mean([row["log_score"] for row in own])), 4),
        })  # fmt: skip
    return {"n_seeds": N_SEEDS, "rows": found}


def _table(n: int, seed: int) -> tuple[Array, NDArray[np.int64], Array]:
    """Indicators (n, 7), classes and the probabilities of class 1."""
    rng = np.random.default_rng([SEED, seed])
    levels = np.column_stack([rng.integers(k, size=n) for k in LEVELS])
    effects, together = [rng.normal(0.0, 1.0, k) for k in LEVELS], rng.normal(0.0, 1.0, LEVELS[:2])
    logits = sum(own[each] for own, each in zip(effects, levels.T, strict=True))
    p = expit(logits + together[levels[:, 0], levels[:, 1]])
    X = np.hstack([np.eye(k)[each] for k, each in zip(LEVELS, levels.T, strict=True)])
    return X, (rng.random(n) < p).astype(np.int64), p


def _loss(y: NDArray[np.int64], p: Array) -> float:
    return float(-np.mean(xlogy(y, p) + xlogy(1 - y, 1.0 - p)))


def _cell(n: int, seed: int) -> list[dict[str, Any]]:
    X, y, p = _table(n + N_TEST, seed)
    new, common = slice(n, None), {"random_state": seed, "progress": False}
    kernel = ConstantKernel(1.0, (1e-4, 1e8)) * RBF(np.ones(X.shape[1]), (1e-3, 1e6))
    methods = {
        "mercer, default": lambda: GPClassifier(**common),
        "mercer, one kernel": lambda: GPClassifier(**common, kernel="rbf"),
        "scikit-learn": lambda: GaussianProcessClassifier(kernel),
    }
    found = [{"n": n, "method": "best", "seconds": 0.0, "log_score": _loss(y[new], p[new])}]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method, make in methods.items():
            make().fit(X[:40], y[:40])  # so that nothing is loaded or compiled below
            begin = time.process_time()
            model = make().fit(X[:n], y[:n])
            seconds = time.process_time() - begin
            score = _loss(y[new], model.predict_proba(X[new])[:, 1])
            found.append({"n": n, "method": method, "seconds": seconds, "log_score": score})
    return found
