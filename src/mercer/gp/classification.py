"""A classifier of two classes or of several: how it is fitted, stored and asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.special import softmax as softmax_of

from mercer.errors import UsageError
from mercer.estimation.model_file import require
from mercer.gp import softmax
from mercer.gp.averaging import MOST_FEW, Few, check_draws, choose_few, mixed_moments
from mercer.gp.exact import ExactDraws, PredictiveDistance, predictive_distance, rows_per_region
from mercer.gp.fitting import FittedGP, GPSettings, fit_exactly, fit_gp, fit_several
from mercer.gp.hyperparameters import (
    HyperparameterTarget,
    Maximum,
    class_shapes,
    class_thetas,
    shapes_of_parameters,
    stacked_parameters,
)
from mercer.gp.laplace import (
    HyperparameterPosterior,
    JointDraws,
    LatentDraws,
    compile_loops,
    latent_moments,
    sample_functions,
)
from mercer.gp.laplace import (
    mean_success_probability as success_probability,
)
from mercer.gp.softmax import SoftmaxPosterior, fit_softmax
from mercer.kernels.base import Kernel
from mercer.kernels.names import kernel_named
from mercer.kernels.stationary import SquaredExponentialARD
from mercer.likelihoods.logistic import class_probabilities, one_hot
from mercer.numerics.cholesky import one_blas_thread
from mercer.numerics.compilation import compile_first
from mercer.posterior.diagnostics import flat_weights
from mercer.posterior.draws import Draws
from mercer.sampling.driver import RunOptions
from mercer.sampling.progress import tell

Array = NDArray[np.float64]

_RBF = SquaredExponentialARD()
_MOST_COMPARED = 800  # draws, evenly spaced, of the exact and of Laplace's predictions

# Of a probability: what the spread of the function adds to the difference between few draws and
# all: at most 0.0091 in fits of 40 rows whose modes agreed to 1e-3 or better.
_UNSEEN = 0.01


class ClassAnswers(Protocol):
    """What draws say of new rows."""

    @property
    def draws(self) -> JointDraws:
        """The draws themselves."""
        ...

    def probabilities(self, X: Array) -> Array:
        """Probabilities of the classes at standardised rows X (m, d): shape (m, C)."""
        ...

    def latent(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the latent values: both (m,) for two classes, else (m, C)."""
        ...


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

    def compile(self, options: RunOptions) -> None:
        """Compile the loops that a fit needs, where that is not done yet."""
        compile_loops(lambda line: tell(line, options.progress))
        if not self.is_binary:
            compile_softmax_loops(lambda line: tell(line, options.progress))

    def model(self, settings: GPSettings) -> HyperparameterTarget:
        """Return the posterior of the hyperparameters, by Laplace's approximation."""
        X, kernel, n_classes = self.X, settings.make_kernel(), len(self.classes)
        prior = settings.prior_of(X.shape[1], is_several=not self.is_binary)
        if self.is_binary:
            return HyperparameterPosterior(X, self.codes, kernel, prior)
        codes = self.codes.astype(np.int64)
        return SoftmaxPosterior(X, codes, n_classes, kernel, prior, is_shared=self.is_shared)

    def fit(
        self,
        settings: GPSettings,
        options: RunOptions,
        names: tuple[str, ...],
        maximum: Maximum | None = None,
    ) -> FittedGP:
        """Draw the hyperparameters, from their maximum where it is known."""
        if self.is_binary:
            fit = fit_exactly if self.is_exact else fit_gp
            return fit(self.X, self.codes, settings, options, names, maximum)
        codes, is_shared = self.codes.astype(np.int64), self.is_shared
        return fit_several(
            self.X, codes, settings, options, names, self.classes,
            is_shared=is_shared, maximum=maximum,
        )  # fmt: skip

    def thetas(self, draws: Draws) -> Array:
        """Return the log parameters of all draws: (S, p), of several classes (S, C or 1, p)."""
        values = {name: draws.flat(name) for name in self.shapes()}
        if self.is_binary:
            return stacked_parameters(self.kernel, values)
        return class_thetas(self.kernel, len(self.classes), values, is_shared=self.is_shared)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the log parameters of one draw."""
        d = self.X.shape[1]
        if self.is_binary:
            return shapes_of_parameters(self.kernel, d)
        return class_shapes(self.kernel, d, len(self.classes), is_shared=self.is_shared)

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

    def answers(self, draws: Draws, *, is_corrected: bool) -> ClassAnswers:
        """Return what the draws say of new rows; at the mode unless corrected."""
        a, weights = draws.flat("dual_coef"), flat_weights(draws)
        mean_coef = a if not is_corrected else None
        if is_corrected and "dual_correction" in draws.variables:
            mean_coef = a + draws.flat("dual_correction")
        theta = self.thetas(draws)
        if self.is_exact:
            return _Binary(ExactDraws(self.X, self.kernel, theta, draws.flat("exact_coef")))
        if self.is_binary:
            return _Binary(
                LatentDraws(self.X, self.codes, self.kernel, theta, a, mean_coef, weights)
            )
        codes, kernel = self.codes.astype(np.int64), self.kernel
        return _Several(softmax.SoftmaxDraws(self.X, codes, kernel, theta, a, mean_coef, weights))

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
        if self.is_binary:
            return np.asarray(expit(self.kernel.cross_gram(theta, Z, self.X) @ a))
        cross = [self.kernel.cross_gram(own, Z, self.X) for own in theta]
        f = np.stack([cross[c % len(cross)] @ a[c] for c in range(len(a))])
        return np.asarray(class_probabilities(f).T)

    def laplace_distance(self, draws: Draws, X: Array) -> PredictiveDistance:
        """Hold exact draws against Laplace's probabilities at standardised rows X (m, d)."""
        step = -(-draws.n_total // _MOST_COMPARED)
        thinned = {name: values[:, ::step] for name, values in draws.variables.items()}
        draws = Draws(thinned, {}, {}, ())
        theta, a = self.thetas(draws), draws.flat("dual_coef")
        mean_coef = a + draws.flat("dual_correction")
        return predictive_distance(
            ExactDraws(self.X, self.kernel, theta, draws.flat("exact_coef")),
            LatentDraws(self.X, self.codes, self.kernel, theta, a, mean_coef),
            draws.flat("log_laplace_error"),
            X,
            n_chains=draws.n_chains,
        )

    def rows_per_region(self, draws: Draws, X: Array) -> Array:
        """Training rows within about a length scale of standardised rows X (m, d)."""
        if not self.is_binary:
            raise UsageError(f"rows_per_region is for two classes; there are {len(self.classes)}")
        return rows_per_region(self.kernel, self.thetas(draws), self.X, X)


@dataclass(frozen=True)
class _Binary:
    draws: LatentDraws | ExactDraws

    def probabilities(self, X: Array) -> Array:
        p = success_probability(self.draws, X)
        return np.column_stack([1.0 - p, p])

    def latent(self, X: Array) -> tuple[Array, Array]:
        return latent_moments(self.draws, X)


@dataclass(frozen=True)
class _Several:
    draws: softmax.SoftmaxDraws

    def probabilities(self, X: Array) -> Array:
        return softmax.mean_class_probabilities(self.draws, X)

    def latent(self, X: Array) -> tuple[Array, Array]:
        return softmax.latent_moments(self.draws, X)


@dataclass(frozen=True)
class MixedAnswers:
    """What several kernels say of new rows, each with its weight.

    Attributes
    ----------
    weights : tuple of float
        With sum 1.
    answers : tuple of ClassAnswers
    """

    weights: tuple[float, ...]
    answers: tuple[ClassAnswers, ...]

    def probabilities(self, X: Array) -> Array:
        """Probabilities of the classes at standardised rows X (m, d): shape (m, C)."""
        each = [answers.probabilities(X) for answers in self.answers]
        return np.asarray(sum(w * p for w, p in zip(self.weights, each, strict=True)))

    def functions(
        self, parts: Sequence[Array], n_draws: int, rng: np.random.Generator
    ) -> list[Array]:
        """Probabilities of the classes at parts of rows X by drawn functions: (n_draws, C, m)."""
        draws = [answers.draws for answers in self.answers]
        drawn = sample_functions(draws, self.weights, parts, n_draws, rng)
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


# Compiling the loops for several classes, before the user waits for them unawares.


def compile_softmax_loops(tell: Callable[[str], None]) -> None:
    """Compile or do nothing; ``tell`` is told a line first if there is something to compile."""
    compile_first(tell, compile_softmax_now)


def compile_softmax_now() -> None:
    """Solve a tiny problem with every loop."""
    n_classes, n = 3, 6
    fit_softmax(np.stack([np.eye(n)] * n_classes), np.eye(n_classes)[:, np.arange(n) % n_classes])
