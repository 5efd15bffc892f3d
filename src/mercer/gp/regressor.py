"""`GPRegressor`: the scikit-learn estimator of GP regression, and what it says of new rows."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr
from scipy.stats import norm
from sklearn.utils.validation import check_is_fitted

from mercer.errors import DataError, RowsError, UsageError
from mercer.estimation.base import by_partition
from mercer.estimation.model_file import ModelParts
from mercer.estimation.numbers import (
    TIME_OF_NOISE,
    JudgedNumbers,
    NumberPredictions,
    gains_of_noise,
    likeliest_noise,
)
from mercer.estimation.run import check_choice, check_positive, fitting, run_options
from mercer.estimation.standardize import (
    TargetScale,
    fit_quietly,
    fit_scales,
    rows_that_decide,
    scale_target,
)
from mercer.gp.averaging import (
    AT_A_GLANCE,
    AveragedGP,
    Few,
    KernelFit,
    KernelTask,
    Rows,
    choose_few,
    mixed_moments,
    sample_functions,
    with_few,
)
from mercer.gp.base import (
    LATE,
    ROWS_ALONE,
    GPEstimator,
    check_weights,
    copies,
    draws_given,
    parts_of,
    restore,
    restore_evidence,
    restore_sources,
    weighted_rows,
)
from mercer.gp.contamination import fit_contaminated, look_right, target_laws, with_errors
from mercer.gp.fitting import (
    FittedGP,
    RegressionSettings,
    fit_regression,
    left_out,
    monitored_rows,
    moved,
)
from mercer.gp.gaussian import (
    MOST_PREDICTING,
    FunctionDraws,
    InducedDraws,
    NoiseOfRows,
    NumberRows,
    function_draws,
    induced_draws,
    restored_induced,
)
from mercer.gp.hyperparameters import LARGEST_LOG, MANY_INPUTS, HyperparameterTarget, Maximum
from mercer.gp.laplace import compile_loops
from mercer.kernels.names import kernel_named
from mercer.likelihoods.label_noise import FARTHEST, shares_of
from mercer.posterior.diagnostics import mean_weights
from mercer.posterior.labels import TargetLaws
from mercer.posterior.positive_laws import (
    NOT_POSITIVE,
    SUITING,
    WITH_ERRORS,
    LogNormalMixture,
)
from mercer.posterior.predictive import StudentMixture
from mercer.sampling.checkpoint import digest_arrays
from mercer.sampling.driver import RunOptions
from mercer.sampling.progress import tell
from mercer.sampling.signals import is_late, part_of_time

__all__ = ["GPRegressor"]


Array = NDArray[np.float64]

_SAMPLED = ("importance", "hmc", "nuts", "metropolis")
FEW_ROWS = 100  # up to which the draws that predict are chosen by how sure they are, too
_MOST_TOGETHER = 10_000  # training and new rows of one draw of a function


# What the draws say of new rows, and which of them predict.


def _law_of(functions: FunctionDraws, means: Array, variances: Array) -> StudentMixture:
    """Law of standardised targets by the draws of one kernel, of functions with these moments."""
    noise, shares = (each[functions.of_spread] for each in functions.noise_of_targets)
    n, weights = len(noise), functions.weights
    weights = np.full(n, 1.0 / n) if weights is None else weights
    return StudentMixture.of_functions(means, variances, noise, shares, weights)


def few_functions(functions: FunctionDraws, y: Array, *most: int) -> tuple[Few, float] | None:
    """Choose the draws that predict, by what they say of the mean and of the noise."""
    n_total, weights = len(functions.theta), functions.weights
    if weights is None:
        weights = np.full(n_total, 1.0 / n_total)
        functions = functions.chosen(np.arange(n_total), weights)
    noise = functions.target_variance[:, np.newaxis]
    # Of the noise of each draw the shares within some distances: the shape of its mixture.
    distances = np.array([0.5, 1.0, 1.5, 2.0, 3.0])[:, np.newaxis] * (weights @ np.sqrt(noise))
    variances, shares = (each[:, np.newaxis] for each in functions.noise_of_targets)
    within = (shares * ndtr(distances / np.sqrt(variances))).sum(axis=2)
    parameters = np.hstack([functions.theta, np.log(noise), within])
    fitted = functions.fitted(y)

    def with_spread(X: Array) -> Array:
        """Means at rows (m, d), and second moments of targets in units of means: (N, 2 m)."""
        means, variances = (each.T for each in functions.moments(X))
        second = np.square(means - weights @ means) + variances + noise
        second /= np.sqrt(weights @ second)
        return np.stack([means, second], axis=2).reshape(n_total, -1)

    # Of few rows, draws that agree in what they expect may differ much in how sure they are; of
    # more so they do far from all, where a target has the variance of the prior.
    predict = with_spread
    if len(functions.X) > FEW_ROWS:
        predict = functions.means
        prior = [functions.kernel.diagonal(theta, functions.X).mean() for theta in functions.theta]
        parameters = np.column_stack([parameters, noise[:, 0] + prior])
    return choose_few(functions.X, weights, fitted, predict, parameters, *most)


def functions_of(
    fits: tuple[KernelFit, ...], X: Array, intercept_variance: float, noise: NoiseOfRows | None
) -> tuple[FunctionDraws, ...]:
    """Return the functions of the draws of each kernel that predict."""
    found = []
    for each in fits:
        draws, kernel = each.predicting, kernel_named(each.kernel)
        functions = function_draws(draws, X, kernel, intercept_variance, noise)
        found.append(with_errors(functions, draws))
    return tuple(found)


def _with_few_draws(
    averaged: AveragedGP,
    X: Array,
    y: Array,
    intercept_variance: float,
    noise: NoiseOfRows | None,
    target: TargetScale,
    *,
    is_induced: bool,
) -> AveragedGP:
    """Choose the draws that predict, for standardised rows X (n, d) and targets y (n,)."""

    def few(each: KernelFit) -> tuple[Few, float] | None:
        (functions,) = functions_of((each,), X, intercept_variance, noise)
        most = (each.share_of(MOST_PREDICTING),) if is_induced else ()
        found = few_functions(functions, y, *most)
        return None if found is None else (found[0], found[1] * target.scale)

    of_what = "the target" + "'s logarithm" * target.is_log
    unit = f"{{:.2g}} in units of {of_what}{' between means' if len(X) > FEW_ROWS else ''}"
    return with_few(averaged, few, unit, is_induced=is_induced)


def _log_units(y: Array, noise: NoiseOfRows | None, target: TargetScale) -> float:
    """Sum over targets, standardised, of the logarithm of one of their units in the user's."""
    weights = np.ones(len(y)) if noise is None else noise.weights
    logs = y * target.scale + target.centre if target.is_log else 0.0
    return float(weights.sum() * math.log(target.scale) + np.sum(weights * logs))


