"""`SequentialKernelClassifier`: the scikit-learn estimator for classes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.basis.class_learner import MOST_CANDIDATES, ClassLearner, ClassSettings, fit_classes
from mercer.basis.class_prediction import (
    ClassPrequential,
    StreamClassifier,
    known_labels,
    predict_then_learn,
)
from mercer.basis.class_saved import parts_of, restore
from mercer.basis.prediction import RIVER_MISSING
from mercer.basis.settings import checked_common, checked_given, checked_lengthscale
from mercer.errors import RowsError
from mercer.estimation.base import encode_classes
from mercer.estimation.model_file import ModelParts
from mercer.estimation.run import CommonArguments, check_count, fitting
from mercer.random import entropy_of

__all__ = ["SequentialKernelClassifier"]


class SequentialKernelClassifier(StreamClassifier):
    """Sparse Bayesian kernel classification that learns row after row, in one pass.

    A population of particles follows the posterior of the set of kernel centres, their length
    scale and coefficients, under a logistic likelihood. ``fit`` learns a table in one pass and
    holds all its rows; ``partial_fit`` goes on with a stream, of which the last ``n_buffered``
    rows count. Several classes are told apart one after the other, in sorted order: is it the
    first, else is it the second, and so on (stick-breaking).

    Parameters
    ----------
    kernel : {"rbf", "matern12", "matern32", "matern52"}, default="rbf"
    lengthscale : "learn", "median", float or sequence of float, default="learn"
        "learn": each particle carries one of up to nine, from twice the median distance of the
        first rows down to an eighth of that, but none below the distance from a row to the nearest
        other. Numbers are in standardised units; of several, each particle
        carries one.
    n_particles : int, default=250
    expected_centres : float, default=20
        Prior mean of the number of centres.
    max_centres : int, default=50
        The most centres of a particle.
    max_candidates : int or None, default=None
        Inputs that may be centres: the first so many, of which later ones take the place at
        random, without a look at the labels. None: 128.
    centres_prior : {"negative_binomial", "poisson"}, default="negative_binomial"
        Prior of the number of centres. The first spreads wide: accurate with more centres.
    linear_part : bool, default=True
        Whether the mean is linear in the inputs beside a constant.
    n_buffered : int, default=1024
        The most rows of a stream that are held: the posterior is that given these.
    resampling : {"systematic", "stratified", "multinomial"}, default="systematic"
    standardize : {"auto", "std", "robust", "yeo-johnson", "arcsinh", False}, default="auto"
        How each input is scaled; learned from the first rows.
    scale_rows : int, default=200
        With ``partial_fit``: rows from which scales and length scales are learned. They are held
        back, then learned in order; sooner if somebody predicts.
    input_scale : float, array of shape (d,) or None, default=None
        Standard deviations of the inputs, if they are known beforehand.
    random_state : int, Generator, RandomState or None, default=None
        An integer gives the same results each time.
    progress : bool or "auto", default="auto"
        A progress bar of ``fit``; "auto" shows it on a terminal or in a notebook.
    checkpoint : path or None, default=None
        Folder where ``fit`` saves its state as it goes, and from which it goes on.
    max_seconds : float or None, default=None
        ``fit`` stops after so much time, with the rows learned so far; ``notes_`` says so.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Class labels, sorted.
    posterior_ : Draws
        Particles: "n_centres", "coef_std", "lengthscale"; one a function where C > 2.
    diagnostics_ : Diagnostics
    centres_ : ndarray of shape (k, d)
        Kernel centres of the particle with the highest posterior density, in units of the inputs.
    n_centres_ : float
        Posterior mean, of all functions together.
    log_predictive_ : ndarray
        Log probability of the class of each row of the last call, predicted before the row was
        learned.
    mean_log_predictive_ : float
        Mean of the log predictive densities of all rows learned.
    n_rows_seen_ : int
    log_evidence_, log_evidence_se_ : float
        Log evidence of the rows held and its standard error, in nats.
    notes_ : tuple of str
        What else a user should know of this fit, a line each.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    UsageError
        At ``fit``, if an argument is out of its range. It is a ValueError.

    See Also
    --------
    SequentialKernelRegressor : the same for numbers.

    Notes
    -----
    Algorithm 1 of [1]_ carried over to classes by Polya-Gamma variables, see
    `mercer.basis.class_filter`. A row costs O(N k); eight times in each doubling of the n rows
    held all particles are moved, which costs O(N n R k) for R candidates. A wild label needs no
    guard as in the regressor: what one row says of its log odds is bounded.

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

    def __init__(
        self,
        *,
        kernel: str = "rbf",
        lengthscale: Any = "learn",
        n_particles: int = 250,
        expected_centres: float = 20.0,
        max_centres: int = 50,
        max_candidates: int | None = None,
        centres_prior: str = "negative_binomial",
        linear_part: bool = True,
        n_buffered: int = 1024,
        resampling: str = "systematic",
        standardize: str | bool = "auto",
        scale_rows: int = 200,
        input_scale: Any = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        progress: bool | str = "auto",
        checkpoint: str | Path | None = None,
        max_seconds: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.lengthscale = lengthscale
        self.n_particles = n_particles
        self.expected_centres = expected_centres
        self.max_centres = max_centres
        self.max_candidates = max_candidates
        self.centres_prior = centres_prior
        self.linear_part = linear_part
        self.n_buffered = n_buffered
        self.resampling = resampling
        self.standardize = standardize
        self.scale_rows = scale_rows
        self.input_scale = input_scale
        self.random_state = random_state
        self.progress = progress
        self.checkpoint = checkpoint
        self.max_seconds = max_seconds

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

        Returns
        -------
        SequentialKernelClassifier
            Itself.

        Raises
        ------
        ValueError
            If the data cannot be used, in the words of scikit-learn.
        SamplingStoppedError
            After Ctrl-C or SIGTERM (a KeyboardInterrupt); a checkpoint, if any, is whole.
        """
        started = time.monotonic()
        common = self._check_arguments()
        self._forget()
        X, y = self._checked(X, y, is_first=True, is_numeric=False, n_least=2)
        self.classes_, labels = encode_classes(y)
        learner = self._new_learner(common)
        fitted = fit_classes(learner, X, labels, common, started, self)
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

    def prequential(self, X: Any, y: Any, classes: Any = None) -> ClassPrequential:
        """Predict each row, then learn it: the score of a stream.

        Parameters
        ----------
        X : array or frame of shape (m, d)
        y : array of shape (m,)
            None or NaN where there is no label: such a row is predicted and not learned.
        classes : array of shape (C,), optional
            As in ``partial_fit``.

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
            result = predict_then_learn(self, X, labels, is_known)
        self._warn_of_leaving(X[is_known], labels[is_known])
        return result

    @contextmanager
    def _begun(self, y: Any, classes: Any) -> Iterator[None]:
        """Know the classes; what fails inside leaves everything as it was."""
        with self._guarded():
            if not self._is_begun:
                self._check_arguments()
                self.classes_ = encode_classes(np.asarray(y if classes is None else classes))[0]
            elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
                raise ValueError(f"classes are those of the first call: {self.classes_}")
            yield

    def _begin(self) -> None:
        """Make a learner, unless there is one."""
        if not self._is_begun:
            self._put(self._new_learner(self._check_arguments()), ())

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
        return parts_of(self)

    @classmethod
    def _from_parts(cls, parts: ModelParts) -> SequentialKernelClassifier:
        model = cls(**parts.params)
        restore(parts, model, model._check_arguments())
        return model

    def _check_arguments(self) -> CommonArguments:
        check_count("n_buffered", self.n_buffered, 1)
        common = checked_common(self)
        self._settings()
        checked_given(self.standardize, self.input_scale, 1.0)
        return common

    def _settings(self) -> ClassSettings:
        return ClassSettings(
            kernel=self.kernel,
            lengthscale=checked_lengthscale(self.lengthscale),
            n_particles=int(self.n_particles),
            expected_centres=float(self.expected_centres),
            max_centres=int(self.max_centres),
            max_candidates=int(self.max_candidates or MOST_CANDIDATES),
            centres_prior=self.centres_prior,
            linear_part=bool(self.linear_part),
            resampling=self.resampling,
            n_buffered=int(self.n_buffered),
        )

    def _new_learner(self, common: CommonArguments) -> ClassLearner:
        given = checked_given(self.standardize, self.input_scale, 1.0)
        given.check_width(self.n_features_in_)
        return ClassLearner(
            settings=self._settings(),
            given=given,
            scale_rows=int(self.scale_rows),
            entropy=entropy_of(common.random_state),
            names=self._labels(),
            n_classes=len(self.classes_),
        )
