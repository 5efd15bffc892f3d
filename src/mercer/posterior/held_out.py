"""What a model said of held-out rows beside what came: classes or numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from mercer.posterior.predictive import Predictive
from mercer.posterior.regression_scores import LEVEL, RegressionScores, score_regression
from mercer.posterior.scores import Scores, score_classification

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
