"""Coverage of every estimator's default: do 50, 90 and 99 % hold 50, 90 and 99 % of new targets?

**Data.** Standard normal inputs; a function of four families (`reproduce.workloads.law_v1`):
smooth (a draw of a process with length scale sqrt(d)), linear, pure noise, and a step, which no
smooth process can follow. n = 15, 30, 100, 300 rows, d = 1, 5, 10 inputs, 200 new rows.

**Numbers.** The share of new targets inside central intervals, by the predictive law's distribution
function.

**Classes.** A prediction set of level L takes classes in the order of their probability until they
make up L, the last of them by a coin that makes the set hold exactly L by the model's own
probabilities. So of right probabilities new classes are inside with probability L, at any L, which
sets without the coin cannot be: of two classes they are of size one or two and hold more. The coin
is not thrown but averaged over. At 50 % that tells whether the largest probability is right, at
99 % whether the smallest is. ``excess`` is the mean of the largest probability less the share of
rows where that class came: above 0 is overconfident.

**Airfoil** (where ``MERCER_DATA`` is set). 100 of its rows for training, 300 others: 90 % intervals
of a smooth process hold too few. Is it the method or the data? The same inputs with targets
drawn from a smooth process, its hyperparameters the most probable of 400 rows, tell: there the law
is of the kind that is fitted. A process that is as rough as Brownian motion, and inputs that are
frequencies taken by their logarithm, are tried beside it. One chain of 60 draws each.

A cell is one set of one estimator; shares are means over sets, with the standard error of the mean,
those of a family over all numbers of inputs. Within 3 points is the target. All 200 sets of each
are days on one core: `--seconds` says how long to go on, set by set, over all sizes; what was
measured before (`--cache`) is kept.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import mercer
from mercer.data.named import TARGET as TARGET_NAME
from mercer.data.named import load_named
from reproduce.cells import SECONDS, measured
from reproduce.workloads import LAWS_V1, law_v1

SEED = 0

LEVELS = (50, 90, 99)
REGRESSORS = ("GPRegressor", "BaNKRegressor", "SequentialKernelRegressor")
CLASSIFIERS = (
    "GPClassifier",
    "BaNKClassifier",
    "SequentialKernelClassifier",
    "KernelGibbsClassifier",
)
SIZES, INPUTS = (15, 30, 100, 300), (1, 5, 10)
N_SETS, N_NEW = 200, 200
TARGET = 3.0  # points
AIRFOIL = ("as it is", "logarithms", "matern12", "simulated")
N_SPLITS = 8

Array = NDArray[np.float64]
Rows = list[dict[str, Any]]


def run() -> dict[str, object]:
    """Measure as many sets as there is time for."""
    seconds = os.environ.get(SECONDS)
    limit = None if seconds is None else float(seconds)
    airfoil = airfoil_rows(N_SPLITS) if os.environ.get("MERCER_DATA") else []
    rows = rows_of(REGRESSORS + CLASSIFIERS, N_SETS, limit)
    return {**summary(rows), "airfoil": airfoil_means(airfoil)}


def rows_of(
    estimators: tuple[str, ...],
    n_sets: int,
    seconds: float | None = None,
    sizes: tuple[int, ...] = SIZES,
    inputs: tuple[int, ...] = INPUTS,
) -> Rows:
    """A row for each estimator, family, size and set; none begun after so many CPU seconds."""
    cells = (
        (name, family, n, d, k)
        for k in range(n_sets)
        for n in sizes
        for d in inputs
        for family in LAWS_V1
        for name in estimators
    )
    return measured("coverage-v1", cells, _cell, seconds=seconds)


def summary(rows: Rows) -> dict[str, object]:
    """Shares by estimator, family and n, and how many are further from their level than 3 points.

    ``n_missed`` counts those further than chance explains: by 3 points and two standard errors.
    """
    groups: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        key = tuple(row[name] for name in ("estimator", "family", "n"))
        groups.setdefault(key, []).append(row)
    cells = [
        {**dict(zip(("estimator", "family", "n"), key, strict=True)), **_means(own)}
        for key, own in sorted(groups.items())
    ]
    by_size = [
        {
            "estimator": name,
            "n": n,
            **_means([r for r in rows if (r["estimator"], r["n"]) == (name, n)]),
        }
        for name, n in sorted({(row["estimator"], row["n"]) for row in rows})
    ]
    missed = [cell for cell in cells if any(_is_missed(cell, level) for level in LEVELS)]
    return {"target_points": TARGET, "by_size": by_size, "cells": cells, "n_missed": len(missed)}


def airfoil_rows(n_splits: int) -> Rows:
    """A row for each way to take airfoil and each split."""
    cells = [(how, k) for k in range(n_splits) for how in AIRFOIL]
    return measured("coverage-airfoil-v1", cells, _airfoil_cell)


def airfoil_means(rows: Rows) -> Rows:
    """Means over splits."""
    found = [how for how in AIRFOIL if any(row["how"] == how for row in rows)]
    return [{"how": how, **_means([r for r in rows if r["how"] == how])} for how in found]


def _airfoil_cell(how: str, k: int) -> Rows:
    frame = load_named("airfoil")
    X = np.column_stack([c.values for c in frame.columns if c.name != TARGET_NAME]).astype(float)
    y = frame.column(TARGET_NAME).values.astype(float)
    rng = np.random.default_rng([SEED, k])
    rows = rng.permutation(len(y))[:400]
    X, y = X[rows], y[rows]
    if how == "simulated":
        y = _simulated(X, y, rng)
    if how == "logarithms":
        X = np.column_stack([np.log(X[:, 0]), X[:, 1:4], np.log(X[:, 4])])
    kernel = "matern12" if how == "matern12" else "rbf"
    model = mercer.GPRegressor(
        inference="hmc",
        kernel=kernel,
        n_draws=60,
        n_warmup=60,
        n_chains=1,
        random_state=k,
        progress=False,
    )
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X[:100], y[:100])
        return [{"how": how, "split": k, **_numbers(model, X[100:], y[100:])}]


def _simulated(X: Array, y: Array, rng: np.random.Generator) -> Array:
    """Targets drawn from a smooth process, its hyperparameters the most probable of all rows."""
    fitted = mercer.GPRegressor(kernel="rbf", inference="map", progress=False).fit(X, y)
    Z, draws = fitted.standardizer_.transform(X), fitted.posterior_
    weights = np.exp(draws.flat("log_weight")[0])
    theta = np.append(draws.flat("log_signal_variance")[0], np.log(weights))
    K = fitted.kernel_.gram(theta, Z)
    noise = fitted.noise_std_ / fitted.target_scale_
    K[np.diag_indices(len(K))] += noise**2
    return np.asarray(np.linalg.cholesky(K) @ rng.standard_normal(len(K)))


def _means(rows: Rows) -> dict[str, Any]:
    """Means over sets, of shares in per cent with the standard errors."""
    out: dict[str, Any] = {"n_sets": len(rows)}
    for name in (*(f"inside_{level}" for level in LEVELS), "excess"):
        if name in rows[0]:
            values = 100.0 * np.array([row[name] for row in rows])
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
            out[name] = round(float(values.mean()), 1)
            out[f"{name}_se"] = round(float(error), 1) if np.isfinite(error) else None
    out["log_score"] = round(float(np.mean([row["log_score"] for row in rows])), 3)
    return out


def _is_missed(cell: dict[str, Any], level: int) -> bool:
    gap, error = abs(cell[f"inside_{level}"] - level), cell[f"inside_{level}_se"]
    return error is not None and gap > TARGET + 2.0 * error


def _cell(name: str, family: str, n: int, d: int, k: int) -> Rows:
    rng = np.random.default_rng([SEED, LAWS_V1.index(family), n, d, k])
    is_class = name in CLASSIFIERS
    X, y = law_v1(family, n + N_NEW, d, rng, is_class=is_class)
    if is_class and len(np.unique(y[:n])) < 2:
        y[0] = 1 - y[0]  # both classes are needed
    model = getattr(mercer, name)(random_state=k, progress=False)
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of chains: the default is what is measured
        model.fit(X[:n], y[:n])
        told = _classes if is_class else _numbers
        row = told(model, X[n:], y[n:])
    return [{"estimator": name, "family": family, "n": n, "d": d, "set": k, **row}]


def _numbers(model: Any, X: Array, y: Array) -> dict[str, float]:
    law = model.predictive(X)
    distance = np.abs(2.0 * law.cdf(y) - 1.0)
    shares = {f"inside_{level}": float((100.0 * distance <= level).mean()) for level in LEVELS}
    return {**shares, "log_score": round(-float(law.log_density(y).mean()), 5)}


def _classes(model: Any, X: Array, y: Array) -> dict[str, float]:
    p = model.predict_proba(X)
    own = p[np.arange(len(y)), y]
    above = np.where(p > own[:, np.newaxis], p, 0.0).sum(axis=1)
    tied = np.where(p == own[:, np.newaxis], p, 0.0).sum(axis=1)  # equals come in any order
    shares = {
        f"inside_{level}": round(float(np.clip((level / 100.0 - above) / tied, 0.0, 1.0).mean()), 5)
        for level in LEVELS
    }
    excess = float(p.max(axis=1).mean() - (p.argmax(axis=1) == y).mean())
    return {**shares, "excess": round(excess, 5), "log_score": round(-float(np.log(own).mean()), 5)}
