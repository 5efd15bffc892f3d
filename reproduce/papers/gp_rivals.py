"""Rivals of Gaussian processes in the tables of Barber & Williams, as scikit-learn has them.

Each chooses its settings from its training rows. Not run, since no library that mercer stands on
has them: MARS, projection pursuit, the network of Ripley's predictive approach.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from reproduce.papers.gp_mixtures import MixtureDiscriminant
from reproduce.papers.gp_networks import Networks

__all__ = [
    "calibrated_support_vectors",
    "decayed_networks",
    "decision_tree",
    "likeliest_network",
    "linear_discriminant",
    "logistic_regression",
    "mixture_discriminant",
    "penalised_logistic_regression",
    "random_forest",
]

_N_FOLDS = 5
_NO_PENALTY = 1e4  # all but maximum likelihood; finite where a plane separates the classes
_PENALTIES = np.logspace(-2.0, 4.0, 7)
_DECAYS = np.logspace(-2.0, 1.0, 4)
_PRUNING = (0.0, *np.logspace(-3.0, -1.0, 9))
_COSTS, _WIDTHS = np.logspace(-1.0, 3.0, 5), np.logspace(-3.0, 0.0, 4)


def linear_discriminant(seed: int, is_quick: bool) -> Any:
    """Linear discriminant analysis."""
    return LinearDiscriminantAnalysis()


def logistic_regression(seed: int, is_quick: bool) -> Any:
    """Logistic regression by maximum likelihood, all but."""
    return make_pipeline(StandardScaler(), LogisticRegression(C=_NO_PENALTY, max_iter=1000))


def penalised_logistic_regression(seed: int, is_quick: bool) -> Any:
    """Logistic regression, its penalty chosen by the cross-validated log score."""
    return _searched(LogisticRegression(max_iter=1000), {"C": _PENALTIES}, is_quick)


def likeliest_network(n_hidden: int, seed: int, is_quick: bool) -> Any:
    """Train a network of so many hidden units by maximum likelihood: the best of five starts."""
    n_starts = 2 if is_quick else 5
    networks = Networks(n_hidden=n_hidden, n_starts=n_starts, random_state=seed)
    return make_pipeline(StandardScaler(), networks)


def decayed_networks(n_hidden: int, seed: int, is_quick: bool) -> Any:
    """Average three networks; weight decay chosen by the cross-validated log score."""
    n_starts = 1 if is_quick else 3
    networks = Networks(n_hidden=n_hidden, n_starts=n_starts, is_averaged=True, random_state=seed)
    return _searched(networks, {"decay": _DECAYS}, is_quick)


def mixture_discriminant(seed: int, is_quick: bool) -> Any:
    """Two Gaussians a class, all of one covariance."""
    return make_pipeline(StandardScaler(), MixtureDiscriminant(random_state=seed))


def decision_tree(seed: int, is_quick: bool) -> Any:
    """Grow a tree and prune it by cost-complexity, as far as cross-validated errors say."""
    tree = DecisionTreeClassifier(random_state=seed)
    return _searched(tree, {"ccp_alpha": _PRUNING}, is_quick, scoring="accuracy")


def random_forest(seed: int, is_quick: bool) -> Any:
    """500 trees, nothing chosen."""
    return RandomForestClassifier(50 if is_quick else 500, random_state=seed)


def calibrated_support_vectors(seed: int, is_quick: bool) -> Any:
    """Support vectors, cost and width by cross-validated errors, then Platt's sigmoids."""
    grid = {"C": _COSTS, "gamma": _WIDTHS}
    machine = _searched(SVC(), grid, is_quick, scoring="accuracy")
    return CalibratedClassifierCV(machine, method="sigmoid", cv=_folds(), ensemble=False)


def _searched(
    model: Any, grid: dict[str, Any], is_quick: bool, scoring: str = "neg_log_loss"
) -> Any:
    """Standardise and search a grid; a quick run leaves out every second value."""
    thinned = {
        name: list(values)[1::2] if is_quick else list(values) for name, values in grid.items()
    }
    search = GridSearchCV(model, thinned, scoring=scoring, cv=_folds())
    return make_pipeline(StandardScaler(), search)


def _folds() -> StratifiedKFold:
    return StratifiedKFold(_N_FOLDS, shuffle=True, random_state=0)
