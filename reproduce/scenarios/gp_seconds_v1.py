"""CPU seconds of the default Gaussian processes: beside their maximum, scikit-learn's, and whole.

* Command: the first one of the README, ``mercer fit breast_cancer``, with its imports, baselines,
  report and model file: CPU seconds of all its processes, and the clock. Target: 10 seconds.
* Classifiers of 300 rows, 8 and 30 inputs (scikit-learn's ``make_classification``, a third to half
  of the inputs informative, a tenth of the labels flipped): the default, which averages over
  hyperparameters and kernels; ``inference="map"``, the same kernels at their maxima; scikit-learn's
  classifier with a length scale for each input, its search begun once. Targets: 4 and 10 times the
  maximum, faster than scikit-learn's with a better log score.
* Regressors of 200, 500 and 1000 rows of Friedman's first function, 10 inputs, noise of 1: default
  and maximum. Targets: 3, 10 and 40 seconds.
* Predictions of the default classifier of 427 rows of breast cancer, 30 inputs: the first call for
  a row, which makes the factors, later ones, and 1000 rows. Targets: 20 ms and 1 s.

Medians of three seeds (five calls); log scores are means over seeds and 2000 other rows, in nats,
lower is better. One BLAS thread. Five minutes.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, make_classification, make_friedman1
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from threadpoolctl import threadpool_limits

from mercer import GPClassifier, GPRegressor
from reproduce.cells import measured

SEED = 0
TARGETS = {
    "command_seconds": 10.0,
    "times_map": {"300 x 8": 4.0, "300 x 30": 10.0},
    "regressor_seconds": {"200": 3.0, "500": 10.0, "1000": 40.0},
    "predict_seconds": {"1": 0.02, "1000": 1.0},
}
OURS, MAP, PEER = "default", "maximum", "scikit-learn"
_N_TEST, _N_SEEDS = 2000, 3
_README = ["fit", "breast_cancer", "--target", "target", "--test-size", "0.25", "--no-refit"]

Array = NDArray[np.float64]
Rows = list[dict[str, Any]]


def run() -> dict[str, object]:
    """Measure all."""
    fits = [("classifier", 300, 8), ("classifier", 300, 30)]
    fits += [("regressor", n, 10) for n in (200, 500, 1000)]
    return summary(
        measured("gp-seconds-v1", [("command", seed) for seed in range(_N_SEEDS)], _command),
        rows_of(fits, _N_SEEDS),
        measured("gp-seconds-v1", [("predict", 427)], _predict),
    )


def rows_of(fits: list[tuple[str, int, int]], n_seeds: int) -> Rows:
    """Fit tables of a kind, rows and inputs: a row for each method and seed."""
    return measured(
        "gp-seconds-v1", [(*fit, seed) for fit in fits for seed in range(n_seeds)], _fit
    )


def summary(command: Rows, fits: Rows, predict: Rows) -> dict[str, object]:
    """Medians of seconds, means of log scores."""
    medians = {
        key: round(float(np.median([row[key] for row in command])), 1)
        for key in ("cpu_seconds", "clock_seconds")
    }
    rows: Rows = []
    for name, method in dict.fromkeys((row["fit"], row["method"]) for row in fits):
        own = [row for row in fits if (row["fit"], row["method"]) == (name, method)]
        rows.append({
            "fit": name,
            "method": method,
            "seconds": float(f"{np.median([row['seconds'] for row in own]):.3g}"),
            "log_score": round(float(np.mean([row["log_score"] for row in own])), 4),
        })  # fmt: skip
    return {"targets": TARGETS, "command": medians, "rows": rows, "predict": predict[0]}


def _command(_: str, seed: int) -> Rows:
    program = [sys.executable, "-m", "mercer.cli.main", *_README, "--seed", str(seed)]
    with tempfile.TemporaryDirectory() as folder:
        files = ["--out", str(Path(folder) / "m.mercer"), "--report", str(Path(folder) / "m.html")]
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([*program, *files], check=True, stdout=subprocess.DEVNULL)
        clock, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return [{"cpu_seconds": round(cpu, 2), "clock_seconds": round(clock, 2)}]


def _fit(kind: str, n: int, d: int, seed: int) -> Rows:
    X, y = _table(kind, n + _N_TEST, d, seed)
    train, test = (X[:n], y[:n]), (X[n:], y[n:])
    estimator = GPClassifier if kind == "classifier" else GPRegressor
    methods: dict[str, Callable[[], Any]] = {
        OURS: lambda: estimator(random_state=seed, progress=False),
        MAP: lambda: estimator(random_state=seed, progress=False, inference="map"),
    }
    if kind == "classifier":
        kernel = ConstantKernel(1.0, (1e-4, 1e8)) * RBF(np.ones(d), (1e-3, 1e6))
        methods[PEER] = lambda: GaussianProcessClassifier(kernel, n_restarts_optimizer=0)
    rows = []
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make in methods.items():
            make().fit(X[:40], y[:40])  # so that nothing is loaded or compiled below
            begin = time.process_time()
            model = make().fit(*train)
            seconds = time.process_time() - begin
            loss = _loss(model, *test)
            rows.append(
                {"fit": f"{kind}, {n} x {d}", "method": name, "seconds": seconds, "log_score": loss}
            )
    return rows


def _table(kind: str, n: int, d: int, seed: int) -> tuple[Array, Array]:
    if kind == "regressor":
        return make_friedman1(n, d, noise=1.0, random_state=seed)  # type: ignore[no-any-return]
    X, y = make_classification(
        n,
        d,
        n_informative=min(4, d) if d < 10 else 10,
        n_redundant=0,
        flip_y=0.1,
        random_state=seed,
    )
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def _loss(model: Any, X: Array, y: Array) -> float:
    if isinstance(model, GPRegressor):
        return float(-model.predictive(X).log_density(y).mean())
    return float(-np.log(model.predict_proba(X)[np.arange(len(y)), y.astype(int)]).mean())


def _predict(_: str, n: int) -> Rows:
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(y))
    with threadpool_limits(limits=1):
        model = GPClassifier(random_state=SEED, progress=False).fit(X[order[:n]], y[order[:n]])
        many = np.tile(X, (2, 1))[:1000]
        first, *later = [_seconds(model, X[:1]) for _ in range(6)]
        thousand = [_seconds(model, many) for _ in range(5)]
    return [
        {
            "first_row": float(f"{first:.2g}"),
            "later_row": float(f"{np.median(later):.2g}"),
            "1000_rows": float(f"{np.median(thousand):.2g}"),
        }
    ]


def _seconds(model: Any, X: Array) -> float:
    begin = time.process_time()
    model.predict_proba(X)
    return time.process_time() - begin
