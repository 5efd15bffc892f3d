"""Three series beside a spectral mixture process by maximum likelihood: forecasts, and gaps.

Series: `airline`, log of monthly passengers (144; from River); `co2`, monthly means at Mauna Loa
(521 months with a value; from statsmodels); `sunspots`, yearly numbers (309; from statsmodels).
*Forecast*: the last fifth is predicted from what is before it. *Gaps*: a fifth of the rows, drawn
at random, is predicted from the others. Time is the only input. Three seeds, of the methods and of
the gaps; one where nothing is drawn, and of the spectral mixture on `co2` and `sunspots`, whose
five starts take minutes. The log score is the mean of -log predictive density of the standardised
target (lower is better), ``inside`` the share of targets in the 90 % interval. One thread; seconds
are CPU seconds of the fit.

* BaNK: `BaNKRegressor` as it is by default.
* spectral mixture: GPyTorch, a straight line and `SpectralMixtureKernel` with ten components
  (Wilson & Adams 2013), by the largest marginal likelihood of five starts, one from the empirical
  spectrum and four at random, 300 steps of Adam at 0.1 each, in double precision.
* GPRegressor: by default, kernels without a period.

``periods`` has for each series what the draws of BaNK agree on, on all rows: the period, its 90 %
interval and its probability; and the period of the component of the spectral mixture that has the
largest weight. Installations of GPyTorch, River and statsmodels are needed.
"""

from __future__ import annotations

import time
import warnings
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from threadpoolctl import threadpool_limits

from mercer import BaNKRegressor, GPRegressor
from reproduce.cells import measured

SEED = 0
SEEDS = (SEED, 1, 2)
NEEDS_DATA = False
NEEDS_PACKAGES = ("gpytorch", "torch", "river", "statsmodels")

SERIES = ("airline", "co2", "sunspots")
UNITS = {"airline": "months", "co2": "years", "sunspots": "years"}
TASKS = ("forecast", "gaps")
BANK, MIXTURE, PROCESS = "BaNK", "spectral mixture", "GPRegressor"
_MIXTURE_SETTINGS: dict[str, Any] = {"n_components": 10, "n_starts": 5, "n_steps": 300, "rate": 0.1}
_LEVEL = 0.9

Array = NDArray[np.float64]
Rows = list[dict[str, Any]]


def run() -> dict[str, object]:
    """Scores of all methods on all series, and the periods that they find."""
    cells = [
        (name, task, method, seed)
        for name in SERIES
        for task in TASKS
        for method in (BANK, MIXTURE, PROCESS)
        for seed in SEEDS
        if seed == 0 or not _has_one_seed(name, task, method)
    ]
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = measured("spectral-series-v1", cells, scored)
        periods = measured("spectral-series-v1", [("periods", name) for name in SERIES], _periods)
    return {"rows": _means(rows), "periods": periods}


def _has_one_seed(name: str, task: str, method: str) -> bool:
    """Whether nothing is drawn, or five starts take minutes."""
    return (method == MIXTURE and name != "airline") or (method == PROCESS and task == "forecast")


@lru_cache(maxsize=3)
def series(name: str) -> tuple[Array, Array]:
    """Times (n, 1) in the unit of the series, and values (n,)."""
    if name == "airline":
        from river.datasets import AirlinePassengers

        y = np.log([passengers for _, passengers in AirlinePassengers()])
        t = np.arange(len(y), dtype=np.float64)
    else:
        import statsmodels.datasets as shipped

        if name == "co2":
            monthly = shipped.co2.load().data["co2"].resample("MS").mean().dropna()
            t, y = monthly.index.year + (monthly.index.month - 0.5) / 12.0, monthly.to_numpy()
        else:
            frame = shipped.sunspots.load().data
            t, y = frame["YEAR"], frame["SUNACTIVITY"]
    return np.asarray(t, np.float64)[:, np.newaxis], np.asarray(y, np.float64)


def split(name: str, task: str, seed: int) -> tuple[Array, Array, Array, Array]:
    """Times and values to learn from, then those to predict; values are standardised."""
    t, y = series(name)
    n_test = len(y) // 5
    order = np.arange(len(y))
    if task == "gaps":
        order = np.random.default_rng(seed).permutation(len(y))
    learned, held = np.sort(order[:-n_test]), np.sort(order[-n_test:])
    y = (y - y[learned].mean()) / y[learned].std()
    return t[learned], y[learned], t[held], y[held]


def scored(name: str, task: str, method: str, seed: int) -> Rows:
    """Fit one method to one series, and score what it says of the rows that it has not seen."""
    X, y, X_test, y_test = split(name, task, seed)
    begin = time.process_time()
    if method == MIXTURE:
        means, stds, _ = _mixture(X, y, X_test, seed)
        seconds = time.process_time() - begin
        logs = -norm.logpdf(y_test, means, stds)
        half = norm.ppf(0.5 + _LEVEL / 2.0) * stds
        lower, upper = means - half, means + half
    else:
        kind = BaNKRegressor if method == BANK else GPRegressor
        kind(random_state=seed, progress=False, n_draws=5).fit(X[:40], y[:40])  # compiles
        begin = time.process_time()
        model = kind(random_state=seed, progress=False).fit(X, y)
        seconds = time.process_time() - begin
        means = model.predict(X_test)
        logs = -model.predictive(X_test).log_density(y_test)
        lower, upper = model.predict_interval(X_test, _LEVEL)
    return [
        {
            "series": name, "task": task, "method": method, "seed": seed,
            "log_score": float(f"{np.mean(logs):.5g}"),
            "error": float(f"{np.sqrt(np.mean((means - y_test) ** 2)):.5g}"),
            "inside": float(f"{np.mean((lower <= y_test) & (y_test <= upper)):.4g}"),
            "cpu_seconds": round(seconds, 1),
        }
    ]  # fmt: skip


def _means(rows: Rows) -> Rows:
    """Average over seeds; the worst log score of them beside it."""
    found = []
    for key in dict.fromkeys((row["series"], row["task"], row["method"]) for row in rows):
        own = [row for row in rows if (row["series"], row["task"], row["method"]) == key]
        means = {
            name: float(f"{np.mean([row[name] for row in own]):.4g}")
            for name in ("log_score", "error", "inside", "cpu_seconds")
        }
        worst = max(row["log_score"] for row in own)
        named = dict(zip(("series", "task", "method"), key, strict=True))
        found.append({**named, "n_seeds": len(own), **means, "worst_log_score": worst})
    return found


def _periods(_: str, name: str) -> Rows:
    t, y = series(name)
    y = (y - y.mean()) / y.std()
    found = BaNKRegressor(random_state=0, progress=False).fit(t, y).periods()
    row: dict[str, Any] = {"series": name, "unit": UNITS[name], "bank": None}
    periods = dict(zip(found.columns, found.rows[0], strict=True)) if found.rows else {}
    if periods.get("period") is not None:
        row["bank"] = {key: periods[key] for key in ("period", "lower", "upper", "probability")}
    row["mixture"] = float(f"{_mixture(t, y, t[:1], 0)[2]:.4g}")
    return [row]


def _mixture(X: Array, y: Array, X_test: Array, seed: int) -> tuple[Array, Array, float]:
    """Means and standard deviations of new targets, and the period of the heaviest component."""
    from reproduce.gpytorch_peers import spectral_mixture_process

    return spectral_mixture_process(X, y, X_test, seed=seed, **_MIXTURE_SETTINGS)
