"""`GPClassifier`: the scikit-learn estimator of the method."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.estimation.base import encode_classes
from mercer.estimation.model_file import ModelParts
from mercer.estimation.options import check_choice
from mercer.estimation.run import CommonArguments, run_options
from mercer.estimation.standardize import fit_standardizer
from mercer.gp.base import GPEstimator
from mercer.gp.fitting import fit_gp
from mercer.gp.predict import LatentDraws, latent_moments, success_probability
from mercer.gp.saved import parts_of, restore
from mercer.kernels.squared_exponential import SquaredExponentialARD
from mercer.posterior.diagnostics import Diagnostics
from mercer.posterior.draws import Draws
from mercer.sampling.checkpoint import digest_arrays

__all__ = ["GPClassifier"]

Array = NDArray[np.float64]

# A probability is kept this far from 0 and 1, so that a log score is finite.
_SMALLEST_PROBA = 1e-12


class GPClassifier(ClassifierMixin, GPEstimator):  # type: ignore[misc]
    """Binary classification by a Gaussian process, with hybrid Monte Carlo over hyperparameters.

    The latent function has a squared exponential covariance with one weight per input (automatic
    relevance determination); it is integrated out by Laplace's approximation, and the log
    parameters of the covariance are drawn from their posterior. Predictions average over draws.

    Parameters
    ----------
    inference : {"hmc", "nuts", "map"}, default="hmc"
        "hmc": trajectories of random length, step size and mass tuned in warm-up; "nuts": the
        no-U-turn sampler, tuned likewise; "map": the most probable hyperparameters only.
    prior : {"wide", "paper"}, default="wide"
        Of the log parameters, on standardised inputs. "wide": log variance ~ N(1, 3^2),
        log weights ~ N(-1 - log d, 2^2). "paper": N(-3, 3^2) for all.
    predictive_mean : {"corrected", "mode"}, default="corrected"
        "mode" is Laplace's k'a, as in the paper; "corrected" goes from there towards the posterior
        mean, along the first-order step and as far as the variational bound says.
    n_leapfrog : int or None, default=None
        Steps of every trajectory, for "hmc". Given together with ``step_size`` it fixes the
        trajectories as in the paper, with unit mass and the paper's start: nothing is tuned.
    step_size : float or None, default=None
        Of a leapfrog step, on the log parameters; given together with ``n_leapfrog``.
    standardize : {"auto", "std", "robust", "yeo-johnson", "arcsinh", False}, default="auto"
        Per column, learned on the training rows. "auto": mean and standard deviation, or, where
        the standard deviation is over ten times the interquartile range, median and
        interquartile range, clipped at 10. Constant columns become 0.
    n_draws : int, default=500
        Kept draws of each chain.
    n_warmup : int, default=150
        Steps of each chain that tune the sampler and are dropped.
    n_chains : int, default=4
        Independent chains.
    thin : int, default=1
        One of so many steps is kept.
    random_state : int, Generator, RandomState or None, default=None
        An integer gives the same draws each time, for any ``n_jobs``.
    n_jobs : int or None, default=None
        Chains that run at a time, through joblib; -1 for one a core.
    progress : bool or "auto", default="auto"
        A progress bar; "auto" shows it on a terminal or in a notebook.
    checkpoint : path or None, default=None
        Folder where the state is saved as the chains run. ``fit`` with the same data and options
        goes on from there, to the same draws, bit for bit.
    max_seconds : float or None, default=None
        Stop after a whole step once so much time has passed; ``notes_`` says so.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Class labels.
    posterior_ : Draws
        Draws of "log_signal_variance", "log_weight" (one a column), "log_density", "latent" (in
        logits, at up to 20 fixed rows) and the dual coefficients.
    diagnostics_ : Diagnostics
        R-hat, effective sample sizes, acceptance, and warnings in words.
    relevance_ : ndarray of shape (n_draws in all, d)
        Draws of each input's weight: its inverse squared length scale, standardised inputs.
    prior_weight_interval_ : tuple of float
        Central 90 % of the prior of a weight: what ``relevance_`` shows where data say nothing.
    feature_labels_ : tuple of str
        Names of the columns; x0, x1, ... where none were given.
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
    sklearn.gaussian_process.GaussianProcessClassifier : hyperparameters optimised, not averaged.

    Notes
    -----
    Implements eqs. (5) to (10) of [1]_. One gradient costs O(n^3); up to about 2000 rows.

    References
    ----------
    .. [1] D. Barber and C. K. I. Williams, Gaussian Processes for Bayesian Classification via
       Hybrid Monte Carlo, NIPS 9 (1997).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(80, noise=0.3, random_state=0)
    >>> model = GPClassifier(n_draws=20, n_warmup=20, n_chains=1, random_state=0).fit(X, y)
    >>> model.predict_proba([[-1.0, 0.5]]).argmax()
    np.int64(0)
    """

    def __init__(
        self,
        *,
        inference: str = "hmc",
        prior: str = "wide",
        predictive_mean: str = "corrected",
        n_leapfrog: int | None = None,
        step_size: float | None = None,
        standardize: str | bool = "auto",
        n_draws: int = 500,
        n_warmup: int = 150,
        n_chains: int = 4,
        thin: int = 1,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        progress: bool | str = "auto",
        checkpoint: str | Path | None = None,
        max_seconds: float | None = None,
    ) -> None:
        self.inference = inference
        self.prior = prior
        self.predictive_mean = predictive_mean
        self.n_leapfrog = n_leapfrog
        self.step_size = step_size
        self.standardize = standardize
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.n_chains = n_chains
        self.thin = thin
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.checkpoint = checkpoint
        self.max_seconds = max_seconds

    @classmethod
    def paper(cls) -> GPClassifier:
        """Return an unfitted classifier with the settings of the paper, section 2.3.

        One chain of 200 trajectories of 20 steps of 0.1 from theta = (0, -2, ..), the first third
        dropped; prior N(-3, 3^2); predictions at the mode; mean and standard deviation.
        """
        return cls(
            prior="paper",
            predictive_mean="mode",
            n_leapfrog=20,
            step_size=0.1,
            standardize="std",
            n_draws=133,
            n_warmup=67,
            n_chains=1,
        )

    def fit(self, X: ArrayLike, y: ArrayLike) -> GPClassifier:
        """Draw hyperparameters from their posterior.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            Inputs: finite numbers.
        y : array of shape (n,)
            Labels of two classes.

        Returns
        -------
        GPClassifier
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
        X, y = validate_data(self, X, y, dtype=np.float64, order="C", ensure_min_samples=2)
        X, y = np.asarray(X), np.asarray(y)
        self.classes_, y01 = self._encode_target(y)
        self.feature_labels_ = self._labels()
        self.standardizer_ = fit_standardizer(X, self.standardize, self.feature_labels_)
        Xs = self.standardizer_.transform(X)
        settings = self._settings()
        identity = {**settings.as_options("GPClassifier"), **self._counts()}
        options = run_options(common, digest_arrays(Xs, y01), identity, started)
        fitted = fit_gp(Xs, y01, settings, options, self.feature_labels_)
        self._set_fitted(Xs, y01, fitted.draws, fitted.diagnostics, fitted.notes)
        return self

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the classes, averaged over draws.

        Parameters
        ----------
        X : array or frame of shape (m, d)

        Returns
        -------
        ndarray of shape (m, 2)
            In the order of ``classes_``; never exactly 0 or 1.
        """
        check_is_fitted(self)
        p = success_probability(self._latent_draws(), self._standardized(X))
        p = np.clip(p, _SMALLEST_PROBA, 1.0 - _SMALLEST_PROBA)
        return np.column_stack([1.0 - p, p])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Most probable class of each row of X, shape (m,), in the type of the labels."""
        check_is_fitted(self)
        labels: NDArray[Any] = self.classes_[np.argmax(self.predict_proba(X), axis=1)]
        return labels

    def latent(self, X: ArrayLike) -> tuple[Array, Array]:
        """Posterior mean and variance of the latent function, in logits of ``classes_[1]``.

        Returns
        -------
        mean, variance : ndarray of shape (m,)
            Over the latent value and the draws of the hyperparameters.
        """
        check_is_fitted(self)
        return latent_moments(self._latent_draws(), self._standardized(X))

    def _to_parts(self) -> ModelParts:
        return parts_of(self, self._X, self._y)

    @classmethod
    def _from_parts(cls, parts: ModelParts) -> GPClassifier:
        model = cls(**parts.params)
        model._check_arguments()
        common, X, y = restore(parts)
        common.put_into(model)
        model._set_fitted(X, y, common.draws, common.diagnostics, common.notes)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _check_arguments(self) -> CommonArguments:
        check_choice("predictive_mean", self.predictive_mean, ("corrected", "mode"))
        return self._check_sampler()

    @staticmethod
    def _encode_target(y: NDArray[Any]) -> tuple[NDArray[Any], Array]:
        classes, index = encode_classes(y)
        if len(classes) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}."
            )
        return classes, index.astype(np.float64)

    def _set_fitted(
        self,
        X: Array,
        y: Array,
        draws: Draws,
        diagnostics: Diagnostics,
        notes: tuple[str, ...],
    ) -> None:
        self._y = y
        self._set_posterior(X, draws, diagnostics, notes)

    def _latent_draws(self) -> LatentDraws:
        draws = self.posterior_
        a = draws.flat("dual_coef")
        mean_coef = a if self.predictive_mean == "mode" else a + draws.flat("dual_correction")
        theta = np.column_stack([draws.flat("log_signal_variance"), draws.flat("log_weight")])
        return LatentDraws(self._X, self._y, SquaredExponentialARD(), theta, a, mean_coef)
