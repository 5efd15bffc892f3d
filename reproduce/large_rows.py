"""Rows in Parquet files that do not fit into memory, and what is fitted to them.

Each ``fit_...`` runs in a process of its own, reads the rows by `mercer.data.open`, and returns
what a record needs. It is given the folder and the fields of `LargeSizes`, as JSON holds them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mercer.data
from mercer.atomic import replacing
from reproduce.workloads import friedman_rows_v1

__all__ = ["BYTES_IN_ROW", "LargeSizes", "fit_features", "fit_mercer", "fit_trees", "write_rows"]

Array = NDArray[np.float64]

_N_INPUTS = 20
BYTES_IN_ROW = 4 * (_N_INPUTS + 1)
_TEST_PART = 1_000_000  # the number of no file of training rows
_BLOCK = 16_384


@dataclass(frozen=True)
class LargeSizes:
    """How large everything is."""

    n_rows: int = 50_000_000
    rows_in_file: int = 1_000_000
    n_test: int = 100_000
    kernel_rows: int = 50_000
    full_draws: int = 4
    n_frequencies: int = 384
    n_draws: int = 100
    n_warmup: int = 60
    tree_rows: int = 5_000_000
    n_trees: int = 500


def write_rows(folder: Path, sizes: LargeSizes) -> None:
    """Write the files that are not there yet, each whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    (folder / "rows").mkdir(parents=True, exist_ok=True)
    for part, begin in enumerate(range(0, sizes.n_rows, sizes.rows_in_file)):
        path = folder / "rows" / f"{part:05d}.parquet"
        if path.exists():
            continue
        X, y, _ = friedman_rows_v1(min(sizes.rows_in_file, sizes.n_rows - begin), part)
        columns = {f"x{k}": X[:, k] for k in range(_N_INPUTS)} | {"y": y.astype(np.float32)}
        with replacing(path) as file:
            pq.write_table(pa.table(columns), file, row_group_size=2**17, use_dictionary=False)


def fit_mercer(folder: str, fields: list[Any]) -> dict[str, Any]:
    """Fit `BaNKRegressor` with two processes; its checkpoint is in the folder."""
    from mercer import BaNKRegressor

    sizes, begin = LargeSizes(*fields), time.perf_counter()
    model = BaNKRegressor(
        n_frequencies=sizes.n_frequencies,
        n_draws=sizes.n_draws,
        n_warmup=sizes.n_warmup,
        kernel_rows=sizes.kernel_rows,
        full_draws=sizes.full_draws,
        random_state=0,
        n_jobs=2,
        progress=False,
        checkpoint=Path(folder) / "checkpoint",
    )
    model.fit(mercer.data.open(Path(folder) / "rows"), "y")
    minutes = (time.perf_counter() - begin) / 60.0
    X, y, _ = friedman_rows_v1(sizes.n_test, _TEST_PART)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the rows to predict have no column names
        lower, upper = model.predict_interval(X.astype(np.float64))
        errors = _errors(model.predict, sizes)
    return {
        "n_rows": sizes.n_rows,
        "minutes": minutes,
        **errors,
        "coverage_90": round(float(np.mean((lower <= y) & (y <= upper))), 4),
        "max_rhat": model.diagnostics_.max_rhat,
        "notes": [note for note in model.notes_ if folder not in note],
    }


def fit_features(folder: str, fields: list[Any]) -> dict[str, Any]:
    """Ridge regression on `RBFSampler`'s features, by normal equations over all rows."""
    sizes, begin = LargeSizes(*fields), time.perf_counter()
    source = mercer.data.open(Path(folder) / "rows")
    some = source.take(np.arange(min(sizes.kernel_rows, sizes.n_rows)))
    scale = _Scale(some.mean(axis=0), some.std(axis=0))
    features, penalty = _selected(scale.of(some), sizes)
    equations = _equations(features, (scale.of(block) for block in source.blocks(_BLOCK)))
    coef = _solved(equations, penalty)
    minutes = (time.perf_counter() - begin) / 60.0

    def predict(X: Array) -> Array:
        Z = features.transform((X - scale.mean[:-1]) / scale.std[:-1])
        return (coef[0] + Z @ coef[1:]) * scale.std[-1] + scale.mean[-1]

    setting = {"gamma": float(f"{features.gamma:.3g}"), "penalty": penalty}
    return {"n_rows": sizes.n_rows, "minutes": minutes, **_errors(predict, sizes), **setting}


