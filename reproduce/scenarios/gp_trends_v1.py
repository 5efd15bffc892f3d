"""Default Gaussian processes of simulated tables with a trend: how often chains draw, and how long.

Of tables that are linear but for noise, and that are so but for a wave along one input, the
posterior of the hyperparameters has branches: a kernel of short length scales may stand in for the
noise, and a long one for the linear term. Where importance sampling fails, chains take over, which
take minutes. Seventy tables, of 80 to 250 rows and one to seven inputs, of which some have no part
in the target; every fourth target is cut at its median, into two classes. CPU seconds of a fit; one
BLAS thread, loops compiled before. Five minutes.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer import GPClassifier, GPRegressor
from reproduce.cells import measured

SEED = 1000  # of the first table
N_TABLES = 70
KINDS = ("linear", "linear and a small wave", "linear and a wave")

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """Fit all tables; by kind how many chains drew, and seconds."""
    rows = measured("gp-trends-v1", [(SEED + k,) for k in range(N_TABLES)], fitted)
    kinds = []
    for kind in KINDS:
        own = [row for row in rows if row["kind"] == kind]
        seconds = [row["seconds"] for row in own]
        kinds.append(
            {
                "kind": kind,
                "n_tables": len(own),
                "n_chains": sum(row["is_by_chains"] for row in own),
                "median_seconds": round(float(np.median(seconds)), 2),
                "largest_seconds": max(seconds),
            }
        )
    return {"kinds": kinds, "rows": rows}


def table(seed: int) -> tuple[str, Array, Array]:
    """The kind of a table, inputs (n, d) and numeric targets (n,)."""
    rng = np.random.default_rng(seed)
    n, d, kind = int(rng.integers(80, 250)), int(rng.integers(1, 8)), seed % 3
    X = rng.standard_normal((n, d))
    coef = rng.standard_normal(d) * (rng.random(d) < 0.6)
    f = X @ coef + (0.0, 0.3, 1.0)[kind] * np.sin(2.0 * X[:, 0])
    signal = rng.choice([0.3, 1.0, 5.0])  # over the standard deviation of the noise
    return KINDS[kind], X, signal * f / max(float(f.std()), 1e-9) + rng.standard_normal(n)


def fitted(seed: int) -> list[dict[str, Any]]:
    """Seconds of the default fit of a table, and whether chains drew."""
    kind, X, y = table(seed)
    is_classes = seed % 4 == 3
    model: Any = (GPClassifier if is_classes else GPRegressor)(random_state=0, progress=False)
    target = y > np.median(y) if is_classes else y
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.process_time()
        model.fit(X, target)
        seconds = time.process_time() - started
    is_by_chains = any("drawn by chains" in note for note in model.notes_)
    n, d = X.shape
    return [
        {
            "seed": seed,
            "kind": kind,
            "target": "classes" if is_classes else "numbers",
            "n": n,
            "d": d,
            "is_by_chains": is_by_chains,
            "seconds": round(seconds, 2),
        }
    ]
