"""`SequentialKernelRegressor`: the scikit-learn estimator of the method."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mercer.basis.learner import Learner, fit_learner
from mercer.basis.model import Array
from mercer.basis.prediction import (
    RIVER_MISSING,
    Prequential,
    SparseSummary,
    StreamRegressor,
    predict_then_learn,
    summarise,
)
from mercer.basis.settings import (
    MOST_CANDIDATES,
    FilterSettings,
    check_shared,
    checked_forgetting,
    checked_given,
    checked_lengthscale,
    checked_share,
)
from mercer.estimation.model_file import ModelParts
from mercer.estimation.run import check_choice, check_count, fitting
from mercer.estimation.standardize import MANY_COLUMNS
from mercer.random import entropy_of

__all__ = ["SequentialKernelRegressor"]

_SCALINGS_OF_TABLE = 5


@dataclass(kw_only=True, eq=False, repr=False)
class SequentialKernelRegressor(StreamRegressor):
    """Sparse Bayesian kernel regression that learns row after row, in one pass.

    A population of particles follows the posterior of the set of kernel centres, their length
    scale and variances; coefficients and noise are integrated out. ``fit`` learns a table in one
    pass, ``partial_fit`` goes on with a stream: memory and time of a row do not grow.

    Parameters
    ----------
    input_scalings : int or "auto", default="auto"
        Scalings of the inputs to choose among: 1 takes all inputs alike; more are drawn near the
        relevance of each input to a Gaussian process fitted to the first 300 rows, and what that
        took from these rows is charged to them (`mercer.basis.length_scales`). "auto": five with
        ``fit``, one in a stream.
    max_candidates : int or None, default=None
        Inputs that may be centres: the first so many, of which later ones take the place at
        random, without a look at the targets. None: 512.
    forgetting : float or sequence of float, default=1.0
        Weight of a row after the next, in [0.5, 1]: 1 forgets nothing, 0.99 remembers a hundred
        rows or so. Several are run side by side, and weighted by how well they predicted.
    variances : {"integrated", "sampled"}, default="integrated"
        "sampled": noise and coefficients' variance are carried by the particle, as in the paper.
    linear_part : bool, int or "auto", default=False
        Whether the mean is linear in the inputs beside a constant, or in how many, the first ones;
        1e5 scales out it stays level. "auto": of up to 256 inputs.
    weighting : {"exact", "printed"}, default="exact"
        "printed": Algorithm 1 as printed, whose weights are biased (`mercer.basis.filter`); for
        study, with sampled variances and without forgetting.
    move_fraction : float or "auto", default="auto"
        Share of the particles that is moved after each row, in (0, 1]. "auto": all until row 64, a
        fifth until row 512, then two fifths after every sixteen.
    robust : bool or "auto", default="auto"
        Whether a row is set aside, and not learned, where its target is more probably an outlier
        than not (`mercer.basis.ensemble`); of many such rows in short time, which are a change, two
        are lost and the others learned. "auto": yes, but not where variances are sampled.
    target_scale : float, (centre, scale) or None, default=None
        Standard deviation of the target, or its centre and that, if known beforehand.

    Attributes
    ----------
    posterior_ : Draws
        Particles with their weights: "n_centres", "noise_std", "lengthscale", "coef_std".
    centres_ : ndarray of shape (k, d)
        Kernel centres of a particle that has a typical number of them, in units of the inputs.
    n_centres_, noise_std_ : float
        Posterior means; the noise in units of the target.
    log_predictive_ : ndarray
        Log density of the target of each row of the last call, predicted before the row was learned
        (nats).
    log_evidence_, log_evidence_se_ : float
        Where nothing is forgotten; nats. Of the rows that were learned. The error is to first
        order, and too small from some hundred rows on, where few seeds find what others do not:
        compare seeds.
    n_outliers_ : int
        Rows that were set aside.

    See Also
    --------
    SequentialKernelClassifier : the same for classes.

    Notes
    -----
    Implements Algorithm 1 of [1]_ with exact weights; deviations are listed in
    `mercer.basis.filter`. A row costs O(N k^2) and O(R^2) for R candidates and each length scale.

    References
    ----------
    .. [1] J. Vermaak, S. J. Godsill and A. Doucet, Sequential Bayesian Kernel Regression,
       NIPS 2003.

    Examples
    --------
    >>> X = np.linspace(-3.0, 3.0, 60)[:, np.newaxis]
    >>> y = np.sin(2.0 * X[:, 0])
    >>> model = SequentialKernelRegressor(n_particles=50, random_state=0).fit(X, y)
    >>> bool(abs(model.predict([[0.5]])[0] - np.sin(1.0)) < 0.1)
    True
    """

    kernel: str = "rbf"
    lengthscale: Any = "learn"
    input_scalings: int | str = "auto"
    n_particles: int = 250
    expected_centres: float = 20.0
    max_centres: int = 50
    max_candidates: int | None = None
    forgetting: Any = 1.0
    centres_prior: str = "negative_binomial"
    variances: str = "integrated"
    linear_part: bool | int | str = False
    weighting: str = "exact"
    resampling: str = "systematic"
    move_fraction: float | str = "auto"
    robust: bool | str = "auto"
    standardize: str | bool = "auto"
    encode: Any = "auto"
    scale_rows: int = 200
    input_scale: Any = None
    target_scale: Any = None
    random_state: int | np.random.Generator | np.random.RandomState | None = None
    progress: bool | str = "auto"
    checkpoint: str | Path | None = None
    max_seconds: float | None = None

    @classmethod
    def paper(cls) -> SequentialKernelRegressor:
        """Return an unfitted regressor with the paper's settings for its sinc data.

        Poisson with mean 1, one kernel width of 1.6 in exp(-r^2 / w^2) in the units of the
        inputs, both variances sampled, one for all coefficients. The paper's improper priors of the
        variances are made proper, and its weights exact.
        """
        return cls(
            lengthscale=1.6 / np.sqrt(2.0),
            expected_centres=1.0,
            centres_prior="poisson",
            variances="sampled",
            move_fraction=1.0,
            input_scalings=1,
            standardize=False,
        )

    @fitting()
    def fit(self, X: Any, y: Any) -> SequentialKernelRegressor:
        """Learn a table in one pass, row after row.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            Inputs: finite numbers.
        y : array of shape (n,)
            Targets: finite numbers.
        """
        started = time.monotonic()
        self._check_arguments()
        self._forget()
        X, y = self._numbers(X, y, is_first=True, n_least=2)
        learner = self._new_learner()
        if self.input_scalings == "auto":
            learner.settings = replace(learner.settings, input_scalings=_SCALINGS_OF_TABLE)
        fitted = fit_learner(learner, X, y, started, self)
        self._put(fitted.learner, (*fitted.notes, *_note_of_outliers(fitted.learner)))
        self._last_densities = list(fitted.log_density)
        self._warn_of_convergence()
        return self

    def partial_fit(self, X: Any, y: Any) -> SequentialKernelRegressor:
        """Learn further rows of a stream, in their order.

        Parameters
        ----------
        X : array or frame of shape (m, d)
        y : array of shape (m,)

        Returns
        -------
        SequentialKernelRegressor
            Itself. A call that fails, for a row that is not finite for instance, changes nothing.
        """
        X, y = self._numbers(X, y, is_first=not self._is_begun)
        with self._begun():
            self._learner.learn(X, y, self._keep_density)
        self._warn_of_leaving(X, y)
        return self

    def prequential(self, X: Any, y: Any, level: float | None = None) -> Prequential:
        """Predict each row, then learn it: the score of a stream.

        Parameters
        ----------
        X : array or frame of shape (m, d)
        y : array of shape (m,)
            NaN where there is no target: such a row is predicted and not learned.
        level : float, optional
            Probability of the intervals, in (0, 1); without it there are none.

        Returns
        -------
        Prequential
            In units of the target. Rows that were held back until now are learned first.
        """
        return predict_then_learn(self, X, y, level)

    @property
    def _plots(self) -> tuple[str, ...]:
        return ("centres", "prequential")

    def summarise(self, n_centres: int) -> SparseSummary:
        """Project the posterior mean on so many kernels, chosen one after the other.

        Parameters
        ----------
        n_centres : int
            At most the number of candidates.

        Returns
        -------
        SparseSummary
            Has ``predict``, ``centres``, ``coef`` and ``table()``.
        """
        check_count("n_centres", n_centres, 1)
        return summarise(self._ready(), self.feature_labels_, int(n_centres))

    def to_river(self) -> Any:
        """Return a River regressor that learns and predicts dicts, one row at a time.

        It goes on with a copy of what was learned.

        Raises
        ------
        ImportError
            When River is missing.
        """
        try:
            from mercer.basis.river import RiverKernelRegressor
        except ImportError as error:
            raise ImportError(RIVER_MISSING) from error
        return RiverKernelRegressor(self)

    @contextmanager
    def _begun(self) -> Iterator[None]:
        """Make a learner, unless there is one; what fails inside leaves everything as it was."""
        with self._guarded():
            if not self._is_begun:
                self._check_arguments()
                self._put(self._new_learner(), ())
            yield

    def _to_parts(self) -> ModelParts:
        from mercer.basis.saved import parts_of

        return parts_of(self)

    def _restore(self, parts: ModelParts) -> None:
        from mercer.basis.saved import restore

        restore(parts, self)

    def _check_arguments(self) -> None:
        if self.input_scalings != "auto":
            check_count("input_scalings", self.input_scalings, 1)
        check_choice("variances", self.variances, ("integrated", "sampled"))
        check_choice("robust", self.robust, (True, False, "auto"))
        check_shared(self)
        self._settings()
        checked_given(self.standardize, self.input_scale, self.target_scale)

    def _numbers(self, X: Any, y: Any, *, is_first: bool, n_least: int = 1) -> tuple[Array, Array]:
        X, y = self._checked(X, y, is_first=is_first, is_numeric=True, n_least=n_least)
        return X, y.astype(np.float64, copy=False)

    def _settings(self) -> FilterSettings:
        return FilterSettings(
            kernel=self.kernel,
            lengthscale=checked_lengthscale(self.lengthscale),
            input_scalings=1 if self.input_scalings == "auto" else int(self.input_scalings),
            n_particles=int(self.n_particles),
            expected_centres=float(self.expected_centres),
            max_centres=int(self.max_centres),
            max_candidates=int(self.max_candidates or MOST_CANDIDATES),
            centres_prior=self.centres_prior,
            variances=self.variances,
            linear_part=self.linear_part,
            resampling=self.resampling,
            move_fraction=checked_share(self.move_fraction),
            forgetting=checked_forgetting(self.forgetting),
            weighting=self.weighting,
            robust=self.variances == "integrated" if self.robust == "auto" else bool(self.robust),
        )

    def _new_learner(self) -> Learner:
        settings = self._settings()
        given = checked_given(self.standardize, self.input_scale, self.target_scale)
        fewest = MANY_COLUMNS if isinstance(self.lengthscale, str) else None
        given = replace(given, is_robust=settings.robust, fewest=fewest)
        given.check_width(self.n_features_in_)
        return Learner(
            settings=settings,
            given=given,
            scale_rows=int(self.scale_rows),
            entropy=entropy_of(self.random_state),
            names=self._labels(),
        )


def _note_of_outliers(learner: Learner) -> tuple[str, ...]:
    """Say how many rows were set aside, if any were."""
    assert learner.running is not None
    n = learner.running.state.surprises.n_set_aside
    if n == 0:
        return ()
    return (
        f"{n} of {learner.n_seen} rows set aside, not learned: their targets are outliers; "
        "robust=False learns them",
    )
