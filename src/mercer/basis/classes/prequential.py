"""Rows predicted, then learned, one after the other: for classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.basis.arrays import Array
from mercer.basis.classes.answers import ClassPrequential
from mercer.basis.classes.several import ClassOutlook
from mercer.basis.rows import known_runs

__all__ = ["known_labels", "predict_then_learn"]


def known_labels(y: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return labels as an array, and which of them are known: neither None nor NaN."""
    labels = np.asarray(y)
    is_known = np.array([v is not None and v == v for v in labels.ravel().tolist()], dtype=bool)
    return labels, is_known


def predict_then_learn(
    model: Any, X: Array, labels: NDArray[np.int64], is_known: NDArray[np.bool_]
) -> ClassPrequential:
    """See `mercer.SequentialKernelClassifier.prequential`.

    Rows where ``is_known`` is False are predicted only.
    """
    said: list[ClassOutlook] = []

    def see(outlook: ClassOutlook) -> None:
        model._keep_density(outlook)
        said.append(outlook)

    learner = model._learner
    learner.check(X[is_known], labels[is_known])
    for rows in known_runs(is_known):
        if is_known[rows.start]:
            learner.learn(X[rows], labels[rows], see)
            continue
        running = learner.release(see)
        n_centres = model.n_centres_
        for row in running.proba(running.standardise(X[rows])):
            said.append(ClassOutlook(row, np.nan, n_centres))
    learner.release(see)
    said = said[-len(is_known) :]  # those before had been held back
    proba = np.array([outlook.proba for outlook in said])
    return ClassPrequential(
        proba,
        model.classes_[np.argmax(proba, axis=1)],
        np.array([outlook.log_density for outlook in said]),
        np.array([outlook.n_centres for outlook in said]),
    )
