"""Rivals of Gaussian processes in the tables of Barber & Williams, as scikit-learn or R has them.

Each chooses its settings from its training rows. MARS and projection pursuit are those of R, by
``Rscript`` with the package earth, and are left out where these are missing. The network of
Ripley's predictive approach is not run: no library has it.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
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
    "RegressionInR",
    "calibrated_support_vectors",
    "decayed_networks",
    "decision_tree",
    "has_r",
    "likeliest_network",
    "linear_discriminant",
    "logistic_regression",
    "mars",
    "mixture_discriminant",
    "penalised_logistic_regression",
    "projection_pursuit",
    "random_forest",
]

Array = NDArray[np.float64]

_N_FOLDS = 5
# Shares of 0 and 1 that a regression on indicators predicts are no probabilities.
_LEAST_SHARE = 0.01
_R_PROGRAM = """
suppressPackageStartupMessages(library(earth))
given <- commandArgs(trailingOnly = TRUE)
table_of <- function(name) as.matrix(read.csv(file.path(given[1], name), header = FALSE))
X <- table_of("X.csv"); Y <- table_of("Y.csv"); X_test <- table_of("X_test.csv")
if (given[2] == "mars") {
    model <- earth(X, Y, degree = 1)
} else {
    model <- ppr(X, Y, nterms = as.integer(given[3]))
}
found <- predict(model, X_test)
write.table(found, file.path(given[1], "found.csv"), sep = ",", row.names = FALSE,
            col.names = FALSE)
"""
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


def mars(seed: int, is_quick: bool) -> Any:
    """MARS of degree 1: earth of R, on indicators of the classes."""
    return make_pipeline(StandardScaler(), RegressionInR("mars"))


def projection_pursuit(n_ridges: int, seed: int, is_quick: bool) -> Any:
    """Fit so many ridge functions: ppr of R, on indicators of the classes."""
    return make_pipeline(StandardScaler(), RegressionInR("ppr", n_ridges))


@functools.cache
def has_r() -> bool:
    """Whether ``Rscript`` and its package earth are there."""
    if shutil.which("Rscript") is None:
        return False
    command = ["Rscript", "-e", "library(earth)"]
    return subprocess.run(command, capture_output=True).returncode == 0


class RegressionInR(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A regression of R on indicators of the classes; the largest prediction is the class.

    R fits and predicts in one process, when probabilities are asked for.

    Parameters
    ----------
    method : {"mars", "ppr"}
    n_ridges : int
        Of projection pursuit.
    """

    def __init__(self, method: str, n_ridges: int = 0) -> None:
        self.method = method
        self.n_ridges = n_ridges

    def fit(self, X: ArrayLike, y: ArrayLike) -> RegressionInR:
        """Keep the rows."""
        self.X_ = np.asarray(X, dtype=np.float64)
        self.classes_, self.codes_ = np.unique(np.asarray(y), return_inverse=True)
        return self

    def predict_proba(self, X: ArrayLike) -> Array:
        """Fit in R; predictions cut to shares and made to sum to one, shape (m, n_classes)."""
        n_classes = len(self.classes_)
        Y = np.eye(n_classes)[self.codes_]
        if n_classes == 2:
            Y = Y[:, 1:]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            files = {"X": self.X_, "Y": Y, "X_test": np.asarray(X, dtype=np.float64)}
            for stem, values in files.items():
                np.savetxt(folder / f"{stem}.csv", values, delimiter=",")
            program = folder / "fit.R"
            program.write_text(_R_PROGRAM)
            command = ["Rscript", str(program), name, self.method, str(self.n_ridges)]
            subprocess.run(command, check=True, capture_output=True)
            found = np.loadtxt(folder / "found.csv", delimiter=",", ndmin=2)
        shares = np.clip(found, _LEAST_SHARE, 1.0 - _LEAST_SHARE)
        if n_classes == 2:
            shares = np.column_stack([1.0 - shares, shares])
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Most probable class of each row."""
        labels: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels


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
