"""What the classifiers on random features share: ``fit`` and probabilities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import validate_data

from mercer.baselines.class_targets import ClassTargets, probabilities
from mercer.baselines.inputs import InputEstimator, some_rows
from mercer.baselines.logistic_path import choose_by_log_loss, fit_weights
from mercer.baselines.random_features import Bank
from mercer.baselines.regressor import checked_grid
from mercer.baselines.ridge_path import fitted_values
from mercer.random import entropy_of, stream

__all__ = ["CLASS_FACTORS", "CLASS_PENALTIES", "FunctionClassifier", "RandomFeatureClassifier"]

Array = NDArray[np.float64]

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
