"""Figure 3 of Oliva et al. by ten times as many sweeps: what the posterior itself does not know.

The ten data sets of `spectral_figure_3_v1`, by the defaults and by four chains of 5000 sweeps each.
Twenty CPU minutes; with ``--cache`` it goes on where it was stopped.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from mercer.errors import MercerWarning
from mercer.spectral.estimator import BaNKRegressor
from reproduce.cells import measured
from reproduce.papers.spectral_figure_3 import _LAGS, _error, _problem, true_kernel

SEED = 0
N_SETS = 10
# A draw after warm-up is of four sweeps; one before it of one.
RUNS: dict[str, dict[str, int]] = {"default": {}, "long": {"n_draws": 1200, "n_warmup": 200}}
MONITORED = ("kernel", "n_components")


def run() -> dict[str, object]:
    """Errors and R-hat of each data set and run, and their means."""
    cells = [(seed, name) for seed in range(N_SETS) for name in RUNS]
    each = measured("spectral-figure-3-long-v1", cells, fit_one)
    return {"each": each, "rows": [summary(each, name) for name in RUNS]}


def summary(each: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Means, standard error and largest values of one kind of run over the data sets."""
    own = [row for row in each if row["run"] == name]
    numbers = {key: [row[key] for row in own] for key in own[0] if key not in ("seed", "run")}
    errors = np.array(numbers["error"])
    return {
        "run": name,
        **{key: float(np.mean(values)) for key, values in numbers.items()},
        **{f"largest {key}": max(values) for key, values in numbers.items()},
        "standard_error": float(errors.std(ddof=1) / np.sqrt(len(errors))),
    }


def fit_one(seed: int, name: str) -> list[dict[str, Any]]:
    """Error of the posterior mean of the kernel, what its band holds, R-hat, CPU seconds."""
    problem, begin = _problem(seed), time.process_time()
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore", MercerWarning)
        model = BaNKRegressor(
            standardize=False, random_state=seed, n_jobs=1, progress=False, **RUNS[name]
        ).fit(problem.X, problem.y)
    seconds = time.process_time() - begin
    mean, lower, upper = model.kernel(_LAGS[:, np.newaxis])
    truth = true_kernel(_LAGS)
    is_inside = (lower - 1e-12 <= truth) & (truth <= upper + 1e-12)
    table = model.diagnostics_.table
    pairs = list(zip(table.column("name"), table.column("rhat"), strict=True))
    rhat = {
        f"rhat of {of}": max(value for each, value in pairs if each.startswith(of))
        for of in MONITORED
    }
    return [{
        "seed": seed, "run": name, "error": _error(mean), "coverage": float(is_inside.mean()),
        "width": float((upper - lower).mean()), **rhat, "cpu_seconds": round(seconds, 2),
    }]  # fmt: skip
