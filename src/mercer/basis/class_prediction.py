"""What the learned classes answer: draws, probabilities, predict-then-learn.

What a user sees of the populations: draws with weights, and what they say about themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, log_expit
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.basis.class_filter import (
    ClassFilter,
    ClassOutlook,
    ClassState,
    StickBreaking,
    StickState,
)
from mercer.basis.class_learner import ClassLearner, ClassRunning
from mercer.basis.model import Array
from mercer.basis.prediction import StreamEstimator
from mercer.basis.results import evidence_variance, judge_ancestry
from mercer.basis.settings import known_runs
from mercer.posterior.diagnostics import Diagnostics
from mercer.posterior.draws import Draws
from mercer.random import stream
from mercer.sampling.resampling import resample

__all__ = [
    "ClassPrequential",
    "StreamClassifier",
    "class_draws",
    "known_labels",
    "log_targets",
    "predict_then_learn",
]


_MONITORED = ("n_centres", "coef_std", "lengthscale")


def log_targets(filter_: ClassFilter, state: ClassState) -> Array:
    """Log posterior density of each particle (N,) up to a constant, in nats."""
    particles, prior, n = state.particles, filter_.prior, state.n_held
    m, (N, P) = prior.n_mean, particles.beta.shape
    used = np.arange(P) < m + particles.size[:, np.newaxis]
    of_centres = used.copy()
    of_centres[:, :m] = False
    squares = particles.beta**2
    a, b, scale = prior.scale_shape, prior.scale_rate, particles.scale
    result = -0.5 * prior.mean_precision * squares[:, :m].sum(axis=1)
    result -= 0.5 * np.where(of_centres, squares, 0.0).sum(axis=1) / scale
    result -= 0.5 * particles.size * np.log(2.0 * math.pi * scale)
    result += a * math.log(b) - gammaln(a) - (a + 1.0) * np.log(scale) - b / scale
    result += filter_.sets.log_size(state.n_candidates)[particles.size]
    columns = np.concatenate([np.tile(np.arange(m), (N, 1)), particles.members], axis=1)
    for i in range(N):
        k = m + particles.size[i]
        design = state.rows.design[particles.level[i], columns[i, :k], :n]
        result[i] += log_expit(state.rows.sign[:n] * (particles.beta[i, :k] @ design)).sum()
    return np.asarray(result)


def class_draws(
    sticks: StickBreaking, state: StickState, entropy: int, classes: Sequence[Any]
) -> Draws:
    """Return the particles as weighted draws; for more than two classes, resampled ones.

    Variables, each of shape (1, particles), or (1, particles, C - 1) where there are more classes
    (entries are named by them): "n_centres"; "coef_std" (prior standard deviation of a
    coefficient, in logits); "lengthscale", in standardised units.
    """
    rng = stream(entropy, "coefficients")
    columns: dict[str, list[Array]] = {name: [] for name in _MONITORED}
    N = sticks.filters[0].n_particles
    target, logs = np.zeros(N), np.full(N, -math.log(N))
    for filter_, each in zip(sticks.filters, state.states, strict=True):
        particles, levels = each.particles, filter_.levels
        chosen = np.arange(filter_.n_particles)
        if len(sticks.filters) > 1:
            chosen = resample(rng, np.exp(particles.log_weight), "systematic")
            chosen = rng.permutation(chosen)  # the functions are independent
        else:
            logs = particles.log_weight
        lengthscale = levels.lengthscales[particles.level % levels.n_widths]
        columns["n_centres"].append(particles.size[chosen].astype(np.float64))
        columns["coef_std"].append(np.sqrt(particles.scale[chosen]))
        columns["lengthscale"].append(lengthscale[chosen])
        target = target + log_targets(filter_, each)[chosen]
    variables = {name: np.stack(parts, axis=-1)[np.newaxis] for name, parts in columns.items()}
    labels = dict.fromkeys(_MONITORED, tuple(str(each) for each in classes[:-1]))
    if len(sticks.filters) == 1:
        variables, labels = {name: values[..., 0] for name, values in variables.items()}, {}
    stats = {"log_density": target[np.newaxis]}
    return Draws(variables, stats, labels, _MONITORED, logs[np.newaxis])


# What the learned rows answer: the prediction methods of the classifier.

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


# Rows predicted, then learned, one after the other: for classes.


def known_labels(y: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return labels as an array, and which of them are known: neither None nor NaN."""
    labels = np.asarray(y)
    is_known = np.array([v is not None and v == v for v in labels.ravel().tolist()], dtype=bool)
    return labels, is_known


def predict_then_learn(
    model: Any, X: Array, labels: NDArray[np.int64], is_known: NDArray[np.bool_]
) -> ClassPrequential:
    """See `mercer.SequentialKernelClassifier.prequential`.

    Rows where ``is_known`` is False are predicted only.
    """
    said: list[ClassOutlook] = []

    def see(outlook: ClassOutlook) -> None:
        model._keep_density(outlook)
        said.append(outlook)

    learner = model._learner
    learner.check(X[is_known], labels[is_known])
    for rows in known_runs(is_known):
        if is_known[rows.start]:
            learner.learn(X[rows], labels[rows], see)
            continue
        running = learner.release(see)
        n_centres = model.n_centres_
        for row in running.proba(running.standardise(X[rows])):
            said.append(ClassOutlook(row, np.nan, n_centres))
    learner.release(see)
    said = said[-len(is_known) :]  # those before had been held back
    proba = np.array([outlook.proba for outlook in said])
    return ClassPrequential(
        proba,
        model.classes_[np.argmax(proba, axis=1)],
        np.array([outlook.log_density for outlook in said]),
        np.array([outlook.n_centres for outlook in said]),
    )
