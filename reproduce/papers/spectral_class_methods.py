"""The methods of Oliva et al., Table 2, and three that everybody knows.

Every method chooses its own settings from the training rows, as the paper's do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler, StandardScaler
from sklearn.svm import SVC

from mercer.baselines.random_features import MKLClassifier, RKSClassifier
from mercer.baselines.rfo import RFOClassifier
from reproduce.papers.spectral_class_folds import ClassFold
from reproduce.papers.spectral_methods import HOUR_A_SET, PAPER_CHAIN

__all__ = ["CLASS_METHODS", "MAX_SECONDS", "ClassMethod"]

Array = NDArray[np.float64]

#: Of one fit of a method that takes a limit of time.
MAX_SECONDS = 900.0
_SEED = 0
# From so many training rows on BaNK has other chains: short ones, each of which begins where a
# climb of its own has led, predict better together than fewer long ones would; of yet more rows
# there is time for four.
_CHAINS_OF_MANY_ROWS = {
    5000: {"n_chains": 8, "n_warmup": 10, "n_draws": 10},
    20_000: {"n_chains": 4, "n_warmup": 10, "n_draws": 10},
}
# Settings of support vectors and of gradient boosting are chosen on so many rows.
_SUPPORT_ROWS, _SELECTION_ROWS = 2000, 10_000
# Above so many training rows support vectors are left out.
_LARGEST_SVC = 50_000
_RATES, _LEAVES, _LARGEST_ENSEMBLE = (0.05, 0.1), (15, 31), 300
_COSTS, _WIDTHS = (1.0, 10.0, 100.0), (0.1, 0.3, 1.0, 3.0)


@dataclass(frozen=True)
class ClassMethod:
    """A column of the table.

    Attributes
    ----------
    key : str
        In names of files.
    name : str
        In tables.
    run : callable
        (fold, is_quick, n_jobs) -> probabilities of class 1 of the test rows.
    largest : int or None
        Training rows beyond which it is left out.
    """

    key: str
    name: str
    run: Callable[[ClassFold, bool, int | None], Array]
    largest: int | None = None


def _random_features(make: Callable[..., Any]) -> Any:
    def run(fold: ClassFold, is_quick: bool, n_jobs: int | None) -> Array:
        """Inputs standardised or as they are, whichever cross-validates better."""
        size: dict[str, Any] = {}
        if is_quick:
            size = {"n_features": 48, "penalties": (1e-2, 1e-1), "length_factors": (0.5, 1.0, 2.0)}
        fitted = [
            make(standardize=standardize, random_state=_SEED, **size).fit(fold.X, fold.y)
            for standardize in ("auto", False)
        ]
        return _second(min(fitted, key=lambda model: float(model.cv_errors_.min())), fold)

    return run


def _optimised(fold: ClassFold, is_quick: bool, n_jobs: int | None) -> Array:
    model = RFOClassifier(random_state=_SEED, max_seconds=MAX_SECONDS)
    if is_quick:
        model.set_params(n_features=48, components=(1,), penalties=(1.0,), steps=(5, 20))
    return _second(model.fit(fold.X, fold.y), fold)


def _bank(fold: ClassFold, is_quick: bool, n_jobs: int | None) -> Array:
    from mercer.spectral.classifier import BaNKClassifier

    model = BaNKClassifier(
        random_state=_SEED, n_jobs=n_jobs, progress=False, max_seconds=MAX_SECONDS
    )
    for n_rows, lengths in _CHAINS_OF_MANY_ROWS.items():
        if len(fold.y) >= n_rows:
            model.set_params(**lengths)
    if is_quick:
        model.set_params(n_frequencies=24, n_draws=20, n_warmup=10, n_chains=1)
    return _second(model.fit(fold.X, fold.y), fold)


def _paper_chain(fold: ClassFold, is_quick: bool, n_jobs: int | None) -> Array:
    """384 frequencies, 150 sweeps of joint moves, or as many as their time allows."""
    from mercer.spectral.classifier import BaNKClassifier

    model = BaNKClassifier.paper().set_params(
        random_state=_SEED, n_jobs=n_jobs, progress=False, max_seconds=HOUR_A_SET
    )
    if is_quick:
        model.set_params(n_frequencies=24, n_draws=20, n_warmup=10)
    return _second(model.fit(fold.X, fold.y), fold)


def _logistic(fold: ClassFold, is_quick: bool, n_jobs: int | None) -> Array:
    machine = LogisticRegressionCV(
        Cs=3 if is_quick else 10, cv=_folds(), scoring="neg_log_loss", max_iter=1000,
        l1_ratios=(0.0,), use_legacy_attributes=False,
    )  # fmt: skip
    return _second(make_pipeline(StandardScaler(), machine).fit(fold.X, fold.y), fold)


def _support_vectors(fold: ClassFold, is_quick: bool, n_jobs: int | None) -> Array:
    """Cost and width by cross-validated errors on some rows, then Platt's sigmoid on all."""
    rows = _some(len(fold.y), _SUPPORT_ROWS)
    d = fold.X.shape[1]
    grid = {
        "svc__C": _COSTS[:1] if is_quick else _COSTS,
        "svc__gamma": [width / d for width in (_WIDTHS[2:3] if is_quick else _WIDTHS)],
    }
    search = GridSearchCV(make_pipeline(RobustScaler(), SVC()), grid, cv=_folds())
    machine = search.fit(fold.X[rows], fold.y[rows]).best_estimator_
    model = CalibratedClassifierCV(machine, method="sigmoid", cv=_folds(), ensemble=False)
    return _second(model.fit(fold.X, fold.y), fold)