class ProcessRegressor(JudgedNumbers, NumberPredictions[StudentMixture | LogNormalMixture]):
    """Base of `GPRegressor`: all that needs the draws only."""

    # More than elsewhere: each block costs a factorisation a draw.
    _rows_at_once: ClassVar[int] = 8192

    _functions: tuple[FunctionDraws, ...]  # one a kernel, of the draws that predict
    _all_functions: tuple[FunctionDraws, ...]
    _weights: tuple[float, ...]
    _known_std: float  # of the noise on average, where each row's is known

    @by_partition
    def predict(self, X: ArrayLike, return_std: bool = False, n_draws: str | None = None) -> Any:
        """Posterior mean of the target.

        Parameters
        ----------
        X : array or frame of shape (m, d)
        return_std : bool, default=False
        n_draws : {None, "all"}, default=None
            None: a few draws, weighted so as to agree with all; ``notes_`` says how closely. "all":
            all of them; with inducing points there are the few only.

        Returns
        -------
        mean : ndarray of shape (m,)
            In units of the target.
        std : ndarray of shape (m,)
            Standard deviation of a new observation, noise included; only with ``return_std``.
        """
        check_is_fitted(self)
        check_choice("n_draws", n_draws, (None, "all"))
        if n_draws is None:
            return super().predict(X, return_std)
        purist = copy.copy(self)
        purist._functions = self._all_functions
        return super(ProcessRegressor, purist).predict(X, return_std)

    def latent(self, X: ArrayLike) -> tuple[Array, Array]:
        """Posterior mean and variance of the function, without the noise of a target.

        Parameters
        ----------
        X : array or frame of shape (m, d)

        Returns
        -------
        mean, variance : ndarray of shape (m,)
            Over the function and the draws of the hyperparameters, in units of the target and
            their squares.
        """
        check_is_fitted(self)
        Z = self._standardized(X)
        each = [self._latent_of(functions, Z) for functions in self._functions]
        mean, variance = mixed_moments(self._weights, each)
        scale = self.target_scale_
        return mean * scale + self.target_centre_, variance * scale**2

    def _latent_of(self, functions: FunctionDraws, Z: Array) -> tuple[Array, Array]:
        """Mean and variance of the function of one kernel, standardised."""
        mean, variance = functions.expected(Z), np.empty(len(Z))
        for rows in self._blocks(Z):
            locations, variances = functions.moments(Z[rows])
            centres = np.average(locations, axis=1, weights=functions.weights)
            squares = variances + np.square(locations - centres[:, np.newaxis])
            variance[rows] = np.average(squares, axis=1, weights=functions.weights)
        return mean, variance

    def _sample(self, Z: Array, n_draws: int, rng: np.random.Generator) -> Array:
        together = len(Z) + len(self._functions[0].X)
        if together > _MOST_TOGETHER:
            raise DataError(
                f"{len(Z)} rows: one function at these and the training rows needs matrices of "
                f"{8e-9 * together**2:.1f} GB; give fewer at a time, or use predictive(X).sample"
            )
        if len(self._all_functions) == 1:
            drawn = self._all_functions[0].sample(rng, Z, n_draws)
        else:
            drawn = np.empty((n_draws, len(Z)))
            of_kernel = rng.choice(len(self._weights), size=n_draws, p=self._weights)
            for i, functions in enumerate(self._all_functions):
                mine = of_kernel == i
                drawn[mine] = functions.sample(rng, Z, int(mine.sum()))
        return self._in_units(drawn)

    def _function_draws(
        self, parts: Sequence[Array], n_draws: int, rng: np.random.Generator
    ) -> list[Array]:
        drawn = sample_functions(self._functions, self._weights, parts, n_draws, rng)
        return [self._in_units(f[:, np.newaxis]) for f in drawn]

    def _law(self, Z: Array) -> Any:
        return self._law_in_units(self._standard_law(Z), Z, lambda: self._average(Z))

    def _standard_law(self, Z: Array) -> StudentMixture:
        return self._mixture([_law_of(each, *each.moments(Z)) for each in self._functions])

    def _noise_law(self) -> StudentMixture:
        return self._mixture(
            [_law_of(each, *np.zeros((2, 1, len(each.of_spread)))) for each in self._functions]
        )

    def _mixture(self, parts: Sequence[StudentMixture]) -> StudentMixture:
        """Mix the laws of all kernels."""
        locations, scales = (
            np.hstack([getattr(part, name) for part in parts]) for name in ("locations", "scales")
        )
        shares = zip(self._weights, parts, strict=True)
        weights = np.concatenate([w * part.weights for w, part in shares])
        return StudentMixture(locations, scales, weights, math.inf, n_kinds=parts[0].n_kinds)

    def _average(self, Z: Array) -> Array:
        """Mean of the functions at standardised rows, standardised."""
        each = [w * f.expected(Z) for w, f in zip(self._weights, self._functions, strict=True)]
        return np.asarray(sum(each))

    def _expected(self, Z: Array) -> Array:
        return self._mean_in_units(self._average(Z), Z)


