"""What a saved model says of a block of rows, as columns of a table: classes or numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.estimation.tasks import BLOCK, CLASSIFICATION, REGRESSION, Task, task_of
from mercer.posterior.held_out import HeldClasses, HeldOut, hold
from mercer.posterior.regression_scores import LEVEL

__all__ = ["Answerer", "answerer_of"]

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Columns = dict[str, NDArray[Any]]


class Answerer(Protocol):
    """Answers for one block of rows after the other."""

    @property
    def task(self) -> Task:
        """The task of the model."""
        ...

    @property
    def classes(self) -> tuple[Any, ...]:
        """Class labels; none of a regressor."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        ...

    @property
    def n_rows(self) -> int:
        """Rows of a block, at most."""
        ...

    def block(self, X: Array, known: Rows, y: NDArray[Any]) -> tuple[Columns, HeldOut | None]:
        """Predict a block.

        Parameters
        ----------
        X : ndarray of shape (m, d)
        known : ndarray of shape (k,)
            Positions in the block of rows whose target is known.
        y : ndarray of shape (k,)
            These targets.

        Returns
        -------
        columns : dict of ndarray of shape (m,)
        held : HeldClasses or HeldTargets
            What was said of the rows that are known; None if none is.
        """
        ...


def answerer_of(estimator: Any, variance: float) -> Answerer:
    """Return who answers for a fitted estimator.

    Parameters
    ----------
    estimator : estimator
    variance : float
        Of the training targets of a regressor; nan if it is not known.
    """
    if task_of(estimator) is REGRESSION:
        return _Numbers(estimator, variance)
    return _Classes(estimator)


@dataclass(frozen=True)
class _Classes:
    """The most probable class and the probability of each; what else depends on the method."""

    estimator: Any
    task: Task = CLASSIFICATION
    n_rows: int = 10_000

    @property
    def classes(self) -> tuple[Any, ...]:
        return tuple(self.estimator.classes_.tolist())

    @property
    def names(self) -> tuple[str, ...]:
        more: tuple[str, ...] = ()
        if self._has_latent:
            more = ("latent_mean", "latent_sd")
        elif hasattr(self.estimator, "clean_proba"):
            more = (*(f"clean_{label}" for label in self.classes), "vote_margin")
        return ("prediction", *(f"proba_{label}" for label in self.classes), *more)

    def block(self, X: Array, known: Rows, y: NDArray[Any]) -> tuple[Columns, HeldOut | None]:
        proba = self.estimator.predict_proba(X)
        values = [self.estimator.classes_[np.argmax(proba, axis=1)], *proba.T, *self._more(X)]
        held = HeldClasses(y, proba[known]) if len(known) else None
        return dict(zip(self.names, values, strict=True)), held

    @property
    def _has_latent(self) -> bool:
        """Whether there is one function to speak of: that of two classes."""
        return len(self.classes) == 2 and hasattr(self.estimator, "latent")

    def _more(self, X: Array) -> list[Array]:
        """Return what a model says beyond probabilities of the recorded label."""
        if self._has_latent:
            mean, variance = self.estimator.latent(X)
            return [mean, np.sqrt(variance)]
        if hasattr(self.estimator, "clean_proba"):
            return [*self.estimator.clean_proba(X).T, self.estimator.vote_margin(X)]
        return []


@dataclass(frozen=True)
class _Numbers:
    """Mean and spread of a new observation, and the central 90 % interval."""

    estimator: Any
    variance: float
    task: Task = REGRESSION
    classes: tuple[Any, ...] = ()
    names: tuple[str, ...] = ("prediction", "std", "lower_90", "upper_90")

    @property
    def n_rows(self) -> int:
        return BLOCK

    def block(self, X: Array, known: Rows, y: NDArray[Any]) -> tuple[Columns, HeldOut | None]:
        law = self.estimator.predictive(X)
        if len(known) == len(X):
            held = hold(law, y, self.variance)
            values = (held.mean, held.std, held.lower, held.upper)
            return dict(zip(self.names, values, strict=True)), held
        values = (law.mean, law.std, *law.interval(LEVEL))
        return dict(zip(self.names, values, strict=True)), None
