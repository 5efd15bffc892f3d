"""Laplace's approximation for a binary GP classifier: mode, log evidence and its adjoint.

**Target.** Psi(f) = log p(y | f) + log p(f) has its maximum at f = K a with a = y - pi(f)
(eqs. 5 to 7); with W = diag(pi (1 - pi)) and B = I + W^.5 K W^.5 = L L' there (eq. 10)

    log Z = -a'f/2 + sum( y f - log(1 + e^f) ) - sum log L_ii .

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

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NumericalError
from mercer.gp.hyperparameters import (
    NormalPrior,
    is_within_range,
    kernel_prior,
    named_parameters,
    no_density,
    paper_start,
)
from mercer.gp.loops import (
    chord_steps,
    evidence_adjoint,
    inverse_diagonal,
    weighted_identity_plus,
)
from mercer.kernels.base import Kernel
from mercer.kernels.stationary import MaternARD, SpectralMixture, SquaredExponentialARD
from mercer.likelihoods.logistic import expected_logistic, log_likelihood, success_probability
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
    symmetric_product,
)
from mercer.numerics.compilation import compile_first
from mercer.sampling.sampler import Point

__all__ = [
    "FunctionMoments",
    "HyperparameterPosterior",
    "LaplaceFit",
    "LaplaceValues",
    "LatentDraws",
    "Recorder",
    "compile_loops",
    "compile_now",
    "correction_at_mode",
    "damped_correction",
    "fit_laplace",
    "inverse_factor",
    "laplace_evidence",
    "latent_moments",
    "mean_success_probability",
    "posterior_variance",
    "weighted_moments",
]


Array = NDArray[np.float64]

# The last factor is taken once f is known to this; its own first step then leaves an error of the
# order of the square, and B^-1 differs from that at the mode by no more than this.
_LAST_FACTOR = 1e-8
_NEAR = 2e-4  # in logits, in place of the first where only the evidence is wanted
_POLISHED = 1e-7  # a step below this, with that factor, ends within rounding of the mode
_FARTHEST = 30.0  # logits of a start: beyond, its weights would vanish
_MAX_STEPS, _MEMORY, _MAX_FACTORS = 16, 5, 60


@dataclass(frozen=True)
class LaplaceFit:
    """Mode and evidence for one Gram matrix, with what its gradient and predictions need.

    Attributes
    ----------
    log_evidence : float
        Eq. (10), in nats.
    a : ndarray of shape (n,)
        K^-1 f at the mode, y - pi there.
    q : ndarray of shape (n,)
        K q is the first-order step from the mode to the mean of the posterior.
    gain : ndarray of shape (n,)
        1 - diag B^-1: the variance of Laplace's posterior of f, times W.
    f : ndarray of shape (n,)
        The mode, in logits.
    adjoint : ndarray of shape (n, n)
        Symmetric matrix A such that d log Z = sum A_ij dK_ij.
    """

    log_evidence: float
    a: Array
    q: Array
    f: Array
    gain: Array
    adjoint: Array


def fit_laplace(
    K: Array, y: Array, scratch: Array | None = None, near: Array | None = None
) -> LaplaceFit:
    """Find the mode for the Gram matrix K and targets y in {0, 1}, and the log evidence.

    ``scratch``, of the shape of K, is overwritten where given: it becomes the adjoint. The mode is
    sought from f = 0, or from ``near``, latent values that are close to it.

    Raises
    ------
    NumericalError
        If no mode is found: K holds numbers too large for double precision.
    """
    if not np.isfinite(K[0, 0]):
        raise NumericalError("the Gram matrix is not finite")
    B = np.empty_like(K) if scratch is None else scratch
    a, f, L, root_weights = _mode_near(K, y, B.T, near)
    factor_f = f.copy()
    chord_steps(K, L.T, root_weights, y, a, f, _POLISHED, 3, 0)
    log_det = np.log(L.diagonal()).sum()
    inverse = invert_factored(L)
    proba = success_probability(f)
    # s2 = -1/2 d log|B|/df. No division by W: safe where a probability is 0 or 1.
    gain = 1.0 - inverse.diagonal()
    s2 = -0.5 * gain * (1.0 - 2.0 * proba)
    log_det -= s2 @ (f - factor_f)
    log_evidence = -0.5 * (a @ f) + log_likelihood(y, f) - log_det
    q = s2 - root_weights * symmetric_product(inverse, root_weights * (K @ s2))
    adjoint = inverse.T
    evidence_adjoint(adjoint, root_weights, a, q)
    return LaplaceFit(float(log_evidence), a, q, f, gain, adjoint)


def laplace_evidence(
    K: Array, y: Array, near: tuple[Array | None, Array], scratch: Array
) -> tuple[float, Array, Array]:
    """Compute log evidence (to about 1e-4 nats), dual coefficients and mode, without a gradient.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    y : ndarray of shape (n,)
    near : pair of ndarray of shape (n,)
        Latent values near the mode (None: it is sought from f = 0), and the ``gain`` of
        `LaplaceFit` at a mode like it.
    scratch : ndarray of shape (n, n)
        Overwritten.

    Raises
    ------
    NumericalError
        If no mode is found: K holds numbers too large for double precision.

    Notes
    -----
    Two factors are nearly always enough: one to come near the mode, one to go to it. The second is
    that of the determinant, too; its change over the last 2e-4 of the way is a first-order term.
    """
    if not np.isfinite(K[0, 0]):
        raise NumericalError("the Gram matrix is not finite")
    start, gain = near
    a, f, L, root_weights = _mode_near(K, y, scratch.T, start, _NEAR)
    factor_f = f.copy()
    error, _ = chord_steps(K, L.T, root_weights, y, a, f, _POLISHED, 6, 0)
    if start is not None and not error < _NEAR:  # two steps of the search were small by chance
        return laplace_evidence(K, y, (None, gain), scratch)
    s2 = -0.5 * gain * (1.0 - 2.0 * success_probability(f))
    log_det = np.log(L.diagonal()).sum() - s2 @ (f - factor_f)
    return float(-0.5 * (a @ f) + log_likelihood(y, f) - log_det), a, f


def correction_at_mode(K: Array, a: Array, y: Array, inverse: Array, root_weights: Array) -> Array:
    """Return the coefficients that take the mode towards the mean: see `damped_correction`.

    Parameters
    ----------
    a : ndarray of shape (n,)
        Dual coefficients of the mode.
    inverse, root_weights : ndarray
        L^-1 and W^.5 of `inverse_factor`.
    """
    gain = 1.0 - inverse_diagonal(inverse.T)
    s2 = -0.5 * gain * (1.0 - 2.0 * (y - a))
    q = s2 - root_weights * solve_by_inverse(inverse, root_weights * (K @ s2))
    variance = posterior_variance(y, a, gain, K.diagonal())
    return damped_correction(y, K @ a, variance, a, q, K @ q)


def inverse_factor(K: Array, a: Array, y: Array, scratch: Array) -> tuple[Array, Array]:
    """L^-1, B = L L' at the mode whose dual coefficients are ``a``, and W^.5: for predictions.

    ``scratch``, of the shape of K, is overwritten and holds L^-1 in its upper triangle.
    """
    proba = y - a
    root_weights = np.sqrt(np.maximum(proba * (1.0 - proba), 0.0))
    L = _factor(K, root_weights, scratch.T)
    invert_triangle(L)
    return L, root_weights


def _mode_near(
    K: Array, y: Array, B: Array, start: Array | None, tolerance: float = _LAST_FACTOR
) -> tuple[Array, Array, Array, Array]:
    """Seek the mode from a start, and from f = 0 where that is no good or there is none."""
    if start is not None:
        with suppress(NumericalError):
            return _find_mode(K, y, B, np.clip(start, -_FARTHEST, _FARTHEST), tolerance)
    return _find_mode(K, y, B)


def _find_mode(
    K: Array, y: Array, B: Array, start: Array | None = None, tolerance: float = _LAST_FACTOR
) -> tuple[Array, Array, Array, Array]:
    """Eqs. (5) to (7): (a, f, L, W^.5), L factorised within 1e-8 of the mode, in place of B.

    From f = 0, or from Newton's step at ``start``, latent values that need not be K a for any a.
    ``tolerance``, in logits, takes the place of 1e-8 in units of the largest.
    """
    n = len(y)
    a, f = np.zeros(n), np.zeros(n)
    root_weights = np.full(n, 0.5)
    if start is not None:
        proba = success_probability(start)
        root_weights = np.sqrt(proba * (1.0 - proba))
    for k in range(_MAX_FACTORS):
        L = _factor(K, root_weights, B)
        if start is not None and k == 0:
            b = root_weights**2 * start + y - proba
            a = b - root_weights * solve_factored(L, root_weights * (K @ b))
            f = K @ a
        error, _ = chord_steps(K, L.T, root_weights, y, a, f, tolerance, _MAX_STEPS, _MEMORY)
        if not np.isfinite(error):
            break
        proba = success_probability(f)
        root_weights = np.sqrt(proba * (1.0 - proba))
        if error < tolerance * (max(1.0, np.abs(f).max()) if tolerance <= _LAST_FACTOR else 1.0):
            return a, f, _factor(K, root_weights, B), root_weights
    raise NumericalError("no mode found: the latent values are too large for double precision")


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
#     sum_i (y - E pi)_i (K q)_i - q' K (a + t q).
#
# At one row with y = 1 the probability of the other class comes out within a tenth of the exact
# one for every v0 up to e^8; there the mode gives 0.38, the undamped step 0, the truth is 0.015.

_HALVINGS = 12  # of the interval: the length is known to 2^-12


def posterior_variance(y: Array, a: Array, gain: Array, prior_variance: Array) -> Array:
    """Variance of Laplace's posterior of f: gain/W with W = pi (1 - pi), at most the prior's."""
    proba = y - a
    weights = np.maximum(proba * (1.0 - proba), 1e-300)
    return np.asarray(np.clip(gain, 0.0, weights * prior_variance) / weights)


def damped_correction(y: Array, f: Array, variance: Array, a: Array, q: Array, K_q: Array) -> Array:
    """Return t q with t in [0, 1] the best length of the step; all arrays of shape (n,)."""
    linear, quadratic = float(K_q @ a), float(K_q @ q)

    def slope(t: float) -> float:
        proba = expected_logistic(f + t * K_q, variance)
        return float((y - proba) @ K_q) - linear - t * quadratic

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
    """log p(theta | y) up to a constant, theta the log parameters of the kernel.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Standardised inputs.
    y : ndarray of shape (n,)
        Targets, 0.0 or 1.0.
    kernel : Kernel
    prior : NormalPrior
        Over theta, shape (p,).
    """

    X: Array
    y: Array
    kernel: Kernel
    prior: NormalPrior
    workspace: Workspace = field(default_factory=Workspace, compare=False, repr=False)

    def __post_init__(self) -> None:
        n_parameters = self.kernel.n_parameters(self.X.shape[1])
        if self.prior.mean.shape != (n_parameters,):
            raise ValueError(
                f"a prior of {len(self.prior.mean)} parameters for a kernel of {n_parameters}"
            )

    @property
    def starts(self) -> tuple[Array, ...]:
        """The paper's start, whatever the prior."""
        return (paper_start(self.X.shape[1], self.kernel),)

    def evaluate(self, theta: Array, near: Array | None = None) -> Point:
        """Log density, gradient and dual coefficients at theta; ``near`` as of the protocol.

        Where the evidence cannot be computed the log density is -inf, so that no sampler goes
        there; that is so only for hyperparameters beyond e^40 or of no meaning in double precision.
        """
        n = len(self.y)
        if not is_within_range(theta):
            return _outside(theta, n)
        try:
            K = self.kernel.gram(theta, self.X, out=self.workspace.take("gram", n))
            fit = fit_laplace(K, self.y, self.workspace.take("factor", n), near)
        except NumericalError:
            return _outside(theta, n)
        gradient = self.kernel.gradient(theta, self.X, K, fit.adjoint)
        return Point(
            position=theta,
            log_density=fit.log_evidence + self.prior.log_density(theta),
            gradient=gradient + self.prior.gradient(theta),
            extra={
                "a": fit.a,
                "q": fit.q,
                "f": fit.f,
                "gain": fit.gain,
                "K_q": K @ fit.q,
            },
        )

    def values(self, point: Point, slopes: Array | None, rows: NDArray[np.int64]) -> LaplaceValues:
        """Return what evaluates the log density alone, in the region around ``point``."""
        return LaplaceValues(self, point, slopes, rows)


