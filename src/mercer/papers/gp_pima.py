"""Barber & Williams, Table 1, Pima: Ripley's split, 200 training and 332 test rows."""

from __future__ import annotations

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

_LIMIT_LOG_SCORE = 0.44


def reproduce(settings: Settings) -> Reproduction:
    """Fit the paper's chain and the default with several seeds, and two linear classifiers."""
    X, y = named_arrays("pima_tr")
    X_test, y_test = named_arrays("pima_te")
    n_test = len(y_test)
    seeds = range(2 if settings.is_quick else 5)
    errors: dict[str, list[float]] = {}
    log_scores: dict[str, list[float]] = {}
    rejected = []

    def score(method: str, proba: Array) -> None:
        errors.setdefault(method, []).append(round(n_test * error_rate(y_test, proba)))
        log_scores.setdefault(method, []).append(log_score(y_test, proba))

    for seed in seeds:
        settings.tell(f"seed {seed + 1} of {len(seeds)}")
        paper = GPClassifier.paper().set_params(random_state=seed, progress=False).fit(X, y)
        score("GP (HMC), paper's settings", paper.predict_proba(X_test))
        rejected.append(1.0 - float(paper.posterior_.stats["is_accepted"].mean()))
        default = GPClassifier(random_state=seed, n_jobs=settings.n_jobs, progress=False)
        score("GP (HMC), default", default.fit(X, y).predict_proba(X_test))
    at_maximum = GPClassifier(inference="map", prior="paper", predictive_mean="mode")
    score("GP (MAP), paper's prior", at_maximum.fit(X, y).predict_proba(X_test))
    for method, rival in {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(C=1e4)),
        "linear discriminant": LinearDiscriminantAnalysis(),
    }.items():
        score(method, rival.fit(X, y).predict_proba(X_test))
    measured = {method: np.array(values) for method, values in errors.items()}
    return Reproduction(
        name="gp-pima",
        title="Pima Indians diabetes, test errors of 332",
        source="Barber & Williams (1997), Table 1",
        command="mercer reproduce gp-pima" + (" --quick" if settings.is_quick else ""),
        claims=_claims(measured, log_scores, np.array(rejected)),
        measured=measured,
        unit="test errors of 332",
        published={
            "GP (HMC), paper's settings": 68.0,
            "GP (MAP), paper's prior": 69.0,
            "logistic regression": 66.0,
            "linear discriminant": 67.0,
        },
        notes=tuple(
            f"Log score of {method}: {mean_and_error(np.array(values))[0]:.4f}."
            for method, values in log_scores.items()
        ),
    )


def _claims(
    measured: dict[str, Array], log_scores: dict[str, list[float]], rejected: Array
) -> tuple[Claim, ...]:
    hmc = measured["GP (HMC), paper's settings"]
    at_maximum = measured["GP (MAP), paper's prior"][0]
    default = np.array(log_scores["GP (HMC), default"])
    return (
        Claim(
            "GP (HMC) makes no more errors than published, mean over seeds",
            "68",
            f"{hmc.mean():.1f} ({', '.join(f'{value:.0f}' for value in hmc)})",
            "holds" if hmc.mean() <= 68 else "fails",
        ),
        Claim(
            "GP (MAP) makes no more errors than published",
            "69",
            f"{at_maximum:.0f}",
            "holds" if at_maximum <= 69 else "fails",
        ),
        Claim(
            "fewer than 5 % of trajectories are rejected",
            "< 5 %",
            f"{100 * rejected.max():.1f} % at most",
            "holds" if rejected.max() < 0.05 else "fails",
        ),
        Claim(
            f"the default's log score is at most {_LIMIT_LOG_SCORE}",
            "-",
            f"{default.mean():.4f}",
            "holds" if default.mean() <= _LIMIT_LOG_SCORE else "fails",
            "a promise of mercer, not of the paper",
        ),
    )
