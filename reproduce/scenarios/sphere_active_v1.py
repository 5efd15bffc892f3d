"""Active learning: `KernelGibbsClassifier.query` beside uncertainty sampling by scikit-activeml.

Two data sets, 24 repeats each: half moons with 5 % of the pool's labels flipped (tested on true
labels), and breast cancer. A pool of 200 rows, two labels of each class to start with, 30 queries
of one row; the score is the mean test error over the 31 fits (area under the learning curve).
Inputs are standardised on the pool. Learners of the rivals: logistic regression, scikit-learn's
GaussianProcessClassifier and a random forest, each with scikit-activeml's UncertaintySampling
(least confident) and with random queries; mercer's classifier has its own query, and ``SETTINGS``
for few labels: a smooth kernel plus a linear one, and a priori one wrong label in ten; it learns
the length scale at each fit, its nugget is fixed for the sake of time. Pool, start and random
queries are the same for all. The settings were chosen on the repeats of another seed.

Target: the mean area of mercer with its query at most that of uncertainty sampling with any
learner. Long: use ``--cache``. The rivals alone: ``python -c "from reproduce.scenarios import
sphere_active_v1 as s; s.rows_of(s.RIVALS)"`` with the environment variable of `reproduce.cells`.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from reproduce.cells import measured
from reproduce.workloads import flipped_moons_v1

SEED = 1
NEEDS_PACKAGES = ("scikit-activeml",)

DATA = ("flipped_moons", "breast_cancer")
N_REPEATS, N_POOL, N_EACH, N_QUERIES = 24, 200, 2, 30
OURS = (("mercer", "query"),)
SETTINGS: dict[str, Any] = {"kernel": "rbf + linear", "nugget": 0.01, "noise_prior": (1.0, 9.0)}
RIVALS = tuple(
    (learner, strategy)
    for learner in ("logistic", "gp", "forest")
    for strategy in ("uncertainty", "random")
)

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Rows = list[dict[str, Any]]
# Inputs and recorded labels of the pool, inputs and labels of the test set.
Task = tuple[Array, Labels, Array, Labels]


def run() -> dict[str, object]:
    """Mean areas by data, learner and strategy."""
    return summary(rows_of((*OURS, *RIVALS)))


def rows_of(contenders: tuple[tuple[str, str], ...]) -> Rows:
    """Measure all repeats of some contenders, (learner, strategy)."""
    cells = [
        (data, repeat, learner, strategy)
        for data in DATA
        for repeat in range(N_REPEATS)
        for learner, strategy in contenders
    ]
    with threadpool_limits(limits=1):
        return measured("sphere-active-v1", cells, _cell)


def summary(rows: Rows) -> dict[str, object]:
    """Means and standard errors, and differences from mercer with its own query."""
    curves = {
        (row["data"], row["learner"], row["strategy"], row["repeat"]): np.array(row["errors"])
        for row in rows
    }
    table = []
    for data, learner, strategy in dict.fromkeys(key[:3] for key in curves):
        own = np.array([curves[data, learner, strategy, k] for k in range(N_REPEATS)])
        area = own.mean(axis=1)
        line = {
            "data": data,
            "learner": learner,
            "strategy": strategy,
            "area": round(float(area.mean()), 4),
            "standard_error": _standard_error(area),
            "first_error": round(float(own[:, 0].mean()), 4),
            "last_error": round(float(own[:, -1].mean()), 4),
        }
        if (data, *OURS[0], 0) in curves:
            ours = np.array([curves[(data, *OURS[0], k)].mean() for k in range(N_REPEATS)])
            line["above_ours"] = round(float((area - ours).mean()), 4)
            line["above_ours_standard_error"] = _standard_error(area - ours)
        table.append(line)
    return {
        "n_repeats": N_REPEATS, "n_pool": N_POOL, "n_queries": N_QUERIES, "settings": SETTINGS,
        "rows": table,
    }  # fmt: skip


def _standard_error(values: Array) -> float:
    return round(float(values.std(ddof=1) / np.sqrt(len(values))), 4)


def _cell(data: str, repeat: int, learner: str, strategy: str) -> Rows:
    rng = np.random.default_rng([SEED, DATA.index(data), repeat])
    task = _task(data, rng)
    labelled = _start(task[1], rng)
    order = rng.permutation(N_POOL)  # of the random queries
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        errors = _curve(task, labelled, learner, strategy, order, repeat)
    row = {"data": data, "repeat": repeat, "learner": learner, "strategy": strategy}
    return [{**row, "errors": [round(error, 5) for error in errors]}]


def _task(data: str, rng: np.random.Generator) -> Task:
    if data == "flipped_moons":
        X, true, recorded = flipped_moons_v1(N_POOL + 1000, 0.05, rng)
    else:
        X, true = load_breast_cancer(return_X_y=True)
        order = rng.permutation(len(true))
        X, true = X[order], true[order]
        recorded = true
    scaler = StandardScaler().fit(X[:N_POOL])
    X = scaler.transform(X)
    return X[:N_POOL], recorded[:N_POOL], X[N_POOL:], true[N_POOL:]


def _start(y: Labels, rng: np.random.Generator) -> list[int]:
    picked = [rng.choice(np.flatnonzero(y == c), N_EACH, replace=False) for c in (0, 1)]
    return [int(row) for row in np.concatenate(picked)]


def _curve(
    task: Task, labelled: list[int], learner: str, strategy: str, order: Labels, seed: int
) -> list[float]:
    """Test error after each fit."""
    from skactiveml.classifier import SklearnClassifier

    X, y, X_test, y_test = task
    known, errors = np.full(len(y), np.nan), []
    known[labelled] = y[labelled]
    for n_asked in range(N_QUERIES + 1):
        model = SklearnClassifier(_MODELS[learner](seed), classes=[0, 1], random_state=seed)
        model.fit(X, known)  # on the rows that have labels
        if not model.is_fitted_:
            raise RuntimeError(f"{learner} could not be fitted")
        errors.append(float(np.mean(model.predict(X_test) != y_test)))
        if n_asked < N_QUERIES:
            row = _next_row(X, known, model, strategy, order, seed)
            known[row] = y[row]
    return errors


def _next_row(X: Array, known: Array, model: Any, strategy: str, order: Labels, seed: int) -> int:
    """Position in the pool of the row to label next."""
    from skactiveml.pool import UncertaintySampling

    unlabelled = np.flatnonzero(np.isnan(known))
    if strategy == "query":
        return int(unlabelled[_query(model.estimator_, X[unlabelled])])
    if strategy == "random":
        return int(order[np.isnan(known[order])][0])
    sampling = UncertaintySampling(method="least_confident", random_state=seed)
    return int(sampling.query(X, known, clf=model, fit_clf=False)[0])


# ------------------------------------------------------------------------------------- mercer


def _mercer(seed: int) -> Any:
    from mercer.sphere.estimator import KernelGibbsClassifier

    return KernelGibbsClassifier(
        **SETTINGS, standardize=False, n_draws=100, n_warmup=50, n_chains=1,
        random_state=seed, progress=False, n_jobs=1,
    )  # fmt: skip


def _query(model: Any, X_pool: Array) -> int:
    """Position in the pool of the row that mercer asks for."""
    return int(model.query(X_pool, 1)[0])


# ------------------------------------------------------------------------------------- rivals


def _logistic(seed: int) -> Any:
    return LogisticRegression(max_iter=1000)


def _gp(seed: int) -> Any:
    kernel = ConstantKernel(1.0, (1e-3, 1e4)) * RBF(3.0, (1e-2, 1e3))
    return GaussianProcessClassifier(kernel, random_state=seed)


def _forest(seed: int) -> Any:
    return RandomForestClassifier(100, random_state=seed, n_jobs=1)


_MODELS = {"mercer": _mercer, "logistic": _logistic, "gp": _gp, "forest": _forest}
