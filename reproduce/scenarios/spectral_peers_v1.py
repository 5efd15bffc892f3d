"""BaNK beside its peers: error against CPU seconds of training, on one fold each of two data sets.

Data: `bike` (13 903 training rows of 12 inputs) and `arm_v1`, 40 000 rows of eight joint angles
and the distance of the hand of an arm, 5 % noise, in the manner of kin40k; of both the first fold
of ``KFold(5, shuffle=True, random_state=0)``. Errors are mean squared errors of the test rows over
the variance of the training targets; the log score is the mean of -log predictive density of the
standardised target, where a method has one. One thread, one run each: differences of a few per
cent are chance.

* BaNK: `BaNKRegressor(max_seconds=...)`, one chain, at three budgets. Its sweeps of warm-up, from
  20 to 60, are made to take a third of the budget or so (they look at fewer rows at
  first). A budget is of the clock, so that a busy machine leaves less of it; seconds are CPU
  seconds of the whole fit, as all are.
* RKS: `mercer.baselines.RKSRegressor`, length scale and penalty by cross-validation, 768 and 2048
  features.
* GPyTorch: `RFFKernel` with 384 frequencies and learned lengthscales, and SVGP with 512 inducing
  points, at the same budgets; each at two step sizes of Adam, of which the better on the test rows
  is compared. The clock stands still while they predict.
* scikit-learn's HistGradientBoostingRegressor: as it is, and with 500 and 2000 trees at a learning
  rate of 0.05 and no early stopping.

Target: at its longest budget BaNK's error is at most that of each Gaussian process and of RKS. An
installation of GPyTorch is needed (extra bench). An hour: use ``--cache``.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from mercer import BaNKRegressor
from mercer.baselines import RKSRegressor
from mercer.estimation.standardize import fit_standardizer
from reproduce.cells import measured
from reproduce.papers.spectral_folds import Fold, fold_of
from reproduce.workloads import arm_v1

SEED = 0
NEEDS_DATA = True
NEEDS_PACKAGES = ("gpytorch", "torch")

DATA = ("bike", "arm_v1")
FAMILIES = ("BaNK", "RKS", "GPyTorch RFF", "GPyTorch SVGP", "gradient boosting")
TARGET = 1.0
_COMPARED = ("RKS", "GPyTorch RFF", "GPyTorch SVGP")

Array = NDArray[np.float64]
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Sizes:
    """How large everything is; tests take less."""

    budgets: tuple[float, ...] = (20.0, 60.0, 240.0)
    n_frequencies: int = 384
    n_inducing: int = 512
    n_features: tuple[int, ...] = (768, 2048)
    n_trees: tuple[int | None, ...] = (None, 500, 2000)
    n_rows: int = 40_000
    sweep_seconds: float = 1.0  # about, at these sizes


_WHOLE = Sizes()


def run() -> dict[str, object]:
    """Errors and seconds of all contenders on both sets."""
    return summary(rows_of(FAMILIES))


def rows_of(families: tuple[str, ...], data: tuple[str, ...] = DATA, sizes: Sizes = _WHOLE) -> Rows:
    """Measure some families: one row for each point of their curves."""
    cells = [(name, family) for name in data for family in families]

    def cell(name: str, family: str) -> Rows:
        points = _RUN[family](_fold(name, sizes.n_rows), sizes)
        return [{"data": name, "family": family, **point} for point in points]

    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return measured("spectral-peers-v1", cells, cell)


def summary(rows: Rows) -> dict[str, object]:
    """All points, and BaNK's last error over the best of each peer."""
    ratios: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(row["data"] for row in rows):
        own = [row for row in rows if row["data"] == name]
        ours = [row["standardized_mse"] for row in own if row["family"] == "BaNK"]
        best = {
            family: min(row["standardized_mse"] for row in own if row["family"] == family)
            for family in dict.fromkeys(row["family"] for row in own if row["family"] != "BaNK")
        }
        ratios[name] = {
            family: round(ours[-1] / error, 3) for family, error in best.items() if ours
        }
    compared = [r for each in ratios.values() for family, r in each.items() if family in _COMPARED]
    return {
        "target_ratio": TARGET,
        "largest_ratio": max(compared, default=None),
        "ratios_to_best": ratios,
        "rows": rows,
    }


@lru_cache(maxsize=2)
def _fold(name: str, n_rows: int) -> Fold:
    if name == "bike":
        return fold_of("bike", 0, n_rows < _WHOLE.n_rows)
    X, y = arm_v1(n_rows)
    train, test = next(iter(KFold(5, shuffle=True, random_state=0).split(X)))
    mean, std = y[train].mean(), y[train].std()
    return Fold(X[train], (y[train] - mean) / std, X[test], (y[test] - mean) / std)


