"""What mercer's models are compared with, by task; regressors get a predictive law."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from mercer import baselines
from mercer.baselines.paths import split_rows
from mercer.errors import DataError, UsageError
from mercer.estimation.splits import fit_groups, folds
from mercer.posterior.predictive import NormalMixture

Array = NDArray[np.float64]

N_FOLDS = 5
ENOUGH = 5000  # residuals: their root mean square is then known to about one per cent
_TREES = 100  # of fewer a row may be in every bootstrap sample: ``oob_prediction_`` is then 0
_LEAST = 1e-6  # of the target's standard deviation
_MOST_OF_VECTORS = 10_000  # rows of support vector machines, whose time grows with their square


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

    def refusal(self, n_rows: int) -> str:
        """Say why a table of so many rows is not fitted; nothing where it is."""
        if self.most_rows is None or n_rows <= self.most_rows:
            return ""
        return f"{self.label} is left out: it is for {self.most_rows} rows at most"


# The classifiers.


class CalibratedSVC(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A support vector machine; rows left out, by whole groups, say what its scores mean.

    Where a class is in one group alone they are left out one by one.
    """

    def __init__(self, n_folds: int = 5, seed: int = 0) -> None:
        self.n_folds = n_folds
        self.seed = seed

    def fit(self, X: ArrayLike, y: ArrayLike, groups: NDArray[Any] | None = None) -> CalibratedSVC:
        """Fit to all rows, and to all but each fold."""
        cv: Any = StratifiedKFold(self.n_folds, shuffle=True, random_state=self.seed)
        if groups is not None:
            with suppress(DataError):
                rng = np.random.default_rng(self.seed)
                pairs = folds(np.asarray(y), self.n_folds, rng, groups).pairs
                cv = pairs if sum(len(test) for _, test in pairs) == len(groups) else cv
        model = CalibratedClassifierCV(scaled(SVC()), cv=cv, ensemble=False, n_jobs=1)
        self.model_ = model.fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the classes, of shape (m, C)."""
        return np.asarray(self.model_.predict_proba(X))


def _class_shares(seed: int, n_rows: int, n_smallest: int) -> Any:
    return DummyClassifier(strategy="prior")


def _logistic(seed: int, n_rows: int, n_smallest: int) -> Any:
    return scaled(LogisticRegression(max_iter=1000, random_state=seed))


def _svc(seed: int, n_rows: int, n_smallest: int) -> Any:
    if n_smallest < 2:
        raise UsageError("a class has a single row, and calibration needs two")
    return CalibratedSVC(min(5, n_smallest), seed)


def _voting_neighbours(seed: int, n_rows: int, n_smallest: int) -> Any:
    # The square root of the rows, as in textbooks: with 5, a probability of 0 is common.
    return scaled(KNeighborsClassifier(min(n_rows, max(5, math.isqrt(n_rows))), n_jobs=1))


def _voting_forest(seed: int, n_rows: int, n_smallest: int) -> Any:
    return RandomForestClassifier(300, random_state=seed, n_jobs=1)


def _class_boosting(seed: int, n_rows: int, n_smallest: int) -> Any:
    return HistGradientBoostingClassifier(random_state=seed)


def _own_classifier(name: str, seed: int, n_rows: int, n_smallest: int) -> Any:
    """Return a baseline of this package."""
    return getattr(baselines, name)(random_state=seed)


def scaled(estimator: Any) -> Any:
    """Return a pipeline that standardises the inputs first."""
    return make_pipeline(StandardScaler(), estimator)


PEERS: Final = (
    Peer("dummy", "class shares only", _class_shares, is_brief=True, is_simple=True),
    Peer("logistic", "logistic regression", _logistic, is_brief=True, is_simple=True),
    Peer("svc", "calibrated SVC", _svc, is_brief=True, most_rows=_MOST_OF_VECTORS),
    Peer("neighbours", "k nearest neighbours", _voting_neighbours, is_brief=False),
    Peer("forest", "random forest", _voting_forest, is_brief=False),
    Peer("boosting", "gradient boosting", _class_boosting, is_brief=True),
    Peer("rks", "random kitchen sinks", partial(_own_classifier, "RKSClassifier"), is_brief=False),
    Peer("mkl", "bank of kernels", partial(_own_classifier, "MKLClassifier"), is_brief=False),
    Peer("rfo", "optimised frequencies", partial(_own_classifier, "RFOClassifier"), is_brief=False),
)


# Predictive laws for regressors that give a number only: a normal as wide as their residuals.


class ResidualSpread(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor with a normal predictive law, equally wide for all rows.

    The standard deviation is the root of the mean squared residual of rows that the regressor has
    not seen. These are the rows left out of the bootstrap samples where it is a forest of at least
    100 trees that kept them (``oob_prediction_``), those of its own cross-validation where it has
    chosen its settings by one (``cv_errors_``, of the standardised target), and else those of five
    folds, split by ``seed``, of the training rows: it is then fitted six times in all. Of many rows
    as many folds are left out one after the other as hold 5000 rows: one above 25 000 rows. Rows
    that come in groups are left out by whole groups.
    """

    def __init__(self, regressor: Any, seed: int = 0) -> None:
        self.regressor = regressor
        self.seed = seed

    def fit(self, X: ArrayLike, y: ArrayLike, groups: NDArray[Any] | None = None) -> ResidualSpread:
        """Fit the regressor, and learn how far it is off on rows it has not seen."""
        target = np.asarray(y, dtype=np.float64)
        if len(target) < 2:
            raise DataError("found 1 sample(s); the spread of residuals needs two")
        self.regressor_ = self._fitted(X, target, groups)
        self.std_ = max(self._spread(X, target, groups), least_std(target))
        return self

    def _spread(self, X: ArrayLike, y: Array, groups: NDArray[Any] | None) -> float:
        """Return the root of the mean squared residual of rows that were not seen."""
        if groups is not None and len(np.unique(groups)) > 1:
            return float(np.sqrt(np.mean(self._left_out(np.asarray(X), y, groups) ** 2)))
        errors = getattr(self.regressor_, "cv_errors_", None)
        if errors is not None:
            return float(np.sqrt(errors.min()) * y.std())
        predicted = getattr(self.regressor_, "oob_prediction_", None)
        if predicted is None or getattr(self.regressor_, "n_estimators", 0) < _TREES:
            residuals = self._left_out(np.asarray(X), y)
        else:
            residuals = y - predicted
        return float(np.sqrt(np.mean(np.square(residuals))))

    def _left_out(self, X: Array, y: Array, groups: NDArray[Any] | None = None) -> Array:
        """Return residuals of rows left out, fold by fold, until they are enough."""
        residuals: list[Array] = []
        for train, test in split_rows(len(y), N_FOLDS, self.seed, groups):
            own = None if groups is None else groups[train]
            fitted = self._fitted(X[train], y[train], own)
            residuals.append(y[test] - fitted.predict(X[test]))
            if sum(map(len, residuals)) >= ENOUGH:
                break
        return np.concatenate(residuals)

    def _fitted(self, X: ArrayLike, y: Array, groups: NDArray[Any] | None) -> Any:
        return clone(self.regressor).fit(X, y, **fit_groups(self.regressor, groups))

    def predict(self, X: ArrayLike) -> Array:
        """Return the regressor's predictions, of shape (m,)."""
        return np.asarray(self.regressor_.predict(X), dtype=np.float64)

    def predictive(self, X: ArrayLike) -> NormalMixture:
        """Return a normal law for each row."""
        mean = self.predict(X)
        return NormalMixture(mean[:, np.newaxis], np.array([self.std_]))


