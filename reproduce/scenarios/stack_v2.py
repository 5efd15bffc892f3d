"""All models in one beside each of its members alone: log scores of rows that none has seen.

The twelve tables of `gp_kernels_v3`, ten random splits each: 200 rows to learn from, or half of
them where there are fewer than 400, and up to 300 others to judge. Members are those of the stack,
fitted to the same rows with the same settings.
Log scores in nats, differences with the standard error over splits; the best member is known
afterwards, from the rows that judge. "equal" is the mixture with equal weights. An hour; needs
``MERCER_DATA``.

Target: on no table worse than the best member by more than a standard error.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import MercerClassifier, MercerRegressor
from mercer.estimation.inspection import losses_of
from reproduce.cells import less, measured
from reproduce.scenarios.gp_kernels_v3 import NUMBERS, TABLES, split_of

SEED = 0
NEEDS_DATA = True
SPLITS = tuple(range(10))
N_LEARNED, N_JUDGED = 200, 300

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """Score the stack and its members on every table."""
    return summary(rows_of(TABLES, SPLITS, N_LEARNED, N_JUDGED))


def rows_of(
    tables: tuple[str, ...], splits: tuple[int, ...], n_learned: int, n_judged: int, **settings: Any
) -> list[dict[str, Any]]:
    """Score all members: a row for each table and split."""
    cells = [(table, split, n_learned, n_judged) for table in tables for split in splits]
    if settings:
        return [row for cell in cells for row in _cell(*cell, **settings)]
    return measured("stack-v2", cells, _cell)


def _cell(
    name: str, split: int, n_learned: int, n_judged: int, **settings: Any
) -> list[dict[str, Any]]:
    X, y, X_new, y_new = split_of(name, split, n_learned, n_judged)
    begin = time.process_time()
    kind = MercerRegressor if name in NUMBERS else MercerClassifier
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a member that is left out: the row says so
        model = kind(random_state=split, progress=False, **settings).fit(X, y)
    seconds = time.process_time() - begin
    codes = y_new if name in NUMBERS else np.searchsorted(model.classes_, y_new)
    scores = {each: losses_of(own, X_new, codes)[0] for each, own in model.members_.items()}
    mixed = losses_of(model, X_new, codes)[0]
    logs = -np.array(list(scores.values()))
    scores |= {"stack": mixed, "equal": np.log(len(logs)) - np.logaddexp.reduce(logs, axis=0)}
    row = {
        "data": name,
        "split": split,
        "n_judged": len(y_new),
        "weights": {each: round(w, 3) for each, w in model.weights_.items()},
        "seconds": round(seconds, 1),
        "left_out": [note for note in model.notes_ if "left out" in note],
        "scores": {each: np.round(own, 5).tolist() for each, own in scores.items()},
    }
    return [row]


def summary(rows: list[dict[str, Any]]) -> dict[str, object]:
    """A row for each table, the mean gaps, and where it is behind by over a standard error."""
    tables = list[dict[str, Any]]()
    for name in dict.fromkeys(row["data"] for row in rows):
        own = [row for row in rows if row["data"] == name]
        known = [each for each in own[0]["scores"] if all(each in row["scores"] for row in own)]
        scores = {
            each: np.concatenate([np.array(row["scores"][each]) for row in own]) for each in known
        }
        members = [each for each in known if each not in ("stack", "equal")]
        gaps = {each: less(own, "stack", each) for each in known if each != "stack"}
        tables.append(
            {
                "data": name,
                "n_judged": len(scores["stack"]),
                "log_score": {each: round(float(s.mean()), 4) for each, s in scores.items()},
                "best": min(members, key=lambda each: float(scores[each].mean())),
                "gap": {each: gap for each, (gap, _) in gaps.items()},
                "gap_error": {each: error for each, (_, error) in gaps.items()},
                "weights": {
                    each: round(float(np.mean([row["weights"].get(each, 0.0) for row in own])), 2)
                    for each in dict.fromkeys(name for row in own for name in row["weights"])
                },
                "seconds": round(float(np.mean([row["seconds"] for row in own])), 1),
                "left_out": [note for row in own for note in row["left_out"]],
            }
        )
    behind = [
        {"data": row["data"], "member": row["best"], "gap": row["gap"][row["best"]]}
        for row in tables
        if row["gap"][row["best"]] > row["gap_error"][row["best"]]
    ]
    shared = [each for each in tables[0]["gap"] if all(each in row["gap"] for row in tables)]
    mean = {k: round(float(np.mean([row["gap"][k] for row in tables])), 4) for k in shared}
    mean["best"] = round(float(np.mean([row["gap"][row["best"]] for row in tables])), 4)
    return {"rows": tables, "mean_gap": mean, "behind_the_best_by_over_an_error": behind}
