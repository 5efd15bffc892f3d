"""`BaNKClassifier`: the scikit-learn estimator for classes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.errors import UsageError
from mercer.estimation.base import LabelPredictions, encode_classes
from mercer.estimation.model_file import ModelParts
from mercer.estimation.run import check_choice, check_common, check_count, fitting
from mercer.spectral.class_fitting import (
    SAMPLERS,
    ClassDraws,
    ClassSettings,
    default_leapfrog,
    fit_class_result,
    labels_of,
)
from mercer.spectral.prediction import LearnedKernel
from mercer.spectral.settings import OF_PAPER, check_arguments, settings_of

__all__ = ["BaNKClassifier", "FunctionClassifier"]


Array = NDArray[np.float64]

# A probability is kept this far from 0 and 1, so that a log score is finite.
_SMALLEST_PROBA = 1e-12


class FunctionClassifier(LearnedKernel, LabelPredictions):
    """Base of `BaNKClassifier`: all that needs the drawn functions and spectra only."""

    classes_: NDArray[Any]
    _functions: ClassDraws
    _order: NDArray[np.int64]

    def _proba(self, Z: Array) -> Array:
        found = np.concatenate([self._functions.probabilities(Z[rows]) for rows in self._blocks(Z)])
        proba = np.empty_like(found)
        proba[:, self._order] = np.maximum(found, _SMALLEST_PROBA)
        proba /= proba.sum(axis=1, keepdims=True)
        return np.asarray(np.minimum(proba, 1.0 - _SMALLEST_PROBA))

    def _function_draws(
        self, parts: Sequence[Array], n_draws: int, rng: np.random.Generator
    ) -> list[Array]:
        found = []
        for proba in self._functions.drawn_probabilities(parts, n_draws, rng):
            ordered = np.empty_like(proba)
            ordered[:, self._order] = proba
            found.append(ordered)
        return found

    def decision_function(self, X: ArrayLike) -> Array:
        """Logarithms of the probabilities.

        Returns
        -------
        ndarray of shape (m,) or (m, C)
            For two classes, the log odds of ``classes_[1]``.
        """
        check_is_fitted(self)
        log_proba = np.log(self.predict_proba(X))
        if len(self.classes_) > 2:
            return log_proba
        odds: Array = log_proba[:, 1] - log_proba[:, 0]
        return odds

    def latent(self, X: ArrayLike) -> tuple[Array, Array]:
        """Posterior mean and variance of the functions that tell classes apart, in logits.

        Returns
        -------
        mean, variance : ndarray of shape (m,) or (m, C - 1)
            Moments of the log odds of ``classes_[1]`` for two classes; for several, of the log
            odds of each of ``class_order_`` but the last against all that come after it; of
            ordered classes, also of two, the one function before thresholds are taken off: the
            larger, the higher the class.
        """
        check_is_fitted(self)
        Z = self._standardized(X)
        parts = [self._functions.moments(Z[rows]) for rows in self._blocks(Z)]
        mean, variance = (np.concatenate(side) for side in zip(*parts, strict=True))
        if mean.shape[1] == 1:
            return mean[:, 0], variance[:, 0]
        return mean, variance


# `BaNKClassifier`: the scikit-learn estimator for classes.


@dataclass(kw_only=True, eq=False, repr=False)
class BaNKClassifier(FunctionClassifier):
    """Classification that learns its kernel: random Fourier features, a mixture of frequencies.

    The spectral density of a stationary kernel is a Dirichlet-process mixture of normals;
    frequencies are drawn from their posterior under a logistic likelihood, which Polya-Gamma
    variables make normal, with the coefficients integrated out. Cost is linear in the number of
    rows. Several classes, 20 at most, share the kernel and are told apart one after the other, the
    most frequent first: is it that one, else is it the next, and so on (stick-breaking).

    Parameters
    ----------
    ordered : bool or list, default=False
        Whether classes have an order: ``["low", "mid", "high"]``, from lowest to highest (or
        "low,mid,high"); True for that of an ordered pandas Categorical, also in opened Parquet
        files and Dask frames, else the sorted one. Then one function tells all of them apart, by a
        threshold between each and those above it. For ``sampler="polya-gamma"``.
    sampler : {"polya-gamma", "joint"}, default="polya-gamma"
        "polya-gamma": frequencies are accepted with all coefficients integrated out, which costs
        16 n M^2 operations a sweep; "joint": each moves together with its own coefficients, as in
        the paper, which costs O(n M) and needs the rows in memory, but takes more sweeps.
    n_leapfrog : int or "auto", default="auto"
        Steps of a trajectory of hybrid Monte Carlo before each sweep, in which all frequencies,
        their components and coefficients move together; 0 for none. "auto": 20 for a spectrum from
        fewer than 1500 rows, where the posterior is wide and sweeps alone cross it slowly; 0 from
        there. With hundreds of inputs 20 steps take longer than a sweep.
    proposals : {"pcn", "prior"}, default="pcn"
        How frequencies are proposed. "pcn": half of them by a step from where they are, tuned in
        warm-up, half anew from the whole mixture; "prior": anew from their component, as in the
        paper.
    ridge_precision : float or "learn", default="learn"
        Prior precision of the coefficients, in logits.
    linear_part : bool, default=True
        Whether the logits have an intercept and a linear part beside the features.
    kernel_rows : int or None, default=50_000
        With more rows than this, the spectrum is learned on so many drawn at random, and the
        coefficients by a few passes over all rows; ``notes_`` says so, and what it changed on
        rows held out for that. None learns the spectrum on all rows.
    n_draws : int, default=100
        Kept draws of each chain, a sweep over all frequencies each.
    n_warmup : int, default=50
        Sweeps of each chain that tune the steps and are dropped. Of a spectrum from 3000 rows or
        more, and unless ``proposals="prior"``, the first one begins where up to 400 steps up the
        posterior of all frequencies and coefficients have led, on at most 20 000 rows.
    thin : int or "auto", default="auto"
        One of so many sweeps is kept. "auto": each; but where diagnostics would warn and longer
        chains may end that, chains go on to two, three or four times as many sweeps, of which one
        in so many is kept (several chains of 100 draws or more, and fewer than 5000 rows).

    Attributes
    ----------
    class_order_ : ndarray of shape (C,)
        Class labels in the order in which they are told apart; of two, the second one first; of
        ordered ones, the lowest.
    posterior_ : Draws
        Draws of "log_likelihood" (nats, of the training rows), coefficients, "frequencies"
        (radians per standardised unit), the partition, and what is monitored.

    See Also
    --------
    BaNKRegressor : the same for numbers.

    Notes
    -----
    Implements section 3 of [1]_ for classes. A sweep costs (C - 1) 16 n M^2 flops and O(C M^3),
    a step of a trajectory O(n M (d + C)).
    Deviations are listed in `mercer.spectral.class_sampler`,
    trajectories in `mercer.spectral.trajectory`. The paper's proposals of a frequency
    with its two coefficients are those of ``sampler="joint"``, with the ratio put right: see
    `mercer.spectral.class_sampler`.

    Units of inputs do not matter to the posterior. To the draws they matter as rounding does:
    powers of two change no bit; other units change the last bit of standardised inputs, which a
    trajectory in hundreds of coordinates makes larger step by step, until the draws differ as
    those of another seed do. Sweeps alone (``n_leapfrog=0``) keep the same draws to 1e-6.

    References
    ----------
    .. [1] J. B. Oliva, A. Dubey, A. G. Wilson, B. Poczos, J. Schneider and E. P. Xing, Bayesian
       Nonparametric Kernel-Learning, AISTATS 2016.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(80, noise=0.3, random_state=0)
    >>> model = BaNKClassifier(n_frequencies=20, n_draws=20, n_chains=1, random_state=0).fit(X, y)
    >>> model.predict_proba([[-1.0, 0.5]]).argmax()
    np.int64(0)
    """

    _after_draws = ("full_draws",)
    _most_times = 4

    n_frequencies: int | str = "auto"
    concentration: float | str = 2.0
    ordered: bool | str | Sequence[Any] = False
    sampler: str = "polya-gamma"
    n_leapfrog: int | str = "auto"
    proposals: str = "pcn"
    base_measure: str = "diagonal"
    frequency_scale: float | str = "learn"
    ridge_precision: float | str = "learn"
    missing: str = "error"
    linear_part: bool = True
    kernel_rows: int | None = 50_000
    full_draws: int = 4
    standardize: str | bool = "auto"
    encode: Any = "auto"
    device: str | None = None
    n_draws: int = 100
    n_warmup: int = 50
    n_chains: int = 4
    thin: int | str = "auto"
    random_state: int | np.random.Generator | np.random.RandomState | None = None
    n_jobs: int | None = None
    progress: bool | str = "auto"
    checkpoint: str | Path | None = None
    max_seconds: float | None = None

    @classmethod
    def paper(cls) -> BaNKClassifier:
        """Return an unfitted classifier whose prior and sampler are the paper's.

        384 frequencies, full covariances, coefficients of precision 1 / 2, no linear part,
        proposals of frequencies from the prior, each with its own coefficients, one chain; mean and
        standard deviation. What the paper leaves open: as in `BaNKRegressor.paper`.
        """
        return cls(**OF_PAPER, sampler="joint", n_leapfrog=0)

    @fitting()
    def fit(self, X: Any, y: Any) -> BaNKClassifier:
        """Draw the kernel and the functions from their posterior.

        Parameters
        ----------
        X : array or frame of shape (n, d), or RowSource
            Inputs: finite numbers, or NaN with ``missing="posterior"``. What `mercer.data.open`
            gives is read block by block.
        y : array of shape (n,), or str
            Labels of two to twenty classes; with a RowSource, the name of their column in it, whose
            numbers are the labels.
        """
        started = time.monotonic()
        self._check_arguments()
        self._forget()
        self._put(fit_class_result(self, X, y, started))
        self._warn_of_convergence()
        return self

    def _to_parts(self) -> ModelParts:
        from mercer.spectral.saved import parts_of

        return parts_of(self, arrays={"class_order": self._order})

    def _restore(self, parts: ModelParts) -> None:
        from mercer.spectral.saved import restore_classes

        self._put(restore_classes(parts, self))

    def _check_arguments(self) -> None:
        check_arguments(self)
        check_choice("sampler", self.sampler, tuple(SAMPLERS))
        if self.n_leapfrog != "auto":
            check_count("n_leapfrog", self.n_leapfrog, 0)
        labels = None if isinstance(self.ordered, bool) else labels_of(self.ordered)
        if labels is not None and len(labels) < 2:
            raise UsageError(f"ordered={self.ordered!r}: false, true or two labels or more")
        if self.ordered is not False and self.sampler == "joint":
            raise UsageError("sampler='joint' is for classes without an order; leave ordered out")
        if self.device is not None and self.sampler == "joint":
            raise UsageError("sampler='joint' computes by NumPy; leave device out")
        check_common(self)

    def _checked(self, X: Any, y: Any) -> tuple[Array, Array]:
        """Check arrays and set the classes; return inputs and positions among them."""
        X, y = self._training_data(X, y, dtype=np.float64, ensure_min_samples=2)
        self.classes_, index = encode_classes(np.asarray(y))
        return np.asarray(X), index.astype(np.float64)

    def _class_settings(self, n_rows: int, n_classes: int) -> ClassSettings:
        """Return what is fitted to so many rows of so many classes."""
        n_leapfrog = self.n_leapfrog
        if n_leapfrog == "auto":
            n_leapfrog = default_leapfrog(min(n_rows, self.kernel_rows or n_rows))
        common = settings_of(self, n_rows)
        n_functions = n_classes - 1 if self.ordered is False else 1
        return ClassSettings(common, n_functions, self.sampler, int(n_leapfrog))
