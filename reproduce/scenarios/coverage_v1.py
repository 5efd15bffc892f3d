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

A cell is one set of one estimator; shares are means over sets, with the standard error of the mean.
Within 3 points is the target. All 200 sets of each are days on one core: `--seconds` says how long
to go on, set by set, over all sizes; what was measured before (`--cache`) is kept.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import mercer
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

Array = NDArray[np.float64]
Rows = list[dict[str, Any]]


def run() -> dict[str, object]:
    """Measure as many sets as there is time for."""
    seconds = os.environ.get(SECONDS)
    return summary(rows_of(REGRESSORS + CLASSIFIERS, N_SETS, float(seconds) if seconds else None))


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
    """Shares by estimator, family, n and d, and which are further from their level than 3 points.

    ``n_missed`` counts those further than chance explains: by 3 points and two standard errors.
    """
    groups: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        key = tuple(row[name] for name in ("estimator", "family", "n", "d"))
        groups.setdefault(key, []).append(row)
    cells = [
        {**dict(zip(("estimator", "family", "n", "d"), key, strict=True)), **_means(own)}
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