def _boosting(fold: ClassFold, is_quick: bool, n_jobs: int | None) -> Array:
    """Learning rate, leaves and number of trees by cross-validated log loss."""
    n_trees = 30 if is_quick else _LARGEST_ENSEMBLE
    rows = _some(len(fold.y), _SELECTION_ROWS)
    grid = [(rate, leaves) for rate in _RATES for leaves in _LEAVES]
    grid = grid[-2:-1] if is_quick else grid
    losses = np.array([_staged_losses(fold.X[rows], fold.y[rows], n_trees, *g) for g in grid])
    which, stage = divmod(int(np.argmin(losses)), n_trees)
    return _second(_trees(stage + 1, *grid[which]).fit(fold.X, fold.y), fold)


def _trees(n_trees: int, rate: float, leaves: int) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(
        learning_rate=rate, max_leaf_nodes=leaves, max_iter=n_trees, early_stopping=False,
        random_state=_SEED,
    )  # fmt: skip


def _staged_losses(X: Array, y: NDArray[np.int64], n_trees: int, rate: float, leaves: int) -> Array:
    """Sums over three folds of log losses, one for each number of trees: shape (n_trees,)."""
    losses = np.zeros(n_trees)
    folds = StratifiedKFold(3, shuffle=True, random_state=_SEED)
    for train, test in folds.split(X, y):
        model = _trees(n_trees, rate, leaves).fit(X[train], y[train])
        for k, proba in enumerate(model.staged_predict_proba(X[test])):
            losses[k] += log_loss(y[test], proba, normalize=False, labels=[0, 1])
    return losses


def _folds() -> StratifiedKFold:
    return StratifiedKFold(5, shuffle=True, random_state=_SEED)


def _some(n: int, n_kept: int) -> NDArray[np.int64]:
    if n <= n_kept:
        return np.arange(n)
    return np.sort(np.random.default_rng(_SEED).choice(n, n_kept, replace=False))


def _second(model: Any, fold: ClassFold) -> Array:
    """Probabilities of class 1."""
    return np.asarray(model.predict_proba(fold.X_test)[:, 1])


CLASS_METHODS = (
    ClassMethod("rks", "RKS", _random_features(RKSClassifier)),
    ClassMethod("mkl", "MKL", _random_features(MKLClassifier)),
    ClassMethod("rfo", "RFO", _optimised),
    ClassMethod("bank", "BaNK", _bank),
    ClassMethod("bank-paper", PAPER_CHAIN, _paper_chain),
    ClassMethod("boosting", "gradient boosting", _boosting),
    ClassMethod("svc", "calibrated SVC", _support_vectors, _LARGEST_SVC),
    ClassMethod("logistic", "logistic regression", _logistic),
)
