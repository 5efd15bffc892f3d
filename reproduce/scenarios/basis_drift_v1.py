"""Streams that change, or do not: error and log score of each row before it is learned, and time.

`drifting_rows_v1`: 2500 rows in one dimension and in eight, a function that stays, turns into
another one slowly, or does so at once in the middle; noise of standard deviation 0.2; three seeds.
Everybody learns scales from the first 200 rows; scores are means over the rows after them, and the
error is a root mean squared error in units of the target. Time is that of predicting and learning
a row, features included.

* `SequentialKernelRegressor` with its defaults and forgetting 1, 0.998, 0.99, and all three side
  by side, through ``prequential``.
* River's BayesianLinearRegression on a fixed basis (a constant and 16 Gaussian bumps in one
  dimension, 64 in eight), smoothing none, 0.998, 0.99. River's law has a noise variance given
  beforehand, and with smoothing none that is meant for scores: a normal law around its prediction
  is scored instead, with the mean of its last squared errors, as for the two below.
* scikit-learn's SGDRegressor on 200 random Fourier features, three constant rates and two widths.
* Persistence: the last target, which says nothing here since rows are independent.

There is no target. The summary holds mercer's three side by side against the best setting of each
peer on each stream, chosen afterwards. Half an hour: use ``--cache``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer import SequentialKernelRegressor
from reproduce.cells import measured
from reproduce.stream_peers import (
    Persistence,
    RandomFeatures,
    RiverOnBasis,
    StreamScores,
    scores_of,
)
from reproduce.workloads import drifting_rows_v1

SEED = 0
NEEDS_PACKAGES = ("river",)

CHANGES = ("none", "slow", "abrupt")
FAMILIES = ("mercer", "River", "SGD", "persistence")
SIDE_BY_SIDE = "forgetting 1, 0.998, 0.99"
_FORGETTING = (1.0, 0.998, 0.99)

Array = NDArray[np.float64]
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Sizes:
    """How large everything is; tests take less."""

    n_rows: int = 2500
    n_first: int = 200
    n_repeats: int = 3
    n_particles: int = 250
    n_bumps: tuple[int, int] = (16, 64)
    n_features: int = 200


_WHOLE = Sizes()


def run() -> dict[str, object]:
    """All learners on all streams."""
    return summary(rows_of(FAMILIES))


def rows_of(
    families: tuple[str, ...], dimensions: tuple[int, ...] = (1, 8), sizes: Sizes = _WHOLE
) -> Rows:
    """Run some families: one row for each stream and setting, means over the seeds."""
    cells = [(d, change, family) for d in dimensions for change in CHANGES for family in families]

    def cell(d: int, change: str, family: str) -> Rows:
        return [
            {"d": d, "change": change, "family": family, "setting": setting, **_scored(
                run_, d, change, sizes
            )}
            for setting, run_ in _SETTINGS[family](d, sizes).items()
        ]  # fmt: skip

    with threadpool_limits(limits=1):
        return measured("basis-drift-v1", cells, cell)


def summary(rows: Rows) -> dict[str, object]:
    """All rows, and how far mercer side by side is above the best of each peer on each stream."""
    above: Rows = []
    for d, change in dict.fromkeys((row["d"], row["change"]) for row in rows):
        own = [row for row in rows if (row["d"], row["change"]) == (d, change)]
        (ours,) = (row for row in own if row["setting"] == SIDE_BY_SIDE)
        best = {
            family: max((r for r in own if r["family"] == family), key=lambda r: r["log_score"])
            for family in dict.fromkeys(row["family"] for row in own if row["family"] != "mercer")
        }
        gains = {name: round(ours["log_score"] - row["log_score"], 3) for name, row in best.items()}
        above.append({"d": d, "change": change, "log_score_above": gains})
    return {"above_best": above, "rows": rows}


Runner = Callable[[Array, Array, int], StreamScores]


def _scored(run_: Runner, d: int, change: str, sizes: Sizes) -> dict[str, float]:
    """Means over the seeds, and the standard error of the log score between them."""
    errors, scores, seconds = [], [], []
    for seed in range(sizes.n_repeats):
        X, y = drifting_rows_v1(sizes.n_rows, d, change, seed)
        said, late = run_(X, y, sizes.n_first), slice(sizes.n_first, None)
        errors.append(float(np.sqrt(np.mean((said.mean - y)[late] ** 2))))
        scores.append(float(said.log_density[late].mean()))
        seconds.append(said.seconds / len(y))
    spread = np.std(scores, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else 0.0
    return {
        "rmse": float(f"{np.mean(errors):.4g}"),
        "log_score": round(float(np.mean(scores)), 4),
        "log_score_standard_error": round(float(spread), 4),
        "ms_a_row": float(f"{1e3 * np.median(seconds):.3g}"),
    }


# ------------------------------------------------------------------------------------ contenders


def _mercer(d: int, sizes: Sizes) -> dict[str, Runner]:
    settings: dict[str, Any] = {f"forgetting {each:g}": each for each in _FORGETTING}
    settings[SIDE_BY_SIDE] = _FORGETTING

    def run_(forgetting: Any, X: Array, y: Array, n_first: int) -> StreamScores:
        model = SequentialKernelRegressor(
            n_particles=sizes.n_particles, forgetting=forgetting, scale_rows=n_first,
            random_state=SEED,
        )  # fmt: skip
        begin = time.perf_counter()
        said = model.prequential(X, y)
        return StreamScores(said.mean, said.log_density, time.perf_counter() - begin)

    return {name: partial(run_, value) for name, value in settings.items()}


def _river(d: int, sizes: Sizes) -> dict[str, Runner]:
    n_bumps = sizes.n_bumps[d > 1]
    settings = {"no smoothing": None, "smoothing 0.998": 0.998, "smoothing 0.99": 0.99}
    return {
        name: partial(scores_of, partial(RiverOnBasis, n_bumps=n_bumps, smoothing=smoothing))
        for name, smoothing in settings.items()
    }


def _sgd(d: int, sizes: Sizes) -> dict[str, Runner]:
    settings = [(width, rate) for width in (0.5, 1.0) for rate in (0.03, 0.1, 0.3)]
    return {
        f"width {width:g}, rate {rate:g}": partial(
            scores_of,
            partial(RandomFeatures, n_features=sizes.n_features, width=width, rate=rate),
        )
        for width, rate in settings
    }


def _persistence(d: int, sizes: Sizes) -> dict[str, Runner]:
    return {"": partial(scores_of, Persistence)}


_SETTINGS: dict[str, Callable[[int, Sizes], dict[str, Runner]]] = {
    "mercer": _mercer,
    "River": _river,
    "SGD": _sgd,
    "persistence": _persistence,
}
