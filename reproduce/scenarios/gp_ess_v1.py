"""Smallest effective sample size a second and core, warm-up counted, for each sampler.

Pima (n = 200, d = 7) where ``MERCER_DATA`` is set, and a simulated set of the same size. The
smallest of bulk and tail over all monitored quantities. Target: 25 for the default on Pima.
"""

from __future__ import annotations

import os
import time

import numpy as np
from sklearn.datasets import make_classification

from mercer import GPClassifier

SEED = 0
TARGET = 25.0


def run() -> dict[str, object]:
    """Time whole fits of the default, NUTS and the paper's chain, three seeds each."""
    X, y = make_classification(2200, 8, n_informative=4, n_redundant=0, flip_y=0.1, random_state=0)
    data = {"make_classification_v1": (X[:200], y[:200])}
    if os.environ.get("MERCER_DATA"):
        from reproduce.papers.matrices import named_arrays

        data["pima"] = named_arrays("pima_tr")
    samplers = {
        "hmc": GPClassifier(kernel="rbf", inference="hmc"),
        "nuts": GPClassifier(kernel="rbf", inference="nuts"),
        "paper": GPClassifier.paper().set_params(n_draws=1333),
    }
    GPClassifier(kernel="rbf", n_draws=5, n_warmup=5, n_chains=1, progress=False).fit(
        X[:20], y[:20]
    )
    rows = [
        {"data": name, "sampler": label, **_measure(sampler, *sets)}
        for name, sets in data.items()
        for label, sampler in samplers.items()
    ]
    return {"target_ess_per_second": TARGET, "rows": rows}


def _measure(sampler: GPClassifier, X: np.ndarray, y: np.ndarray) -> dict[str, object]:
    rates, sizes, seconds = [], [], []
    for seed in range(3):
        model = sampler.set_params(random_state=seed, progress=False, n_jobs=1)
        begin = time.process_time()
        model.fit(X, y)
        elapsed = time.process_time() - begin
        size = model.diagnostics_.min_ess or 0.0
        rates.append(size / elapsed)
        sizes.append(size)
        seconds.append(elapsed)
    return {
        "ess_per_second": round(float(np.median(rates)), 1),
        "min_ess": round(float(np.median(sizes)), 1),
        "cpu_seconds": round(float(np.median(seconds)), 2),
        "n_draws_in_all": int(model.posterior_.n_total),
    }