@dataclass(frozen=True)
class LaplaceValues:
    """The log density of `HyperparameterPosterior` without its gradient, at a third of the cost.

    Attributes
    ----------
    model : HyperparameterPosterior
    point : Point
        Modes are sought from the one here,
    slopes : ndarray of shape (p, n) or None
        and from how it changes with the hyperparameters.
    rows : ndarray of shape (k,), int
        The rows whose latent values are recorded.
    """

    model: HyperparameterPosterior
    point: Point
    slopes: Array | None
    rows: NDArray[np.int64]

    def __call__(self, theta: Array) -> tuple[float, Mapping[str, Array]]:
        """Return the log density, and the latent values and dual coefficients of a draw."""
        model, n, f = self.model, len(self.model.y), self.point.extra["f"]
        if self.slopes is not None:
            f = f + (theta - self.point.position) @ self.slopes
        if is_within_range(theta):
            try:
                K = model.kernel.gram(theta, model.X, out=model.workspace.take("gram", n))
                scratch = model.workspace.take("factor", n)
                near = (f, self.point.extra["gain"])
                log_evidence, a, f = laplace_evidence(K, model.y, near, scratch)
                recorded = {"latent": f[self.rows], "dual_coef": a}
                return log_evidence + model.prior.log_density(theta), recorded
            except NumericalError:
                pass
        return -np.inf, {"latent": np.zeros(len(self.rows)), "dual_coef": np.zeros(n)}


