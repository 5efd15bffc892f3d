"""GP classification by Laplace's approximation: modes of two classes, posterior, predictions.

Modes of several classes are those of `mercer.gp.softmax`; the posterior of the hyperparameters and
what draws of it say of new rows are of two classes or of several.

**Target.** Psi(f) = log p(y | f) + log p(f) has its maximum at f = K a with a = y - t pi(f)
(eqs. 5 to 7); with W = diag(t pi (1 - pi)) and B = I + W^.5 K W^.5 = L L' there (eq. 10)

    log Z = -a'f/2 + sum( y f - t log(1 + e^f) ) - sum log L_ii .

Rows count t times, y of these in class 1: t = 1 but for rows that are alike, or that have weights.

**Symbols** (paper -> code): y -> f, t -> y, pi -> proba, Q -> K.

**Deviations.** The paper stops Newton's method when W changes by 1e-4, and solves its systems by
conjugate gradients from the last solution; the energy of a trajectory must be a function of the
hyperparameters alone, so every mode is sought from f = 0 by direct solves, to rounding (to 1e-6 of
a beyond a signal variance of e^12); in a search for the maximum from the mode before. At f = 0 the
curvature is largest: its factor serves the first steps, which are accelerated, and a new factor is
taken only when they slow down.

**Cost.** Two to four Cholesky factors, and one inverse for the adjoint: O(n^3).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NumericalError
from mercer.gp.hyperparameters import (
    NormalPrior,
    class_parameters,
    is_within_range,
    kernel_prior,
    no_density,
    paper_start,
    prior_start,
    starts_of_few,
)
from mercer.gp.loops import chord_steps, evidence_adjoint, inverse_diagonal, weighted_identity_plus
from mercer.gp.softmax import (
    POLISHED,
    Curvature,
    LaplaceFit,
    correction_at,
    curvature,
    expected_softmax,
    fill_products,
    find_mode,
    first_order_step,
    fit_softmax,
    latent_covariance,
    multiply,
    softmax_evidence,
    softmax_mode,
)
from mercer.kernels.base import Kernel
from mercer.kernels.stationary import MaternARD, SpectralMixture, SquaredExponentialARD
from mercer.likelihoods.logistic import (
    class_probabilities,
    expected_logistic,
    log_likelihood,
    success_probability,
    targets_and_totals,
)
from mercer.numerics.cholesky import (
    FactorMemory,
    Workspace,
    factorise,
    invert_factored,
    invert_triangle,
    multiply_lower,
    one_blas_thread,
    solve_by_inverse,
    solve_factored,
    solve_lower,
    symmetric_product,
)
from mercer.numerics.compilation import compile_first
from mercer.sampling.sampler import Point

Array = NDArray[np.float64]

_NEAR = 2e-4  # in logits: how closely a mode is sought where only the evidence is wanted


def fit_laplace(
    K: Array,
    y: Array,
    scratch: Array | None = None,
    near: Array | None = None,
    totals: Array | None = None,
) -> LaplaceFit:
    """Find the mode for the Gram matrix K and targets y in {0, 1}, and the log evidence.

    Of rows that count ``totals`` times y are between 0 and these. ``scratch``, of the shape of K,
    becomes the adjoint where given. The mode is sought from f = 0, or from ``near``, latent values
    that are close to it. A `NumericalError` if no mode is found: K holds numbers too large for
    double precision.
    """
    t = np.ones(len(y)) if totals is None else totals
    if not np.isfinite(K[0, 0]):
        raise NumericalError("the Gram matrix is not finite")
    B = np.empty_like(K) if scratch is None else scratch
    a, f, factors = find_mode(K, y, t, lambda f: _Factors.at(K, f, t, B.T), near)
    factor_f, root_weights = f.copy(), factors.root_weights
    chord_steps(K, factors.parts, y, t, a, f, POLISHED, 3, 0)
    log_det = np.log(factors.L.diagonal()).sum()
    inverse = invert_factored(factors.L)
    proba = success_probability(f)
    # s2 = -1/2 d log|B|/df. No division by W: safe where a probability is 0 or 1.
    gain = 1.0 - inverse.diagonal()
    s2 = -0.5 * gain * (1.0 - 2.0 * proba)
    log_det -= s2 @ (f - factor_f)
    log_evidence = -0.5 * (a @ f) + log_likelihood(y, t, f) - log_det
    q = s2 - root_weights * symmetric_product(inverse, root_weights * (K @ s2))
    adjoint = inverse.T
    evidence_adjoint(adjoint, root_weights, a, q)
    return LaplaceFit(float(log_evidence), a, q, f, adjoint, gain)


def laplace_evidence(
    K: Array, y: Array, totals: Array, near: tuple[Array | None, Array], scratch: Array
) -> tuple[float, Array, Array]:
    """Compute log evidence (to about 1e-4 nats), dual coefficients and mode, without a gradient.

    ``near`` are latent values near the mode (None: it is sought from f = 0), and the ``gain`` of
    `LaplaceFit` at a mode like it. Two factors are nearly always enough: one to come near the mode,
    one to go to it. The second is that of the determinant, too; its change over the last 2e-4 of
    the way is a first-order term. A `NumericalError` as of `fit_laplace`.
    """
    if not np.isfinite(K[0, 0]):
        raise NumericalError("the Gram matrix is not finite")
    start, gain = near
    a, f, factors = find_mode(
        K, y, totals, lambda f: _Factors.at(K, f, totals, scratch.T), start, _NEAR
    )
    factor_f = f.copy()
    error, _ = chord_steps(K, factors.parts, y, totals, a, f, POLISHED, 6, 0)
    if start is not None and not error < _NEAR:  # two steps of the search were small by chance
        return laplace_evidence(K, y, totals, (None, gain), scratch)
    s2 = -0.5 * gain * (1.0 - 2.0 * success_probability(f))
    log_det = np.log(factors.L.diagonal()).sum() - s2 @ (f - factor_f)
    return float(-0.5 * (a @ f) + log_likelihood(y, totals, f) - log_det), a, f


def mode_near(K: Array, Y: Array, totals: Array, near: Array, scratch: Array) -> Array:
    """Return the dual coefficients of the mode, sought from latent values ``near`` it.

    Of two classes (n,), else (C, n); K and ``scratch`` are as of `fit_softmax`, of two classes
    (1, n, n). A `NumericalError` as of `fit_laplace`.
    """
    if Y.ndim == 1:
        no_gain = np.zeros_like(near)  # what it makes of the determinant is not asked for
        return laplace_evidence(K[0], Y, totals, (near, no_gain), scratch[0])[1]
    return softmax_mode(K, Y, near, scratch)


def correction_at_mode(
    K: Array, a: Array, y: Array, totals: Array, inverse: Array, root_weights: Array
) -> Array:
    """Return the coefficients that take the mode towards the mean: see `damped_correction`.

    ``a`` (n,) are the dual coefficients of the mode; L^-1 and W^.5 those of `inverse_factor`.
    """
    gain = 1.0 - inverse_diagonal(inverse.T)
    s2 = -0.5 * gain * (1.0 - 2.0 * (y - a) / totals)
    q = s2 - root_weights * solve_by_inverse(inverse, root_weights * (K @ s2))
    variance = posterior_variance(y, totals, a, gain, K.diagonal())
    return damped_correction(y, totals, K @ a, variance, a, q, K @ q)


def inverse_factor(
    K: Array, a: Array, y: Array, totals: Array, scratch: Array
) -> tuple[Array, Array]:
    """L^-1, B = L L' at the mode whose dual coefficients are ``a``, and W^.5: for predictions.

    ``scratch``, of the shape of K, is overwritten and holds L^-1 in its upper triangle.
    """
    proba = (y - a) / totals
    root_weights = np.sqrt(np.maximum(totals * proba * (1.0 - proba), 0.0))
    L = _factor(K, root_weights, scratch.T)
    invert_triangle(L)
    return L, root_weights


@dataclass(frozen=True)
class _Factors:
    """W^.5 at latent values and the factor L of B = I + W^.5 K W^.5, Fortran-ordered."""

    root_weights: Array
    L: Array

    @classmethod
    def at(cls, K: Array, f: Array, totals: Array, out: Array) -> _Factors:
        """Factorise at latent values f, in place of ``out``."""
        proba = success_probability(f)
        root_weights = np.sqrt(totals * proba * (1.0 - proba))
        return cls(root_weights, _factor(K, root_weights, out))

    @property
    def parts(self) -> tuple[Array, ...]:
        """As `chord_steps` takes them."""
        return self.L.T, self.root_weights

    def solve(self, b: Array) -> Array:
        """W^.5 B^-1 W^.5 b."""
        return self.root_weights * solve_factored(self.L, self.root_weights * b)


def _factor(K: Array, root_weights: Array, B: Array) -> Array:
    """Overwrite B by the factor of I + W^.5 K W^.5."""
    weighted_identity_plus(K, root_weights, B.T)
    return factorise(B)


# How far to go from the mode towards the mean of the posterior of the latent values.
#
# The first-order step K q is right where it is small, but grows like the signal variance where the
# true step grows like its root. Its length is therefore the maximiser, between 0 and 1, of the
# variational lower bound over Gaussians N(f + t K q, V), V Laplace's covariance:
#
#     E log p(y | f) - (a + t q)' K (a + t q)/2,    concave in t; derivative
#     sum_i (y - n E pi)_i (K q)_i - q' K (a + t q),       n_i how often a row counts.
#
# At one row with y = 1 the probability of the other class comes out within a tenth of the exact
# one for every v0 up to e^8; there the mode gives 0.38, the undamped step 0, the truth is 0.015.

_HALVINGS = 12  # of the interval: the length is known to 2^-12


def posterior_variance(
    y: Array, totals: Array, a: Array, gain: Array, prior_variance: Array
) -> Array:
    """Variance of Laplace's posterior of f: gain/W with W = t pi (1 - pi), at most the prior's."""
    proba = (y - a) / totals
    weights = np.maximum(totals * proba * (1.0 - proba), 1e-300)
    return np.asarray(np.clip(gain, 0.0, weights * prior_variance) / weights)


def damped_correction(
    y: Array, totals: Array, f: Array, variance: Array, a: Array, q: Array, K_q: Array
) -> Array:
    """Return t q with t in [0, 1] the best length of the step; all arrays of shape (n,)."""
    linear, quadratic = float(K_q @ a), float(K_q @ q)

    def slope(t: float) -> float:
        proba = expected_logistic(f + t * K_q, variance)
        return float((y - totals * proba) @ K_q) - linear - t * quadratic

    if slope(1.0) >= 0.0:
        return q
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) > 0.0 else (low, middle)
    return low * q


# The posterior of the hyperparameters, Laplace's evidence times a prior; what a draw keeps.


@dataclass(frozen=True)
class HyperparameterPosterior:
    """log p(theta | y) up to a constant, theta the log parameters of all kernels.

    ``X`` (n, d) are standardised inputs, ``y`` (n,) classes, 0.0 to C - 1, or (C, n) how often each
    class was seen at each row. There is one latent function, in logits of target 1, or C, one a
    class, under a softmax: latent values are (n,) or (C, n). The ``kernel_prior`` is over the log
    parameters of one kernel, the same for every class, and independent. Where ``is_shared`` several
    functions have one kernel in common, else theta holds the log parameters of the first class,
    then those of the second, and so on.
    """

    X: Array
    y: Array
    kernel: Kernel
    kernel_prior: NormalPrior
    n_functions: int = 1
    is_shared: bool = False
    workspace: Workspace = field(default_factory=Workspace, compare=False, repr=False)

    def __post_init__(self) -> None:
        n_parameters = self.kernel.n_parameters(self.X.shape[1])
        if self.kernel_prior.mean.shape != (n_parameters,):
            raise ValueError(
                f"a prior of {len(self.kernel_prior.mean)} parameters for a kernel of "
                f"{n_parameters}"
            )

    @property
    def n_kernels(self) -> int:
        """How many kernels there are: one, or one for each class."""
        return 1 if self.is_shared else self.n_functions

    @cached_property
    def prior(self) -> NormalPrior:
        """Of all log parameters."""
        return self.kernel_prior.tiled(self.n_kernels)

    @property
    def starts(self) -> tuple[Array, ...]:
        """The paper's for every kernel, whatever the prior; of many inputs, with few that count."""
        d = self.X.shape[1]
        own = prior_start(d, self.kernel, self.kernel_prior)
        targets = (self.Y / self.totals).reshape(self.n_kernels, -1, len(self.X))
        few = starts_of_few(self.X, targets, self.kernel, own)
        return (np.tile(paper_start(d, self.kernel), self.n_kernels), *few)

    @cached_property
    def Y(self) -> Array:  # noqa: N802 - as in the formulas
        """Targets as latent values are: (n,), or (C, n)."""
        return targets_and_totals(self.y, self.n_functions)[0]

    @cached_property
    def totals(self) -> Array:
        """How often each row counts, (n,)."""
        return targets_and_totals(self.y, self.n_functions)[1]

    def evaluate(self, theta: Array, near: Array | None = None) -> Point:
        """Log density, gradient and what a draw records at theta; ``near`` as of the protocol.

        Where the evidence cannot be computed the log density is -inf, so that no sampler goes
        there: at log parameters beyond 40, and, of several classes, at most signal variances beyond
        about e^18.
        """
        names = ("a", "q", "f", "gain")[: 4 if self.n_functions == 1 else 3]
        if is_within_range(theta):
            with suppress(NumericalError):
                K, gradients = self._grams_and_gradients(theta)
                fit = self._fit(K, near)
                adjoint = fit.adjoint.reshape(K.shape)
                gradient = [of(A) for of, A in zip(gradients, adjoint, strict=True)]
                return Point(
                    position=theta,
                    log_density=fit.log_evidence + self.prior.log_density(theta),
                    gradient=np.concatenate(gradient) + self.prior.gradient(theta),
                    extra={name: getattr(fit, name) for name in names},
                )
        return no_density(theta, {name: np.zeros_like(self.Y) for name in names})

    def split(self, theta: Array) -> Array:
        """Log parameters (.., n_kernels p) of each kernel, shape (.., n_kernels, p)."""
        return theta.reshape(*theta.shape[:-1], self.n_kernels, -1)

    def grams(self, theta: Array) -> Array:
        """Gram matrices of the kernels, (n_kernels, n, n), in scratch memory."""
        K = self.workspace.take_stack("grams", self.n_kernels, len(self.X))
        for own, out in zip(self.split(theta), K, strict=True):
            self.kernel.gram(own, self.X, out=out)
        return K

    def _grams_and_gradients(self, theta: Array) -> tuple[Array, list[Callable[[Array], Array]]]:
        """`grams`, and of each kernel the gradient as a function of what its matrix meets."""
        X, take = self.X, self.workspace.take
        K = self.workspace.take_stack("grams", self.n_kernels, len(X))
        parts = enumerate(zip(self.split(theta), K, strict=True))
        both = [self.kernel.gram_and_gradient(own, X, out, take, f"{c}") for c, (own, out) in parts]
        return K, [gradient for _, gradient in both]

    def scratch(self, name: str = "factors") -> Array:
        """Memory of one matrix for each function, (n_functions, n, n)."""
        return self.workspace.take_stack(name, self.n_functions, len(self.X))

    def values(self, point: Point, slopes: Array | None, rows: NDArray[np.int64]) -> LaplaceValues:
        """Return what evaluates the log density alone, in the region around ``point``."""
        return LaplaceValues(self, point, slopes, rows)

    def parameters(self, positions: Array) -> dict[str, Array]:
        """Split positions (.., n_kernels p) into named log parameters."""
        return class_parameters(self.kernel, self.X.shape[1], self.split(positions))

    def predicted(self, draws: Mapping[str, Array]) -> Array:
        """Return probabilities of target 1, (.., n), or of the classes, at the modes of draws."""
        return np.asarray((self.Y - draws["dual_coef"]) / self.totals)

    def recorded(self, point: Point, rows: NDArray[np.int64]) -> Mapping[str, Array]:
        """Return log parameters, log density, latent values and dual coefficients."""
        return {
            **self.parameters(point.position),
            "log_density": np.asarray(point.log_density),
            "latent": point.extra["f"][..., rows],
            "dual_coef": point.extra["a"],
            "dual_correction": self._correction(point),
        }

    def _fit(self, K: Array, near: Array | None) -> LaplaceFit:
        if self.n_functions == 1:
            return fit_laplace(K[0], self.Y, self.scratch()[0], near, self.totals)
        return fit_softmax(K, self.Y, (self.scratch(), self.scratch("products")), near)

    def _correction(self, point: Point) -> Array:
        """Coefficients from the mode towards the mean; of several classes at about a gradient."""
        extra = point.extra
        a, f, q = (extra[name] for name in "afq")
        if not np.isfinite(point.log_density):
            return np.zeros_like(q)
        K = self.grams(point.position)
        if self.n_functions > 1:
            factors = curvature(K, class_probabilities(f), self.scratch(), self.totals)
            products = self.scratch("products")
            fill_products(factors, products)
            return correction_at(K, self.Y, f, a, q, factors, products)
        prior_variance = self.kernel.diagonal(point.position, self.X)
        y, totals = self.Y, self.totals
        variance = posterior_variance(y, totals, a, extra["gain"], prior_variance)
        return damped_correction(y, totals, f, variance, a, q, K[0] @ q)


