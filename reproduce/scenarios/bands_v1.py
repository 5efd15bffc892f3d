"""Bands of functions and of contributions, and intervals at levels of text that are new.

**Functions.** Three standard normal inputs, 40 rows; a function drawn from a smooth process (length
scale 2, variance 1; of classes the probability is .05 + .9 Phi(f / sqrt(.4))), noise of standard
deviation .3. 90 % bands of `explain` are of drawn functions: what share holds the value of the
function at ten new rows, and what share the Shapley values of four, which all sets of inputs over
all training rows give exactly?

**Levels.** y = effect of a level + sin 2x + noise of .3, 150 rows of 4 or 9 levels whose effects
are standard normal; 90 % intervals of targets of known levels, and of forty levels that are new,
whose effects are from the same law. A model that knows no level can do no better than an interval
as wide as the effects.

Means over sets with standard errors. A quarter of an hour; use ``--cache``.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from threadpoolctl import threadpool_limits

import mercer
from mercer.estimation.inspection import drawn
from reproduce.cells import PER_CENT, means, measured

SEED = 0
REGRESSORS = ("GPRegressor", "BaNKRegressor", "SequentialKernelRegressor")
CLASSIFIERS = (
    "GPClassifier",
    "BaNKClassifier",
    "SequentialKernelClassifier",
    "KernelGibbsClassifier",
)
N_SETS, N_ROWS, N_NEW, N_EXPLAINED = 40, 40, 10, 4
N_LEVEL_SETS, LEVELS, N_LEVEL_ROWS, N_NEW_LEVELS = 12, (4, 9), 150, 40
N_WAVES = 400  # of a function that is drawn

Array = NDArray[np.float64]
Rows = list[dict[str, Any]]


def run() -> dict[str, object]:
    """Shares by estimator."""
    functions = [(name, k) for k in range(N_SETS) for name in REGRESSORS + CLASSIFIERS]
    levels = [(name, n, k) for k in range(N_LEVEL_SETS) for n in LEVELS for name in REGRESSORS]
    return summary(
        measured("bands-v1", functions, function_cell),
        measured("bands-levels-v1", levels, level_cell),
    )


def summary(functions: Rows, levels: Rows) -> dict[str, object]:
    """Means in per cent, with standard errors."""
    return {
        "functions": means(functions, ("estimator",), ("function", "contributions"), **PER_CENT),
        "levels": means(levels, ("estimator", "n_levels"), ("known", "new"), **PER_CENT),
    }


def function_cell(name: str, k: int) -> Rows:
    """Shares of one set of one estimator."""
    rng = np.random.default_rng([SEED, k])
    f, is_class = _function(rng), name in CLASSIFIERS
    X, Z = rng.standard_normal((N_ROWS, 3)), rng.standard_normal((N_NEW, 3))
    if is_class:
        truth = lambda rows: 0.05 + 0.9 * norm.cdf(f(rows) / math.sqrt(0.4))  # noqa: E731
        y = (rng.random(N_ROWS) < truth(X)).astype(int)
        y[:2] = 0, 1  # both classes are needed
    else:
        truth, y = f, f(X) + 0.3 * rng.standard_normal(N_ROWS)
    model = _fitted(name, X, y, k)
    (values,) = drawn(model, [Z], np.random.default_rng([SEED, k, 1]), 1000)
    lower, upper = np.quantile(values[:, -1], (0.05, 0.95), axis=0)
    said = model.explain(Z[:N_EXPLAINED], background=X)
    exact = np.array([shapley(truth, z, X) for z in Z[:N_EXPLAINED]])
    return [{
        "estimator": name,
        "set": k,
        "function": float(((lower <= truth(Z)) & (truth(Z) <= upper)).mean()),
        "contributions": float(((said.lower <= exact) & (exact <= said.upper)).mean()),
    }]  # fmt: skip


def level_cell(name: str, n_levels: int, k: int) -> Rows:
    """Shares of one set of one regressor."""
    import pandas as pd

    rng = np.random.default_rng([SEED, n_levels, k])
    effects = rng.standard_normal(n_levels + N_NEW_LEVELS)

    def table(level: NDArray[np.int64]) -> tuple[Any, Array]:
        x = rng.standard_normal(len(level))
        y = effects[level] + np.sin(2.0 * x) + 0.3 * rng.standard_normal(len(level))
        return pd.DataFrame({"x": x, "city": [f"c{each}" for each in level]}), y

    model = _fitted(name, *table(rng.integers(n_levels, size=N_LEVEL_ROWS)), k)
    row: dict[str, Any] = {"estimator": name, "n_levels": n_levels, "set": k}
    for which, level in (
        ("known", rng.integers(n_levels, size=N_NEW_LEVELS)),
        ("new", np.arange(n_levels, n_levels + N_NEW_LEVELS)),
    ):
        X, y = table(level)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            lower, upper = model.predict_interval(X, 0.9)
        row[which] = float(((lower <= y) & (y <= upper)).mean())
    return [row]


def shapley(f: Callable[[Array], Array], x: Array, background: Array) -> Array:
    """Shapley values (d,) of f at x, over all sets of inputs and all rows of the background."""
    d = len(x)
    values = {}
    for known in itertools.product((False, True), repeat=d):
        rows = np.where(known, x, background)
        values[known] = float(f(rows).mean())
    out = np.zeros(d)
    for known in values:
        for j in np.flatnonzero(known):
            without = tuple(has and i != j for i, has in enumerate(known))
            share = 1.0 / (d * math.comb(d - 1, sum(known) - 1))
            out[j] += share * (values[known] - values[without])
    return out


def _function(rng: np.random.Generator) -> Callable[[Array], Array]:
    W, phases = rng.standard_normal((N_WAVES, 3)) / 2.0, rng.uniform(0.0, 2.0 * np.pi, N_WAVES)
    coef = rng.standard_normal(N_WAVES) * np.sqrt(2.0 / N_WAVES)
    return lambda rows: np.asarray(np.cos(rows @ W.T + phases) @ coef)


def _fitted(name: str, X: Any, y: Array, k: int) -> Any:
    model = getattr(mercer, name)(random_state=k, progress=False)
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of chains: the default is what is measured
        return model.fit(X, y)
