"""Streams with outliers among their targets: error and log score on the rows that are none.

`drifting_rows_v1` without a change (noise of standard deviation 0.2): 1000 rows in one dimension
and in eight, two seeds, and of each four streams, `outliers_v1`:

* clean: as it is.
* one per cent: one target in a hundred, from row 100 on, is moved by 2 to 200 (log-uniform, either
  sign): 10 to 1000 standard deviations of the noise.
* one wild: the target of row 500 is moved by 1000.
* level: all targets from row 500 on are moved by 5, which is a change and no outlier.

Scales are learned from the first 200 rows; error (root mean square) and log score are means over
the rows after them that were not moved, of level over all. Rows to recover, of one wild: how many
come after it until the log score of the next fifty is within 0.1 nats of that of the same learner
on the clean stream; 451 if that never happens.

* `SequentialKernelRegressor` with 100 particles and 256 candidates, robust and not, with
  forgetting 1 and, on level, 1 and 0.99 side by side.
* River: BayesianLinearRegression and LinearRegression (stochastic gradients of the Huber loss, two
  rates) on a fixed basis of 16 or 64 bumps; KNNRegressor (the median of five neighbours).
* scikit-learn's SGDRegressor on 200 random Fourier features, of the squared and the Huber loss.

To these the law is given that suits them best here: normal around the prediction, with the mean of
the last squared errors, each cut at 25 times that mean, so that an outlier does not spoil it.

There is no target. The summary says what the guard costs on clean streams, and the best peer.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer import SequentialKernelRegressor
from mercer.errors import MercerWarning
from reproduce.cells import measured
from reproduce.stream_peers import (
    RandomFeatures,
    RiverGradients,
    RiverNeighbours,
    RiverOnBasis,
    StreamScores,
    scores_of,
)
from reproduce.workloads import drifting_rows_v1, outliers_v1

SEED = 0
NEEDS_PACKAGES = ("river",)

STREAMS = ("clean", "one per cent", "one wild", "level")
FAMILIES = ("mercer", "River", "SGD")
_FIRST, _WINDOW, _NEAR, _CUT = 200, 50, 0.1, 25.0

Array = NDArray[np.float64]
Rows = list[dict[str, Any]]
Runner = Callable[[Array, Array], StreamScores]


def run() -> dict[str, object]:
    """All learners on all streams."""
    return summary(rows_of())


def rows_of(
    families: tuple[str, ...] = FAMILIES, dimensions: tuple[int, ...] = (1, 8),
    n_rows: int = 1000, n_repeats: int = 2, **own: Any,
) -> Rows:  # fmt: skip
    """Run some families: one row for each stream and setting, means over the seeds.

    ``own`` are arguments of mercer's regressor.
    """
    cells = [(d, stream, family) for d in dimensions for stream in STREAMS for family in families]

    def cell(d: int, stream: str, family: str) -> Rows:
        return [
            {"d": d, "stream": stream, "family": family, "setting": setting, **_scored(
                run_, d, stream, n_rows, n_repeats
            )}
            for setting, run_ in _settings(family, d, stream, own).items()
        ]  # fmt: skip

    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)  # the target leaves its scale
        return measured("basis-outliers-v1", cells, cell)


def summary(rows: Rows) -> dict[str, object]:
    """All rows; what the guard costs on clean streams; mercer's scores above the best peer's."""

    def of(d: int, stream: str, setting: str) -> float:
        (row,) = (r for r in rows if (r["d"], r["stream"], r["setting"]) == (d, stream, setting))
        return float(row["log_score"])

    cost, above = [], []
    for d, stream in dict.fromkeys((row["d"], row["stream"]) for row in rows):
        robust, plain = of(d, stream, "robust"), of(d, stream, "not robust")
        if stream == "clean":
            cost.append({"d": d, "nats": round(plain - robust, 4)})
        peers = [
            r for r in rows if (r["d"], r["stream"]) == (d, stream) and r["family"] != "mercer"
        ]
        if peers:
            best = max(peers, key=lambda row: row["log_score"])
            above.append({
                "d": d, "stream": stream, "best_peer": f"{best['family']}: {best['setting']}",
                "log_score_above": round(robust - best["log_score"], 3),
                "error_ratio_to_least": round(
                    _of_robust(rows, d, stream)["rmse"] / min(r["rmse"] for r in peers), 3
                ),
            })  # fmt: skip
    return {"cost_of_the_guard": cost, "above_best": above, "rows": rows}


def _of_robust(rows: Rows, d: int, stream: str) -> dict[str, Any]:
    return next(r for r in rows if (r["d"], r["stream"], r["setting"]) == (d, stream, "robust"))


def _scored(run_: Runner, d: int, stream: str, n_rows: int, n_repeats: int) -> dict[str, Any]:
    """Means over the seeds, and the standard error of the log score between them."""
    errors, scores, rows_, seconds = [], [], [], []
    for seed in range(n_repeats):
        X, clean = drifting_rows_v1(n_rows, d, "none", seed)
        y, is_moved = outliers_v1(clean, stream, seed)
        said = run_(X, y)
        late = ~is_moved & (np.arange(n_rows) >= min(_FIRST, n_rows // 2))
        errors.append(float(np.sqrt(np.mean((said.mean - y)[late] ** 2))))
        scores.append(float(said.log_density[late].mean()))
        seconds.append(said.seconds / n_rows)
        if stream == "one wild":
            lost = (run_(X, clean).log_density - said.log_density)[n_rows // 2 + 1 :]
            rows_.append(_rows_to_recover(lost))
    spread = np.std(scores, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else 0.0
    return {
        "rmse": float(f"{np.mean(errors):.4g}"),
        "log_score": round(float(np.mean(scores)), 4),
        "log_score_standard_error": round(float(spread), 4),
        "rows_to_recover": max(rows_, default=None),
        "ms_a_row": float(f"{1e3 * np.median(seconds):.3g}"),
    }


def _rows_to_recover(lost: Array) -> int:
    """First row from which on the next fifty lose less than 0.1 nats a row."""
    means = np.convolve(lost, np.full(min(_WINDOW, len(lost)), 1.0 / _WINDOW), "valid")
    is_near = means < _NEAR
    return int(np.argmax(is_near)) if is_near.any() else len(means)


# ------------------------------------------------------------------------------------ contenders


def _settings(family: str, d: int, stream: str, own: dict[str, Any]) -> dict[str, Runner]:
    if family == "mercer":
        return _mercer(stream, own)
    point = partial(_scored_points, d)
    n_bumps = 16 if d == 1 else 64
    if family == "River":
        return {
            "Bayesian": point(partial(RiverOnBasis, n_bumps=n_bumps, smoothing=None)),
            "Bayesian, smoothing 0.99": point(
                partial(RiverOnBasis, n_bumps=n_bumps, smoothing=0.99)
            ),
            "Huber, rate 0.03": point(partial(RiverGradients, n_bumps=n_bumps, rate=0.03)),
            "Huber, rate 0.1": point(partial(RiverGradients, n_bumps=n_bumps, rate=0.1)),
            "median of 5 neighbours": point(RiverNeighbours),
        }
    features = partial(RandomFeatures, n_features=200, width=0.5)
    return {
        f"{loss}, rate {rate:g}": point(partial(features, rate=rate, loss=loss))
        for loss in ("squared_error", "huber")
        for rate in (0.03, 0.1)
    }


def _scored_points(d: int, make: Any) -> Runner:
    def run_(X: Array, y: Array) -> StreamScores:
        return scores_of(make, X, y, min(_FIRST, len(y) // 2), cut=_CUT)

    return run_


def _mercer(stream: str, own: dict[str, Any]) -> dict[str, Runner]:
    def run_(robust: bool, forgetting: Any, X: Array, y: Array) -> StreamScores:
        model = SequentialKernelRegressor(
            **{"max_candidates": 256, "n_particles": 100, **own}, robust=robust,
            forgetting=forgetting, scale_rows=min(_FIRST, len(y) // 2), random_state=SEED,
        )  # fmt: skip
        begin = time.perf_counter()
        said = model.prequential(X, y)
        return StreamScores(said.mean, said.log_density, time.perf_counter() - begin)

    settings: dict[str, Runner] = {
        "not robust": partial(run_, False, 1.0), "robust": partial(run_, True, 1.0)
    }  # fmt: skip
    if stream == "level":
        settings["not robust, forgetting 1, 0.99"] = partial(run_, False, (1.0, 0.99))
        settings["robust, forgetting 1, 0.99"] = partial(run_, True, (1.0, 0.99))
    return settings
