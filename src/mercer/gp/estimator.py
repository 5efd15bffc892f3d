"""`GPClassifier`: the scikit-learn estimator of the method."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from scipy.special import softmax as softmax_of
from sklearn.utils.validation import check_is_fitted

from mercer.errors import NumericalError, UsageError
from mercer.estimation.base import LabelPredictions, by_partition, encode_classes
from mercer.estimation.model_file import ModelParts, require
from mercer.estimation.run import check_choice, fitting, run_options
from mercer.estimation.standardize import fit_scales, indicators
from mercer.gp.averaging import (
    AT_A_GLANCE,
    MOST_FEW,
    Few,
    KernelFit,
    KernelTask,
    Rows,
    check_draws,
    choose_few,
    choose_inducing,
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
    put_given,
    repeated_rows,
    restore_evidence,
    restore_given,
    restore_rows,
    restore_sources,
)
from mercer.gp.exact import (
    DelayedAcceptance,
    ExactAdaptation,
    ExactDraws,
    PredictiveDistance,
    make_exact_sampler,
    predictive_distance,
    rows_per_region,
)
from mercer.gp.fitting import (
    MOST_PARAMETERS,
    FittedGP,
    GPSettings,
    fit_posterior,
    kernel_labels,
    monitored_rows,
    moved,
)
from mercer.gp.gaussian import MOST_PREDICTING
from mercer.gp.hyperparameters import (
    SMALLEST_PROBA,
    HyperparameterTarget,
    Maximum,
    Recorder,
    class_thetas,
    shapes_of_parameters,
)
from mercer.gp.laplace import (
    ClassDraws,
    HyperparameterPosterior,
    LatentDraws,
    SoftmaxDraws,
    compile_loops,
    mode_near,
)
from mercer.kernels.base import Kernel
from mercer.kernels.columns import distinct_rows
from mercer.kernels.names import kernel_named
from mercer.kernels.stationary import SquaredExponentialARD
from mercer.likelihoods.logistic import class_probabilities, targets_and_totals
from mercer.numerics.cholesky import Workspace, one_blas_thread
from mercer.posterior.diagnostics import flat_weights, mean_weights
from mercer.posterior.draws import Draws
from mercer.random import stream
from mercer.sampling.checkpoint import digest_arrays
from mercer.sampling.driver import RunOptions
from mercer.sampling.hmc import HamiltonianAdaptation
from mercer.sampling.importance import thinned
from mercer.sampling.progress import tell
from mercer.sampling.signals import is_late

__all__ = ["GPClassifier"]

Array = NDArray[np.float64]


# The training rows of a classifier, and what draws say of new ones.

_RBF = SquaredExponentialARD()
_IN_COMMON = (
    f"all classes have the hyperparameters in common: those of a kernel a class are more than "
    f"{MOST_PARAMETERS}, which takes chains half an hour and more (shared_kernel=False)"
)
_MOST_COMPARED = 800  # draws, evenly spaced, of the exact and of Laplace's predictions

# Of a probability: what the spread of the function adds to the difference between few draws and
# all: at most 0.0091 in fits of 40 rows whose modes agreed to 1e-3 or better.
_UNSEEN = 0.01
_MOST_ASKED = 400  # draws, or twice what all are worth: each costs a Gram matrix


@dataclass(frozen=True)
class ClassTask:
    """The training rows of a classifier, and what is modelled of them.

    ``X`` (n, d) are standardised inputs, ``y`` (n,) classes, 0 to C - 1, as floats, or (C, n) how
    often each was seen at each row, with their names ``classes``. Where ``is_shared`` several
    classes have the hyperparameters in common; where ``is_exact`` the latent function of two is
    drawn, not approximated by Laplace. The kernel is that of the draws that are asked about.
    """

    X: Array
    y: Array
    classes: tuple[str, ...]
    is_shared: bool
    is_exact: bool = False
    kernel: Kernel = _RBF

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes: one latent function, in logits of the second."""
        return len(self.classes) == 2

    def of(self, kernel: str) -> ClassTask:
        """Return the same with the kernel of that name."""
        return replace(self, kernel=kernel_named(kernel))

    @property
    def n_kernels(self) -> int:
        """How many kernels there are: one, or one for each class."""
        return 1 if self.is_binary or self.is_shared else len(self.classes)

    def compile(self, options: RunOptions) -> None:
        """Compile the loops that a fit needs, where that is not done yet."""
        compile_loops(lambda line: tell(line, options.progress), is_several=not self.is_binary)

    def model(self, settings: GPSettings) -> HyperparameterPosterior:
        """Return the posterior of the hyperparameters, by Laplace's approximation."""
        prior = settings.prior_of(self.X.shape[1], is_several=not self.is_binary)
        n_functions = 1 if self.is_binary else len(self.classes)
        kernel, is_shared = settings.make_kernel(), self.is_shared
        return HyperparameterPosterior(self.X, self.y, kernel, prior, n_functions, is_shared)

    def fit(
        self,
        settings: GPSettings,
        options: RunOptions,
        names: tuple[str, ...],
        maximum: Maximum | None = None,
    ) -> FittedGP:
        """Draw the hyperparameters, from their maximum where it is known."""
        model, rows = self.model(settings), monitored_rows(options, len(self.X))

        def exactly(
            inner: Any, adaptation: HamiltonianAdaptation
        ) -> tuple[DelayedAcceptance, ExactAdaptation]:
            return make_exact_sampler(inner, model, rows), ExactAdaptation(adaptation)

        classes = self.classes if self.n_kernels > 1 else ()
        monitored = "exact_latent" if self.is_exact else "latent"
        labels = kernel_labels(model.kernel, names, monitored, classes=classes)
        refine = exactly if self.is_exact else None
        return fit_posterior(Recorder(model, rows), settings, options, labels, refine, maximum)

    def thetas(self, draws: Draws) -> Array:
        """Return the log parameters of the kernels of all draws, (S, n_kernels, p)."""
        values = {name: draws.flat(name) for name in self.shapes()}
        return class_thetas(self.kernel, self.n_kernels, values)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the log parameters of one draw."""
        return shapes_of_parameters(self.kernel, self.X.shape[1], self.n_kernels)

    def shape_of_coef(self) -> tuple[int, ...]:
        """Return the shape of the dual coefficients of one draw."""
        n = len(self.X)
        return (n,) if self.is_binary else (len(self.classes), n)

    def check(self, draws: Draws) -> None:
        """Refuse classes and draws of a file that cannot be of these rows.

        Raises
        ------
        ValueError
            If something is missing or does not fit; the reader of the file names it.
        """
        n_classes, is_counted = len(self.classes), self.y.ndim == 2
        is_known = is_counted or bool(np.isin(self.y, np.arange(n_classes)).all())
        require(is_known and (not is_counted or len(self.y) == n_classes), "targets")
        parameters, coef = self.shapes(), self.shape_of_coef()
        shapes = {**parameters, "log_density": (), "dual_coef": coef, "dual_correction": coef}
        if draws.is_weighted:  # computed where it is needed
            del shapes["dual_correction"]
        if self.is_exact:
            n_rows = draws.variables["latent"].shape[2:]
            shapes |= {"exact_coef": coef, "exact_latent": n_rows, "log_laplace_error": ()}
        check_draws(draws, shapes, tuple(parameters))
        is_right = np.abs(self._fitted(draws)) <= 1.01  # a probability, nearly
        require(bool(is_right.all()), "draws of dual_coef")

    def check_given(self, draws: Draws) -> None:
        """As `check`, of draws that have coefficients given these rows and no more."""
        names = self.shapes()
        check_draws(draws, {**names, "dual_coef": self.shape_of_coef()}, tuple(names))
        require(bool((np.abs(self._fitted(draws)) <= 1.01).all()), "given/dual_coef")

    def _fitted(self, draws: Draws) -> Array:
        """Probabilities at the modes of all draws, (S, n) of the second of two classes."""
        Y, totals = targets_and_totals(self.y, 1 if self.is_binary else len(self.classes))
        return np.asarray((Y - draws.flat("dual_coef")) / totals)

    def answers(self, draws: Draws, *, is_corrected: bool) -> ClassDraws:
        """Return what the draws say of new rows; at the mode unless corrected."""
        a, weights = draws.flat("dual_coef"), flat_weights(draws)
        mean_coef = a if not is_corrected else None
        if is_corrected and "dual_correction" in draws.variables:
            mean_coef = a + draws.flat("dual_correction")
        X, kernel, theta = self.X, self.kernel, self.thetas(draws)
        if self.is_exact:
            return ExactDraws(X, kernel, theta[:, 0], draws.flat("exact_coef"))
        if self.is_binary:
            return LatentDraws(X, kernel, theta[:, 0], a, self.y, mean_coef, weights=weights)
        return SoftmaxDraws(X, kernel, theta, a, self.y, mean_coef, weights=weights)

    def few(self, draws: Draws, most: int = MOST_FEW) -> tuple[Few, float] | None:
        """Choose the draws that predict: see `choose_few`. None for exact draws, of which all do.

        What a draw predicts is taken at the mode: at the training rows it is known; elsewhere of
        many draws those of little weight stand for one another. How sure a draw is of the function
        is not looked at: the difference has `_UNSEEN` more for it.
        """
        if self.is_exact:
            return None
        n_total = draws.n_total
        fitted = self._fitted(draws).reshape(n_total, -1)
        weights = mean_weights(draws)
        most_asked = max(_MOST_ASKED, round(2.0 / np.square(weights).sum()))
        asked, log_weights = thinned(np.random.default_rng(0), np.log(weights), most_asked)
        W = np.exp(log_weights)
        thetas, a = self.thetas(draws)[asked], draws.flat("dual_coef")[asked]

        def at_mode(Z: Array) -> Array:
            with one_blas_thread():
                proba = [self._at_mode(*draw, Z) for draw in zip(thetas, a, strict=True)]
            return np.stack(proba)

        parameters = thetas.reshape(len(asked), -1)
        chosen = choose_few(self.X, W, fitted[asked], at_mode, parameters, most)
        if chosen is None:
            return None
        (positions, of_few), difference = chosen
        difference += float(np.abs(W @ fitted[asked] - weights @ fitted).max())
        return (asked[positions], of_few), difference + _UNSEEN

    def _at_mode(self, theta: Array, a: Array, Z: Array) -> Array:
        """Probabilities at rows Z (m, d) if the function were its mode: (m,) or (m, C)."""
        f = self._mode_at(theta, a, Z)
        return np.asarray(expit(f) if self.is_binary else class_probabilities(f).T)

    def _mode_at(self, theta: Array, a: Array, Z: Array) -> Array:
        """Latent values of the mode at rows Z (m, d), by a draw's coefficients: (m,) or (C, m)."""
        cross = [self.kernel.cross_gram(own, Z, self.X) for own in theta]
        if self.is_binary:
            return np.asarray(cross[0] @ a)
        return np.stack([cross[c % len(cross)] @ a[c] for c in range(len(a))])

    def laplace_distance(self, draws: Draws, X: Array) -> PredictiveDistance:
        """Hold exact draws against Laplace's probabilities at standardised rows X (m, d)."""
        step = -(-draws.n_total // _MOST_COMPARED)
        thinned = {name: values[:, ::step] for name, values in draws.variables.items()}
        draws = Draws(thinned, {}, {}, ())
        laplace = replace(self, is_exact=False)
        return predictive_distance(
            self.answers(draws, is_corrected=True),
            laplace.answers(draws, is_corrected=True),
            draws.flat("log_laplace_error"),
            X,
            n_chains=draws.n_chains,
        )

    def given(
        self,
        fit: KernelFit,
        half: ClassTask,
        fitted: ClassTask,
        settings: GPSettings,
        deadline: float | None,
    ) -> Draws:
        """Return the draws that predict, of the ``fitted`` rows, given these rows.

        They are `moved` to where ``half`` of the rows have them. Each mode is sought from what the
        draw says of the rows that taught nothing. A `NumericalError` where none is found, a
        `TimeoutError` once it is late.
        """
        model, every, few = self.model(settings), fit.fitted.draws, fit.predicting
        all_draws = self.thetas(every).reshape(every.n_total, -1), mean_weights(every)
        positions = self.thetas(few).reshape(few.n_total, -1)
        taught = fitted.model(settings)
        positions = moved(taught, half.model(settings), all_draws, positions, deadline)
        n, scratch, coefs = len(self.X), Workspace(), []
        with one_blas_thread():
            for theta, a in zip(model.split(positions), few.flat("dual_coef"), strict=True):
                if is_late(deadline):
                    raise TimeoutError
                near = fitted._mode_at(theta, a, self.X)
                K = scratch.take_stack("grams", len(theta), n)
                for own, out in zip(theta, K, strict=True):
                    self.kernel.gram(own, self.X, out=out)
                factors = scratch.take_stack("factors", 1 if self.is_binary else len(a), n)
                coefs.append(mode_near(K, model.Y, model.totals, near, factors))
        return draws_given({**model.parameters(positions), "dual_coef": np.stack(coefs)}, few)

    def rows_per_region(self, draws: Draws, X: Array) -> Array:
        """Training rows within about a length scale of standardised rows X (m, d)."""
        if not self.is_binary:
            raise UsageError(f"rows_per_region is for two classes; there are {len(self.classes)}")
        totals = targets_and_totals(self.y, 1)[1]
        return rows_per_region(self.kernel, self.thetas(draws)[:, 0], self.X, totals, X)


class Whole(NamedTuple):
    """The task of all rows that functions are given, and of each kernel the draws that predict."""

    task: ClassTask
    draws: list[Draws]


@dataclass(frozen=True)
class ClassRows:
    """Rows of a classifier as they were given, standardised, of which folds hold some out.

    ``X`` (n, d), ``codes`` (n,) as of `ClassTask`, and ``weights`` (n,), how often each counts.
    """

    X: Array
    codes: Array
    weights: Array

    def at(self, rows: Rows) -> ClassRows:
        """Those of some of the rows."""
        return ClassRows(self.X[rows], self.codes[rows], self.weights[rows])

    def distinct(self, n_classes: int) -> tuple[Array, Array]:
        """Inputs that differ, (m, d), and y of `ClassTask`: rows that are alike are one."""
        first, which = distinct_rows(self.X)
        if len(first) == len(self.X) and (self.weights == 1.0).all():
            return self.X, self.codes
        counts = np.zeros((n_classes, len(first)))
        np.add.at(counts, (self.codes.astype(np.int64), which), self.weights)
        return self.X[first], counts


@dataclass(frozen=True)
class MixedAnswers:
    """What several kernels say of new rows, each with its weight; their sum is 1."""

    weights: tuple[float, ...]
    answers: tuple[ClassDraws, ...]

    def probabilities(self, X: Array) -> Array:
        """Probabilities of the classes at standardised rows X (m, d): shape (m, C)."""
        each = [answers.probabilities(X) for answers in self.answers]
        return np.asarray(sum(w * p for w, p in zip(self.weights, each, strict=True)))

    def functions(
        self, parts: Sequence[Array], n_draws: int, rng: np.random.Generator
    ) -> list[Array]:
        """Probabilities of the classes at parts of rows X by drawn functions: (n_draws, C, m)."""
        drawn = sample_functions(self.answers, self.weights, parts, n_draws, rng)
        found = []
        for f, X in zip(drawn, parts, strict=True):
            values = f.reshape(n_draws, -1, len(X))
            if values.shape[1] == 1:
                values = np.concatenate([np.zeros_like(values), values], axis=1)
            found.append(softmax_of(values, axis=1))
        return found

    def latent(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the latent values: both (m,) for two classes, else (m, C)."""
        return mixed_moments(self.weights, [answers.latent(X) for answers in self.answers])


@dataclass(kw_only=True, eq=False, repr=False)
class GPClassifier(LabelPredictions, GPEstimator):
    """Classification by Gaussian processes, averaged over hyperparameters.

    Two classes have one latent function, whose logistic transform is a probability; several have
    one each, under a softmax. A function has a covariance with one weight per input (automatic
    relevance determination); it is integrated out by Laplace's approximation, and the log
    parameters of the covariance are drawn from their posterior. Predictions average over draws.

    Parameters
    ----------
    integration : {"laplace", "exact"}, default="laplace"
        Of the latent function of two classes. "exact": draws of function and hyperparameters from
        their joint posterior, by delayed acceptance of what "hmc" or "nuts" propose on Laplace's;
        slower, and `laplace_distance` says how far the two are apart.
    prior : {"wide", "paper"} or mapping, default="wide"
        Of the log parameters, on standardised inputs. "wide": log variance ~ N(1, 3^2),
        log weights ~ N(-1 - log d - 2 log max(d / 30, 1), 3^2), of several classes 2^2; of more
        than 300 each with a chance of 4 / d ~ N(-1 - log 4, 2^2) instead: few decide. "paper":
        N(-3, 3^2) for all. A mapping of kinds to mean and standard deviation of the logarithm, such
        as ``{"weight": (-2.0, 3.0)}``, changes these kinds of "wide": variance, weight, shape,
        period, frequency.
    shared_kernel : bool or "auto", default="auto"
        Of several classes: whether their functions have the hyperparameters in common. They have
        their own otherwise, which is more accurate where classes differ; chains take longer.
        "auto": their own, unless these are more than 310 in all, which takes half an hour and more;
        ``shared_kernel_`` and ``notes_`` say so then.
        With ``kernel="auto"`` they always have them in common.
    predictive_mean : {"corrected", "mode"}, default="corrected"
        "mode" is Laplace's k'a, as in the paper; "corrected" goes from there towards the posterior
        mean, along the first-order step and as far as the variational bound says. Exact draws
        need neither.
    max_rows : int or "auto", default="auto"
        Of more rows that differ in their inputs so many teach the hyperparameters, a random choice
        stratified by class, and ``notes_`` says so; at most 5000. "auto": 1000 (5000 for "map"),
        fewer of several classes or of more than 20 inputs: 700 of three classes, 468 of ten, 981 of
        two and 58 inputs. Given them the function is that of all rows, but of 5000 at most (2500 of
        three classes, 1673 of ten), by four draws or a few more; with ``integration="exact"`` that
        of the rows that taught.

    Attributes
    ----------
    posterior_ : Draws
        Draws of the log parameters of the kernel ("log_signal_variance", "log_weight", one a
        column, ...), "log_density", "latent" (in logits, at up to 20 fixed rows) and the dual
        coefficients.
    relevance_ : ndarray of shape (n_draws in all, d)
        Draws of each input's weight: its inverse squared length scale, in standard deviations; only
        where a kernel that predicts has one such weight per input. With "auto": of the kernels in
        ``kernel_weights_`` that have, in proportion to their weights. Several classes: averaged
        over them.
    shared_kernel_ : bool
        Whether the classes have the hyperparameters in common, as two always have.
    log_evidence_, log_evidence_se_ : float or None
        Log of the probability (classes) or of the density (numbers) of the targets given inputs and
        the kernel of most weight, hyperparameters integrated out, and its standard error; nats.
        None after chains. Given the hyperparameters it is that of expectation propagation,
        fitted at 24 of them as a correction of Laplace's, where it can be had there; of several
        classes Laplace's.

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

    integration: str = "laplace"
    shared_kernel: bool | str = "auto"
    predictive_mean: str = "corrected"

    @classmethod
    def paper(cls) -> GPClassifier:
        """Return an unfitted classifier with the settings of the paper, section 2.3.

        One chain of 200 trajectories of 20 steps of 0.1 from theta = (0, -2, ..), the first third
        dropped; prior N(-3, 3^2); predictions at the mode; mean and standard deviation.
        """
        return cls(**cls._of_paper, predictive_mean="mode")

    @fitting()
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> GPClassifier:
        """Draw hyperparameters from their posterior.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            Inputs: finite numbers.
        y : array of shape (n,)
            Labels of two classes or more.
        sample_weight : array of shape (n,), optional
            How often each row counts: the power of its likelihood. A row of weight 2 is the row
            twice, one of weight 0 is left out. Rows that are alike cost as much as one, with
            weights or without. Where kernels are compared, weights that are no whole numbers count
            in what is learned, and not in the scores of rows held out.
        """
        started = time.monotonic()
        self._check_arguments()
        self._forget()
        X, y = self._training_data(X, y, dtype=np.float64, ensure_min_samples=2)
        X, y = np.asarray(X), np.asarray(y)
        X, y, weights = repeated_rows(X, y, check_weights(sample_weight, len(y)))
        self.classes_, index = encode_classes(y)
        self.feature_labels_ = self._labels()
        times = np.ones(len(X), np.int64) if weights is None else copies(weights)
        seen, classes = np.repeat(X, times, axis=0), indicators(np.repeat(index, times))
        how = (self.standardize, self.feature_labels_, classes, self._fewest_columns)
        self.standardizer_, said = fit_scales(seen, *how, may_warp=self._is_auto)
        codes, counts = index.astype(np.float64), np.ones(len(X)) if weights is None else weights
        every = ClassRows(self.standardizer_.transform(X), codes, counts)
        n_classes = len(self.classes_)
        limit = self._limit_of_rows(n_classes, self._cost_of_rows(n_classes))
        digest = digest_arrays(every.X, codes, counts, *self._identity_of_inputs())
        options = run_options(self, digest, started)
        more = limit if self.integration == "exact" else self._most_given(limit, n_classes)
        limit = len(X) if len(every.distinct(n_classes)[0]) <= limit else limit
        rows, more_rows = self._chosen_rows(codes, limit, more, options.entropy, is_classes=True)
        given = every.at(rows)
        task = self._task(*given.distinct(n_classes), self._bound_kernel())
        is_said = task.is_shared and not (self._is_auto or self.shared_kernel is True)
        task.compile(options)

        learning = self._learning(options, more_rows)
        averaged = self._fit_kernels(self._kernel_task(task, given, learning), learning)
        most = MOST_FEW if more_rows is None else MOST_PREDICTING
        averaged = with_few(
            averaged,
            lambda each: task.of(each.kernel).few(each.fitted.draws, each.share_of(most)),
            "{:.2g} in a probability",
            is_induced=more_rows is not None,
        )
        whole, why = None, tuple[str, ...]()
        if more_rows is not None:
            rng, n_half = stream(options.entropy, "rows", 3), max(more // 2, len(rows))
            half = choose_inducing(len(every.X), rows, n_half, rng)  # a gradient each a step
            whole, why = self._given(every, (half, more_rows), task, averaged.fits, options)
        of_rows = self._said_of_rows(len(every.X), rows, None if whole is None else more_rows)
        self.diagnostics_ = averaged.diagnostics
        self.notes_ = (*said, *of_rows, *why, *(_IN_COMMON,) * is_said, *averaged.notes)
        self._set_fitted(task, averaged.fits, averaged.fits[0].fitted.evidence, whole)
        self._warn_of_convergence()
        return self

    @by_partition
    def predict_proba(self, X: ArrayLike, n_draws: str | None = None) -> Array:
        """Probabilities of the classes, averaged over draws.

        Parameters
        ----------
        X : array or frame of shape (m, d)
        n_draws : {None, "all"}, default=None
            None: a few draws, weighted so as to agree with all; ``notes_`` says how closely. "all":
            all of them, a factorisation each; of more rows than ``max_rows`` there are the few.

        Returns
        -------
        ndarray of shape (m, n_classes)
            In the order of ``classes_``; never exactly 0 or 1.
        """
        check_is_fitted(self)
        check_choice("n_draws", n_draws, (None, "all"))
        answers = self._all_answers if n_draws == "all" else self._answers
        p = answers.probabilities(self._standardized(X))
        p = np.clip(p, SMALLEST_PROBA, 1.0 - SMALLEST_PROBA)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def latent(self, X: ArrayLike) -> tuple[Array, Array]:
        """Posterior mean and variance of the latent function.

        Returns
        -------
        mean, variance : ndarray of shape (m,) or (m, n_classes)
            Over the latent value and the draws of the hyperparameters: for two classes in logits
            of ``classes_[1]``, for several one a class, whose softmax are the probabilities.
        """
        check_is_fitted(self)
        return self._answers.latent(self._standardized(X))

    def _function_draws(
        self, parts: Sequence[Array], n_draws: int, rng: np.random.Generator
    ) -> list[Array]:
        return self._answers.functions(parts, n_draws, rng)

    def laplace_distance(self, X: ArrayLike) -> PredictiveDistance:
        """How far Laplace's probabilities are from the exact ones, after ``integration="exact"``.

        Parameters
        ----------
        X : array or frame of shape (m, d)

        Returns
        -------
        PredictiveDistance
            Differences of the probability of ``classes_[1]`` at the rows of X, and their noise;
            with several kernels, of the one of most weight.

        Raises
        ------
        UsageError
            If the model was not fitted with ``integration="exact"``.
        """
        check_is_fitted(self)
        if not self._task_.is_exact:
            raise UsageError("laplace_distance needs a model fitted with integration='exact'")
        return self._task_.laplace_distance(self.posterior_, self._standardized(X))

    def rows_per_region(self, X: ArrayLike) -> Array:
        """How many training rows are within about a length scale of each row of X, shape (m,).

        The sum of their correlations with it, averaged over draws; of two classes.
        """
        check_is_fitted(self)
        return self._task_.rows_per_region(self.posterior_, self._standardized(X))

    def training_distance(self, most: int = 300) -> tuple[PredictiveDistance, Array]:
        """`laplace_distance` and `rows_per_region` at the training rows, or some of them."""
        X, task = self._task_.X, self._task_
        chosen = np.unique(np.linspace(0, len(X) - 1, min(most, len(X))).astype(np.int64))
        distance = task.laplace_distance(self.posterior_, X[chosen])
        return distance, task.rows_per_region(self.posterior_, X[chosen])

    def _to_parts(self) -> ModelParts:
        parts = parts_of(self, self._X, self._task_.y)
        if self._whole is not None:
            task, draws = self._whole
            put_given(parts, task.X, task.y, draws)
        return parts

    def _restore(self, parts: ModelParts) -> None:
        common, X, codes, fits = restore_rows(parts)
        common.put_into(self)
        task = self._task(X, codes, fits[0].kernel)
        for each in fits:
            task.of(each.kernel).check(each.fitted.draws)
        self._sources_of_columns = restore_sources(parts, X.shape[1]) or None
        found, whole = restore_given(parts, fits, X.shape[1]), None
        if found is not None:
            X, codes, given = found
            whole = Whole(replace(task, X=X, y=codes), given)
            for each, draws in zip(fits, given, strict=True):
                whole.task.of(each.kernel).check_given(draws)
        self._set_fitted(task, fits, restore_evidence(parts), whole)

    def _check_arguments(self) -> None:
        check_choice("predictive_mean", self.predictive_mean, ("corrected", "mode"))
        check_choice("integration", self.integration, ("laplace", "exact"))
        if self.integration == "exact":
            choices = ("importance", "hmc", "nuts")  # the first is the default: it takes the second
            check_choice("inference (with integration='exact')", self.inference, choices)
            if self.n_leapfrog is not None:
                raise UsageError("integration='exact' tunes its trajectories: leave n_leapfrog out")
        check_choice("shared_kernel", self.shared_kernel, ("auto", False, True))
        self._check_sampler()

    def _task(self, X: Array, y: Array, kernel: str) -> ClassTask:
        names, is_exact = tuple(map(str, self.classes_)), self.integration == "exact"
        is_several = len(names) > 2
        if is_several and is_exact:
            raise UsageError(
                f"integration='exact' is for two classes; there are {len(names)}: its estimates of "
                "the evidence are too noisy for more"
            )
        n_own = len(names) * kernel_named(kernel).n_parameters(X.shape[1])
        is_wanted = n_own > MOST_PARAMETERS if self.shared_kernel == "auto" else self.shared_kernel
        is_shared = is_several and (self._is_auto or bool(is_wanted))
        return ClassTask(X, y, names, is_shared=is_shared, is_exact=is_exact)

    def _kernel_task(self, task: ClassTask, given: ClassRows, options: RunOptions) -> KernelTask:
        labels, once = self.feature_labels_, replace(options, run=None, progress=False)

        def part(rows: Rows) -> ClassTask:
            X, y = given.at(rows).distinct(len(task.classes))
            return replace(task, X=X, y=y, is_exact=False)

        def model_of(name: str, rows: Rows) -> HyperparameterTarget:
            return part(rows).model(self._settings(name))

        def score(name: str, maximum: Maximum, kept: Rows, out: Rows) -> Array:
            own = part(kept).of(name)
            draws = own.fit(self._at_maximum(name), once, labels, maximum).draws
            is_corrected = self.predictive_mean == "corrected"
            p = own.answers(draws, is_corrected=is_corrected).probabilities(given.X[out])
            codes = given.codes[out].astype(np.int64)
            return np.asarray(np.log(np.maximum(p[np.arange(len(out)), codes], SMALLEST_PROBA)))

        def fit(name: str, options: RunOptions, maximum: Maximum | None, share: float) -> FittedGP:
            settings = replace(self._settings(name), share=share)
            return task.fit(settings, options, labels, maximum)

        d, inputs = task.X.shape[1], {"labels": labels, "sources": self._sources}
        return KernelTask(model_of, score, fit, given.codes, d, is_classes=True, **inputs)

    def _given(
        self,
        every: ClassRows,
        chosen: tuple[Rows, Rows],
        fitted: ClassTask,
        fits: Sequence[KernelFit],
        options: RunOptions,
    ) -> tuple[Whole | None, tuple[str, ...]]:
        """Give the functions that predict more rows, unless it is late; what is to be said then.

        Of ``every`` row those are ``chosen`` by which hyperparameters move, and those given.
        """
        draws = list[Draws]()
        parts = [every.at(rows).distinct(len(self.classes_)) for rows in chosen]
        half, whole = (replace(fitted, X=X, y=y) for X, y in parts)
        try:
            for each in fits:
                settings, own = self._settings(each.kernel), whole.of(each.kernel)
                both = half.of(each.kernel), fitted.of(each.kernel)
                draws.append(own.given(each, *both, settings, options.deadline))
        except TimeoutError:
            return None, (ROWS_ALONE + LATE,)
        except NumericalError:
            return None, (f"{ROWS_ALONE}no mode was found given more",)
        return Whole(whole, draws), ()

    def _set_fitted(
        self,
        task: ClassTask,
        fits: tuple[KernelFit, ...],
        evidence: tuple[float, float] | None,
        whole: Whole | None,
    ) -> None:
        self._task_, self.shared_kernel_ = task.of(fits[0].kernel), task.n_kernels == 1
        is_several = not task.is_binary
        self._set_posterior(task.X, fits, evidence, is_several=is_several)
        self._whole = whole
        if whole is not None:
            self._answers = self._all_answers = self._answers_of(*whole)
            return
        self._answers = self._answers_of(task, [each.predicting for each in fits])
        self._all_answers = self._answers_of(task, [each.fitted.draws for each in fits])

    def _answers_of(self, task: ClassTask, draws: list[Draws]) -> MixedAnswers:
        """Return what these draws, some of each kernel, say of new rows."""
        is_corrected = self.predictive_mean == "corrected"
        answers = [
            task.of(each.kernel).answers(own, is_corrected=is_corrected)
            for each, own in zip(self._fits, draws, strict=True)
        ]
        return MixedAnswers(tuple(each.weight for each in self._fits), tuple(answers))

    def _at_a_glance(self) -> GPClassifier:
        if self._whole is not None:  # there are few as it is
            return self
        draws = []
        for each in self._fits:
            few = self._task_.of(each.kernel).few(each.predicting, each.share_of(AT_A_GLANCE))
            draws.append(each.predicting if few is None else each.predicting.chosen(*few[0]))
        seen = copy.copy(self)
        seen._answers = self._answers_of(self._task_, draws)
        return seen
