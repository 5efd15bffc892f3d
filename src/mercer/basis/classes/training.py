"""From a table with classes to a learner that has learned its rows, through the one driver."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.basis.arrays import Array, Integers
from mercer.basis.classes.learner import ClassLearner, check_size
from mercer.basis.training import MOST_BYTES, Fitted, learn_table
from mercer.errors import DataError
from mercer.estimation.run import CommonArguments, run_options
from mercer.sampling.checkpoint import digest_arrays

__all__ = ["fit_classes"]


def fit_classes(
    learner: ClassLearner,
    X: Array,
    labels: Integers,
    common: CommonArguments,
    started: float,
    estimator: Any,
) -> Fitted[ClassLearner]:
    """Learn the rows of a table X (n, d), classes (n,), in their order; all are held.

    Parameters
    ----------
    learner : ClassLearner
        New; it is begun here.
    estimator : estimator
        Whose arguments identify the checkpoint.

    Raises
    ------
    DataError
        If that would take more memory than is reasonable.
    """
    n_bytes = learner.settings.n_bytes(len(X), X.shape[1], learner.n_classes)
    if n_bytes > MOST_BYTES:
        raise DataError(
            f"to hold {len(X)} rows takes about {n_bytes / 2**30:.0f} GiB; use partial_fit, which "
            "holds n_buffered of them, or a smaller max_candidates"
        )
    options = run_options(common, estimator, digest_arrays(X, labels), started)
    learner = replace(learner, entropy=options.entropy)
    scales = learner.given.of_table(X, labels.astype(np.float64), learner.names)
    running = learner.begin(scales.standardizer, X, len(X))
    Z = running.standardise(X)
    check_size(Z)
    return learn_table(learner, running.sticks, Z, labels, options, 0.0)
