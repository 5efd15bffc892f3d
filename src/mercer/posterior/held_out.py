"""What a model said of held-out rows beside what came: classes or numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from mercer.posterior.predictive import Predictive
from mercer.posterior.regression_scores import LEVEL, RegressionScores, score_regression
from mercer.posterior.scores import PROBA_FLOOR, Scores, score_classification

__all__ = ["HeldClasses", "HeldOut", "HeldTargets", "hold", "joined"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HeldClasses:
    """Class probabilities of n rows, and the classes that came.

    Attributes
    ----------
    y_index : ndarray of shape (n,)
    proba : ndarray of shape (n, C)
    """

    y_index: NDArray[np.int64]
    proba: Array

    def scores(self) -> Scores:
        """Score the rows."""
        return score_classification(self.y_index, self.proba)

    @property
    def losses(self) -> Mapping[str, Array]:
        """The scores that are means over rows, row by row: ndarrays of shape (n,)."""
        observed = self.proba[np.arange(len(self.y_index)), self.y_index]
        distance = np.square(self.proba - np.eye(self.proba.shape[1])[self.y_index])
        is_pair = self.proba.shape[1] == 2
        return {
            "error_rate": (self.proba.argmax(axis=1) != self.y_index).astype(np.float64),
            "log_score": -np.log(np.clip(observed, PROBA_FLOOR, 1.0)),
            "brier_score": distance[:, 1] if is_pair else distance.sum(axis=1),
        }


@dataclass(frozen=True, eq=False)
class HeldTargets:
    """Predictive laws of n numbers in brief, and the numbers that came; in the user's units.

    Attributes
    ----------
    y : ndarray of shape (n,)
    mean, std : ndarray of shape (n,)
        The prediction, and the standard deviation of a new observation.
    lower, upper : ndarray of shape (n,)
        Ends of the central 90 % interval.
    log_density : ndarray of shape (n,)
        Log predictive density at y, nats.
    pit : ndarray of shape (n,)
        Predictive probability of values up to y.
    variance : ndarray of shape (n,)
        Of the targets that the row's model was trained on (divisor: their number); nan where it is
        not known.
    """

    y: Array
    mean: Array
    std: Array
    lower: Array
    upper: Array
    log_density: Array
    pit: Array
    variance: Array

    def scores(self) -> RegressionScores:
        """Score the rows."""
        return score_regression(
            self.y,
            self.mean,
            lower=self.lower,
            upper=self.upper,
            log_density=self.log_density,
            pit=self.pit,
            variance=self.variance,
        )

    @property
    def losses(self) -> Mapping[str, Array]:
        """The scores that are means over rows, row by row; of the root, its influence.

        The influence of a row on the root mean squared error is, to first order, its squared
        error over twice the root, up to a constant: means of such differences have the standard
        error of a difference of roots.
        """
        squares = self.squared_errors
        root = float(np.sqrt(squares.mean()))
        return {
            "mse": squares,
            "rmse": squares / (2.0 * root) + 0.5 * root if root > 0 else squares,
            "standardized_mse": squares / self.variance,
            "mae": np.abs(self.y - self.mean),
            "log_score": -self.log_density,
        }

    @property
    def squared_errors(self) -> Array:
        """Squared error of each row."""
        return np.square(self.y - self.mean)


HeldOut: TypeAlias = HeldClasses | HeldTargets
Kind = TypeVar("Kind", HeldClasses, HeldTargets)


def hold(law: Predictive, y: Array, variance: float) -> HeldTargets:
    """Keep in brief what a predictive law says of targets that are known."""
    lower, upper = law.interval(LEVEL)
    return HeldTargets(
        y=y,
        mean=law.mean,
        std=law.std,
        lower=lower,
        upper=upper,
        log_density=law.log_density(y),
        pit=law.cdf(y),
        variance=np.full(len(y), variance),
    )


def joined(parts: Sequence[Kind]) -> Kind:
    """Put the rows of several parts, one at least, into one."""
    kind = type(parts[0])
    columns = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts])
        for field in fields(kind)
    }
    return kind(**columns)