def _point(
    setting: str, seconds: float, fold: Fold, mean: Array, log_score: float | None, **more: Any
) -> dict[str, Any]:
    return {
        "setting": setting,
        "seconds": round(seconds, 2),
        "standardized_mse": float(f"{np.mean((mean - fold.y_test) ** 2):.4g}"),
        "log_score": None if log_score is None else round(log_score, 4),
        **more,
    }


def _timed(fold: Fold, model: Any) -> tuple[float, Array, float]:
    begin = time.process_time()
    model.fit(fold.X, fold.y)
    middle = time.process_time()
    mean = model.predict(fold.X_test)
    return middle - begin, mean, time.process_time() - middle


# ------------------------------------------------------------------------------------ contenders


def _bank(fold: Fold, sizes: Sizes) -> Rows:
    settings = {"n_chains": 1, "random_state": SEED, "n_jobs": 1, "progress": False}
    small = {"n_frequencies": 26, "n_draws": 2, "n_warmup": 2}
    BaNKRegressor(**settings, **small).fit(fold.X[:60], fold.y[:60])  # compiles
    points = []
    for budget in sizes.budgets:
        n_warmup = int(np.clip(2.0 / 3.0 * budget / sizes.sweep_seconds, 20, 60))
        model = BaNKRegressor(
            n_frequencies=sizes.n_frequencies, n_draws=5000, n_warmup=n_warmup,
            max_seconds=budget, **settings,
        )  # fmt: skip
        seconds, mean, predicting = _timed(fold, model)
        parts = range(0, len(fold.X_test), 1000)
        logs = [model.predictive(fold.X_test[i : i + 1000]).log_density(fold.y_test[i : i + 1000])
                for i in parts]  # fmt: skip
        points.append(
            _point(
                f"{budget:g} s", seconds, fold, mean, -float(np.concatenate(logs).mean()),
                predict_seconds=round(predicting, 2), n_draws=int(model.posterior_.n_total),
            )
        )  # fmt: skip
    return points


def _rks(fold: Fold, sizes: Sizes) -> Rows:
    points = []
    for n_features in sizes.n_features:
        model = RKSRegressor(n_features=n_features, random_state=SEED)
        seconds, mean, predicting = _timed(fold, model)
        setting = f"{n_features} features"
        more = {"predict_seconds": round(predicting, 2)}
        points.append(_point(setting, seconds, fold, mean, None, **more))
    return points


def _boosting(fold: Fold, sizes: Sizes) -> Rows:
    points = []
    for n_trees in sizes.n_trees:
        settings: dict[str, Any] = {"random_state": SEED}
        if n_trees is not None:
            settings |= {"max_iter": n_trees, "learning_rate": 0.05, "early_stopping": False}
        seconds, mean, predicting = _timed(fold, HistGradientBoostingRegressor(**settings))
        setting = "as it is" if n_trees is None else f"{n_trees} trees"
        more = {"predict_seconds": round(predicting, 2)}
        points.append(_point(setting, seconds, fold, mean, None, **more))
    return points


def _gpytorch(train: str, rates: tuple[float, ...], **size: str) -> Callable[[Fold, Sizes], Rows]:
    """Train at each rate; ``size`` says which of the sizes an argument takes."""

    def contender(fold: Fold, sizes: Sizes) -> Rows:
        from reproduce import gpytorch_peers

        names = tuple(f"x{k}" for k in range(fold.X.shape[1]))
        standardizer = fit_standardizer(fold.X, "std", names)
        Z, Z_test = standardizer.transform(fold.X), standardizer.transform(fold.X_test)
        arguments = {name: getattr(sizes, of) for name, of in size.items()}
        return [
            _point(
                f"{budget:g} s, step {rate:g}", seconds, fold, mean, float(logs.mean()),
                n_steps=n_steps,
            )
            for rate in rates
            for budget, (seconds, n_steps, mean, logs) in zip(
                sizes.budgets,
                getattr(gpytorch_peers, train)(
                    Z, fold.y, Z_test, fold.y_test,
                    rate=rate, budgets=sizes.budgets, seed=SEED, **arguments,
                ),
                strict=False,
            )
        ]  # fmt: skip

    return contender


_RUN: dict[str, Callable[[Fold, Sizes], Rows]] = {
    "BaNK": _bank,
    "RKS": _rks,
    "GPyTorch RFF": _gpytorch("random_feature_process", (0.1, 0.03), n_frequencies="n_frequencies"),
    "GPyTorch SVGP": _gpytorch("variational_process", (0.03, 0.01), n_inducing="n_inducing"),
    "gradient boosting": _boosting,
}
