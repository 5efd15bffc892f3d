"""All models in one beside each of its members alone: log scores of rows that none has seen.

The twelve tables of `gp_kernels_v2`, two random splits each: 200 rows to learn from, or half of
them where there are fewer than 400, and up to 300 others to judge. Members are those of the stack,
fitted to the same rows with the same settings.
Log scores in nats, differences by row, with the standard error over the judged rows of both
splits; the best member is known afterwards, from the rows that judge. "equal" is the mixture with
equal weights. Some ten CPU minutes; needs ``MERCER_DATA``.

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
from reproduce.cells import measured
from reproduce.scenarios.gp_kernels_v2 import NUMBERS, TABLES, table_of

SEED = 0
NEEDS_DATA = True
SPLITS = (0, 1)
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
    return measured("stack-v1", cells, _cell)


def _cell(
    name: str, split: int, n_learned: int, n_judged: int, **settings: Any
) -> list[dict[str, Any]]:
    X, y = table_of(name, 10**6)
    order = np.random.default_rng(split).permutation(len(y))
    n_learned = min(n_learned, len(y) // 2)
    train, test = order[:n_learned], order[n_learned : n_learned + n_judged]
    begin = time.process_time()
    kind = MercerRegressor if name in NUMBERS else MercerClassifier
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a member that is left out: the row says so
        model = kind(random_state=split, progress=False, **settings).fit(X[train], y[train])
    seconds = time.process_time() - begin
    codes = y[test] if name in NUMBERS else np.searchsorted(model.classes_, y[test])
    scores = {each: losses_of(own, X[test], codes)[0] for each, own in model.members_.items()}
    mixed = losses_of(model, X[test], codes)[0]
    logs = -np.array(list(scores.values()))
    scores |= {"stack": mixed, "equal": np.log(len(logs)) - np.logaddexp.reduce(logs, axis=0)}
    row = {
        "data": name,
        "split": split,
        "n_judged": len(test),
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
        gaps = {each: scores["stack"] - scores[each] for each in known if each != "stack"}
        tables.append(
            {
                "data": name,
                "n_judged": len(scores["stack"]),
                "log_score": {each: round(float(s.mean()), 4) for each, s in scores.items()},
                "best": min(members, key=lambda each: float(scores[each].mean())),
                "gap": {each: round(float(gap.mean()), 4) for each, gap in gaps.items()},
                "gap_error": {
                    each: round(float(gap.std(ddof=1) / np.sqrt(len(gap))), 4)
                    for each, gap in gaps.items()
                },
                "weights": [row["weights"] for row in own],
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
