"""Regressors and classifiers on random features: what RKS, MKL and RFO share.

What the baselines on random features share: ``fit`` and ``predict`` by ridge regression.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import validate_data

from mercer.baselines.paths import (
    NormalEquations,
    Selection,
    blocks_of,
    choose_by_log_loss,
    cross_validate,
    fit_weights,
    fitted_values,
    normal_equations,
    ridge,
)
from mercer.baselines.random_features import (
    Bank,
    ClassTargets,
    InputEstimator,
    TargetScale,
    probabilities,
    some_rows,
)
from mercer.errors import NumericalError, UsageError
from mercer.estimation.run import check_positive
from mercer.estimation.standardize import Standardizer
from mercer.random import entropy_of, stream

__all__ = [
    "CLASS_FACTORS",
    "CLASS_PENALTIES",
    "FACTORS",
    "PENALTIES",
    "FunctionClassifier",
    "FunctionRegressor",
    "RandomFeatureClassifier",
    "RandomFeatureRegressor",
    "checked_grid",
    "equations_of",
    "solve_allowed",
]


Array = NDArray[np.float64]

#: Length scales in median distances; the largest ones are all but linear.
FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
#: Noise variance over signal variance, from next to nothing to a hundred.
PENALTIES = (1e-12, 1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)


class FunctionRegressor(RegressorMixin, InputEstimator):  # type: ignore[misc]
    """Predictions of a function of Fourier features, in the units of the target."""

    frequencies_: Array
    coef_: Array
    intercept_: Any

    def predict(self, X: ArrayLike) -> Array:
        """Predict the target of rows of shape (m, d); shape (m,), in the units of the target."""
        checked = self._new_rows(X)
        coef = np.append(self.intercept_, self.coef_)
        u = np.empty(len(checked))
        for rows in blocks_of(len(checked), len(coef)):
            Z = self.standardizer_.transform(checked[rows])
            u[rows] = fitted_values(self.frequencies_, coef, Z)
        return self._target_scale_.restore(u)

    def _checked_numbers(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
        """Check training rows and learn their scales; return inputs, and standardised targets."""
        checked = validate_data(
            self, X, y, dtype=np.float64, order="C", y_numeric=True, ensure_min_samples=2
        )
        rows, target = checked[0], np.asarray(checked[1], np.float64)
        self._learn_inputs(rows)
        self._target_scale_ = TargetScale.of(target)
        return rows, self._target_scale_.standardise(target)


class RandomFeatureRegressor(FunctionRegressor, ABC):
    """Ridge regression on random Fourier features; a subclass says which frequencies are drawn."""

    length_factors: Sequence[float]
    penalties: Sequence[float]
    random_state: object

    @abstractmethod
    def _draw(self, rng: np.random.Generator, Z: Array) -> Bank:
        """Check what is the subclass's own, and draw frequencies for standardised rows."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> RandomFeatureRegressor:
        """Draw frequencies, choose length scale and penalty, and solve for the coefficients.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,)

        Returns
        -------
        self

        Raises
        ------
        UsageError
            If an argument is out of its range.
        NumericalError
            If every penalty is so small that the equations are singular.
        """
        self._forget()
        factors = checked_grid("length_factors", self.length_factors)
        penalties = checked_grid("penalties", self.penalties)
        n_folds, n_kept = self._checked()
        rows, target = self._checked_numbers(X, y)
        chosen = self._select(rows, target, factors, penalties, n_folds, n_kept)
        equations = equations_of(self.frequencies_, self.standardizer_, rows, target)
        coef, self.penalty_ = solve_allowed(
            equations, [p for p in penalties if p >= chosen.penalty]
        )
        self.intercept_, self.coef_ = float(coef[0]), coef[1:]
        return self

    def _select(
        self,
        X: Array,
        u: Array,
        factors: Sequence[float],
        penalties: Sequence[float],
        n_folds: int,
        n_kept: int,
    ) -> Selection:
        """Draw frequencies, and choose their length scale and the penalty on some of the rows."""
        entropy = entropy_of(self.random_state)
        some = some_rows(stream(entropy, "rows"), len(X), n_kept)
        Z = self.standardizer_.transform(X[some])
        bank = self._draw(stream(entropy, "start"), Z)
        seed = int(stream(entropy, "folds").integers(2**31))
        chosen = cross_validate(bank.scaled, Z, u[some], factors, penalties, n_folds, seed)
        self.cv_errors_, self.length_factor_ = chosen.errors, chosen.factor
        self.frequencies_ = bank.scaled(chosen.factor)
        return chosen


