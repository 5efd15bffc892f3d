"""`SequentialKernelClassifier`: the scikit-learn estimator for classes."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, log_expit
from sklearn.utils.multiclass import check_classification_targets

from mercer.basis.class_filter import (
    ClassFilter,
    ClassOutlook,
    ClassState,
    StickBreaking,
    StickState,
)
from mercer.basis.learner import (
    MOST_CANDIDATES,
    ClassLearner,
    ClassRunning,
    ClassSettings,
    check_size,
    fit_classes,
)
from mercer.basis.model import Array
from mercer.basis.prediction import (
    RIVER_MISSING,
    StreamEstimator,
    evidence_variance,
    judge_ancestry,
)
from mercer.basis.settings import (
    check_shared,
    checked_forgetting,
    checked_given,
    checked_lengthscale,
    known_runs,
)
from mercer.errors import DataError, RowsError, UsageError
from mercer.estimation.base import LabelPredictions, encode_classes
from mercer.estimation.model_file import ModelParts
from mercer.estimation.run import check_count, fitting
from mercer.estimation.standardize import SEVERAL_COLUMNS
from mercer.posterior.diagnostics import Diagnostics
from mercer.posterior.draws import Draws
from mercer.posterior.predictive import check_level
from mercer.random import entropy_of, stream
from mercer.sampling.resampling import resample

__all__ = [
    "ClassPrequential", "SequentialKernelClassifier", "StreamClassifier", "class_draws",
    "known_labels", "log_targets", "predict_then_learn",
]  # fmt: skip


# Weighted draws and diagnostics of the populations, and the prediction methods.


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
    result = -0.5 * prior.constant_precision * squares[:, 0]
    result -= 0.5 * prior.slope_precision * squares[:, 1:m].sum(axis=1)
    result -= 0.5 * np.where(of_centres, squares, 0.0).sum(axis=1) / scale
    result -= 0.5 * particles.size * np.log(2.0 * math.pi * scale)
    result += a * math.log(b) - gammaln(a) - (a + 1.0) * np.log(scale) - b / scale
    result += filter_.sets.log_size(state.n_candidates)[particles.size]
    columns = np.concatenate([np.tile(np.arange(m), (N, 1)), particles.members], axis=1)
    for i in range(N):
        k = m + particles.size[i]
        design = state.rows.design[particles.level[i], columns[i, :k], :n]
        logs = log_expit(state.rows.sign[:n] * (particles.beta[i, :k] @ design))
        result[i] += (state.rows.weights(n) * logs).sum()
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
        particles, grid = each.particles, filter_.grid
        chosen = np.arange(filter_.n_particles)
        if len(sticks.filters) > 1:
            chosen = resample(rng, np.exp(particles.log_weight), "systematic")
            chosen = rng.permutation(chosen)  # the functions are independent
        else:
            logs = particles.log_weight
        lengthscale = grid.lengthscales[particles.level % grid.n_widths]
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
    lower, upper : ndarray of shape (m, C) or None
        Ends of the posterior interval of each probability, with ``level``.
    """

    proba: Array
    prediction: NDArray[Any]
    log_density: Array
    n_centres: Array
    lower: Array | None = None
    upper: Array | None = None


class StreamClassifier(LabelPredictions, StreamEstimator[ClassRunning]):
    """Base of `SequentialKernelClassifier`: all that needs the learned rows only."""

    classes_: NDArray[Any]
    _learner: ClassLearner

    def _proba(self, Z: Array) -> Array:
        running = self._ready()
        blocks = range(0, max(len(Z), 1), _ROWS_AT_ONCE)
        return np.concatenate([running.proba(Z[a : a + _ROWS_AT_ONCE]) for a in blocks])

    def _function_draws(
        self, parts: Sequence[Array], n_draws: int, rng: np.random.Generator
    ) -> list[Array]:
        running = self._ready()
        return running.sticks.drawn_proba(running.state, parts, n_draws, rng)

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
        self._check_has_evidence()
        return sum(each.log_evidence for each in self._ready().state.states)

    @property
    def log_evidence_se_(self) -> float:
        """Standard error of the log evidence, nats, to first order: rare seeds are further off."""
        self._check_has_evidence()
        return math.sqrt(sum(map(evidence_variance, self._ready().state.states)))

    @property
    def standardizer_(self) -> Any:
        """How the inputs are standardised."""
        return self._ready().standardizer

    def _check_has_evidence(self) -> None:
        if self._learner.settings.forgetting != 1.0:
            raise AttributeError("there is no evidence where rows are forgotten")


