"""Rows whose label was flipped, found by `KernelGibbsClassifier` and by its rivals.

5, 10 and 20 % of the labels are flipped, four seeds each, on crabs, Pima, breast cancer and
shuttle; a score of the rows is worth its average precision for finding the flips. Rivals: one less
the out-of-fold probability of the recorded label (five folds, the same for all; inputs
standardised) by logistic regression, a random forest and scikit-learn's GaussianProcessClassifier
(one lengthscale, optimised: in a pilot a little better than mercer's own with one for each input),
and on the same probabilities cleanlab: quality adjusted by its thresholds, and the rows that
``find_label_issues`` flags first. (cleanlab's unadjusted quality is the probability itself.)

Target: the mean over cells at least that of the best rival, no cell more than .02 below the best
there; the learned rate within .03 of the true one. Long: use ``--cache``. The rivals alone:
``python -c "from reproduce.scenarios import sphere_audit_v1 as s; s.rows_of(s.RIVALS)"`` with the
environment variable of `reproduce.cells`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from reproduce.cells import measured
from reproduce.workloads import AUDIT_DATA_V1, audit_data_v1

SEED = 0
NEEDS_DATA = True
NEEDS_PACKAGES = ("cleanlab",)

RATES = (0.05, 0.1, 0.2)
N_SEEDS = 4
OURS = ("mercer",)
RIVALS = ("logistic", "forest", "gp")
TARGET_BELOW, TARGET_RATE = 0.02, 0.03

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Rows = list[dict[str, Any]]


def run() -> dict[str, object]:
    """Mean average precision by data, rate and method, and how far ours is from the best."""
    return summary(rows_of((*OURS, *RIVALS)))


def rows_of(families: tuple[str, ...]) -> Rows:
    """Measure all cells of some families; one row for each (data, rate, seed, method)."""
    cells = [
        (name, rate, seed, family)
        for name in AUDIT_DATA_V1
        for rate in RATES
        for seed in range(N_SEEDS)
        for family in families
    ]
    with threadpool_limits(limits=1):
        return measured("sphere-audit-v1", cells, _cell)


def summary(rows: Rows) -> dict[str, object]:
    """Means over seeds; ours against the best rival, cell by cell and over all cells."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    cells = [
        _mean_cell([row for row in rows if (row["data"], row["rate"]) == (name, rate)])
        for name in AUDIT_DATA_V1
        for rate in RATES
    ]
    overall = {
        method: round(float(np.mean([cell["average_precision"][method] for cell in cells])), 4)
        for method in methods
    }
    rivals = {method: mean for method, mean in overall.items() if method not in OURS}
    result: dict[str, object] = {
        "n_seeds": N_SEEDS,
        "target_below_best": TARGET_BELOW,
        "target_rate_error": TARGET_RATE,
        "mean_average_precision": overall,
        "best_rival": max(rivals, key=lambda method: rivals[method]),
    }
    if any("below_best" in cell for cell in cells):
        result["largest_below_best"] = max(cell["below_best"] for cell in cells)
        result["largest_rate_error"] = max(cell["rate_error"] for cell in cells)
    return result | {"cells": cells}


def _mean_cell(rows: Rows) -> dict[str, Any]:
    methods = list(dict.fromkeys(row["method"] for row in rows))
    precision = {
        method: np.array([row["average_precision"] for row in rows if row["method"] == method])
        for method in methods
    }
    means = {method: round(float(values.mean()), 4) for method, values in precision.items()}
    rivals = {method: mean for method, mean in means.items() if method not in OURS}
    best = max(rivals, key=lambda method: rivals[method])
    cell = {
        "data": rows[0]["data"],
        "rate": rows[0]["rate"],
        "average_precision": means,
        "standard_error": {
            method: round(float(values.std(ddof=1) / np.sqrt(len(values))), 4)
            for method, values in precision.items()
        },
        "best_rival": best,
    }
    learned = [row["noise_rate"] for row in rows if "noise_rate" in row]
    if learned:
        gap = precision[best] - precision[OURS[0]]
        cell |= {
            "below_best": round(float(gap.mean()), 4),
            "below_best_standard_error": round(float(gap.std(ddof=1) / np.sqrt(len(gap))), 4),
            "noise_rate": round(float(np.mean(learned)), 4),
            "rate_error": round(abs(float(np.mean(learned)) - rows[0]["rate"]), 4),
        }
    return cell


def flipped(y: Labels, rate: float, seed: int) -> tuple[Labels, NDArray[np.bool_]]:
    """Flip that share of the labels: the labels as recorded, and which are wrong."""
    rng = np.random.default_rng([SEED, seed, round(1000 * rate)])
    is_wrong = np.zeros(len(y), dtype=bool)
    is_wrong[rng.choice(len(y), round(rate * len(y)), replace=False)] = True
    return np.where(is_wrong, 1 - y, y), is_wrong


def _cell(name: str, rate: float, seed: int, family: str) -> Rows:
    X, y = audit_data_v1(name)
    recorded, is_wrong = flipped(y, rate, seed)
    scores, more = _FAMILIES[family](X, recorded, seed)
    return [
        {
            "data": name,
            "rate": rate,
            "seed": seed,
            "method": method,
            "average_precision": round(float(average_precision_score(is_wrong, score)), 5),
            **more,
        }
        for method, score in scores.items()
    ]


# ------------------------------------------------------------------------------------- mercer


def _mercer(X: Array, y: Labels, seed: int) -> tuple[dict[str, Array], dict[str, float]]:
    from mercer.sphere.estimator import KernelGibbsClassifier

    model = KernelGibbsClassifier(
        standardize="auto", n_draws=300, n_warmup=100, random_state=seed, progress=False, n_jobs=1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return {"mercer": model.label_error_proba_}, {"noise_rate": float(model.noise_rate_)}


# ------------------------------------------------------------------------------------- rivals


def _rival(
    family: str,
) -> Callable[[Array, Labels, int], tuple[dict[str, Array], dict[str, float]]]:
    def score(X: Array, y: Labels, seed: int) -> tuple[dict[str, Array], dict[str, float]]:
        from cleanlab.filter import find_label_issues
        from cleanlab.rank import get_label_quality_scores

        folds = StratifiedKFold(5, shuffle=True, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            p = cross_val_predict(_model(family, seed), X, y, cv=folds, method="predict_proba")
            adjusted = get_label_quality_scores(y, p, adjust_pred_probs=True)
            is_flagged = find_label_issues(y, p, n_jobs=1)
        against = 1.0 - p[np.arange(len(y)), y]
        scores = {
            family: against,
            f"cleanlab on {family}, adjusted": 1.0 - adjusted,
            f"cleanlab on {family}, flagged first": against + is_flagged,
        }
        return scores, {}

    return score


def _model(family: str, seed: int) -> Any:
    if family == "forest":
        return RandomForestClassifier(300, random_state=seed, n_jobs=1)
    if family == "logistic":
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    kernel = ConstantKernel(1.0, (1e-3, 1e4)) * RBF(3.0, (1e-2, 1e3))
    return make_pipeline(StandardScaler(), GaussianProcessClassifier(kernel, random_state=seed))


_FAMILIES: dict[str, Callable[..., tuple[dict[str, Array], dict[str, float]]]] = {
    "mercer": _mercer,
    **{family: _rival(family) for family in RIVALS},
}
