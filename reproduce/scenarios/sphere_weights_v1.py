"""Weights of the inputs by rows left out, the default of `KernelGibbsClassifier`, and none.

*Data*: 300 rows of "simulated 8" and "simulated 20" (scikit-learn's `make_classification`: four and
six of so many inputs tell the class, 10 and 5 % of the labels are random), "friedman" (ten inputs,
five of which count; above the median), "shells" (20 inputs that count alike), and ten tables; of
fewer rows two thirds. Two splits, up to 2000 other rows are predicted. Labels as they are, and with
10 % flipped to another class at random.

*Models*: the default, and the same for inputs that are standardised as it chooses, without weights.

*Scores*: means over splits of -log probability of a label that is as it was (nats), share of wrong
predictions, and average precision of `label_error_proba_` for the labels that were flipped. Ten
minutes; use ``--cache``; needs ``MERCER_DATA``.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification, make_friedman1
from sklearn.metrics import average_precision_score

from mercer import KernelGibbsClassifier
from mercer.data.named import TARGET, load_named
from mercer.estimation.standardize import (
    SEVERAL_COLUMNS,
    WEIGHED,
    fit_quietly,
    indicators,
    with_scales_by_evidence,
)
from reproduce.cells import held_out, measured_tables

SEED = 0
NEEDS_DATA = True
N_ROWS, N_NEW, N_SEEDS, RATES = 300, 2000, 2, (0.0, 0.1)
DATA = (
    "simulated 8", "simulated 20", "friedman", "shells", "breast_cancer", "pima", "iris", "wine",
    "diabetic", "fgl", "crabs", "shuttle", "eeg", "digits",
)  # fmt: skip
HOW = ("none", "weights")

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """Means over splits by table and share of flipped labels."""
    return summary(
        measured_tables("sphere-weights-v1", [(name, N_ROWS) for name in DATA], N_SEEDS, cell)
    )


def table_of(name: str, seed: int) -> tuple[Array, NDArray[np.int64]]:
    """Inputs and codes of classes, in an order drawn at random."""
    rng, n = np.random.default_rng([SEED, seed]), N_ROWS + N_NEW
    kind, _, d = name.partition(" ")
    if kind == "simulated":
        settings: dict[str, Any] = {
            "8": {"n_informative": 4, "n_redundant": 0, "flip_y": 0.1},
            "20": {"n_informative": 6, "flip_y": 0.05},
        }[d]
        X, y = make_classification(n, int(d), random_state=seed, **settings)
    elif kind == "friedman":
        X, y = make_friedman1(n, 10, noise=1.0, random_state=seed)
        y = y > np.median(y)
    elif kind == "shells":
        X = rng.standard_normal((n, 20))
        y = np.linalg.norm(X, axis=1) > np.sqrt(20.0 - 2.0 / 3.0)
    else:
        frame = load_named(name)
        X = np.column_stack([c.values for c in frame.columns if c.name != TARGET]).astype(float)
        y = np.asarray(frame.column(TARGET).values)
    order = rng.permutation(len(y))
    return X[order], np.unique(y, return_inverse=True)[1][order]


def cell(name: str, n: int, seed: int, **own: Any) -> list[dict[str, Any]]:
    """Fit both models to a split, its labels as they are and flipped."""
    X, true = table_of(name, seed)
    n = min(n, 2 * len(X) // 3)
    X, X_new, true, y_new = X[:n], X[n : n + N_NEW], true[:n], true[n : n + N_NEW]
    is_seen = np.isin(y_new, true)
    rng, rows = np.random.default_rng([SEED, seed, 1]), list[dict[str, Any]]()
    n_classes = int(true.max()) + 1
    for rate in RATES:
        is_flipped = rng.random(n) < rate
        y = np.where(is_flipped, (true + rng.integers(1, n_classes, n)) % n_classes, true)
        for how in HOW:
            row: dict[str, Any] = {"data": name, "rate": rate, "how": how, "seed": seed}
            rows.append(row | _scored(X, y, is_flipped, how, X_new[is_seen], y_new[is_seen], **own))
    return rows


def _scored(
    X: Array,
    y: NDArray[np.int64],
    is_flipped: NDArray[np.bool_],
    how: str,
    X_new: Array,
    y_new: NDArray[np.int64],
    **own: Any,
) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if how == "none":
            scales = fit_quietly(X, "auto")
            scales, _ = with_scales_by_evidence(scales, X, indicators(y), SEVERAL_COLUMNS)
            X, X_new = scales.transform(X), scales.transform(X_new)
            own = own | {"standardize": False}
        begin = time.process_time()
        model = KernelGibbsClassifier(random_state=SEED, progress=False, **own).fit(X, y)
        seconds = time.process_time() - begin
        scores, error = held_out(model, X_new, y_new)
    precision = 0.0
    if is_flipped.any():
        precision = float(average_precision_score(is_flipped, model.label_error_proba_))
    return {
        "seconds": seconds,
        "log_score": float(scores.mean()),
        "error": error,
        "precision": precision,
        "is_weighed": any(note.startswith(WEIGHED) for note in model.notes_),
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over splits, both models side by side."""
    found = []
    for name in dict.fromkeys(row["data"] for row in rows):
        for rate in RATES:
            line: dict[str, Any] = {"data": name, "rate": rate}
            for how in HOW:
                own = [r for r in rows if (r["data"], r["rate"], r["how"]) == (name, rate, how)]
                for key in ("seconds", "log_score", "error", "precision", "is_weighed"):
                    line[f"{how}_{key}"] = float(f"{np.mean([row[key] for row in own]):.4g}")
            found.append(line)
    return {"rows": found}