@dataclass(frozen=True)
class LaplaceValues:
    """The log density of `HyperparameterPosterior` without its gradient, at a third of the cost.

    Modes are sought from the one at ``point``, and from how it changes with the hyperparameters,
    ``slopes`` (p, n) or (p, C, n), if these are known; latent values are recorded at ``rows`` (k,).
    """

    model: HyperparameterPosterior
    point: Point
    slopes: Array | None
    rows: NDArray[np.int64]

    def __call__(self, theta: Array) -> tuple[float, Mapping[str, Array]]:
        """Return the log density, and the latent values and dual coefficients of a draw."""
        model, f = self.model, self.point.extra["f"]
        if self.slopes is not None:
            f = f + np.tensordot(theta - self.point.position, self.slopes, axes=1)
        log_evidence, a = -np.inf, np.zeros_like(f)
        if is_within_range(theta):
            with suppress(NumericalError):
                K, scratch = model.grams(theta), model.scratch()
                if model.n_functions == 1:
                    near = (f, self.point.extra["gain"])
                    targets = (model.Y, model.totals)
                    log_evidence, a, f = laplace_evidence(K[0], *targets, near, scratch[0])
                else:
                    log_evidence, a, f = softmax_evidence(K, model.Y, f, scratch)
                recorded = {"latent": f[..., self.rows], "dual_coef": a}
                return log_evidence + model.prior.log_density(theta), recorded
        return log_evidence, {"latent": np.zeros_like(f[..., self.rows]), "dual_coef": a}


