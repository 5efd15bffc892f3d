"""What more rows cost a GP classifier, and what is lost if only some of them are fitted.

**Size.** `gp_draw_v1` with ten inputs, 1000, 2000 and 5000 rows, one BLAS thread, as `GPClassifier`
takes, each in a fresh process: one gradient of Laplace's evidence at the hyperparameters that the
labels were made with, the search of the most probable hyperparameters, and the largest memory of
the process. The target is 16 GiB.

**Chosen rows.** Of 4000 rows 1000 are fitted: those that ``max_rows=1000`` chooses, or random ones;
beside them all 4000. Error and log score of 2000 further rows, two sets of rows of each problem:
labels of `gp_draw_v1` with a log signal variance of 3, four inputs; and the distance of the hand of
`arm_v1`, whose error is a root mean square in standard deviations of the targets. Seconds are those
of the fit at the most probable hyperparameters, one thread.

Half an hour, most of it for all rows of the second part.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.cells import measured
from benchmarks.fresh import in_fresh_process
from benchmarks.workloads import arm_v1, gp_draw_v1
from mercer import GPClassifier, GPRegressor
from mercer.gp.binary.model import HyperparameterPosterior
from mercer.gp.priors import kernel_prior
from mercer.gp.sampler import find_maximum
from mercer.kernels.squared_exponential import SquaredExponentialARD
from mercer.posterior.scores import error_rate, log_score

SEED = 0

SIZES, N_INPUTS = (1000, 2000, 5000), 10
TARGET_GIB = 16.0
PROBLEMS = ("labels", "arm")
ROWS = ("chosen", "random", "all")
_N_GRADIENTS = 3

Array = NDArray[np.float64]
Rows = list[dict[str, Any]]


def run() -> dict[str, object]:
    """Measure both parts."""
    return summary(sizes(SIZES), choices(1000, 4000, 2000, n_sets=2))


def sizes(numbers: tuple[int, ...]) -> Rows:
    """Time and memory: a row for each number of rows."""
    return measured("gp-size-v1", [("size", n) for n in numbers], _size)


def choices(n_fitted: int, n_train: int, n_test: int, n_sets: int) -> Rows:
    """Error and log score: a row for each problem, set, and way to choose."""
    cells = [
        ("choice", problem, rows, seed, n_fitted, n_train, n_test)
        for problem in PROBLEMS
        for rows in ROWS
        for seed in range(n_sets)
    ]
    return measured("gp-size-v1", cells, _choice)


def summary(sizes: Rows, choices: Rows) -> dict[str, object]:
    """All rows of the first part, means over sets of the second."""
    means = []
    for problem, how in dict.fromkeys((row["problem"], row["rows"]) for row in choices):
        own = [row for row in choices if (row["problem"], row["rows"]) == (problem, how)]
        same = {key: own[0][key] for key in ("problem", "rows", "n_fitted", "n_train", "n_test")}
        keys = ("error", "log_score", "seconds")
        means.append({**same, **{k: float(f"{np.mean([r[k] for r in own]):.4g}") for k in keys}})
    return {
        "target_gib": TARGET_GIB,
        "largest_gib": max(row["peak_gib"] for row in sizes),
        "sizes": sizes,
        "choices": means,
        "sets": choices,
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


def _choice(
    _: str, problem: str, how: str, seed: int, n_fitted: int, n_train: int, n_test: int
) -> Rows:
    X, y = _problem(problem, n_train + n_test)
    order = np.random.default_rng([SEED, seed]).permutation(len(y))
    train, test = order[:n_train], order[n_train:]
    if how == "random":
        train = train[:n_fitted]
    limit = n_fitted if how == "chosen" else len(train)
    make = GPClassifier if problem == "labels" else GPRegressor
    model = make(inference="map", max_rows=limit, random_state=seed, progress=False)
    with threadpool_limits(limits=1):
        begin = time.perf_counter()
        model.fit(X[train], y[train])
        seconds = time.perf_counter() - begin
        scored = _scored_classes if problem == "labels" else _scored_numbers
        error, score = scored(model, X[test], y[test])
    return [
        {
            "problem": problem,
            "rows": how,
            "seed": seed,
            "n_fitted": limit,
            "n_train": n_train,
            "n_test": n_test,
            "error": float(f"{error:.4g}"),
            "log_score": float(f"{score:.4g}"),
            "seconds": float(f"{seconds:.4g}"),
        }
    ]


def _problem(problem: str, n: int) -> tuple[Array, Array]:
    if problem == "arm":
        return arm_v1(n)
    X, y, _ = gp_draw_v1(n, 4, 3.0)
    return X, y


def _scored_classes(model: GPClassifier, X: Array, y: Array) -> tuple[float, float]:
    p = model.predict_proba(X)
    return error_rate(y, p), log_score(y, p)


def _scored_numbers(model: GPRegressor, X: Array, y: Array) -> tuple[float, float]:
    """Root mean square in standard deviations of the targets, mean of -log density in nats."""
    law = model.predictive(X)
    error = np.sqrt(np.mean((law.mean - y) ** 2)) / y.std()
    return float(error), float(-law.log_density(y).mean())
