"""`BaNKRegressor`: the scikit-learn estimator of the method."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.data.row_names import RowNames
from mercer.errors import NumericalError, UsageError
from mercer.estimation.base import by_partition
from mercer.estimation.model_file import ModelParts
from mercer.estimation.numbers import (
    FEWEST_DECIDING,
    TIME_OF_NOISE,
    JudgedNumbers,
    NumberPredictions,
    gains_of_noise,
    likeliest_noise,
)
from mercer.estimation.run import check_choice, check_common, fitting
from mercer.estimation.standardize import fit_quietly, rows_that_decide, scale_target
from mercer.estimation.tasks import task_of
from mercer.numerics.cholesky import one_blas_thread
from mercer.posterior.draws import Draws
from mercer.posterior.labels import TargetLaws
from mercer.posterior.positive_laws import (
    CONTAMINATED,
    LOGNORMAL,
    STUDENT,
    SUITING,
    VARYING,
    CountMixture,
    LogNormalMixture,
)
from mercer.posterior.predictive import StudentMixture
from mercer.random import stream
from mercer.sampling.driver import RunOptions
from mercer.spectral.fitting import ROWS_OF_START, fit_result
from mercer.spectral.missing import fill_at_random
from mercer.spectral.model import COUNTS, NOISES
from mercer.spectral.prediction import (
    OF_OUTPUTS,
    FunctionDraws,
    LearnedKernel,
    SeveralLaws,
    target_laws,
)
from mercer.spectral.rows import Table
from mercer.spectral.settings import (
    OF_PAPER,
    SpectralSettings,
    check_arguments,
    settings_of,
    varying_law,
)

__all__ = ["BaNKRegressor", "FunctionRegressor"]


# What drawn functions answer: the prediction methods of the regressor.

Array = NDArray[np.float64]


def names_of_outputs(y: Any) -> tuple[str, ...]:
    """Names of the columns of targets (n, q), of which there are several; else nothing."""
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    if len(shape) != 2 or shape[1] < 2:
        return ()
    return tuple(map(str, getattr(y, "columns", [f"y{k}" for k in range(shape[1])])))


class FunctionRegressor(
    JudgedNumbers,
    LearnedKernel,
    NumberPredictions[StudentMixture | LogNormalMixture | CountMixture],
):
    """Base of `BaNKRegressor`: all that needs the drawn functions and spectra only."""

    _functions: FunctionDraws
    posterior_: Draws
    n_outputs_: int = 1
    output_names_: tuple[str, ...] = ()

    def output(self, which: int | str) -> Self:
        """Return the model of one of several outputs, which explains, asks, plots and reports.

        Parameters
        ----------
        which : int or str
            Its position, from 0, or its name in ``output_names_``; a `UsageError` if there is none.
        """
        check_is_fitted(self)
        names = self.output_names_
        k = names.index(which) if which in names else which
        if not isinstance(k, int | np.integer) or not 0 <= k < len(names):
            raise UsageError(f"there is no output {which!r}; there is: {', '.join(names) or 'one'}")
        one = copy.copy(self)
        one.n_outputs_, one.output_names_ = 1, ()
        for name in ("target_centre_", "target_scale_", "noise_std_"):
            setattr(one, name, float(getattr(self, name)[k]))
        one._functions = self._functions.output(int(k))
        draws = self.posterior_
        own = {name: draws.variables[name][:, :, k] for name in OF_OUTPUTS}
        one.posterior_ = replace(draws, variables={**draws.variables, **own})
        return one

    def _sample(self, Z: Array, n_draws: int, rng: np.random.Generator) -> Array:
        # All rows of a draw come from the same function, in whatever block they are.
        functions = self._functions
        n_functions = 2 * functions.deviations.shape[-2] * len(functions.mean)
        drawn = rng.integers(n_functions, size=n_draws)
        parts = [self._law(Z[rows]).sample(rng, n_draws, drawn) for rows in self._blocks(Z)]
        return np.concatenate(parts, axis=1)

    @by_partition
    def predict_noise_std(self, X: ArrayLike) -> Array:
        """Posterior mean of the standard deviation of the noise at rows X (m, d), (m,) or (m, q).

        In units of the target, of "lognormal" noise of its logarithm; the same at all rows unless
        the noise is "heteroscedastic".
        """
        check_is_fitted(self)
        if self._functions.is_of_counts:
            raise UsageError("counts have no noise beside their own law")
        Z = self._standardized(X)
        if self.n_outputs_ > 1:
            return np.tile(self.noise_std_, (len(Z), 1))
        means = [self._functions.noise_stds(Z[rows]).mean(axis=1) for rows in self._blocks(Z)]
        return np.asarray(np.concatenate(means) * self.target_scale_)

    def _law(self, Z: Array) -> Any:
        if self.n_outputs_ > 1:
            return SeveralLaws(tuple(self.output(k)._law(Z) for k in range(self.n_outputs_)))
        centre, locations = self._functions.locations(Z)
        if self._functions.is_of_counts:
            return self._functions.count_law(locations)
        return self._law_in_units(self._functions.law(locations, Z), Z, lambda: centre)

    def _standard_law(self, Z: Array) -> StudentMixture:
        return self._functions.law(self._functions.locations(Z)[1], Z)

    def _laws_of(self, Z: Array, y: Array) -> TargetLaws:
        return target_laws(self._functions, Z, y, np.zeros(len(y), dtype=bool))

    @property
    def _plots(self) -> tuple[str, ...]:
        return super()._plots + ("target_errors",) * self._is_contaminated

    def _function_draws(
        self, parts: Sequence[Array], n_draws: int, rng: np.random.Generator
    ) -> list[Array]:
        task_of(self)  # refuses several outputs
        functions = self._functions.chosen(n_draws, rng)
        return [self._in_units(functions.locations(Z)[1].T[:n_draws, np.newaxis]) for Z in parts]

    def _drawn(self, Z: Array) -> Array:
        drawn = super()._drawn(Z)
        return np.log(drawn) if self._functions.is_of_counts else drawn

    def _information(self, Z: Array) -> Array:
        variance, functions = super()._information(Z)[:, np.newaxis], self._functions
        if functions.noise_coef is None and not functions.is_of_counts:
            return variance[:, 0]
        ratios = (
            variance[rows] / np.square(functions.noise_stds(Z[rows]) * self.target_scale_)
            for rows in self._blocks(Z)
        )
        return np.concatenate([np.expm1(np.log1p(each).mean(axis=1)) for each in ratios])

    def _expected(self, Z: Array) -> Array:
        return self._mean_in_units(self._functions.expected(Z), Z)

    def _noise_law(self) -> StudentMixture:
        n = 2 * self._functions.deviations.shape[-2] * len(self._functions.mean)
        return self._functions.law(np.zeros((1, n)), np.zeros((1, self.n_features_in_)))


@dataclass(kw_only=True, eq=False, repr=False)
class BaNKRegressor(FunctionRegressor):
    """Regression that learns its kernel: random Fourier features under a mixture of frequencies.

    The spectral density of a stationary kernel is a Dirichlet-process mixture of normals;
    frequencies are drawn from their posterior, with the regression coefficients and the noise
    integrated out. Cost is linear in the number of rows. Several outputs learn one kernel together.

    Parameters
    ----------
    proposals : {"pcn", "prior"}, default="pcn"
        How frequencies are proposed. "pcn": some by a step from where they are, tuned in warm-up,
        the others anew from the whole mixture: half of them, up to nine in ten where steps are
        long; below 5000 rows components move with all their members, scales with all frequencies,
        and half or more anew at once if rows say little; "prior": anew from their component, as in
        the paper.
    ridge_precision : float or "learn", default="learn"
        Prior precision of the coefficients relative to that of the noise.
    noise : {"auto", "normal", "lognormal", "contaminated", "contaminated_lognormal", \
            "student_t", "heteroscedastic", "negative_binomial"}, default="auto"
        "auto": "lognormal" where all targets are above 0 and those left out, of up to 2000 rows,
        are likelier so by a twentieth of a nat a row and 2.5 standard errors; else, with no
        more rows than ``kernel_rows``, "heteroscedastic" or "student_t", where they are by .03 nats
        and 1.5 standard errors, or by .02 and one; else "normal"; ``noise_`` tells which, and why
        is in ``notes_``. "lognormal": targets are above 0, such as prices and durations, and noise
        is a factor: the function is their logarithm, with normal noise. ``predict`` gives the mean
        of the noise around the middle of the function, and intervals stay above 0.
        "contaminated": some targets are wrong, by errors of at least three times the noise; which
        ones, how many, how large errors are, and how heavy the tails of the noise of the others, is
        drawn along. The function is then learned in spite of them, and predictions are of right
        targets, with their tails. "contaminated_lognormal": the same of the logarithm of targets
        above 0, where a long tail of right ones looks like errors. Of these and the next: where
        more than a fifth of the targets are one value, such as 0, what the others say of the noise
        at first counts as a quarter of the rows. "student_t": the noise has Student's t law, its
        degrees of freedom drawn along, above 2; predictions are of targets with such noise. Sweeps
        take a third more time with either (with few frequencies up to twice as much), and of more
        rows than ``kernel_rows`` so many teach the coefficients, too. "heteroscedastic": normal
        noise whose variance depends on the inputs, its logarithm a function of some Fourier
        features, drawn along, and beyond the rows within what it is among them. It costs four more
        passes a sweep, cheap ones. "negative_binomial": targets are counts, 0, 1, 2, ..., up to
        1e12; the function is the logarithm of their mean, and their variance mean + mean^2 / r, the
        dispersion r drawn along. ``predict`` gives the mean, intervals are whole numbers, densities
        probabilities.
    linear_part : bool, default=True
        Whether the mean has an intercept and a linear part beside the features.
    kernel_rows : int or None, default=50_000
        With more rows than this, the spectrum is learned on so many drawn at random, and the
        coefficients by one exact pass over all rows; ``notes_`` says so, and what it changed on
        rows held out for that. None learns the spectrum on all rows.
    n_draws : int, default=100
        Kept draws of each chain, a sweep over all frequencies each; up to 4 sweeps where
        ``n_frequencies="auto"`` finds that fewer are enough, and they are not all drawn at once.
    n_warmup : int, default=100
        Sweeps of each chain that tune the step and are dropped. With many rows most of them look
        at an eighth, a quarter and a half of the rows only.
    thin : int or "auto", default="auto"
        One of so many sweeps is kept. "auto": each; but where diagnostics would warn and longer
        chains may end that, chains go on to two, three or four times as many sweeps, of which one
        in so many is kept (several chains of 100 draws or more, and fewer than 5000 rows). 1 is
        quicker.

    Attributes
    ----------
    noise_ : str
        The noise, as it was given or chosen.
    posterior_ : Draws
        Draws of "log_evidence" (nats), "noise_std" and coefficients (standardised), "frequencies"
        (radians per standardised unit), the partition, and what is monitored. With noise that is
        not normal "log_likelihood" (nats, of the training rows) in place of the evidence, and
        "log_rate" and "log_shares" (of each kind of right and wrong targets) or "noise_df", degrees
        of freedom, or "noise_spread", "noise_frequencies", "noise_coef" (of the log variance) and
        "noise_range" (its least and most among the rows); "noise_std" is then that of most right
        targets, of "student_t" its scale; of counts "dispersion" stands in its place. Of missing
        inputs also "input_mean" and "input_precision" of the law of the standardised inputs.
    noise_std_ : float
        Posterior mean of the standard deviation of the noise, in units of the target, of
        "lognormal" noise of its logarithm; of "heteroscedastic" noise its geometric mean over the
        rows (see `predict_noise_std`); counts have none.
    dispersion_ : float
        Posterior mean of r, of counts only.
    target_error_proba_ : ndarray of shape (n,)
        Probability that each target is wrong; this and the next with "contaminated" noise only. Of
        more than 10^6 rows that are not in memory, those likeliest wrong; `row_names_` names them.
    n_outputs_ : int
        Columns of ``y``, 1 where it is one column. Of several ``predict`` and the like have a last
        axis, "noise_std" and coefficients of ``posterior_`` one after the draws.
    output_names_ : tuple of str
        Names of several outputs: columns of the frame, or y0, y1, ...

    See Also
    --------
    BaNKClassifier : the same for classes.
    mercer.baselines.RKSRegressor : the frequencies drawn once, of a kernel that is chosen.

    Notes
    -----
    Implements section 3 of [1]_ for regression, eqs. (8) to (12). A sweep costs 12 n M^2 flops and
    O(M^3). Deviations are listed in `mercer.spectral.sampler`; `paper` has none of them.

    References
    ----------
    .. [1] J. B. Oliva, A. Dubey, A. G. Wilson, B. Poczos, J. Schneider and E. P. Xing, Bayesian
       Nonparametric Kernel-Learning, AISTATS 2016.

    Examples
    --------
    >>> X = np.linspace(-3.0, 3.0, 60)[:, np.newaxis]
    >>> y = np.sin(2.0 * X[:, 0])
    >>> model = BaNKRegressor(n_frequencies=20, n_draws=20, n_chains=1, random_state=0).fit(X, y)
    >>> bool(abs(model.predict([[0.5]])[0] - np.sin(1.0)) < 0.1)
    True
    """

    _after_draws = ("full_draws",)
    _most_times = 4

    n_frequencies: int | str = "auto"
    concentration: float | str = 2.0
    proposals: str = "pcn"
    base_measure: str = "diagonal"
    frequency_scale: float | str = "learn"
    ridge_precision: float | str = "learn"
    noise: str = "auto"
    missing: str = "error"
    linear_part: bool = True
    kernel_rows: int | None = 50_000
    full_draws: int = 4
    standardize: str | bool = "auto"
    encode: Any = "auto"
    device: str | None = None
    n_draws: int = 100
    n_warmup: int = 100
    n_chains: int = 4
    thin: int | str = "auto"
    random_state: int | np.random.Generator | np.random.RandomState | None = None
    n_jobs: int | None = None
    progress: bool | str = "auto"
    checkpoint: str | Path | None = None
    max_seconds: float | None = None

    @classmethod
    def paper(cls) -> BaNKRegressor:
        """Return an unfitted regressor whose chain is the paper's.

        384 frequencies, full covariances, Lambda_0 = I / 2, no linear part, proposals from the
        prior, one chain; mean and standard deviation. What the paper leaves open: frequencies of
        size 1 / sqrt(d), concentration 1, noise variance ~ IG(0.1, 1e-4), 150 sweeps of which 50
        are dropped.
        """
        return cls(**OF_PAPER, noise="normal")

    @fitting()
    def fit(self, X: Any, y: Any) -> BaNKRegressor:
        """Draw the kernel and the function from their posterior.

        Parameters
        ----------
        X : array or frame of shape (n, d), or RowSource
            Inputs: finite numbers, or NaN with ``missing="posterior"``. What `mercer.data.open`
            gives is read block by block.
        y : array of shape (n,), or (n, q), or str
            Targets: finite numbers; with ``noise="negative_binomial"`` counts and with "lognormal"
            numbers above 0, of which a `mercer.DataError` names the first that is none; with a
            RowSource, the name of their column in it.
            Several outputs, q columns, have a function and normal noise each, and one kernel.
        """
        started = time.monotonic()
        self._check_arguments()
        self._forget()
        names = names_of_outputs(y)
        if names and self._noises[0] != "normal":
            raise UsageError(
                f"y has {len(names)} columns: several outputs have normal noise; with "
                f'noise="{self.noise}" fit a model to each'
            )
        if self.noise == COUNTS:
            from mercer.spectral.class_fitting import fit_count_result

            result = fit_count_result(self, X, y, started)
        else:
            result = fit_result(self, X, y, started)
        self._put(result)
        self.output_names_ = names
        if result.judged is not None:
            targets, laws, where = result.judged
            called = self._row_names(len(where))
            if len(where) < result.n_rows:
                called = RowNames("positions", where, (), np.zeros_like(where))
            self._set_errors(targets, laws, called)
        self._warn_of_convergence()
        return self

    def _to_parts(self) -> ModelParts:
        from mercer.spectral.saved import parts_of

        own: dict[str, Any] = {
            "target_centre": self.target_centre_,
            "target_scale": self.target_scale_,
        }
        several: dict[str, Any] = {}
        if self.n_outputs_ > 1:
            own, several = {"outputs": list(self.output_names_)}, own
        parts = parts_of(self, {**own, "noise": self.noise_}, several)
        if self._is_contaminated:
            self._put_errors(parts)
        return parts

    def _restore(self, parts: ModelParts) -> None:
        from mercer.spectral.saved import restore

        self._put(restore(parts, self))
        self.output_names_ = tuple(parts.fields.get("outputs", ()))
        if self._is_contaminated:
            self._restore_errors(parts)

    def _check_arguments(self) -> None:
        check_arguments(self)
        check_choice("noise", self.noise, ("auto", *NOISES))
        if self.missing == "posterior" and self._noises[0] not in (*SUITING, COUNTS):
            raise UsageError(
                f'missing="posterior" goes with normal and lognormal noise and counts, not with '
                f'noise="{self.noise}"; fill gaps in with encode=TableEncoder(missing="indicator")'
            )
        check_common(self)

    def _checked(self, X: Any, y: Any) -> tuple[Array, Array]:
        how = {"multi_output": True} if names_of_outputs(y) else {}
        X, y = self._training_data(
            X, y, dtype=np.float64, ensure_min_samples=2, y_numeric=True, **how
        )
        return np.asarray(X), np.asarray(y, dtype=np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._noises[0] == "normal"
        return tags

    @property
    def _noises(self) -> tuple[str, ...]:
        own = super()._noises
        return (*own, STUDENT, VARYING) if self.noise == "auto" else own

    def _suiting_noise(
        self, table: Table, settings: SpectralSettings, options: RunOptions
    ) -> tuple[str, tuple[str, ...]]:
        """Name the noise, and say why where targets choose it: those of some rows, if all may.

        Of a mixture of normals no more than ``kernel_rows`` teach, and none draws what is missing.
        """
        if self.noise != "auto":
            return self.noise, ()
        n, is_filled = table.n_rows, self.missing == "posterior"
        X, y = table.take(rows_that_decide(n, ROWS_OF_START))
        if y.ndim > 1:
            return "normal", ()
        X = fill_at_random(stream(0, "missing"), X)[0] if is_filled else X
        Z = fit_quietly(X, self.standardize, self._labels()).transform(X)
        end = options.deadline_before_chains(TIME_OF_NOISE)
        laws = SUITING if is_filled or n > (self.kernel_rows or n) else self._noises
        given: dict[str, Any] = {"X": Z, "deadline": end}
        ask, varying = partial(settings.left_out, **given), partial(varying_law, **given)
        gains = gains_of_noise(y, ask, laws, varying)
        if LOGNORMAL in gains and not (table.targets(np.arange(n)) > 0.0).all():
            del gains[LOGNORMAL]
        return likeliest_noise(gains)

    def _settings(self, n_rows: int) -> SpectralSettings:
        """Return what is fitted to so many rows."""
        return replace(settings_of(self, n_rows), noise=self._noises[0])


def gain_beside_errors(X: Array, y: Array, names: tuple[str, ...]) -> float | None:
    """Say how much likelier a factor is than a sum, by `gains_of_noise`, as noise of targets (n,)
    of which some may be wrong, at inputs X (n, d) of these names; None where it is not.

    Of those that look right both as they are and as logarithms: errors of either kind would pass
    for noise of the other.
    """
    if len(y) < FEWEST_DECIDING or not (y > 0.0).all():
        return None
    rows = rows_that_decide(len(y))
    Z, y = fit_quietly(X, "auto", names).transform(X[rows]), y[rows]
    settings, right = BaNKRegressor()._settings(len(y)), np.ones(len(y), dtype=bool)
    with one_blas_thread(), suppress(NumericalError):  # there is no evidence
        for is_log in (False, True):
            z = scale_target(y, is_robust=True, is_log=is_log).transform(y)
            right &= replace(settings, noise=CONTAMINATED).look_right(0, Z, z)[0]
        ask = partial(settings.left_out, X=Z[right])
        return gains_of_noise(y[right], ask, (LOGNORMAL,)).get(LOGNORMAL)
    return None
