"""One scale for all columns by evidence (``standardize="auto"``) beside one for each ("std").

*Data*: tables of sixteen columns or more, of which all models ask. "digits": 64 pixels, as ten
classes, as odd and even, 3 beside 8, and as numbers; "toms": 96 heavy-tailed counts; "spectra": 60
wavelengths of four peaks whose heights vary, simulated, a number, and whether it is above 0. Where
columns have units of their own nothing should change: "breast_cancer", "diabetic", "naval". Of
fewer columns, of which models without weights of the inputs ask, classifiers of `sphere` and
`basis`: "iris", "shuttle", "fgl", "wine", "pima". 2000 other rows at most are predicted, and two
splits made.

*Models*: all by default, but Gaussian processes at the maximum.

*Scores*: -log probability of a label, or -log density of a number (nats), means over rows and
splits; share of wrong labels, or squared error over the variance of the targets. Forty minutes; use
``--cache``; needs ``MERCER_DATA``.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import mercer
from mercer.data.named import TARGET, load_named
from reproduce.cells import held_out, measured

SEED = 0
NEEDS_DATA = True
N_SEEDS, N_NEW = 2, 2000
#: Name of a table, rows to learn from, whether targets are classes.
DATA = (
    ("digits", 300, True), ("digits, odd", 300, True), ("digits, 3 or 8", 120, True),
    ("digits, numbers", 300, False), ("toms", 400, False), ("spectra", 150, False),
    ("spectra, above 0", 150, True), ("breast_cancer", 300, True), ("diabetic", 400, True),
    ("naval", 300, False), ("iris", 100, True), ("shuttle", 400, True), ("fgl", 150, True),
    ("wine", 120, True), ("pima", 300, True),
)  # fmt: skip
#: Names of the estimators, for classes and for numbers.
MODELS = {
    "gp": ("GPClassifier", "GPRegressor"),
    "sphere": ("KernelGibbsClassifier", None),
    "spectral": ("BaNKClassifier", "BaNKRegressor"),
    "basis": ("SequentialKernelClassifier", "SequentialKernelRegressor"),
}
HOW = ("std", "auto")

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """Means over splits by table and model."""
    cells = [
        (name, n, is_class, model, seed)
        for name, n, is_class in DATA
        for model, kinds in MODELS.items()
        for seed in range(N_SEEDS)
        if is_class or kinds[1] is not None
    ]
    with threadpool_limits(limits=1):
        return summary(measured("one-scale-v1", cells, cell))


def table_of(name: str, seed: int) -> tuple[Array, NDArray[Any]]:
    """Inputs and targets in an order drawn at random."""
    rng = np.random.default_rng([SEED, seed])
    base, _, what = name.partition(", ")
    if base == "spectra":
        X, y = _spectra(rng, 2500)
        return X, (y > 0.0 if what else y)
    frame = load_named(base)
    X = np.column_stack([c.values for c in frame.columns if c.name != TARGET]).astype(np.float64)
    y = np.asarray(frame.column(TARGET).values)
    if what == "3 or 8":
        is_in = np.isin(y, [3, 8])
        X, y = X[is_in], y[is_in]
    y = y.astype(np.float64) if what == "numbers" else y
    y = y.astype(np.int64) % 2 if what == "odd" else y
    order = rng.permutation(len(y))
    return X[order], y[order]


def _spectra(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    c, where = rng.standard_normal((n, 4)), np.linspace(0.0, 1.0, 60)
    peaks = ((0.2, 0.05, 1.0), (0.45, 0.1, 2.0), (0.7, 0.03, 0.5), (0.85, 0.15, 1.0))
    shapes = [h * np.exp(-0.5 * ((where - at) / width) ** 2) for at, width, h in peaks]
    X = np.exp(0.3 * c) @ shapes + 0.03 * rng.standard_normal((n, 60))
    return X, c[:, 0] * np.exp(0.3 * c[:, 1]) + 0.1 * rng.standard_normal(n)


def cell(
    name: str, n: int, is_class: bool, model: str, seed: int, **own: Any
) -> list[dict[str, Any]]:
    """Fit a model to a split in both ways."""
    X, y = table_of(name, seed)
    X, X_new, y, y_new = X[:n], X[n : n + N_NEW], y[:n], y[n : n + N_NEW]
    if is_class:  # of labels that are seen
        is_seen = np.isin(y_new, y)
        X_new, y_new = X_new[is_seen], y_new[is_seen]
    kind = getattr(mercer, str(MODELS[model][0 if is_class else 1]))
    common = {"random_state": seed, "progress": False, **own}
    common |= {"inference": "map"} if model == "gp" else {}
    rows = []
    for how in HOW:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            begin = time.process_time()
            fitted = kind(standardize=how, **common).fit(X, y)
            seconds = time.process_time() - begin
            scores, error = held_out(fitted, X_new, y_new)
        row = {"data": name, "n_rows": n, "model": model, "how": how, "seed": seed}
        row |= {"seconds": seconds, "log_score": float(scores.mean()), "error": error}
        rows.append(row | {"is_one": fitted.standardizer_.has_one_scale})
    return rows


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over splits, both ways side by side."""
    found = []
    for name, n, _ in DATA:
        for model in MODELS:
            of_model = [row for row in rows if (row["data"], row["model"]) == (name, model)]
            if not of_model:
                continue
            line: dict[str, Any] = {"data": name, "n_rows": n, "model": model}
            for how in HOW:
                own = [row for row in of_model if row["how"] == how]
                for key in ("seconds", "log_score", "error", "is_one"):
                    line[f"{how}_{key}"] = float(f"{np.mean([row[key] for row in own]):.4g}")
            found.append(line)
    return {"rows": found}