def least_std(y: Array) -> float:
    """Return the least standard deviation of a law: a millionth of that of the training targets.

    A regressor without residuals would otherwise have an infinite density.
    """
    return _LEAST * float(y.std()) or float(np.finfo(float).tiny)


# Scikit-learn's Gaussian process with one length scale an input, found by maximum likelihood.


class ArdProcess(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A Gaussian process with the RBF kernel on standardised inputs, and noise.

    Its law of a new observation is its own: the variance of the function and that of the noise.
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> ArdProcess:
        """Maximise the marginal likelihood, from length scales of sqrt(d) and a tenth of noise."""
        target = np.asarray(y, dtype=np.float64)
        self.scaler_ = StandardScaler().fit(X)
        Z = self.scaler_.transform(X)
        d = Z.shape[1]
        function = ConstantKernel(1.0, (1e-3, 1e4)) * RBF(np.full(d, np.sqrt(d)), (1e-2, 1e4))
        noise = WhiteKernel(0.1, (1e-8, 10.0))
        self.process_ = GaussianProcessRegressor(function + noise, normalize_y=True)
        self.process_.fit(Z, target)
        self.least_std_ = least_std(target)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Return the posterior mean, of shape (m,)."""
        return np.asarray(self.process_.predict(self.scaler_.transform(X)), dtype=np.float64)

    def predictive(self, X: ArrayLike) -> NormalMixture:
        """Return a normal law for each row."""
        mean, std = self.process_.predict(self.scaler_.transform(X), return_std=True)
        return NormalMixture(mean[:, np.newaxis], np.maximum(std, self.least_std_)[:, np.newaxis])


# The regressors that mercer's models are compared with, by name.
#
# Each has ``predictive``. Those that predict a number only are given the spread of their residuals
# on rows they have not seen (`ResidualSpread`). All but the trees standardise the inputs; SVR the
# target too.


def _dummy(seed: int, n_rows: int, n_smallest: int) -> Any:
    return ResidualSpread(DummyRegressor(strategy="mean"), seed)


class PenalisedRegression(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Ridge regression whose penalty rows left out choose, whole groups where there are several."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(
        self, X: ArrayLike, y: Array, groups: NDArray[Any] | None = None
    ) -> PenalisedRegression:
        """Choose the penalty, and fit to all rows."""
        by_groups: dict[str, Any] = {}
        if groups is not None and len(np.unique(groups)) > 1:
            cv = split_rows(len(y), N_FOLDS, self.seed, groups)
            by_groups = {"cv": cv, "scoring": "neg_mean_squared_error"}
        self.model_ = scaled(RidgeCV(alphas=np.logspace(-3, 4, 15), **by_groups)).fit(X, y)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Predictions of shape (m,)."""
        return np.asarray(self.model_.predict(X), dtype=np.float64)


def _ridge(seed: int, n_rows: int, n_smallest: int) -> Any:
    return ResidualSpread(PenalisedRegression(seed), seed)


def _svr(seed: int, n_rows: int, n_smallest: int) -> Any:
    return ResidualSpread(
        TransformedTargetRegressor(scaled(SVR(C=10.0)), transformer=StandardScaler()), seed
    )


def _neighbours(seed: int, n_rows: int, n_smallest: int) -> Any:
    # Of the rows a fifth is left out to see the residuals.
    n_neighbours = min(5, max(1, 4 * n_rows // 5))
    regressor = KNeighborsRegressor(n_neighbours, weights="distance", n_jobs=1)
    return ResidualSpread(scaled(regressor), seed)


def _forest(seed: int, n_rows: int, n_smallest: int) -> Any:
    return ResidualSpread(
        RandomForestRegressor(300, oob_score=True, random_state=seed, n_jobs=1), seed
    )


def _boosting(seed: int, n_rows: int, n_smallest: int) -> Any:
    return ResidualSpread(HistGradientBoostingRegressor(random_state=seed), seed)


def _process(seed: int, n_rows: int, n_smallest: int) -> Any:
    return ArdProcess()


def _own(name: str, seed: int, n_rows: int, n_smallest: int) -> Any:
    """Return a baseline of this package."""
    return ResidualSpread(getattr(baselines, name)(random_state=seed), seed)


#: A regressor that predicts a number only joins by one line and a function like those above.
REGRESSION_PEERS: Final = (
    Peer("dummy", "mean only", _dummy, is_brief=True, is_simple=True),
    Peer("ridge", "ridge regression", _ridge, is_brief=True, is_simple=True),
    Peer("svr", "SVR", _svr, is_brief=False, most_rows=_MOST_OF_VECTORS),
    Peer("neighbours", "k nearest neighbours", _neighbours, is_brief=False),
    Peer("forest", "random forest", _forest, is_brief=False),
    Peer("boosting", "gradient boosting", _boosting, is_brief=True),
    Peer("rks", "random kitchen sinks", partial(_own, "RKSRegressor"), is_brief=False),
    Peer("mkl", "bank of kernels", partial(_own, "MKLRegressor"), is_brief=False),
    Peer("a-la-carte", "A la Carte", partial(_own, "AlaCarteRegressor"), is_brief=False),
    Peer("rfo", "optimised frequencies", partial(_own, "RFORegressor"), is_brief=False),
    Peer("gp-ml", "GP, max. likelihood", _process, is_brief=False, most_rows=1000),
)


def peers_of(task: str) -> tuple[Peer, ...]:
    """Return the baselines of "classification" or of "regression"."""
    return PEERS if task == "classification" else REGRESSION_PEERS
