"""Numbers that were made wrong where noise is a factor, and who finds them.

200 rows of four tables whose targets are above 0: "factor", the exponential of a wave in one of
four inputs and of normal noise with a standard deviation of .3; "wide factor", of .8; and boston
and concrete, which nobody made. A tenth of the targets are made wrong as in `audit_numbers_v1`, of
their logarithms: "shifted", by a factor, or "swapped", as the value of another row.

*Ours*: P(wrong) of `GPRegressor` with ``noise="contaminated_lognormal"``, else its defaults; beside
it that of `BaNKRegressor`: neither ours of a cell nor a rival.

*Rivals*: the same of the values themselves, ``noise="contaminated"``; and of the logarithms what
the rivals there make of them: z-scores, residuals out of ten folds by a Gaussian process, gradient
boosting and a random forest, and cleanlab's scores with the last two. The best rival of a cell is
the best of these seven *in that cell*, in hindsight.

``share_of_values`` is the share that the audit of values thinks wrong, where a tenth is.

Target: in no cell below the best rival by more than two standard errors. A quarter of an hour; use
``--cache``; needs ``MERCER_DATA``.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score
from threadpoolctl import threadpool_limits

from mercer import BaNKRegressor, GPRegressor
from reproduce.cells import measured
from reproduce.scenarios import audit_numbers_v1 as of_values
from reproduce.scenarios.gp_kernels_v3 import table_of

SEED = 0
NEEDS_DATA = True
NEEDS_PACKAGES = ("cleanlab",)

DATA = {"factor": 0.3, "wide factor": 0.8, "boston": None, "concrete": None}
VALUES = "mercer, of values"

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """Mean average precision by table, kind of error and method."""
    return summary(rows_of(tuple(DATA), of_values.N_SEEDS, of_values.N_ROWS))


def rows_of(tables: tuple[str, ...], n_seeds: int, n_rows: int) -> list[dict[str, Any]]:
    """Measure all methods: a row for each (table, kind, seed, method)."""
    kinds = of_values.KINDS
    cells = [
        (name, kind, seed, n_rows) for seed in range(n_seeds) for name in tables for kind in kinds
    ]
    with threadpool_limits(limits=1):
        return measured("audit-factors-v1", cells, _cell)


def summary(rows: list[dict[str, Any]]) -> dict[str, object]:
    """As of the values, and the share of these that is thought wrong."""
    found: dict[str, Any] = of_values.summary(rows)
    for cell in found["cells"]:
        own = [row for row in rows if (row["data"], row["kind"]) == (cell["data"], cell["kind"])]
        shares = [row["share"] for row in own if row["method"] == VALUES]
        cell["share_of_values"] = round(float(np.mean(shares)), 4)
    return found


def _table(name: str, n_rows: int, seed: int) -> tuple[Array, Array]:
    rng, std = np.random.default_rng([SEED, seed, 1]), DATA[name]
    if std is None:
        X, y = table_of(name, 10**6)
        chosen = rng.permutation(len(y))[:n_rows]
        return X[chosen], y[chosen]
    X = rng.uniform(-2.0, 2.0, (n_rows, 4))
    return X, np.exp(np.sin(2.0 * X[:, 0]) + std * rng.standard_normal(n_rows))


def _cell(name: str, kind: str, seed: int, n_rows: int) -> list[dict[str, Any]]:
    X, y = _table(name, n_rows, seed)
    logs, wrong = of_values.spoiled(np.log(y), kind, seed)
    found = []
    for method, score in _scores(X, logs, seed):
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = score()
        is_probability = method in (of_values.OURS, VALUES)
        found.append(
            {
                "data": name,
                "kind": kind,
                "seed": seed,
                "method": method,
                "average_precision": round(float(average_precision_score(wrong, scores)), 5),
                "share": round(float(scores.mean()), 5) if is_probability else None,
                "cpu_seconds": round(time.process_time() - begin, 2),
            }
        )
    return found


def _scores(X: Array, logs: Array, seed: int) -> Iterator[tuple[str, Callable[[], Array]]]:
    def errors(kind: Any, noise: str) -> Array:
        model = kind(noise=noise, random_state=seed, n_jobs=1, progress=False)
        return np.asarray(model.fit(X, np.exp(logs)).target_error_proba_)

    yield of_values.OURS, lambda: errors(GPRegressor, "contaminated_lognormal")
    yield of_values.OF_MANY_ROWS, lambda: errors(BaNKRegressor, "contaminated_lognormal")
    yield VALUES, lambda: errors(GPRegressor, "contaminated")
    ours = (of_values.OURS, of_values.OF_MANY_ROWS)
    yield from (each for each in of_values._scores(X, logs, seed) if each[0] not in ours)