def _outside(theta: Array, n: int) -> Point:
    return no_density(theta, {name: np.zeros(n) for name in ("a", "q", "f", "gain", "K_q")})


@dataclass(frozen=True)
class Recorder:
    """Name the parts of an evaluated point that a draw of a classifier keeps.

    Attributes
    ----------
    model : HyperparameterPosterior
    rows : ndarray of shape (k,), int
        The rows whose latent values are monitored.
    """

    model: HyperparameterPosterior
    rows: NDArray[np.int64]

    def parameters(self, positions: Array) -> dict[str, Array]:
        """Split positions (N, p) into named log parameters."""
        return named_parameters(self.model.kernel, self.model.X.shape[1], positions)

    def predicted(self, draws: Mapping[str, Array]) -> Array:
        """Return the probabilities of target 1 at the modes of draws, at all rows (..., n)."""
        return np.asarray(self.model.y - draws["dual_coef"])

    def __call__(self, point: Point) -> Mapping[str, Array]:
        """Return log parameters, log density, latent values and dual coefficients."""
        model, extra, theta = self.model, point.extra, point.position
        y, a = model.y, extra["a"]
        variance = posterior_variance(y, a, extra["gain"], model.kernel.diagonal(theta, model.X))
        correction = damped_correction(y, extra["f"], variance, a, extra["q"], extra["K_q"])
        return {
            **named_parameters(model.kernel, model.X.shape[1], theta),
            "log_density": np.asarray(point.log_density),
            "latent": extra["f"][self.rows],
            "dual_coef": a,
            "dual_correction": correction,
        }


