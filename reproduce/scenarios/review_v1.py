"""A review of labels with a simulated reviewer: rows looked at until 90 % of the flips are found.

A tenth of the labels of each class is flipped; the reviewer knows the right ones, and looks at the
row that is asked about until nine of ten flips are found. Orders:

*review*: `mercer.review.Reviewer`, the class behind the page of ``mercer review``, which learns
again after every five decisions (each time waited for). *list*: its first order, as an audit has
it, never learned again. *logistic*, *forest*: the label quality of cleanlab (self-confidence) over
out-of-fold probabilities, five folds; inputs standardised for logistic regression.

Target: *review* needs fewer rows than each of the others. Tables as in `sphere_audit_v2`, and half
moons and wine. Long: use ``--cache``; with ``--seconds`` nothing is begun after so much CPU time,
and the record says how many seeds each table has.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_wine, make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from reproduce.cells import SECONDS, measured
from reproduce.scenarios.sphere_audit_v2 import audit_data

SEED = 0
NEEDS_DATA = True
NEEDS_PACKAGES = ("cleanlab",)

DATA = ("pima_200", "crabs", "breast_cancer_200", "rings_200", "moons_200", "wine")
N_SEEDS, RATE, FOUND = 8, 0.1, 0.9
ORDERS = ("review", "list", "logistic", "forest")

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Rows = list[dict[str, Any]]


def run() -> dict[str, object]:
    """Mean numbers of rows by table and order."""
    return summary(rows_of(DATA))


def rows_of(tables: tuple[str, ...]) -> Rows:
    """Measure some tables."""
    cells = [(name, seed) for seed in range(N_SEEDS) for name in tables]
    seconds = os.environ.get(SECONDS)
    with threadpool_limits(limits=1):
        return measured(
            "review-v1", cells, _cell, seconds=None if seconds is None else float(seconds)
        )


def summary(rows: Rows) -> dict[str, object]:
    """Means over the seeds, and how many rows each order needs more than the review."""
    table = []
    for name in DATA:
        own = [row for row in rows if row["data"] == name]
        ours = np.array([row["review"] for row in own], dtype=np.float64)
        line: dict[str, Any] = {"data": name, "n": own[0]["n"], "least": own[0]["least"]}
        line["n_seeds"] = len(own)
        for order in ORDERS:
            more = np.array([row[order] for row in own]) - ours
            line[order] = round(float(ours.mean() + more.mean()), 1)
            line[f"{order}_more"] = round(float(more.mean()), 1)
            line[f"{order}_more_error"] = round(float(more.std(ddof=1) / np.sqrt(len(own))), 1)
        table.append(line)
    return {"rate": RATE, "found": FOUND, "rows": table}


def _table(name: str, seed: int) -> tuple[Array, Labels]:
    if name == "moons_200":
        X, y = make_moons(200, noise=0.3, random_state=seed)
    elif name == "wine":
        X, y = load_wine(return_X_y=True)
    else:
        X, y = audit_data(name, seed)
    return np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.int64)


def _flipped(y: Labels, seed: int) -> tuple[Labels, NDArray[np.bool_]]:
    """Labels as recorded: a tenth of each class is another one."""
    rng = np.random.default_rng([SEED, seed])
    recorded, n_classes = y.copy(), int(y.max()) + 1
    for label in range(n_classes):
        rows = np.flatnonzero(y == label)
        wrong = rng.choice(rows, round(RATE * len(rows)), replace=False)
        recorded[wrong] = (label + rng.integers(1, n_classes, len(wrong))) % n_classes
    return recorded, recorded != y


def _cell(name: str, seed: int) -> Rows:
    X, y = _table(name, seed)
    recorded, is_wrong = _flipped(y, seed)
    least = int(np.ceil(FOUND * is_wrong.sum()))
    row = {"data": name, "seed": seed, "n": len(y), "least": least}
    row["review"], row["list"] = _reviewed(X, y, recorded, least, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rival in ORDERS[2:]:
            row[rival] = _looked_at(-_quality(rival, X, recorded, seed), is_wrong, least)
    return [row]


def _looked_at(score: Array, is_wrong: NDArray[np.bool_], least: int) -> int:
    """Rows down to where a list by score has found enough."""
    found = np.cumsum(is_wrong[np.argsort(-score, kind="stable")])
    return int(np.searchsorted(found, least)) + 1


def _reviewed(X: Array, y: Labels, recorded: Labels, least: int, seed: int) -> tuple[int, int]:
    """Rows looked at, by a review and by its first list."""
    from mercer.review.journal import open_journal
    from mercer.review.reviewer import Labels as Reviewed
    from mercer.review.reviewer import Reviewer

    names = tuple(str(k) for k in range(len(y)))
    classes = tuple(str(label) for label in np.unique(recorded))
    labels = Reviewed(X, tuple(str(label) for label in recorded), classes, names, {})
    n_looked = n_found = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        open_journal(Path(folder) / "journal", {"n_rows": len(y)}) as journal,
    ):
        reviewer = Reviewer(labels, journal, seed=seed)
        reviewer.begin()
        first = _looked_at(reviewer.p_wrong, recorded != y, least)
        while n_found < least:
            question = reviewer.question()
            assert question is not None
            right = str(y[question.row])
            is_wrong = right != question.recorded
            n_looked, n_found = n_looked + 1, n_found + is_wrong
            action, label = ("change", right) if is_wrong else ("keep", None)
            reviewer.decide(question.row, action, label, question.position)
            reviewer.wait()
        reviewer.close()
    return n_looked, first


def _quality(rival: str, X: Array, y: Labels, seed: int) -> Array:
    """Quality of each label by cleanlab."""
    from cleanlab.rank import get_label_quality_scores

    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    model: Any = RandomForestClassifier(300, random_state=seed, n_jobs=1)
    if rival == "logistic":
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    p = cross_val_predict(model, X, y, cv=folds, method="predict_proba")
    return np.asarray(get_label_quality_scores(y, p, method="self_confidence"))
