"""What the learned rows answer: the prediction methods of the classifier."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.basis.arrays import Array
from mercer.basis.classes.learner import ClassLearner, ClassRunning
from mercer.basis.classes.results import class_draws, log_targets
from mercer.basis.results import evidence_variance, judge_ancestry
from mercer.basis.stream_estimator import StreamEstimator
from mercer.posterior.diagnostics import Diagnostics
from mercer.posterior.draws import Draws

__all__ = ["ClassPrequential", "StreamClassifier"]

_ROWS_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class ClassPrequential:
    """Rows, each predicted before it was learned.

    Attributes
    ----------
    proba : ndarray of shape (m, C)
        Probabilities of the classes.
    prediction : ndarray of shape (m,)
        The most probable class.
    log_density : ndarray of shape (m,)
        Log probability of the class that came, in nats; NaN where there was none.
    n_centres : ndarray of shape (m,)
        Mean number of centres, of all functions together.
    """

    proba: Array
    prediction: NDArray[Any]
    log_density: Array
    n_centres: Array


class StreamClassifier(ClassifierMixin, StreamEstimator[ClassRunning]):  # type: ignore[misc]
    """Base of `SequentialKernelClassifier`: all that needs the learned rows only."""

    classes_: NDArray[Any]
    _learner: ClassLearner

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the classes, averaged over particles.

        Parameters
        ----------
        X : array or frame of shape (m, d)

        Returns
        -------
        ndarray of shape (m, C)
            In the order of ``classes_``; never exactly 0 or 1.
        """
        check_is_fitted(self)
        checked = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        running = self._ready()
        Z = running.standardizer.transform(checked)
        blocks = range(0, max(len(Z), 1), _ROWS_AT_ONCE)
        return np.concatenate([running.proba(Z[a : a + _ROWS_AT_ONCE]) for a in blocks])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Most probable class of each row of X, shape (m,), in the type of the labels."""
        check_is_fitted(self)
        labels: NDArray[Any] = self.classes_[np.argmax(self.predict_proba(X), axis=1)]
        return labels

    @property
    def posterior_(self) -> Draws:
        """Particles as weighted draws; of more than two classes, an entry for each function."""
        running = self._ready()
        entropy, classes = self._learner.entropy, self.classes_.tolist()
        return class_draws(running.sticks, running.state, entropy, classes)

    @property
    def diagnostics_(self) -> Diagnostics:
        """Effective sizes of the populations, and warnings in words."""
        return judge_ancestry(self.posterior_, self._ready().state.states, "")

    @property
    def centres_(self) -> Array:
        """Centres of the particle with the highest target, (k, d), in units of the inputs.

        Where there are more than two classes, those of all functions, one after the other.
        """
        running, found = self._ready(), []
        for filter_, state in zip(running.sticks.filters, running.state.states, strict=True):
            i = int(np.argmax(log_targets(filter_, state)))
            members = state.particles.members[i, : state.particles.size[i]]
            found.append(state.centres[members - filter_.prior.n_mean])
        return running.standardizer.inverse(np.concatenate(found))

    @property
    def n_centres_(self) -> float:
        """Posterior mean of the number of centres, of all functions together."""
        states = self._ready().state.states
        return float(sum(np.exp(s.particles.log_weight) @ s.particles.size for s in states))

    @property
    def n_rows_held_(self) -> int:
        """Rows that count, and that a file holds."""
        return self._ready().state.states[0].n_held

    @property
    def log_evidence_(self) -> float:
        """Log evidence of the rows held, in nats; its exponential is unbiased."""
        return sum(each.log_evidence for each in self._ready().state.states)

    @property
    def log_evidence_se_(self) -> float:
        """Standard error of the log evidence, in nats, to first order."""
        return math.sqrt(sum(map(evidence_variance, self._ready().state.states)))

    @property
    def standardizer_(self) -> Any:
        """How the inputs are standardised."""
        return self._ready().standardizer