# Predictions of a GP classifier: one draw after the other, blocks of rows within.
#
# Memory is a few n x n arrays and one block of rows, however many draws and rows there are.

_BLOCK = 512  # rows predicted at a time


class FunctionMoments(Protocol):
    """Draws that say how f is distributed at new rows: `LatentDraws`, or draws of f itself."""

    @property
    def weights(self) -> Array | None:
        """Of the draws, shape (S,), any sum; None where all count alike."""
        ...

    def moments(self, X: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Yield (rows, mean, variance) of f at rows of X, for every draw and block of rows."""
        ...


@dataclass(frozen=True)
class LatentDraws:
    """What the latent function of each draw is computed from.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Standardised training inputs.
    y : ndarray of shape (n,)
        Training targets, 0.0 or 1.0.
    kernel : Kernel
    theta : ndarray of shape (n_total, p)
        Log parameters of the kernel, one row a draw.
    dual_coef : ndarray of shape (n_total, n)
        y - pi at the mode.
    mean_coef : ndarray of shape (n_total, n) or None
        Coefficients of the predictive mean: ``dual_coef``, or that plus its correction. None: the
        correction is computed when it is needed.
    weights : ndarray of shape (n_total,) or None
        Of the draws, any sum.
    memory : FactorMemory
        Where factors are kept from one prediction to the next.
    """

    X: Array
    y: Array
    kernel: Kernel
    theta: Array
    dual_coef: Array
    mean_coef: Array | None
    weights: Array | None = None
    memory: FactorMemory = field(default_factory=FactorMemory, compare=False, repr=False)

    def moments(self, X: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Yield (rows, mean, variance) of f at rows of X, for every draw and block.

        Notes
        -----
        Mean k'(a + t q), variance k** - |L^-1 W^.5 k|^2: k'R k with R = W^.5 B^-1 W^.5, which is
        safe where W vanishes. The paper's mean is k'a. One BLAS thread, so that the bits do not
        depend on the machine's load.
        """
        with one_blas_thread():
            yield from self._moments(X)

    def _moments(self, X: Array) -> Iterator[tuple[slice, Array, Array]]:
        scratch = Workspace()
        for i, theta in enumerate(self.theta):
            inverse, root_weights, mean_coef = self.memory.get(
                i,
                len(self.theta),
                lambda i=i: self._solve(i, scratch),  # type: ignore[misc]
            )
            for begin in range(0, len(X), _BLOCK):
                rows = slice(begin, begin + _BLOCK)
                cross = self.kernel.cross_gram(theta, X[rows], self.X)
                V = multiply_lower(inverse, (cross * root_weights).T)
                explained = np.einsum("ij,ij->j", V, V)
                variance = self.kernel.diagonal(theta, X[rows]) - explained
                yield rows, cross @ mean_coef, np.maximum(variance, 0.0)

    def joint(self, i: int, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and covariance (m, m) of f at rows X (m, d), by draw ``i``."""
        n, scratch = len(self.theta), Workspace()
        inverse, root_weights, mean_coef = self.memory.get(i, n, lambda: self._solve(i, scratch))
        cross = self.kernel.cross_gram(self.theta[i], X, self.X)
        V = multiply_lower(inverse, (cross * root_weights).T)
        return cross @ mean_coef, self.kernel.gram(self.theta[i], X) - V.T @ V

    def _solve(self, i: int, scratch: Workspace) -> tuple[Array, Array, Array]:
        """Inverse factor of B, W^.5 and the coefficients of the mean, of one draw."""
        n, a = len(self.y), self.dual_coef[i]
        K = self.kernel.gram(self.theta[i], self.X, out=scratch.take("gram", n))
        factor = inverse_factor(K, a, self.y, scratch.take("factor", n))
        if self.mean_coef is not None:
            return (*factor, self.mean_coef[i])
        return (*factor, a + correction_at_mode(K, a, self.y, *factor))


# Whole functions, not moments of single rows: values at several rows together.

_HYPERPARAMETERS: Final = 16  # draws of them that functions are drawn from
# Of the largest variance, added to covariances so that most have a factor: far below a curve.
_BLUR: Final = 1e-6


class JointDraws(Protocol):
    """Draws that say how values of f at new rows go together."""

    @property
    def theta(self) -> Array:
        """Log parameters, one row a draw."""
        ...

    @property
    def weights(self) -> Array | None:
        """Of the draws, shape (S,), any sum; None where all count alike."""
        ...

    def joint(self, i: int, X: Array) -> tuple[Array, Array]:
        """Mean (k m,) and covariance of k functions at rows X (m, d), by draw ``i``."""
        ...


def sample_functions(
    draws: Sequence[JointDraws],
    weights: Sequence[float],
    parts: Sequence[Array],
    n_draws: int,
    rng: np.random.Generator,
) -> list[Array]:
    """Draw f at parts of rows X (m, d), shape (n_draws, k m) each.

    ``draws`` are those of each kernel, ``weights`` the kernels'. Sixteen draws of the
    hyperparameters at most are met, by systematic resampling; parts are independent given these.
    """
    pairs: list[tuple[JointDraws, int]] = []
    shares: list[float] = []
    for own, weight in zip(draws, weights, strict=True):
        each = np.ones(len(own.theta)) if own.weights is None else own.weights
        pairs += [(own, i) for i in range(len(each))]
        shares += (weight * each / each.sum()).tolist()
    n_met = min(_HYPERPARAMETERS, n_draws)
    at = (rng.random() + np.arange(n_met)) / n_met
    met = np.minimum(np.searchsorted(np.cumsum(shares), at), len(pairs) - 1)
    sizes = np.bincount(np.arange(n_draws) * n_met // n_draws)
    counts = np.bincount(met, sizes).astype(np.int64)
    found: list[list[Array]] = [[] for _ in parts]
    with one_blas_thread():
        for j in np.flatnonzero(counts):
            own, i = pairs[j]
            for values, X in zip(found, parts, strict=True):
                mean, covariance = own.joint(i, X)
                noise = rng.standard_normal((counts[j], len(mean)))
                values.append(mean + noise @ _root(covariance).T)
    return [np.concatenate(values) for values in found]


def _root(covariance: Array) -> Array:
    """Return R with R R' the covariance (m, m), but for what is rounding in it; it may change."""
    covariance.flat[:: len(covariance) + 1] += _BLUR * max(float(covariance.diagonal().max()), 0.0)
    try:
        return np.tril(factorise(np.array(covariance, order="F")))
    except NumericalError:  # far smaller than the prior it came from: rounding made it indefinite
        values, vectors = np.linalg.eigh(covariance)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def mean_success_probability(draws: FunctionMoments, X: Array) -> Array:
    """Probability of target 1, averaged over the latent value and over draws (eq. 9)."""
    count, total = np.zeros(len(X)), np.zeros(len(X))
    for weight, rows, mean, variance in weighted_moments(draws, X):
        count[rows] += weight
        total[rows] += weight * expected_logistic(mean, variance)
    return total / count


def latent_moments(draws: FunctionMoments, X: Array) -> tuple[Array, Array]:
    """Posterior mean and variance of f: mean of variances plus variance of means."""
    count = np.zeros(len(X))
    mean, spread, variance = np.zeros(len(X)), np.zeros(len(X)), np.zeros(len(X))
    for weight, rows, m, v in weighted_moments(draws, X):
        count[rows] += weight
        step = m - mean[rows]
        mean[rows] += step * weight / count[rows]
        spread[rows] += weight * step * (m - mean[rows])
        variance[rows] += weight * v
    return mean, (variance + spread) / count


def weighted_moments(
    draws: FunctionMoments, X: Array
) -> Iterator[tuple[float, slice, Array, Array]]:
    """Yield (weight of the draw, rows, mean, variance) of f at rows of X, by draw and block."""
    draw = -1
    for rows, mean, variance in draws.moments(X):
        draw += rows.start == 0
        weight = 1.0 if draws.weights is None else float(draws.weights[draw])
        yield weight, rows, mean, variance


# Compiling the loops that Gaussian processes use, before the user waits for them unawares.


def compile_loops(tell: Callable[[str], None]) -> None:
    """Compile or do nothing; ``tell`` is told a line first if there is something to compile."""
    compile_first(tell, compile_now)


def compile_now() -> None:
    """Solve a tiny problem with every loop of the method."""
    X, y = np.arange(12.0).reshape(6, 2), np.array([0.0, 1.0, 0.0, 1.0, 1.0, 0.0])
    for kernel in (SquaredExponentialARD(), MaternARD(2.5), SpectralMixture(1)):
        prior = kernel_prior(2, kernel=kernel)
        model = HyperparameterPosterior(X, y, kernel, prior)
        model.evaluate(prior.mean)
        kernel.cross_gram(prior.mean, X[:2], X)
