"""Noise that is not alike everywhere: BaNK with four laws of it, beside boosting of quantiles.

*Data*: 300 rows of four functions that are known, sin 2x of the first input and noise of standard
deviation s: "absolute" (one input, s in proportion to 1 + 2 |x|), "other input" (four inputs,
log s a line in two that the function does not depend on), "even" (four inputs, s the same
everywhere), "tails" (the same with Student's t noise of 3 degrees of freedom); and "factor", the
exponential of "even". Household expenditure on food by income (`engel`, statsmodels; 165 of 235
rows) and `diabetes` (scikit-learn; 310 of 442). Other rows are predicted, 2000 at most.

*Ours*: `BaNKRegressor` with ``noise`` "auto", the default, which chooses one of the others:
"heteroscedastic", "normal", "student_t" and, of targets above 0, "lognormal".

*Rivals*: scikit-learn's gradient boosting, defaults: of the 5 % and 95 % quantile, which gives no
density; and of the mean, then of the logarithm of the squares that five folds leave, with a normal
law around the mean. Two splits.

*Scores*: mean of -log density (nats), share inside the 90 % interval, the least such share in
thirds of the rows, its mean width, interval score (width and 20 times what lies outside), root mean
squared error. Thirds are by s where it is known, else by the mean that normal noise predicts. A
quarter of an hour; use ``--cache``.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import cross_val_predict

from mercer import BaNKRegressor
from reproduce.cells import measured_tables

SEED = 0
NEEDS_PACKAGES = ("statsmodels",)
N_SEEDS, N_NEW, BLOCK = 2, 2000, 500
#: Name, rows.
DATA = (("absolute", 300), ("other input", 300), ("even", 300), ("tails", 300), ("factor", 300),
        ("engel", 165), ("diabetes", 310))  # fmt: skip
LAWS, OF_POSITIVE = ("auto", "heteroscedastic", "normal", "student_t"), "lognormal"
CHOSEN = "mercer, auto"
QUANTILES, TWO_STAGES = "boosting, quantiles", "boosting, mean and log variance"
KEYS = ("log_score", "coverage_90", "worst_third", "width_90", "interval_score", "rmse",
        "cpu_seconds")  # fmt: skip

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """Mean scores by table and method."""
    return summary(measured_tables("spectral-noise-v2", DATA, N_SEEDS, _cell))


def table_of(name: str, n_rows: int, seed: int) -> tuple[Array, Array, Array | None]:
    """Inputs, targets and what is known of the noise, of so many rows at most."""
    rng = np.random.default_rng([SEED, seed])
    if name in ("absolute", "other input", "even", "tails", "factor"):
        X = rng.uniform(-2.0, 2.0, (n_rows, 1 if name == "absolute" else 4))
        std = np.full(n_rows, 0.3)
        if name == "absolute":
            std = 0.2 * (1.0 + 2.0 * np.abs(X[:, 0]))
        elif name == "other input":
            std = 0.2 * np.exp(0.8 * X[:, 1] + 0.3 * X[:, 2])
        errors = rng.standard_t(3, n_rows) if name == "tails" else rng.standard_normal(n_rows)
        y = np.sin(2.0 * X[:, 0]) + std * errors
        return (X, np.exp(y), None) if name == "factor" else (X, y, std)
    if name == "engel":
        from statsmodels.datasets import engel

        frame = engel.load_pandas().data
        X, y = frame[["income"]].to_numpy(), frame["foodexp"].to_numpy()
    else:
        X, y = load_diabetes(return_X_y=True)
    chosen = rng.permutation(len(y))[:n_rows]
    return X[chosen], y[chosen].astype(np.float64), None


def _cell(name: str, n_rows: int, seed: int) -> list[dict[str, Any]]:
    X, y, std = table_of(name, n_rows + N_NEW, seed)
    known, new = slice(n_rows), slice(n_rows, None)
    found, order = [], None if std is None else std[new]
    for method, score in _methods(X[known], y[known], X[new], y[new], seed):
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = score()
        seconds = round(time.process_time() - begin, 2)
        found.append({"data": name, "n_rows": n_rows, "seed": seed, "method": method, **scores}
                     | {"cpu_seconds": seconds})  # fmt: skip
    if order is None:
        order = next(row["mean"] for row in found if row["method"] == "mercer, normal")
    return [_rounded(row, order) for row in found]


def _rounded(row: dict[str, Any], order: Array) -> dict[str, Any]:
    """Take the share of the worst third in place of what is known of each row."""
    thirds = np.array_split(np.argsort(order, kind="stable"), 3)
    is_inside = row.pop("is_inside")
    row["worst_third"] = min(float(is_inside[third].mean()) for third in thirds)
    del row["mean"]
    return {
        key: round(value, 5) if isinstance(value, float) else value for key, value in row.items()
    }


def _methods(X: Array, y: Array, Z: Array, new: Array, seed: int) -> Any:
    given = X, y, Z, new, seed
    for law in (*LAWS, OF_POSITIVE) if y.min() > 0.0 else LAWS:
        yield f"mercer, {law}", lambda law=law: _ours(law, *given)
    yield QUANTILES, lambda: _quantiles(*given)
    yield TWO_STAGES, lambda: _two_stages(*given)


def _scores(logs: Array | None, lower: Array, upper: Array, mean: Array, y: Array) -> Any:
    is_inside = (lower <= y) & (y <= upper)
    outside = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
    return {
        "log_score": None if logs is None else -float(logs.mean()),
        "coverage_90": float(is_inside.mean()),
        "width_90": float((upper - lower).mean()),
        "interval_score": float((upper - lower + 20.0 * outside).mean()),
        "rmse": float(np.sqrt(np.mean(np.square(mean - y)))),
        "is_inside": is_inside,
        "mean": mean,
    }


def _model(noise: str, seed: int) -> BaNKRegressor:
    return BaNKRegressor(noise=noise, random_state=seed, n_jobs=1, progress=False)


def _ours(noise: str, X: Array, y: Array, Z: Array, new: Array, seed: int) -> dict[str, Any]:
    model, parts = _model(noise, seed).fit(X, y), range(0, len(Z), BLOCK)
    laws = [model.predictive(Z[begin : begin + BLOCK]) for begin in parts]
    logs = [
        law.log_density(new[begin : begin + BLOCK]) for law, begin in zip(laws, parts, strict=True)
    ]
    lower, upper = np.concatenate([np.stack(law.interval(0.9)) for law in laws], axis=1)
    mean = np.concatenate([law.mean for law in laws])
    return _scores(np.concatenate(logs), lower, upper, mean, new) | {"noise": model.noise_}


def _quantiles(X: Array, y: Array, Z: Array, new: Array, seed: int) -> dict[str, Any]:
    def fitted(**given: Any) -> Array:
        return HistGradientBoostingRegressor(random_state=seed, **given).fit(X, y).predict(Z)

    lower, upper = (fitted(loss="quantile", quantile=q) for q in (0.05, 0.95))
    return _scores(None, lower, np.maximum(lower, upper), fitted(), new)


def _two_stages(X: Array, y: Array, Z: Array, new: Array, seed: int) -> dict[str, Any]:
    model = HistGradientBoostingRegressor(random_state=seed)
    squares = np.square(y - cross_val_predict(model, X, y, cv=5))
    mean = model.fit(X, y).predict(Z)
    model.fit(X, np.log(np.maximum(squares, 1e-6 * squares.mean())))
    level = np.mean(squares / np.exp(model.predict(X)))
    law = stats.norm(mean, np.sqrt(level * np.exp(model.predict(Z))))
    return _scores(law.logpdf(new), *law.interval(0.9), mean, new)


def summary(rows: list[dict[str, Any]]) -> dict[str, object]:
    """Mean over seeds, by table and method; None where a method has no such score.

    With the noise that was chosen for each seed.
    """
    cells = []
    for name, n_rows in dict.fromkeys((row["data"], row["n_rows"]) for row in rows):
        mine = [row for row in rows if (row["data"], row["n_rows"]) == (name, n_rows)]
        scores: dict[str, dict[str, float | None]] = {}
        for method in dict.fromkeys(row["method"] for row in mine):
            own = [row for row in mine if row["method"] == method]
            scores[method] = {
                key: None
                if own[0][key] is None
                else round(float(np.mean([row[key] for row in own])), 4)
                for key in KEYS
            }
        chosen = [row["noise"] for row in mine if row["method"] == CHOSEN]
        cells.append({"data": name, "n_rows": n_rows, "chosen": chosen, "scores": scores})
    return {"n_seeds": len({row["seed"] for row in rows}), "n_new": N_NEW, "cells": cells}