@dataclass(kw_only=True, eq=False, repr=False)
class GPRegressor(ProcessRegressor, GPEstimator):
    """Regression by a Gaussian process, averaged over hyperparameters.

    The target is an intercept, a function and normal noise. The function has a covariance with one
    weight per input (automatic relevance determination); it and the intercept are integrated out
    exactly, and the log parameters of the covariance and of the noise are drawn from their
    posterior. Predictions average over draws.

    Parameters
    ----------
    noise_std : float, array of shape (n,) or "learn", default="learn"
        Standard deviation of the noise in units of the target, where it is known; an array has
        that of each row of ``fit``. New targets then have the noise of the rows on average (root
        mean square); `latent` is without it.
    noise : {"auto", "normal", "lognormal", "contaminated", "contaminated_lognormal"}, \
            default="auto"
        "auto": "lognormal" where all targets are above 0 and those left out are likelier so, by a
        twentieth of a nat a row and 2.5 standard errors, else "normal"; ``noise_`` tells which.
        "lognormal": targets are above 0, such as prices and durations, and noise is a factor: the
        function is their logarithm, with normal noise, whose standard deviation ``noise_std`` and
        ``noise_std_`` then are. ``predict`` gives the mean of the noise around the middle of the
        function, and intervals stay above 0; `latent` is of the logarithm.
        "contaminated": some targets are wrong, by errors of at least three times the noise; which
        ones, how many, how large errors are, and how heavy the tails of the noise of the others, is
        drawn along. The function is then learned in spite of them, and predictions are of right
        targets, with their tails. Chains, whatever ``inference`` is; one kernel, where "auto" that
        of most weight for the rows that look right; not with ``n_inducing``, weights of rows, or
        "map". Where more than a fifth of the targets are one value, such as 0, the noise is at
        least half of what it is if none is wrong. "contaminated_lognormal": the same of the
        logarithm of targets above 0, where a long tail of right ones looks like errors.
    prior : {"wide", "paper"} or mapping, default="wide"
        Of the log parameters, on standardised inputs and targets. "wide": log variance ~
        N(1, 3^2), log weights as for `GPClassifier`, log variance of the noise ~ N(-3, 3^2).
        The intercept is N(0, 1), targets being centred by their mean. "paper": N(-3, 3^2) for all
        log parameters, no intercept. A mapping of kinds to mean and standard deviation of the
        logarithm, such as ``{"weight": (-2.0, 3.0)}``, changes these kinds of "wide": variance,
        weight, shape, period, frequency, noise.
    max_rows : int or "auto", default="auto"
        Of more rows so many teach the hyperparameters, a random choice stratified by the target,
        and ``notes_`` says so; at most 5000. "auto": 1000 (up to 5000 all of them for "map"); of
        more than 20 inputs fewer, as many as take about as long.
    n_inducing : int, "auto" or None, default="auto"
        With more rows than ``max_rows``: inducing points, from 10 to 5000, by which predictions
        are of all rows, by four draws or a few more. "auto": 2048, or all rows if these are fewer,
        by which predictions are exact; none where targets may be wrong (``noise``). None:
        predictions are of the rows that teach.

    Attributes
    ----------
    noise_ : str
        The noise, as it was given or chosen.
    posterior_ : Draws
        Draws of the log parameters of the kernel ("log_signal_variance", "log_weight", one a
        column, ...), "log_noise_variance", "log_density", "log_evidence" (nats), "latent" (mean of
        the function at up to 20 fixed rows) and the dual coefficients; targets are standardised.
        With ``noise="contaminated"`` the noise is that of the narrowest right targets, and there
        are "log_rate" (of errors), "log_shares" (of each kind of target: width of right ones, size
        of errors) and "error_kind" (of each row).
    relevance_ : ndarray of shape (n_draws in all, d)
        Draws of each input's weight: its inverse squared length scale, in standard deviations; only
        where a kernel that predicts has one such weight per input. With "auto": of the kernels in
        ``kernel_weights_`` that have, in proportion to their weights.
    noise_std_ : float
        Posterior mean of the standard deviation of the noise, in units of the target.
    log_marginal_likelihood_ : float
        Log density of the targets, in their units, given the hyperparameters of the most probable
        draw; nats.
    target_error_proba_ : ndarray of shape (n,)
        Probability that each target is wrong, of rows that were not fitted (``max_rows``) too; this
        and the next with "contaminated" noise only.
    log_evidence_, log_evidence_se_ : float or None
        Log of the probability (classes) or of the density (numbers) of the targets given inputs and
        the kernel of most weight, hyperparameters integrated out, and its standard error; nats.
        None after chains.

    See Also
    --------
    mercer.BaNKRegressor : time linear in the rows, and a kernel that need not be of one name.
    sklearn.gaussian_process.GaussianProcessRegressor : hyperparameters optimised, not averaged.

    Notes
    -----
    Implements eq. (1) and section 1.1 of [1]_ with the covariance of eq. (8) and the sampler of
    section 2.3. One gradient costs O(n^3): up to about 1000 rows in minutes. Of more rows than
    ``max_rows`` those that teach alone give ``posterior_``, ``log_evidence_`` and
    ``log_marginal_likelihood_``; predictions are of all rows, by ``n_inducing`` (FITC). The
    variance of the noise is never below 1e-9 (1 + v0), v0 the variance of the function, both in
    squared standard deviations of the target.

    References
    ----------
    .. [1] D. Barber and C. K. I. Williams, Gaussian Processes for Bayesian Classification via
       Hybrid Monte Carlo, NIPS 9 (1997).

    Examples
    --------
    >>> X = np.linspace(-3.0, 3.0, 40)[:, np.newaxis]
    >>> y = np.sin(2.0 * X[:, 0])
    >>> model = GPRegressor(n_draws=20, n_warmup=20, n_chains=1, random_state=0).fit(X, y)
    >>> bool(abs(model.predict([[0.5]])[0] - np.sin(1.0)) < 0.01)
    True
    """

    noise_std: Any = "learn"
    noise: str = "auto"
    n_inducing: int | str | None = "auto"

    @classmethod
    def paper(cls) -> GPRegressor:
        """Return an unfitted regressor with the settings of the paper, section 2.3.

        One chain of 200 trajectories of 20 steps of 0.1 from theta = (0, -2, .., -2), the first
        third dropped; prior N(-3, 3^2); mean and standard deviation. Of the noise, which the
        paper's classifiers have not, start and prior are those of a weight.
        """
        return cls(**cls._of_paper, noise="normal")

    @fitting()
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> GPRegressor:
        """Draw hyperparameters from their posterior.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            Inputs: finite numbers.
        y : array of shape (n,)
            Targets: finite numbers.
        sample_weight : array of shape (n,), optional
            How often each row counts: the power of its likelihood. A row of weight 2 is the row
            twice, one of weight 0 is left out. Targets that repeat exactly say that there is little
            noise; for rows that are means of several measurements, ``noise_std`` as an array is
            right. Where kernels are compared, rows that are the same are scored once.
        """
        started = time.monotonic()
        self._check_arguments()
        self._forget()
        X, y = self._training_data(X, y, dtype=np.float64, ensure_min_samples=2, y_numeric=True)
        X, y, noise = self._distinct(np.asarray(X), self._possible(y), sample_weight)
        self.feature_labels_ = self._labels()
        compile_loops(lambda line: tell(line, self.progress))
        self.noise_, said_of_noise = self._suiting_noise(X, y, started)
        counts = np.ones(len(y), np.int64) if noise is None else copies(noise.weights)
        target = scale_target(
            np.repeat(y, counts),
            is_robust=self._is_contaminated,
            farthest=FARTHEST if self._is_contaminated else math.inf,
            is_log=self._is_log,
        )
        ys = target.transform(y)
        self.standardizer_, said = fit_scales(
            np.repeat(X, counts, axis=0),
            self.standardize,
            self.feature_labels_,
            np.repeat(ys, counts),
            self._fewest_columns,
            may_warp=self._is_auto,
        )
        Xs = self.standardizer_.transform(X)
        limit = self._limit_of_rows(cost=self._cost_of_rows())
        given = (Xs, ys) if noise is None else (Xs, ys, noise.weights, noise.variances)
        digest = digest_arrays(*given, *self._identity_of_inputs())
        options = run_options(self, digest, started)
        rows, inducing = self._chosen_rows(
            ys, limit, self._wanted_inducing, options.entropy, is_classes=False
        )
        every, learning = NumberRows(Xs, ys, noise), self._learning(options, inducing)
        Xs, ys, noise = every.at(rows)
        averaged, intercept, laws = (
            self._contaminated(Xs, ys, target, learning)
            if self._is_contaminated
            else (*self._averaged(Xs, ys, noise, target, learning), None)
        )
        averaged = _with_few_draws(
            averaged, Xs, ys, intercept, noise, target, is_induced=inducing is not None
        )
        induced = None
        if inducing is not None and not is_late(options.deadline):
            parts = NumberRows(Xs, ys, noise), every.at(inducing), every
            fits, log_noise = averaged.fits, self._log_noise(target)
            induced = tuple(
                self._induced(each, parts, log_noise, intercept, options.deadline) for each in fits
            )
        alone = (ROWS_ALONE + LATE,) * (inducing is not None and induced is None)
        notes = *self._said_of_rows(len(every.y), rows, inducing if induced else None), *alone
        self.diagnostics_ = averaged.diagnostics.scaled(target.scale)
        evidence = averaged.fits[0].fitted.evidence
        if evidence is not None:  # of targets in the user's units
            evidence = (evidence[0] - _log_units(ys, noise, target), evidence[1])
        self._set_fitted(Xs, ys, noise, target, intercept, averaged.fits, evidence, induced)
        self.notes_ = (*said_of_noise, *said, *notes, *averaged.notes, *self._said_of_copies())
        if laws is not None:
            laws = self._laws_of_all(laws, rows, every.X, every.y)
            self._set_errors(y, laws, self._row_names(len(y)))
        self._warn_of_convergence()
        return self

    def _induced(
        self,
        fit: KernelFit,
        rows: tuple[NumberRows, NumberRows, NumberRows],
        log_noise: float | None,
        intercept_variance: float,
        deadline: float | None,
    ) -> InducedDraws:
        """Condition the draws that predict on all rows, moved to where the inducing points' are.

        ``rows`` are those that taught, those at the inducing points, and all.
        """
        taught, at_points, every = rows
        own, few = self._settings(fit.kernel), fit.predicting
        drawn, model = (
            RegressionSettings(own, log_noise, noise).posterior(X, y) for X, y, noise in rows[:2]
        )
        draws = drawn.positions(fit.fitted.draws), mean_weights(fit.fitted.draws)
        positions = moved(drawn, model, draws, drawn.positions(few), deadline)
        few = draws_given({**model.parameters(positions), "dual_coef": few.flat("dual_coef")}, few)
        return induced_draws(
            function_draws(few, taught.X, model.kernel, intercept_variance, taught.noise),
            at_points.X, every.X, every.y,
            is_scaled=isinstance(self.noise_std, str), noise_of_rows=every.noise,
        )  # fmt: skip

    def _contaminated(
        self, Xs: Array, ys: Array, target: TargetScale, options: RunOptions
    ) -> tuple[AveragedGP, float, TargetLaws]:
        """Fit rows of which some targets are wrong: those that look right choose the kernel."""
        log_noise, once = self._log_noise(target), replace(options, run=None)

        def settings(name: str) -> RegressionSettings:
            return RegressionSettings(self._settings(name), log_noise)

        name = self._bound_kernel()
        right = look_right(Xs, ys, settings(name), once)
        first, intercept = self._averaged(Xs[right], ys[right], None, target, once)
        best = first.fits[0]
        rows = monitored_rows(options, len(ys))
        fitted, laws = fit_contaminated(
            Xs, ys, settings(best.kernel), options, self.feature_labels_, best.fitted.draws,
            right, rows,
        )  # fmt: skip
        fit = KernelFit(best.kernel, 1.0, None, fitted, words=best.words)
        return AveragedGP((fit,), fitted.notes), intercept, laws

    def _said_of_copies(self) -> Iterator[str]:
        n_more = 0.0 if self._noise is None else self._noise.n_more
        is_learned = isinstance(self.noise_std, str)
        if n_more > 0.0 and is_learned and self.noise_std_ < 0.01 * self.target_scale_:
            yield (
                "rows that repeat with equal targets say that there is hardly any noise (standard "
                f"deviation {self.noise_std_:.2g}): leave copies out that were not measured anew"
            )

    def _laws_of_all(
        self, laws: TargetLaws, rows: NDArray[np.int64], X: Array, y: Array
    ) -> TargetLaws:
        """Say of every row what its target is worth, of those that were not fitted too."""
        others = np.setdiff1d(np.arange(len(y)), rows)
        if not len(others):
            return laws
        said = f"{len(others)} rows were not fitted: what the others say judges each by itself"
        self.notes_ = (*self.notes_, said)
        more = self._laws_of(X[others], y[others])
        order = np.argsort(np.concatenate([rows, others]))
        return TargetLaws(
            *(
                np.concatenate([getattr(laws, name), getattr(more, name)])[order]
                for name in ("wrong", "mean", "std")
            )
        )

    def _laws_of(self, Z: Array, y: Array) -> TargetLaws:
        return target_laws(self._all_functions[0], shares_of(self.posterior_), Z, y)

    @property
    def _plots(self) -> tuple[str, ...]:
        return super()._plots + ("target_errors",) * self._is_contaminated

    def _averaged(
        self,
        Xs: Array,
        ys: Array,
        noise: NoiseOfRows | None,
        target: TargetScale,
        options: RunOptions,
    ) -> tuple[AveragedGP, float]:
        """Fit standardised rows; return what was fitted, and the variance of the intercept."""
        log_noise = self._log_noise(target)

        def settings(name: str, rows: Rows | None = None) -> RegressionSettings:
            own = noise if noise is None or rows is None else noise.at(rows)
            return RegressionSettings(self._settings(name), log_noise, own)

        intercept = settings("rbf").intercept_variance
        names, once = self.feature_labels_, replace(options, run=None, progress=False)

        def model_of(name: str, rows: Rows) -> HyperparameterTarget:
            return settings(name, rows).posterior(Xs[rows], ys[rows])

        def score(name: str, maximum: Maximum, kept: Rows, out: Rows) -> Array:
            own, X = replace(settings(name, kept), common=self._at_maximum(name)), Xs[kept]
            draws = fit_regression(X, ys[kept], own, once, names, maximum).draws
            kernel, of_rows = kernel_named(name), own.noise_of_rows
            functions = function_draws(draws, X, kernel, intercept, of_rows)
            mean, variance = (each[:, 0] for each in functions.moments(Xs[out]))
            unknown = functions.noise_variance
            if noise is not None:
                unknown = unknown * noise.variances[out]
            return np.asarray(norm.logpdf(ys[out], mean, np.sqrt(variance + unknown)))

        def fit(name: str, options: RunOptions, maximum: Maximum | None, share: float) -> FittedGP:
            own = replace(settings(name), common=replace(self._settings(name), share=share))
            return fit_regression(Xs, ys, own, options, names, maximum)

        inputs = {"labels": names, "sources": self._sources}
        kernels = KernelTask(model_of, score, fit, ys, Xs.shape[1], is_classes=False, **inputs)
        return self._fit_kernels(kernels, options), intercept

    def _to_parts(self) -> ModelParts:
        parts = parts_of(self, self._X, self._y)
        parts.fields["noise"] = self.noise_
        parts.fields["target_centre"] = self.target_centre_
        parts.fields["target_scale"] = self.target_scale_
        parts.fields["intercept_variance"] = self._functions[0].intercept_variance
        if self._noise is not None:
            parts.arrays["rows/weights"] = self._noise.weights
            parts.arrays["rows/variances"] = self._noise.variances
        if self._is_contaminated:
            self._put_errors(parts)
        if np.ndim(self.noise_std) > 0:
            parts.arrays["noise_std"] = np.asarray(self.noise_std, dtype=np.float64)
            parts.params["noise_std"] = None
        for i, functions in enumerate(self._functions):
            if isinstance(functions, InducedDraws):
                parts.arrays["inducing/rows"] = functions.X
                parts.arrays[f"inducing/{i}/coef"] = functions.dual_coef
                parts.arrays[f"inducing/{i}/factor"] = functions.factors
                parts.arrays[f"inducing/{i}/scale"] = functions.scales
                parts.arrays[f"inducing/{i}/theta"] = functions.theta
                parts.arrays[f"inducing/{i}/noise_variance"] = functions.noise_variance
        return parts

    @staticmethod
    def _arguments(parts: ModelParts) -> Mapping[str, Any]:
        given = {"noise_std": parts.arrays["noise_std"]} if "noise_std" in parts.arrays else {}
        return {**parts.params, **given}

    def _restore(self, parts: ModelParts) -> None:
        self.noise_ = self._noise_in(parts)
        common, X, y, noise, fits, target, intercept = restore(
            parts, is_contaminated=self._is_contaminated
        )
        target = replace(target, is_log=self._is_log)
        common.put_into(self)
        evidence, induced = restore_evidence(parts), None
        if "inducing/rows" in parts.arrays:
            induced = restored_induced(functions_of(fits, X, intercept, noise), parts.arrays)
        self._sources_of_columns = restore_sources(parts, X.shape[1]) or None
        self._set_fitted(X, y, noise, target, intercept, fits, evidence, induced)
        if self._is_contaminated:
            self._restore_errors(parts)

    def _check_arguments(self) -> None:
        check_choice("noise", self.noise, ("auto", *SUITING, *WITH_ERRORS))
        if self._is_contaminated:
            check_choice(f"inference (with noise={self.noise!r})", self.inference, _SAMPLED)
            if self.n_inducing not in ("auto", None) or np.ndim(self.noise_std) > 0:
                raise UsageError(
                    f"noise={self.noise!r} goes without n_inducing, and noise_std is one number"
                )
        if np.ndim(self.noise_std) > 0:
            given = np.asarray(self.noise_std)
            is_right = given.ndim == 1 and given.dtype.kind in "iuf"
            if not is_right or not (np.isfinite(given) & (given > 0)).all():
                raise UsageError("noise_std as an array must hold numbers above 0, one for a row")
        elif self.noise_std != "learn":
            check_positive("noise_std", self.noise_std)
        self._check_sampler()

    def _possible(self, y: ArrayLike) -> Array:
        """Return the targets; a `DataError` names the first that the noise does not allow."""
        y = np.asarray(y, dtype=np.float64)
        if self._is_log and not (y > 0.0).all():
            row = int(np.argmin(y > 0.0))
            raise RowsError([row], f": the target is {y[row]:g}, and {NOT_POSITIVE}")
        return y

    def _distinct(
        self, X: Array, y: Array, sample_weight: ArrayLike | None
    ) -> tuple[Array, Array, NoiseOfRows | None]:
        """Return the rows that differ, and how often each counts and how large its noise is."""
        columns, variances = [X, y], np.ones(len(y))
        is_known = np.ndim(self.noise_std) > 0
        if self._is_contaminated:  # one of two equal rows may be wrong
            if sample_weight is not None:
                raise UsageError(f"noise={self.noise!r} takes no sample_weight")
            return X, y, None
        if is_known:
            given = np.asarray(self.noise_std, dtype=np.float64)
            if len(given) != len(y):
                raise UsageError(f"noise_std has {len(given)} values for {len(y)} rows")
            variances = np.square(given / given.max())
            columns.append(variances)
        rows, weights = weighted_rows(
            np.column_stack(columns), check_weights(sample_weight, len(y))
        )
        X, y, variances = X[rows], y[rows], variances[rows]
        if weights is None and not is_known:
            return X, y, None
        weights = np.ones(len(y)) if weights is None else weights
        if is_known:  # of the rows on average
            mean = float(np.average(variances, weights=weights))
            variances, self._known_std = variances / mean, math.sqrt(mean) * float(given.max())
        return X, y, NoiseOfRows(weights, variances)

    def _suiting_noise(self, X: Array, y: Array, started: float) -> tuple[str, tuple[str, ...]]:
        """Name the noise, and say why where the targets choose it: a sum where it is known."""
        is_known = self.noise != "auto" or not isinstance(self.noise_std, str)
        if is_known or not (y > 0.0).all():
            return self._noises[0], ()
        end = None if self.max_seconds is None else started + self.max_seconds
        rows, is_wide = rows_that_decide(len(y)), self._is_auto and X.shape[1] > MANY_INPUTS
        settings = self._settings("isotropic(rbf)" if is_wide else self._bound_kernel())
        Z = fit_quietly(X, self.standardize, self.feature_labels_).transform(X[rows])
        own, end = RegressionSettings(settings, None), part_of_time(end, TIME_OF_NOISE)
        ask = partial(left_out, X=Z, settings=own, deadline=end)
        return likeliest_noise(gains_of_noise(y[rows], ask, self._noises))

    def _log_noise(self, target: TargetScale) -> float | None:
        """Log variance of the noise of standardised targets, where it is given."""
        if isinstance(self.noise_std, str):
            return None
        given = float(self.noise_std) if np.ndim(self.noise_std) == 0 else self._known_std
        log_noise = 2.0 * (math.log(given) - math.log(target.scale))
        if not abs(log_noise) < LARGEST_LOG:
            raise UsageError(
                f"noise_std={given!r} is out of proportion: the standard deviation of the "
                f"target is {target.scale:.3g}"
            )
        return log_noise

    def _set_fitted(
        self,
        X: Array,
        y: Array,
        noise: NoiseOfRows | None,
        target: TargetScale,
        intercept_variance: float,
        fits: tuple[KernelFit, ...],
        evidence: tuple[float, float] | None,
        induced: tuple[FunctionDraws, ...] | None,
    ) -> None:
        self._y, self._noise = y, noise
        self.target_centre_, self.target_scale_ = target.centre, target.scale
        self._set_posterior(X, fits, evidence)

        self._functions = induced or functions_of(fits, X, intercept_variance, noise)
        whole = tuple(replace(each, few=None) for each in fits)
        self._all_functions = induced or functions_of(whole, X, intercept_variance, noise)
        self._weights = tuple(each.weight for each in fits)
        stds = [
            float(np.average(np.sqrt(each.target_variance), weights=each.weights))
            for each in self._all_functions
        ]
        noise_std = sum(w * std for w, std in zip(self._weights, stds, strict=True))
        self.noise_std_ = noise_std * target.scale
        draws = self.posterior_
        best = int(np.argmax(draws.flat("log_density")))
        log_evidence = float(draws.flat("log_evidence")[best])
        self.log_marginal_likelihood_ = log_evidence - _log_units(y, noise, target)

    def _at_a_glance(self) -> GPRegressor:
        functions = []
        for each, fit in zip(self._functions, self._fits, strict=True):
            few = None
            if not isinstance(each, InducedDraws):  # there are few as it is
                few = few_functions(each, self._y, fit.share_of(AT_A_GLANCE))
            functions.append(each if few is None else each.chosen(*few[0]))
        seen = copy.copy(self)
        seen._functions = tuple(functions)
        return seen