def checked_grid(name: str, values: Sequence[float]) -> tuple[float, ...]:
    """Return numbers above 0, at least one, in rising order, or raise `UsageError`."""
    if isinstance(values, str) or not hasattr(values, "__len__") or len(values) == 0:
        raise UsageError(f"{name} must be a sequence of numbers above 0; got {values!r}")
    return tuple(sorted(check_positive(f"each of {name}", value) for value in values))


def equations_of(W: Array, standardizer: Standardizer, X: Array, y: Array) -> NormalEquations:
    """Rows are standardised block by block."""
    blocks = blocks_of(len(X), 1 + 2 * len(W))
    return normal_equations(W, ((standardizer.transform(X[rows]), y[rows]) for rows in blocks))


def solve_allowed(equations: NormalEquations, penalties: Sequence[float]) -> tuple[Array, float]:
    """Solve for the smallest penalty that all rows allow: more rows bring more rounding."""
    for penalty in penalties:
        try:
            return ridge(equations, penalty), penalty
        except NumericalError:
            continue
    raise NumericalError("ridge regression is singular at every penalty; give larger ones")


# What the classifiers on random features share: ``fit`` and probabilities.

#: Length scales in median distances.
CLASS_FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
#: One over the prior variance of the functions, in squared nats.
CLASS_PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)


class FunctionClassifier(ClassifierMixin, InputEstimator, ABC):  # type: ignore[misc]
    """Probabilities and labels from functions of Fourier features."""

    classes_: NDArray[Any]
    frequencies_: Array
    coef_: Array
    intercept_: Array

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the classes, in the order of ``classes_``, of rows (m, d): (m, C)."""
        rows = self._new_rows(X)
        coef = np.vstack([self.intercept_, self.coef_])
        return probabilities(
            fitted_values(self.frequencies_, coef, self.standardizer_.transform(rows))
        )

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Most probable class of rows of shape (m, d); shape (m,)."""
        proba = self.predict_proba(X)
        labels: NDArray[Any] = self.classes_[proba.argmax(axis=1)]
        return labels

    def _checked_classes(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, ClassTargets]:
        rows, labels = validate_data(self, X, y, dtype=np.float64, order="C", ensure_min_samples=2)
        found = ClassTargets.of(np.asarray(labels))
        self.classes_ = found.classes
        self._learn_inputs(rows)
        return np.asarray(rows), found


class RandomFeatureClassifier(FunctionClassifier):
    """Logistic regression on random Fourier features; a subclass says which are drawn."""

    length_factors: Sequence[float]
    penalties: Sequence[float]
    random_state: object

    @abstractmethod
    def _draw(self, rng: np.random.Generator, Z: Array) -> Bank:
        """Check what is the subclass's own, and draw frequencies for standardised rows."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> RandomFeatureClassifier:
        """Draw frequencies, choose length scale and penalty, and fit the coefficients.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,)
            Labels of two or more classes.

        Returns
        -------
        self

        Raises
        ------
        UsageError
            If an argument is out of its range.
        """
        self._forget()
        factors = checked_grid("length_factors", self.length_factors)
        penalties = checked_grid("penalties", self.penalties)
        n_folds, n_kept = self._checked()
        rows, classes = self._checked_classes(X, y)
        Z = self.standardizer_.transform(rows)
        entropy = entropy_of(self.random_state)
        some = some_rows(stream(entropy, "rows"), len(Z), n_kept)
        bank = self._draw(stream(entropy, "start"), Z[some])
        seed = int(stream(entropy, "folds").integers(2**31))
        chosen = choose_by_log_loss(
            bank.scaled, Z[some], classes.targets[some], classes.loss, factors, penalties,
            n_folds, seed,
        )  # fmt: skip
        self.cv_errors_, self.length_factor_ = chosen.errors, chosen.factor
        self.penalty_ = chosen.penalty
        self.frequencies_ = bank.scaled(chosen.factor)
        coef, found = fit_weights(
            self.frequencies_, Z, classes.targets, classes.loss, chosen.penalty
        )
        self.n_iter_ = found.n_steps
        self.intercept_, self.coef_ = coef[0], coef[1:]
        return self
