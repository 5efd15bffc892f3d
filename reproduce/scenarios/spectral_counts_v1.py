"""Counts: BaNK with a negative binomial law beside what counts are predicted with.

*Data*: rentals of bikes in the hour, of 300, 1000 and 3000 rows at random; and 1000 rows of three
functions that are known, of 6 inputs, two without effect: "few" (a mean of .3, r = 1), "poisson" (a
mean of 3, Poisson) and "thousands" (a mean of 5000, r = 3). 2000 other rows are predicted.

*Ours*: `BaNKRegressor(noise="negative_binomial")`, and the same with normal noise of log(1 + y),
whose probability of a count is that of the unit around it; all else by default.

*Rivals*: scikit-learn's Poisson regression and gradient boosting with Poisson's loss, defaults,
inputs standardised for the first. Each has a Poisson law around its mean, and a negative binomial
one, whose r has the highest likelihood of a quarter of the training rows that a first fit left out.
One seed.

*Scores*: mean of -log probability (nats), share of counts inside the 90 % interval of whole
numbers, its mean width, root mean squared error. A quarter of an hour; use ``--cache``.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import minimize_scalar
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import PoissonRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import BaNKRegressor
from reproduce.cells import measured_tables
from reproduce.papers.matrices import named_arrays

SEED = 0
NEEDS_DATA = True
N_SEEDS, N_NEW, BLOCK = 1, 2000, 500
#: Name, rows.
DATA = (("bike", 300), ("bike", 1000), ("bike", 3000), ("few", 1000), ("poisson", 1000),
        ("thousands", 1000))  # fmt: skip
#: Level and r of the functions that are known.
KNOWN = {"few": (0.15, 1.0), "poisson": (1.5, 1e6), "thousands": (2500.0, 3.0)}
OURS, NORMAL = "mercer, counts", "mercer, log(1 + y)"
RIVALS = ("Poisson regression", "boosting")

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """Mean scores by table and method."""
    return summary(measured_tables("spectral-counts-v1", DATA, N_SEEDS, _cell))


def table_of(name: str, n_rows: int, seed: int) -> tuple[Array, Array]:
    """Inputs and counts of so many rows."""
    rng = np.random.default_rng([SEED, seed])
    if name == "bike":
        X, counts = named_arrays("bike")
        chosen = rng.permutation(len(counts))[:n_rows]
        return X[chosen], counts[chosen].astype(np.float64)
    level, r = KNOWN[name]
    X = rng.uniform(-2.0, 2.0, (n_rows, 6))
    f = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.4 * X[:, 3]
    return X, rng.poisson(level * np.exp(f) * rng.gamma(r, 1.0 / r, n_rows)).astype(np.float64)


def _cell(name: str, n_rows: int, seed: int) -> list[dict[str, Any]]:
    X, y = table_of(name, n_rows + N_NEW, seed)
    known, new = slice(n_rows), slice(n_rows, None)
    found = []
    for method, score in _methods(X[known], y[known], X[new], y[new], seed):
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = score()
        seconds = round(time.process_time() - begin, 2)
        found.append(
            {"data": name, "n_rows": n_rows, "seed": seed, "method": method}
            | {key: round(float(value), 5) for key, value in scores.items()}
            | {"cpu_seconds": seconds}
        )
    return found


def _methods(X: Array, y: Array, Z: Array, new: Array, seed: int) -> Any:
    given = X, y, Z, new, seed
    yield OURS, lambda: _counts(*given)
    yield NORMAL, lambda: _logarithms(*given)
    for name in RIVALS:
        for law in ("Poisson", "negative binomial"):
            yield f"{name}, {law}", lambda name=name, law=law: _rival(name, law, *given)


def _scores(log_mass: Array, lower: Array, upper: Array, mean: Array, y: Array) -> dict[str, float]:
    is_inside = (lower <= y) & (y <= upper)
    return {
        "log_score": -log_mass.mean(),
        "coverage_90": is_inside.mean(),
        "width_90": (upper - lower).mean(),
        "rmse": np.sqrt(np.mean(np.square(mean - y))),
    }


def _model(noise: str, seed: int) -> BaNKRegressor:
    return BaNKRegressor(noise=noise, random_state=seed, n_jobs=1, progress=False)


def _counts(X: Array, y: Array, Z: Array, new: Array, seed: int) -> dict[str, float]:
    model = _model("negative_binomial", seed).fit(X, y)
    laws = [model.predictive(Z[begin : begin + BLOCK]) for begin in range(0, len(Z), BLOCK)]
    parts = [new[begin : begin + BLOCK] for begin in range(0, len(Z), BLOCK)]
    logs = [law.log_density(part) for law, part in zip(laws, parts, strict=True)]
    ends = [np.stack(law.interval(0.9)) for law in laws]
    mean = np.concatenate([law.mean for law in laws])
    return _scores(np.concatenate(logs), *np.concatenate(ends, axis=1), mean, new)


def _logarithms(X: Array, y: Array, Z: Array, new: Array, seed: int) -> dict[str, float]:
    model = _model("normal", seed).fit(X, np.log1p(y))
    logs, ends, means = [], [], []
    for begin in range(0, len(Z), BLOCK):
        law, part = model.predictive(Z[begin : begin + BLOCK]), new[begin : begin + BLOCK]
        above = np.log(part + 1.5)
        below = np.where(part > 0.0, law.cdf(np.log(part + 0.5)), 0.0)
        logs.append(np.log(np.maximum(law.cdf(above) - below, 1e-300)))
        ends.append(np.stack([np.ceil(np.expm1(end) - 0.5) for end in law.interval(0.9)]))
        means.append(np.expm1(law.locations + 0.5 * np.square(law.scales)).mean(axis=1))
    return _scores(np.concatenate(logs), *np.concatenate(ends, axis=1), np.concatenate(means), new)


def _rival(
    name: str, law: str, X: Array, y: Array, Z: Array, new: Array, seed: int
) -> dict[str, float]:
    mean = _fitted(name, X, y, seed).predict(Z)
    if law == "Poisson":
        found = stats.poisson(mean)
    else:
        n = len(y) * 3 // 4
        held = _fitted(name, X[:n], y[:n], seed).predict(X[n:])

        def loss(log_r: float) -> float:
            r = np.exp(log_r)
            return -float(stats.nbinom(r, r / (r + held)).logpmf(y[n:]).sum())

        r = np.exp(minimize_scalar(loss, bounds=(-6.0, 12.0), method="bounded").x)
        found = stats.nbinom(r, r / (r + mean))
    return _scores(np.maximum(found.logpmf(new), -690.0), *found.interval(0.9), mean, new)


def _fitted(name: str, X: Array, y: Array, seed: int) -> Any:
    if name == "boosting":
        return HistGradientBoostingRegressor(loss="poisson", random_state=seed).fit(X, y)
    return make_pipeline(StandardScaler(), PoissonRegressor(max_iter=1000)).fit(X, y)


def summary(rows: list[dict[str, Any]]) -> dict[str, object]:
    """Mean over seeds, by table and method."""
    cells = []
    for name, n_rows in dict.fromkeys((row["data"], row["n_rows"]) for row in rows):
        mine = [row for row in rows if (row["data"], row["n_rows"]) == (name, n_rows)]
        methods = dict.fromkeys(row["method"] for row in mine)
        scores = {
            method: {
                key: round(float(np.mean([r[key] for r in mine if r["method"] == method])), 4)
                for key in ("log_score", "coverage_90", "width_90", "rmse", "cpu_seconds")
            }
            for method in methods
        }
        cells.append({"data": name, "n_rows": n_rows, "scores": scores})
    return {"n_seeds": len({row["seed"] for row in rows}), "n_new": N_NEW, "cells": cells}
