"""Barber & Williams, Table 1, crabs: sex from five measurements, 80 training and 120 test rows.

The rows of the published split are not known, and one split is noise: random splits of 40 crabs
of each sex, the same for all methods.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer.gp.estimator import GPClassifier
from mercer.papers.matrices import named_arrays
from mercer.papers.reproduction import Claim, Reproduction, Settings, mean_and_error
from mercer.posterior.scores import error_rate, log_score

__all__ = ["reproduce"]

Array = NDArray[np.float64]

_PAPER, _DEFAULT = "GP (HMC), paper's settings", "GP (HMC), default"
_LOGISTIC, _LDA = "logistic regression", "linear discriminant"


def reproduce(settings: Settings) -> Reproduction:
    """Fit every method on every split."""
    X, y = named_arrays("crabs", without=("colour",))
    n_splits = 3 if settings.is_quick else 20
    errors: dict[str, list[float]] = {}
    log_scores: dict[str, list[float]] = {}
    for split in range(n_splits):
        settings.tell(f"split {split + 1} of {n_splits}")
        train, test = _split(y, split)
        for method, model in _models(split, settings).items():
            proba = model.fit(X[train], y[train]).predict_proba(X[test])
            errors.setdefault(method, []).append(round(len(test) * error_rate(y[test], proba)))
            log_scores.setdefault(method, []).append(log_score(y[test], proba))
    measured = {method: np.array(values) for method, values in errors.items()}
    return Reproduction(
        name="gp-crabs",
        title="Leptograpsus crabs, test errors of 120",
        source="Barber & Williams (1997), Table 1",
        command="mercer reproduce gp-crabs" + (" --quick" if settings.is_quick else ""),
        claims=_claims(measured, n_splits),
        measured=measured,
        unit="test errors of 120",
        published={_PAPER: 3.0, "GP (MAP), paper's prior": 3.0, _LOGISTIC: 4.0, _LDA: 8.0},
        notes=tuple(
            f"Log score of {method}: {mean:.3f} +- {error:.3f}."
            for method, values in log_scores.items()
            for mean, error in [mean_and_error(np.array(values))]
        ),
    )


def _split(y: NDArray[np.int64], seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """40 rows of each sex to train on, the others to test on."""
    rng = np.random.default_rng(seed)
    train = np.concatenate([rng.permutation(np.flatnonzero(y == label))[:40] for label in (0, 1)])
    return train, np.setdiff1d(np.arange(len(y)), train)


def _models(seed: int, settings: Settings) -> dict[str, Any]:
    return {
        _PAPER: GPClassifier.paper().set_params(random_state=seed, progress=False),
        "GP (MAP), paper's prior": GPClassifier(
            inference="map", prior="paper", predictive_mean="mode"
        ),
        _DEFAULT: GPClassifier(random_state=seed, n_jobs=settings.n_jobs, progress=False),
        _LOGISTIC: make_pipeline(StandardScaler(), LogisticRegression(C=1e4, max_iter=1000)),
        _LDA: LinearDiscriminantAnalysis(),
    }


def _claims(measured: dict[str, Array], n_splits: int) -> tuple[Claim, ...]:
    described = {
        method: "{:.2f} +- {:.2f}".format(*mean_and_error(values))
        for method, values in measured.items()
    }
    claims = [
        Claim(
            "GP (HMC) makes 3 errors of 120, logistic regression 4, linear discriminant 8",
            "3; 4; 8",
            "; ".join(described[method] for method in (_PAPER, _LOGISTIC, _LDA)),
            "not judged",
            f"one unknown split in the paper, means over {n_splits} random splits here",
        )
    ]
    for method in (_PAPER, _DEFAULT):
        gap, error = mean_and_error(measured[method] - measured[_LOGISTIC])
        claims.append(
            Claim(
                f"{method}: mean errors at most those of logistic regression, same splits",
                "3 against 4",
                f"{described[method]} against {described[_LOGISTIC]}, "
                f"difference {gap:+.2f} +- {error:.2f}",
                "holds" if gap <= 0.0 else "fails",
            )
        )
    return tuple(claims)
