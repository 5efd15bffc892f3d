"""The classifiers that mercer's models are compared with, by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from mercer import baselines
from mercer.errors import UsageError


@dataclass(frozen=True)
class Peer:
    """One baseline."""

    name: str  # what the command line calls it
    label: str  # what tables call it
    #: (seed, n_rows, n_smallest) -> unfitted classifier with `predict_proba`, or regressor with
    #: `predictive`: the seed, rows of a training part, and rows of its smallest class.
    make: Callable[[int, int, int], Any]
    is_brief: bool  # `mercer fit` shows it too
    most_rows: int | None = None  # largest table that is fitted: more rows would take hours
    is_simple: bool = False  # preferred to whatever is only level with it


def _dummy(seed: int, n_rows: int, n_smallest: int) -> Any:
    from sklearn.dummy import DummyClassifier

    return DummyClassifier(strategy="prior")


def _logistic(seed: int, n_rows: int, n_smallest: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return scaled(LogisticRegression(max_iter=1000, random_state=seed))


def _svc(seed: int, n_rows: int, n_smallest: int) -> Any:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.model_selection import StratifiedKFold
    from sklearn.svm import SVC

    if n_smallest < 2:
        raise UsageError("a class has a single row, and calibration needs two")
    folds = StratifiedKFold(min(5, n_smallest), shuffle=True, random_state=seed)
    return CalibratedClassifierCV(scaled(SVC()), cv=folds, ensemble=False, n_jobs=1)


def _neighbours(seed: int, n_rows: int, n_smallest: int) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    # The square root of the rows, as in textbooks: with 5, a probability of 0 is common.
    return scaled(KNeighborsClassifier(min(n_rows, max(5, math.isqrt(n_rows))), n_jobs=1))


def _forest(seed: int, n_rows: int, n_smallest: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(300, random_state=seed, n_jobs=1)


def _boosting(seed: int, n_rows: int, n_smallest: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=seed)


def _own(name: str, seed: int, n_rows: int, n_smallest: int) -> Any:
    """Return a baseline of this package."""
    return getattr(baselines, name)(random_state=seed)


def scaled(estimator: Any) -> Any:
    """Return a pipeline that standardises the inputs first."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), estimator)


PEERS: Final = (
    Peer("dummy", "class shares only", _dummy, is_brief=True, is_simple=True),
    Peer("logistic", "logistic regression", _logistic, is_brief=True, is_simple=True),
    Peer("svc", "calibrated SVC", _svc, is_brief=True),
    Peer("neighbours", "k nearest neighbours", _neighbours, is_brief=False),
    Peer("forest", "random forest", _forest, is_brief=False),
    Peer("boosting", "gradient boosting", _boosting, is_brief=True),
    Peer("rks", "random kitchen sinks", partial(_own, "RKSClassifier"), is_brief=False),
    Peer("mkl", "bank of kernels", partial(_own, "MKLClassifier"), is_brief=False),
    Peer("rfo", "optimised frequencies", partial(_own, "RFOClassifier"), is_brief=False),
)