# Predictions of a GP classifier: one draw after the other, blocks of rows within.
#
# Memory is a few n x n arrays (of several classes two stacks of them) and one block of rows,
# however many draws and rows there are; and a GiB at most for factors kept from one call to
# the next.


@dataclass(frozen=True, eq=False)
class ClassDraws(ABC):
    """Draws given each of which the latent values of new rows are normal.

    Of training inputs ``X`` (n, d), with log parameters ``theta`` (S, ..) and ``dual_coef`` (S, n),
    or (S, C, n) of several classes: coefficients of the mode, or of a drawn function. ``weights``
    (S,) of the draws have any sum; None where all count alike.
    """

    X: Array
    kernel: Kernel
    theta: Array
    dual_coef: Array
    weights: Array | None = field(default=None, kw_only=True)
    memory: FactorMemory = field(
        default_factory=FactorMemory, compare=False, repr=False, kw_only=True
    )
    corrected: FactorMemory = field(
        default_factory=FactorMemory, compare=False, repr=False, kw_only=True
    )
    rows_at_once: ClassVar[int] = 512

    @abstractmethod
    def expected(self, mean: Array, spread: Array) -> Array:
        """Probability of target 1, (m,), or of the classes, (m, C), at such latent values."""

    @abstractmethod
    def joint(self, i: int, X: Array) -> tuple[Array, Array]:
        """Mean (k m,) and covariance of k functions at rows X (m, d), by draw ``i``."""

    @abstractmethod
    def _at(self, i: int, factors: tuple[Array, ...], X: Array) -> tuple[Array, Array]:
        """Mean and spread, as `moments`, at a block of rows."""

    @abstractmethod
    def _solve(self, i: int, scratch: Workspace) -> tuple[Array, ...]:
        """Return what all predictions by draw ``i`` need."""

    def moments(self, X: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Yield (rows, mean, spread) of f at rows of X, for every draw and block of rows.

        Mean and variance, (m,) each; of several classes mean (m, C) and covariance (m, C, C). One
        BLAS thread, so that the bits do not depend on the machine's load.
        """
        scratch = Workspace()
        with one_blas_thread():
            for i in range(len(self.theta)):
                factors = self._factors(i, scratch)
                for begin in range(0, len(X), self.rows_at_once):
                    rows = slice(begin, begin + self.rows_at_once)
                    yield rows, *self._at(i, factors, X[rows])

    def probabilities(self, X: Array) -> Array:
        """Probabilities (m, C) of the classes, averaged over f and over draws (eq. 9)."""
        count, total = np.zeros(len(X)), self._zeros(X)
        for weight, rows, mean, spread in self._weighted(X):
            count[rows] += weight
            total[..., rows] += weight * self.expected(mean, spread).T
        p = total / count
        return np.column_stack([1.0 - p, p]) if p.ndim == 1 else np.ascontiguousarray(p.T)

    def latent(self, X: Array) -> tuple[Array, Array]:
        """Posterior mean and variance of f: mean of variances plus variance of means.

        Both (m,) for two classes, else (m, C).
        """
        count, mean, between, within = np.zeros(len(X)), *(self._zeros(X) for _ in range(3))
        for weight, rows, m, spread in self._weighted(X):
            count[rows] += weight
            step = m.T - mean[..., rows]
            mean[..., rows] += step * weight / count[rows]
            between[..., rows] += weight * step * (m.T - mean[..., rows])
            own = spread if m.ndim == 1 else np.diagonal(spread, axis1=1, axis2=2)
            within[..., rows] += weight * own.T
        return mean.T, ((within + between) / count).T

    def _zeros(self, X: Array) -> Array:
        return np.zeros((*self.dual_coef.shape[1:-1], len(X)))

    def _factors(self, i: int, scratch: Workspace) -> tuple[Array, ...]:
        return self.memory.get(i, len(self.theta), lambda: self._solve(i, scratch))

    def _weighted(self, X: Array) -> Iterator[tuple[float, slice, Array, Array]]:
        """`moments`, the weight of the draw first."""
        draw = -1
        for rows, mean, spread in self.moments(X):
            draw += rows.start == 0
            weight = 1.0 if self.weights is None else float(self.weights[draw])
            yield weight, rows, mean, spread


@dataclass(frozen=True, eq=False)
class LatentDraws(ClassDraws):
    """What the latent function of each draw is computed from; ``theta`` is of shape (S, p).

    Mean k'(a + t q), variance k** - |L^-1 W^.5 k|^2: k'R k with R = W^.5 B^-1 W^.5, which is safe
    where W vanishes. The paper's mean is k'a. ``y`` (n,) are classes, 0.0 or 1.0, or (2, n) how
    often each was seen; ``mean_coef`` (S, n) coefficients of the predictive mean, ``dual_coef`` or
    that plus its correction; None: the correction is computed when it is needed.
    """

    y: Array
    mean_coef: Array | None

    def expected(self, mean: Array, spread: Array) -> Array:
        """Probability of target 1, (m,)."""
        return expected_logistic(mean, spread)

    def joint(self, i: int, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and covariance (m, m) of f at rows X (m, d), by draw ``i``."""
        inverse, root_weights, mean_coef = self._factors(i, Workspace())
        cross = self.kernel.cross_gram(self.theta[i], X, self.X)
        V = multiply_lower(inverse, (cross * root_weights).T)
        return cross @ mean_coef, self.kernel.gram(self.theta[i], X) - V.T @ V

    def _at(self, i: int, factors: tuple[Array, ...], X: Array) -> tuple[Array, Array]:
        inverse, root_weights, mean_coef = factors
        cross = self.kernel.cross_gram(self.theta[i], X, self.X)
        V = multiply_lower(inverse, (cross * root_weights).T)
        variance = self.kernel.diagonal(self.theta[i], X) - np.einsum("ij,ij->j", V, V)
        return cross @ mean_coef, np.maximum(variance, 0.0)

    def _solve(self, i: int, scratch: Workspace) -> tuple[Array, ...]:
        """Inverse factor of B, W^.5 and the coefficients of the mean."""
        n, a, targets = len(self.X), self.dual_coef[i], targets_and_totals(self.y, 1)
        K = self.kernel.gram(self.theta[i], self.X, out=scratch.take("gram", n))
        factor = inverse_factor(K, a, *targets, scratch.take("factor", n))
        if self.mean_coef is not None:
            return (*factor, self.mean_coef[i])

        def compute() -> tuple[Array, ...]:
            return (a + correction_at_mode(K, a, *targets, *factor),)

        return factor + self.corrected.get(i, len(self.theta), compute)


@dataclass(frozen=True, eq=False)
class SoftmaxDraws(ClassDraws):
    """What the functions of several classes of each draw are computed from.

    ``theta`` (S, C, p) or (S, 1, p) are of the kernel of each class, or of the one that all share;
    ``y`` (n,) are classes, or (C, n) how often each was seen, and ``mean_coef`` (S, C, n) is as of
    `LatentDraws`.
    """

    y: Array
    mean_coef: Array | None
    rows_at_once: ClassVar[int] = 256

    def expected(self, mean: Array, spread: Array) -> Array:
        """Probabilities of the classes, (m, C)."""
        return expected_softmax(mean, spread)

    def joint(self, i: int, X: Array) -> tuple[Array, Array]:
        """Mean (C m,) and covariance of f of all classes at rows X (m, d), by draw ``i``.

        As in `latent_covariance`, of all pairs of rows.
        """
        theta, m = self.theta[i], len(X)
        roots, inverses, M, mean_coef = self._factors(i, Workspace())
        cross = np.stack([self.kernel.cross_gram(own, X, self.X) for own in theta])
        mean = np.matmul(cross, mean_coef[:, :, np.newaxis])[:, :, 0]
        shared, own = [], np.zeros((len(roots), m, len(roots), m))
        for c, root in enumerate(roots):
            weighted = root[:, np.newaxis] * cross[c % len(cross)].T
            solved = inverses[c] @ weighted
            own[c, :, c] = self.kernel.gram(theta[c % len(theta)], X) - weighted.T @ solved
            shared.append(solve_lower(M, root[:, np.newaxis] * solved))
        together = np.hstack(shared)
        return mean.ravel(), own.reshape(mean.size, mean.size) + together.T @ together

    def _at(self, i: int, factors: tuple[Array, ...], X: Array) -> tuple[Array, Array]:
        roots, inverses, M, mean_coef = factors
        parts = Curvature(roots, inverses, M, np.nan, np.square(roots).sum(axis=0))
        cross = np.stack([self.kernel.cross_gram(own, X, self.X) for own in self.theta[i]])
        variance = np.stack([self.kernel.diagonal(own, X) for own in self.theta[i]])
        mean = np.matmul(cross, mean_coef[:, :, np.newaxis])[:, :, 0].T
        return mean, latent_covariance(parts, cross, variance)

    def _solve(self, i: int, scratch: Workspace) -> tuple[Array, ...]:
        """Parts of the curvature, and the coefficients of the mean."""
        theta, a = self.theta[i], self.dual_coef[i]
        n_classes, n = a.shape
        Y, totals = targets_and_totals(self.y, n_classes)
        K = scratch.take_stack("grams", len(theta), n)
        for c, own in enumerate(theta):
            self.kernel.gram(own, self.X, out=K[c])
        proba = np.maximum(Y - a, 0.0) / totals
        factors = curvature(K, proba, scratch.take_stack("inverses", n_classes, n), totals)
        parts = (factors.roots, factors.inverses, factors.M)
        if self.mean_coef is not None:
            return (*parts, self.mean_coef[i])

        def compute() -> tuple[Array, ...]:
            products = scratch.take_stack("products", n_classes, n)
            q = first_order_step(K, factors, proba, products)[1]
            return (a + correction_at(K, Y, multiply(K, a), a, q, factors, products),)

        return parts + self.corrected.get(i, len(self.theta), compute)


# Compiling the loops that Gaussian processes use, before the user waits for them unawares.


def compile_loops(tell: Callable[[str], None], *, is_several: bool = False) -> None:
    """Compile or do nothing; ``tell`` is told a line first if there is something to compile."""
    compile_first(tell, compile_now, *([compile_softmax_now] if is_several else []))


def compile_now() -> None:
    """Solve a tiny problem with every loop of the method."""
    X, y = np.arange(12.0).reshape(6, 2), np.array([0.0, 1.0, 0.0, 1.0, 1.0, 0.0])
    for kernel in (SquaredExponentialARD(), MaternARD(2.5), SpectralMixture(1)):
        prior = kernel_prior(2, kernel=kernel)
        model = HyperparameterPosterior(X, y, kernel, prior)
        model.evaluate(prior.mean)
        kernel.cross_gram(prior.mean, X[:2], X)
    inverse_diagonal(np.eye(2))


def compile_softmax_now() -> None:
    """Solve a tiny problem with every loop of several classes."""
    n_classes, n = 3, 6
    for n_grams in (1, n_classes):
        K = np.stack([np.eye(n)] * n_grams)
        fit_softmax(K, np.eye(n_classes)[:, np.arange(n) % n_classes])
    expected_softmax(np.zeros((1, n_classes)), np.eye(n_classes)[np.newaxis])