# Rows predicted, then learned, one after the other: for classes.


def known_labels(y: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return labels as an array (m,), and which of them are known: neither None, NaN nor NA."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise DataError("y must be labels of shape (m,), None where there is no label")
    unknown = [v is None or type(v).__name__ == "NAType" or v != v for v in labels.tolist()]
    return labels, ~np.array(unknown, dtype=bool)


def predict_then_learn(
    model: Any,
    X: Array,
    labels: NDArray[np.int64],
    is_known: NDArray[np.bool_],
    level: float | None = None,
) -> ClassPrequential:
    """See `mercer.SequentialKernelClassifier.prequential`.

    Rows where ``is_known`` is False are predicted only.
    """
    if level is not None:
        check_level(level)
    said: list[tuple[Array, float, float]] = []
    ends: list[tuple[Array, Array]] = []

    def note(outlook: ClassOutlook) -> None:
        said.append((outlook.proba, outlook.log_density, outlook.n_centres))
        if level is not None:
            ends.append(outlook.interval(level))

    def see(outlook: ClassOutlook) -> None:
        model._keep_density(outlook)
        note(outlook)

    learner = model._learner
    if not is_known.all():  # else `learn` does it
        learner.foresee(X[is_known], labels[is_known], see)
    for rows in known_runs(is_known):
        if is_known[rows.start]:
            learner.learn(X[rows], labels[rows], see)
            continue
        running = learner.release(see)
        for z in running.standardise(X[rows]):  # one by one: last digits are not of how many come
            note(running.sticks.look(running.state, z))
    learner.release(see)
    m = len(is_known)  # those before had been held back
    proba, log_density, n_centres = (np.array(each) for each in zip(*said[-m:], strict=True))
    lower, upper = (
        (np.array(each) for each in zip(*ends[-m:], strict=True)) if ends else (None, None)
    )
    prediction = model.classes_[np.argmax(proba, axis=1)]
    return ClassPrequential(proba, prediction, log_density, n_centres, lower, upper)


def _one_forgetting(value: Any) -> float:
    several = checked_forgetting(value)
    if len(several) > 1:
        raise UsageError(f"forgetting must be one number in [0.5, 1] for classes; got {value!r}")
    return several[0]


@dataclass(kw_only=True, eq=False, repr=False)
class SequentialKernelClassifier(StreamClassifier):
    """Sparse Bayesian kernel classification that learns row after row, in one pass.

    A population of particles follows the posterior of the set of kernel centres, their length
    scale and coefficients, under a logistic likelihood. ``fit`` learns a table in one pass, weighs
    its inputs as `KernelGibbsClassifier` does, and holds all rows; ``partial_fit`` goes on with a
    stream, of which the last ``n_buffered`` count. Several classes are told apart one after the
    other, in sorted order: is it the first, else is it the second, and so on (stick-breaking).

    Parameters
    ----------
    max_candidates : int or None, default=None
        Inputs that may be centres: the first so many, of which later ones take the place at
        random, without a look at the labels. None: 128.
    forgetting : float, default=1.0
        Weight of a row after the next, in [0.5, 1]: 1 forgets nothing, 0.99 remembers a hundred
        rows or so. Rows leave at the latest when so many others came that they weigh a thousandth;
        of several classes, others that a class learns.
    linear_part : "auto", bool or int, default="auto"
        Whether the mean is linear in the inputs beside a constant, or in how many, the first ones;
        1e5 scales out it stays level. "auto": of up to 256 inputs.
    n_buffered : int, default=1024
        The most rows of a stream that are held: the posterior is that given these, each by its
        weight.

    Attributes
    ----------
    posterior_ : Draws
        Particles: "n_centres", "coef_std", "lengthscale"; one a function where C > 2.
    centres_ : ndarray of shape (k, d)
        Kernel centres of the particle with the highest posterior density, in units of the inputs.
    n_centres_ : float
        Posterior mean, of all functions together.
    log_predictive_ : ndarray
        Log probability of the class of each row of the last call, predicted before the row was
        learned.
    log_evidence_, log_evidence_se_ : float
        Log evidence of the rows held and its standard error, in nats. From some hundred rows on
        the error is too small, as few seeds find what others do not: compare seeds.

    See Also
    --------
    SequentialKernelRegressor : the same for numbers.

    Notes
    -----
    Algorithm 1 of [1]_ carried over to classes, see `mercer.basis.class_filter`. Moves are proposed
    by a quadratic approximation of the likelihood that all particles share, and accepted by the
    likelihood. A row costs O(N k). Sixteen times in each doubling of the n rows held all particles
    are moved, a share of them after each row, which costs O(N (n k + R k^2)) for R candidates in
    all. A wild label needs no guard as in the regressor: what one row says of its log odds is
    bounded.

    References
    ----------
    .. [1] J. Vermaak, S. J. Godsill and A. Doucet, Sequential Bayesian Kernel Regression,
       NIPS 2003.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(80, noise=0.2, random_state=0)
    >>> model = SequentialKernelClassifier(n_particles=50, random_state=0).fit(X, y)
    >>> model.predict([[-1.0, 0.5], [1.0, -0.5]])
    array([0, 1])
    """

    kernel: str = "rbf"
    lengthscale: Any = "learn"
    n_particles: int = 250
    expected_centres: float = 20.0
    max_centres: int = 50
    max_candidates: int | None = None
    forgetting: float = 1.0
    centres_prior: str = "negative_binomial"
    linear_part: bool | int | str = "auto"
    n_buffered: int = 1024
    resampling: str = "systematic"
    standardize: str | bool = "auto"
    encode: Any = "auto"
    scale_rows: int = 200
    input_scale: Any = None
    random_state: int | np.random.Generator | np.random.RandomState | None = None
    progress: bool | str = "auto"
    checkpoint: str | Path | None = None
    max_seconds: float | None = None

    @classmethod
    def paper(cls) -> SequentialKernelClassifier:
        """Return an unfitted classifier nearest to the paper, which has regression only.

        Poisson with mean 1, one kernel width of 1.6 in exp(-r^2 / w^2) in the units of the
        inputs, a constant mean.
        """
        return cls(
            lengthscale=1.6 / np.sqrt(2.0),
            expected_centres=1.0,
            centres_prior="poisson",
            linear_part=False,
            standardize=False,
        )

    @fitting()
    def fit(self, X: Any, y: Any) -> SequentialKernelClassifier:
        """Learn a table in one pass, row after row; all rows are held.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            Inputs: finite numbers.
        y : array of shape (n,)
            Labels of two or more classes.
        """
        started = time.monotonic()
        self._check_arguments()
        self._forget()
        X, y = self._checked(X, y, is_first=True, is_numeric=False, n_least=2)
        self.classes_, labels = encode_classes(y)
        learner = self._new_learner()
        fitted = fit_classes(learner, X, labels, started, self)
        self._put(fitted.learner, fitted.notes)
        self._last_densities = list(fitted.log_density)
        self._warn_of_convergence()
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> SequentialKernelClassifier:
        """Learn further rows of a stream, in their order.

        Parameters
        ----------
        X : array or frame of shape (m, d)
        y : array of shape (m,)
        classes : array of shape (C,), optional
            All classes that may come; at the first call, where without it they are those of y.

        Returns
        -------
        SequentialKernelClassifier
            Itself. A call that fails, for a row that is not finite for instance, changes nothing.
        """
        with self._begun(y, classes):
            X, y = self._checked(X, y, is_first=not self._is_begun, is_numeric=False)
            labels = self._positions(y)
            self._begin()
            self._learner.learn(X, labels, self._keep_density)
        self._warn_of_leaving(X, labels)
        return self

    def prequential(
        self, X: Any, y: Any, classes: Any = None, level: float | None = None
    ) -> ClassPrequential:
        """Predict each row, then learn it: the score of a stream.

        Parameters
        ----------
        X : array or frame of shape (m, d)
        y : array of shape (m,)
            None or NaN where there is no label: such a row is predicted and not learned.
        classes : array of shape (C,), optional
            As in ``partial_fit``.
        level : float, optional
            Of posterior intervals of the probabilities, in (0, 1); without it there are none. They
            say how sure the model is of a probability, not which class comes.

        Returns
        -------
        ClassPrequential
            Rows that were held back until now are learned first.
        """
        y, is_known = known_labels(y)
        with self._begun(y[is_known], classes):
            labels = np.zeros(len(y), dtype=np.int64)
            X, _ = self._checked(X, labels, is_first=not self._is_begun, is_numeric=False)
            labels[is_known] = self._positions(y[is_known])
            self._begin()
            result = predict_then_learn(self, X, labels, is_known, level)
        self._warn_of_leaving(X[is_known], labels[is_known])
        return result

    @contextmanager
    def _begun(self, y: Any, classes: Any) -> Iterator[None]:
        """Know the classes; what fails inside leaves everything as it was."""
        with self._guarded():
            if not self._is_begun:
                self._check_arguments()
                known = np.asarray(y if classes is None else classes)
                if not known.size:
                    raise DataError("there is no label yet: give all that may come as classes=")
                self.classes_ = encode_classes(known)[0]
            elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
                raise ValueError(f"classes are those of the first call: {self.classes_}")
            yield

    def _begin(self) -> None:
        """Make a learner, unless there is one."""
        if not self._is_begun:
            self._check_arguments()
            self._put(self._new_learner(), ())

    def _check_row(self, row: Sequence[float], label: Any) -> None:
        """Refuse a row (d,) with which no others could be learned."""
        X, y = self._checked([row], [label], is_first=True, is_numeric=False)
        check_size(X)
        check_classification_targets(y)

    def _positions(self, y: NDArray[Any]) -> NDArray[np.int64]:
        """Return each label's position among the classes."""
        place = {label: c for c, label in enumerate(self.classes_.tolist())}
        labels = y.tolist()
        for row, label in enumerate(labels):
            if label not in place:
                raise RowsError(
                    [row],
                    f": {label!r} is none of the classes of the first call; give all that may "
                    "come as classes=",
                )
        return np.array([place[label] for label in labels], dtype=np.int64)

    def to_river(self, classes: Any = None) -> Any:
        """Return a River classifier that learns and predicts dicts, one row at a time.

        It goes on with a copy of what was learned.

        Parameters
        ----------
        classes : sequence, optional
            All classes that may come; without it, those of the first ``scale_rows`` rows.

        Raises
        ------
        ImportError
            When River is missing.
        """
        try:
            from mercer.basis.river import RiverKernelClassifier
        except ImportError as error:
            raise ImportError(RIVER_MISSING) from error
        return RiverKernelClassifier(self, classes)

    def _to_parts(self) -> ModelParts:
        from mercer.basis.saved import class_parts_of

        return class_parts_of(self)

    def _restore(self, parts: ModelParts) -> None:
        from mercer.basis.saved import restore_classes

        restore_classes(parts, self)

    def _check_arguments(self) -> None:
        check_count("n_buffered", self.n_buffered, 1)
        check_shared(self)
        self._settings()
        checked_given(self.standardize, self.input_scale, 1.0)

    def _settings(self) -> ClassSettings:
        return ClassSettings(
            kernel=self.kernel,
            lengthscale=checked_lengthscale(self.lengthscale),
            n_particles=int(self.n_particles),
            expected_centres=float(self.expected_centres),
            max_centres=int(self.max_centres),
            max_candidates=int(self.max_candidates or MOST_CANDIDATES),
            centres_prior=self.centres_prior,
            linear_part=self.linear_part,
            resampling=self.resampling,
            n_buffered=int(self.n_buffered),
            forgetting=_one_forgetting(self.forgetting),
        )

    def _new_learner(self) -> ClassLearner:
        given = checked_given(self.standardize, self.input_scale, 1.0)
        fewest = SEVERAL_COLUMNS if isinstance(self.lengthscale, str) else None
        given = replace(given, fewest=fewest, is_weighed=fewest is not None)
        given.check_width(self.n_features_in_)
        return ClassLearner(
            settings=self._settings(),
            given=given,
            scale_rows=int(self.scale_rows),
            entropy=entropy_of(self.random_state),
            names=self._labels(),
            n_classes=len(self.classes_),
        )