def fit_trees(folder: str, fields: list[Any]) -> dict[str, Any]:
    """Gradient boosting of histograms on as many rows as memory holds."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    sizes, begin = LargeSizes(*fields), time.perf_counter()
    n = min(sizes.tree_rows, sizes.n_rows)
    rows = mercer.data.open(Path(folder) / "rows").take(np.arange(n))
    model = HistGradientBoostingRegressor(
        max_iter=sizes.n_trees, early_stopping=False, random_state=0
    )
    model.fit(rows[:, :-1], rows[:, -1])
    minutes = (time.perf_counter() - begin) / 60.0
    return {"n_rows": n, "minutes": minutes, **_errors(model.predict, sizes)}


def _errors(predict: Callable[[Array], Array], sizes: LargeSizes) -> dict[str, float]:
    """Of fresh rows, standardised: of the targets, and of the function without the noise."""
    X, y, f = friedman_rows_v1(sizes.n_test, _TEST_PART)
    mean = predict(X.astype(np.float64))
    return {
        "standardized_mse": float(f"{np.mean((mean - y) ** 2) / y.var():.4g}"),
        "standardized_mse_of_function": float(f"{np.mean((mean - f) ** 2) / f.var():.4g}"),
    }


@dataclass(frozen=True, eq=False)
class _Scale:
    """Mean and standard deviation of inputs and target."""

    mean: Array
    std: Array

    def of(self, rows: Array) -> Array:
        return (rows - self.mean) / self.std


def _selected(rows: Array, sizes: LargeSizes) -> tuple[Any, float]:
    """Length scale and penalty that do best on a fifth of the rows, learned on the others."""
    from sklearn.kernel_approximation import RBFSampler

    from mercer.baselines.base import FACTORS, PENALTIES, typical_distance
    from mercer.baselines.paths import ridge_path

    n = 4 * len(rows) // 5
    check, distance = (
        rows[n:],
        typical_distance(np.random.default_rng(0), rows[:, :-1], "euclidean"),
    )
    best = (np.inf, None, 0.0)
    for factor in FACTORS:
        gamma = 0.5 / (factor * distance) ** 2
        features = RBFSampler(gamma=gamma, n_components=2 * sizes.n_frequencies, random_state=0)
        features.fit(rows[:1, :-1])
        coef = ridge_path(_equations(features, [rows[:n]]), PENALTIES)
        fitted = coef[0] + features.transform(check[:, :-1]) @ coef[1:]
        errors = np.mean((fitted - check[:, -1:]) ** 2, axis=0)
        errors[~np.isfinite(errors)] = np.inf
        k = int(np.argmin(errors))
        if errors[k] < best[0]:
            best = (float(errors[k]), features, PENALTIES[k])
    return best[1], best[2]


def _equations(features: Any, blocks: Any) -> Any:
    """Sum the normal equations of an intercept and the features over blocks of [X, y]."""
    from mercer.baselines.paths import NormalEquations

    m = 1 + features.n_components
    gram, moments = np.zeros((m, m)), np.zeros(m)
    for block in blocks:
        Z = np.hstack([np.ones((len(block), 1)), features.transform(block[:, :-1])])
        gram += Z.T @ Z
        moments += Z.T @ block[:, -1]
    return NormalEquations(gram, moments)


def _solved(equations: Any, penalty: float) -> Array:
    """Solve at that penalty, or the next larger one at which the matrix is not singular."""
    from mercer.baselines.base import PENALTIES
    from mercer.baselines.paths import ridge_path

    path = ridge_path(equations, [larger for larger in PENALTIES if larger >= penalty])
    return path[:, np.isfinite(path[0])][:, 0]
