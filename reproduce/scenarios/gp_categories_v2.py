"""The default kernel with categories beside the same without, RBF and gradient boosting.

Tables with columns of text, ten splits each, 150 rows to learn from and up to 500 others to
judge: "shifts", a function of two numbers shifted by six cities and three kinds; "curves", a curve
of its own for each of five machines; hourly bicycle hires (logarithm of the count), with season,
weekday, weather and working day as text; crabs, whose sex is the label and whose colour is text.
"auto, no categories" gets the same matrix as an array, so that it compares the kernels of numbers.
``inference="map"``, so that nothing but the kernel differs. Log scores in nats, lower is better,
differences with the standard error over splits, which rows of one split do not tell: all are
predicted from the same 150. Errors are root mean squares, or shares of wrong labels. Two CPU
minutes; needs ``MERCER_DATA``.

Target: on no table behind "auto, no categories" by more than a standard error.
"""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mercer import GPClassifier, GPRegressor, TableEncoder
from mercer.estimation.inspection import losses_of
from mercer.stacking.members import BoostingClassifier, BoostingRegressor
from reproduce.cells import less, measured

SEED = 0
NEEDS_DATA = True
TABLES = ("shifts", "curves", "bike", "crabs")
CLASSES = ("crabs",)
SPLITS = tuple(range(10))
N_LEARNED, N_JUDGED = 150, 500
AUTO = "auto"
METHODS = (AUTO, "auto, no categories", "rbf", "gradient boosting")

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """Measure every method on every table."""
    return summary(rows_of(TABLES, SPLITS, N_LEARNED, N_JUDGED))


def rows_of(
    tables: tuple[str, ...], splits: tuple[int, ...], n_learned: int, n_judged: int
) -> list[dict[str, Any]]:
    """Score all methods: a row for each table and split."""
    cells = [(table, split, n_learned, n_judged) for table in tables for split in splits]
    return measured("gp-categories-v2", cells, _cell)


def table_of(name: str) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Inputs, some of them text, and targets."""
    rng, n = np.random.default_rng(SEED), N_LEARNED + N_JUDGED
    if name == "shifts":
        X = pd.DataFrame(
            {
                "age": rng.uniform(20.0, 70.0, n),
                "size": rng.standard_normal(n),
                "city": rng.choice(["Bonn", "Kiel", "Lima", "Oslo", "Rome", "Suez"], n),
                "kind": rng.choice(["flat", "house", "loft"], n),
            }
        )
        shift = {"Bonn": 0.0, "Kiel": -1.5, "Lima": 0.5, "Oslo": 1.5, "Rome": -1.0, "Suez": 1.0}
        kind = {"flat": 0.0, "house": 1.0, "loft": -0.7}
        f = np.sin(X["age"] / 8.0) + 0.3 * X["size"] ** 2 + X["city"].map(shift)
        return X, (f + X["kind"].map(kind) + 0.3 * rng.standard_normal(n)).to_numpy()
    if name == "curves":
        machine, load = rng.integers(5, size=n), rng.uniform(-2.0, 2.0, n)
        f = np.sin(2.0 * load + 0.6 * machine) + 0.2 * machine * load
        X = pd.DataFrame({"load": load, "heat": rng.standard_normal(n)})
        X["machine"] = np.array(list("ABCDE"))[machine]
        return X, f + 0.2 * rng.standard_normal(n)
    folder = Path(os.environ["MERCER_DATA"])
    if name == "crabs":
        X = pd.read_csv(folder / "crabs.csv")
        X["colour"] = X["colour"].map({0: "blue", 1: "orange"})
        return X.drop(columns="target"), X["target"].to_numpy()
    X = pd.read_csv(folder / "bike.csv.gz")
    y = np.log1p(X.pop("target").to_numpy())
    for name in ("season", "weekday", "weathersit", "workingday"):
        X[name] = "no. " + X[name].astype(int).astype(str)
    return X.drop(columns=["atemp", "holiday", "mnth"]), y


def _cell(name: str, split: int, n_learned: int, n_judged: int) -> list[dict[str, Any]]:
    X, y = table_of(name)
    order = np.random.default_rng(split).permutation(len(y))
    train, test = order[:n_learned], order[n_learned : n_learned + n_judged]
    encoder = TableEncoder().fit(X.iloc[train])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of levels that training has not
        A, B = encoder.transform(X.iloc[train]), encoder.transform(X.iloc[test])
    is_class = name in CLASSES
    codes = np.searchsorted(np.unique(y[train]), y[test]) if is_class else y[test]
    scores, errors, seconds, chosen = {}, {}, {}, ""
    for method in METHODS:
        begin = time.process_time()
        rows, new = (X.iloc[train], X.iloc[test]) if method == AUTO else (A, B)
        model: Any
        if method == "gradient boosting":
            boosting = BoostingClassifier if is_class else BoostingRegressor
            model = boosting(random_state=SEED)
        else:
            kernel = "auto" if method.startswith("auto") else method
            of_kind = GPClassifier if is_class else GPRegressor
            model = of_kind(kernel=kernel, inference="map", random_state=SEED)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(rows, y[train])
            own, wrong = losses_of(model, new, codes)
        seconds[method] = round(time.process_time() - begin, 2)
        scores[method] = np.round(own, 5).tolist()
        errors[method] = round(float(np.mean(wrong)), 6)
        if method == AUTO:
            chosen = ", ".join(f"{each} {w:.2f}" for each, w in model.kernel_weights_.items())
    return [
        {
            "data": name,
            "split": split,
            "n_inputs": A.shape[1],
            "chosen": chosen,
            "seconds": seconds,
            "errors": errors,
            "scores": scores,
        }
    ]


def summary(rows: list[dict[str, Any]]) -> dict[str, object]:
    """A row for each table, and where categories are behind by over a standard error."""
    tables = list[dict[str, Any]]()
    for name in dict.fromkeys(row["data"] for row in rows):
        own = [row for row in rows if row["data"] == name]
        scores = {m: np.concatenate([np.array(row["scores"][m]) for row in own]) for m in METHODS}
        error = {m: float(np.mean([row["errors"][m] for row in own])) for m in METHODS}
        if name not in CLASSES:
            error = {m: float(np.sqrt(value)) for m, value in error.items()}
        gaps = {m: less(own, AUTO, m) for m in METHODS[1:]}
        tables.append(
            {
                "data": name,
                "n_judged": len(scores[AUTO]),
                "n_inputs": own[0]["n_inputs"],
                "log_score": {m: round(float(s.mean()), 4) for m, s in scores.items()},
                "error": {m: round(value, 4) for m, value in error.items()},
                "gap": {m: gap for m, (gap, _) in gaps.items()},
                "gap_error": {m: error for m, (_, error) in gaps.items()},
                "seconds": {
                    m: round(float(np.mean([row["seconds"][m] for row in own])), 2) for m in METHODS
                },
                "chosen": [row["chosen"] for row in own],
            }
        )
    rival = METHODS[1]
    behind = [row["data"] for row in tables if row["gap"][rival] > row["gap_error"][rival]]
    mean = {m: round(float(np.mean([row["gap"][m] for row in tables])), 4) for m in METHODS[1:]}
    return {"rows": tables, "mean_gap": mean, "behind_numbers_by_over_an_error": behind}
