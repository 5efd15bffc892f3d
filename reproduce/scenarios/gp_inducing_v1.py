"""GP regression of 10 000 rows: inducing points beside a random subset, SVGP and BaNK.

Tables: `bike` (12 inputs) and `naval` (14 that vary; 9434 rows), both in random order; `arm_v1`,
eight joint angles, 5 % noise; `friedman_rows_v1`, 20 inputs of which five matter. 10 000 rows are
learned, 2500 others predicted. The log score is the mean of -log predictive density of the
standardised target (lower is better), with its standard error. One thread, one run each; seconds
are CPU seconds of the fit. Of all Gaussian processes the kernel is a squared exponential with a
length scale for each input, and hyperparameters are the most probable ones.

* inducing points: ``GPRegressor(kernel="rbf", inference="map", max_rows=1000, n_inducing="auto")``:
  2048 inducing points, hyperparameters of 1000 rows.
* subset: the same with ``max_rows=1500, n_inducing=None``.
* SVGP: GPyTorch, 512 inducing points that are learned, Adam with steps of 0.03, stopped at the CPU
  seconds of the inducing points or of the subset, whichever are more.
* BaNK: `BaNKRegressor` with one chain, 10 draws after a warm-up of 10.

``beside`` holds, for each table and rival, by how much its log score is above that of the inducing
points (more than 0: these are better), and the standard error of that over the rows. Targets:
better than the subset, and nowhere worse than SVGP by more than a standard error. An installation
of GPyTorch is needed (extra bench).
"""

from __future__ import annotations

import time
import warnings
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer import BaNKRegressor, GPRegressor
from mercer.data.named import TARGET, load_named
from mercer.estimation.standardize import fit_standardizer
from reproduce.cells import measured
from reproduce.workloads import arm_v1, friedman_rows_v1

SEED = 0
NEEDS_DATA = True
NEEDS_PACKAGES = ("gpytorch", "torch")

TABLES = ("bike", "naval", "arm_v1", "friedman_rows_v1")
_N, _N_TEST = 10_000, 2500
_SUBSET, _SVGP_INDUCING, _RATE = 1500, 512, 0.03
_LEARNING = 1000
OURS, SUBSET, BANK = "inducing points", f"subset of {_SUBSET}", "BaNK"

Array = NDArray[np.float64]
Rows = list[dict[str, Any]]


def run() -> dict[str, object]:
    """Scores and seconds of all contenders on all tables."""
    rows: Rows = []
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for table in TABLES:
            own = [(table, method) for method in (OURS, SUBSET, BANK)]
            rows += measured("gp-inducing-v1", own, _mercer)
            seconds = max(
                row["seconds"] for row in rows if (row["table"], row["method"]) in own[:2]
            )
            rows += measured("gp-inducing-v1", [(table, "SVGP", seconds)], _svgp)
    return summary(rows)


def summary(rows: Rows, ours: str = OURS) -> dict[str, object]:
    """Rows without the logs of single test rows, and how far each rival of ``ours`` is behind."""
    beside: dict[str, dict[str, list[float]]] = {}
    for table in dict.fromkeys(row["table"] for row in rows):
        own = {row["method"]: np.array(row["logs"]) for row in rows if row["table"] == table}
        gaps = {name: logs - own[ours] for name, logs in own.items() if name != ours}
        beside[table] = {
            name: [round(float(gap.mean()), 4), round(float(gap.std() / len(gap) ** 0.5), 4)]
            for name, gap in gaps.items()
        }
    short = [{name: value for name, value in row.items() if name != "logs"} for row in rows]
    return {"beside": beside, "rows": short}


@lru_cache(maxsize=1)
def _table(name: str) -> tuple[Array, Array, Array, Array]:
    """Rows and standardised targets to learn from, then those to predict."""
    if name == "arm_v1":
        X, y = arm_v1(_N + _N_TEST)
    elif name == "friedman_rows_v1":
        X, y, _ = friedman_rows_v1(_N + _N_TEST)
        X = X.astype(np.float64)
    else:
        frame = load_named(name)
        X = np.column_stack([c.values for c in frame.columns if c.name != TARGET])
        y = frame.column(TARGET).values
        order = np.random.default_rng(SEED).permutation(len(y))
        X, y = X[order], np.asarray(y, np.float64)[order]
    n = min(_N, len(y) - _N_TEST)
    mean, std = y[:n].mean(), y[:n].std()
    y = (y - mean) / std
    return X[:n], y[:n], X[n : n + _N_TEST], y[n : n + _N_TEST]


def _row(
    table: str, method: str, seconds: float, means: Array, logs: Array, **more: Any
) -> dict[str, Any]:
    y_test = _table(table)[3]
    return {
        "table": table,
        "method": method,
        "seconds": round(seconds, 1),
        "log_score": round(float(logs.mean()), 4),
        "log_score_se": round(float(logs.std() / len(logs) ** 0.5), 4),
        "standardized_mse": float(f"{np.mean((means - y_test) ** 2):.4g}"),
        **more,
        "logs": [float(f"{each:.5g}") for each in logs],
    }


def _mercer(table: str, method: str) -> Rows:
    X, y, X_test, y_test = _table(table)
    own: dict[str, Any] = {"random_state": SEED, "n_jobs": 1, "progress": False}
    quick = {**own, "n_draws": 5, "n_chains": 1}
    model: Any
    if method == BANK:
        BaNKRegressor(**{**quick, "n_warmup": 5, "n_frequencies": 26}).fit(X[:60], y[:60])
        model = BaNKRegressor(n_chains=1, n_draws=10, n_warmup=10, **own)
    else:
        GPRegressor(kernel="rbf", inference="map", **quick).fit(X[:50], y[:50])  # compiles
        some: dict[str, Any] = {"max_rows": _SUBSET, "n_inducing": None}
        every: dict[str, Any] = {"max_rows": _LEARNING, "n_inducing": "auto"}
        model = GPRegressor(
            kernel="rbf", inference="map", **own, **(some if method == SUBSET else every)
        )
    begin = time.process_time()
    model.fit(X, y)
    middle = time.process_time()
    means = model.predict(X_test)
    logs = np.concatenate(
        [
            -model.predictive(X_test[i : i + 500]).log_density(y_test[i : i + 500])
            for i in range(0, len(X_test), 500)
        ]
    )
    predicting = round(time.process_time() - middle, 1)
    return [_row(table, method, middle - begin, means, logs, predict_seconds=predicting)]


def _svgp(table: str, method: str, seconds: float) -> Rows:
    from reproduce.gpytorch_peers import variational_process

    X, y, X_test, y_test = _table(table)
    standardizer = fit_standardizer(X, "std", tuple(f"x{k}" for k in range(X.shape[1])))
    Z, Z_test = standardizer.transform(X), standardizer.transform(X_test)
    ((spent, n_steps, means, logs),) = variational_process(
        Z, y, Z_test, y_test,
        n_inducing=_SVGP_INDUCING, rate=_RATE, budgets=(seconds,), seed=SEED,
    )  # fmt: skip
    return [_row(table, method, spent, means, logs, n_steps=n_steps)]
