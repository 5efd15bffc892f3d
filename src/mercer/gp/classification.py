"""A classifier of two classes or of several: how it is fitted, stored and asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.special import softmax as softmax_of

from mercer.errors import UsageError
from mercer.estimation.model_file import require
from mercer.gp.averaging import MOST_FEW, Few, check_draws, choose_few, mixed_moments
from mercer.gp.base import sample_functions
from mercer.gp.exact import (
    DelayedAcceptance,
    ExactAdaptation,
    ExactDraws,
    PredictiveDistance,
    make_exact_sampler,
    predictive_distance,
    rows_per_region,
)
from mercer.gp.fitting import FittedGP, GPSettings, fit_posterior, kernel_labels, monitored_rows
from mercer.gp.hyperparameters import Maximum, Recorder, class_thetas, shapes_of_parameters
from mercer.gp.laplace import (
    ClassDraws,
    HyperparameterPosterior,
    LatentDraws,
    SoftmaxDraws,
    compile_loops,
)
from mercer.kernels.base import Kernel
from mercer.kernels.names import kernel_named
from mercer.kernels.stationary import SquaredExponentialARD
from mercer.likelihoods.logistic import class_probabilities, one_hot
from mercer.numerics.cholesky import one_blas_thread
from mercer.posterior.diagnostics import flat_weights
from mercer.posterior.draws import Draws
from mercer.sampling.driver import RunOptions
from mercer.sampling.hmc import HamiltonianAdaptation
from mercer.sampling.progress import tell

Array = NDArray[np.float64]

_RBF = SquaredExponentialARD()
_MOST_COMPARED = 800  # draws, evenly spaced, of the exact and of Laplace's predictions

# Of a probability: what the spread of the function adds to the difference between few draws and
# all: at most 0.0091 in fits of 40 rows whose modes agreed to 1e-3 or better.
_UNSEEN = 0.01


@dataclass(frozen=True)
class ClassTask:
    """The training rows of a classifier, and what is modelled of them.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Standardised inputs.
    codes : ndarray of shape (n,)
        Classes, 0 to C - 1, as floats.
    classes : tuple of str
        Their names.
    is_shared : bool
        Whether several classes have the hyperparameters in common.
    is_exact : bool
        Whether the latent function is drawn, not approximated by Laplace; of two classes.
    kernel : Kernel
        Of the draws that are asked about.
    """

    X: Array
    codes: Array
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
        return HyperparameterPosterior(self.X, self.codes, kernel, prior, n_functions, is_shared)

    def fit(
        self,
        settings: GPSettings,
        options: RunOptions,
        names: tuple[str, ...],
        maximum: Maximum | None = None,
    ) -> FittedGP:
        """Draw the hyperparameters, from their maximum where it is known."""
        model, rows = self.model(settings), monitored_rows(options, len(self.codes))

        def exactly(
            inner: Any, adaptation: HamiltonianAdaptation
        ) -> tuple[DelayedAcceptance, ExactAdaptation]:
            return make_exact_sampler(inner, model, rows), ExactAdaptation(adaptation)

        classes = self.classes if self.n_kernels > 1 else ()
        monitored = "exact_latent" if self.is_exact else "latent"
        labels = kernel_labels(model.kernel, names, monitored, classes=classes)
        refine = exactly if self.is_exact else None
        return fit_posterior(
            model, Recorder(model, rows), settings, options, labels, refine, maximum
        )

    def thetas(self, draws: Draws) -> Array:
        """Return the log parameters of the kernels of all draws, (S, n_kernels, p)."""
        values = {name: draws.flat(name) for name in self.shapes()}
        return class_thetas(self.kernel, self.n_kernels, values)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the log parameters of one draw."""
        return shapes_of_parameters(self.kernel, self.X.shape[1], self.n_kernels)

    def shape_of_coef(self) -> tuple[int, ...]:
        """Return the shape of the dual coefficients of one draw."""
        n = len(self.codes)
        return (n,) if self.is_binary else (len(self.classes), n)

    def check(self, draws: Draws) -> None:
        """Refuse classes and draws of a file that cannot be of these rows.

        Raises
        ------
        ValueError
            If something is missing or does not fit; the reader of the file names it.
        """
        n_classes = len(self.classes)
        require(bool(np.isin(self.codes, np.arange(n_classes)).all()), "targets")
        parameters, coef = self.shapes(), self.shape_of_coef()
        shapes = {**parameters, "log_density": (), "dual_coef": coef, "dual_correction": coef}
        if draws.is_weighted:  # computed where it is needed
            del shapes["dual_correction"]
        if self.is_exact:
            n_rows = draws.variables["latent"].shape[2:]
            shapes |= {"exact_coef": coef, "exact_latent": n_rows, "log_laplace_error": ()}
        check_draws(draws, shapes, tuple(parameters))
        codes = self.codes.astype(np.int64)
        y = self.codes if self.is_binary else one_hot(codes, n_classes)
        is_right = np.abs(y - draws.flat("dual_coef")) <= 1.01  # a probability, nearly
        require(bool(is_right.all()), "draws of dual_coef")

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
            return LatentDraws(X, kernel, theta[:, 0], a, self.codes, mean_coef, weights=weights)
        codes = self.codes.astype(np.int64)
        return SoftmaxDraws(X, kernel, theta, a, codes, mean_coef, weights=weights)

    def few(self, draws: Draws, most: int = MOST_FEW) -> tuple[Few, float] | None:
        """Choose the draws that predict: see `choose_few`. None for exact draws, of which all do.

        What a draw predicts is taken at the mode: at the training rows it is y less the dual
        coefficients. How sure a draw is of the function is not looked at: the difference that is
        stated has `_UNSEEN` more for it.
        """
        if self.is_exact:
            return None
        a, thetas, n_total = draws.flat("dual_coef"), self.thetas(draws), draws.n_total
        weights = flat_weights(draws)
        codes = self.codes.astype(np.int64)
        y = self.codes if self.is_binary else one_hot(codes, len(self.classes))

        def at_mode(Z: Array) -> Array:
            with one_blas_thread():
                proba = [self._at_mode(*draw, Z) for draw in zip(thetas, a, strict=True)]
            return np.stack(proba)

        chosen = choose_few(
            self.X,
            np.full(n_total, 1.0 / n_total) if weights is None else weights,
            (y - a).reshape(n_total, -1),
            at_mode,
            thetas.reshape(n_total, -1),
            most,
        )
        return None if chosen is None else (chosen[0], chosen[1] + _UNSEEN)

    def _at_mode(self, theta: Array, a: Array, Z: Array) -> Array:
        """Probabilities at rows Z (m, d) if the function were its mode: (m,) or (m, C)."""
        cross = [self.kernel.cross_gram(own, Z, self.X) for own in theta]
        if self.is_binary:
            return np.asarray(expit(cross[0] @ a))
        f = np.stack([cross[c % len(cross)] @ a[c] for c in range(len(a))])
        return np.asarray(class_probabilities(f).T)

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

    def rows_per_region(self, draws: Draws, X: Array) -> Array:
        """Training rows within about a length scale of standardised rows X (m, d)."""
        if not self.is_binary:
            raise UsageError(f"rows_per_region is for two classes; there are {len(self.classes)}")
        return rows_per_region(self.kernel, self.thetas(draws)[:, 0], self.X, X)


@dataclass(frozen=True)
class MixedAnswers:
    """What several kernels say of new rows, each with its weight.

    Attributes
    ----------
    weights : tuple of float
        With sum 1.
    answers : tuple of ClassDraws
    """

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
