"""Laplace's approximation for a binary GP classifier: mode, log evidence and its adjoint.

**Target.** Psi(f) = log p(y | f) + log p(f) has its maximum at f = K a with a = y - pi(f)
(eqs. 5 to 7); with W = diag(pi (1 - pi)) and B = I + W^.5 K W^.5 = L L' there (eq. 10)

    log Z = -a'f/2 + sum( y f - log(1 + e^f) ) - sum log L_ii .

**Symbols** (paper -> code): y -> f, t -> y, pi -> proba, Q -> K.

**Deviations.** The paper stops Newton's method when W changes by 1e-4, and solves its systems by
conjugate gradients from the last solution; the energy of a trajectory must be a function of the
hyperparameters alone, so every mode is sought from f = 0 by direct solves, to rounding (to 1e-6 of
a beyond a signal variance of e^12). At f = 0 the curvature is largest: its factor serves the first
steps, which are accelerated, and a new factor is taken only when they slow down.

**Cost.** Two to four Cholesky factors, and one inverse for the adjoint: O(n^3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer.errors import NumericalError
from mercer.gp.hyperparameters import is_within_range, named_parameters, no_density, paper_start
from mercer.gp.loops import chord_steps, evidence_adjoint, weighted_identity_plus
from mercer.kernels.base import Kernel
from mercer.likelihoods.logistic import log_likelihood, success_probability
from mercer.numerics.cholesky import (
    Workspace,
    factorise,
    invert_factored,
    solve_lower,
    symmetric_product,
)
from mercer.numerics.logistic_normal import NormalPrior, expected_logistic
from mercer.sampling.sampler import Point

__all__ = [
    "FunctionMoments",
    "HyperparameterPosterior",
    "LaplaceFit",
    "LatentDraws",
    "Recorder",
    "curvature_factor",
    "damped_correction",
    "fit_laplace",
    "latent_moments",
    "mean_success_probability",
    "posterior_variance",
]


Array = NDArray[np.float64]

# The last factor is taken once f is known to this; its own first step then leaves an error of the
# order of the square, and B^-1 differs from that at the mode by no more than this.
_LAST_FACTOR = 1e-8
_POLISHED = 1e-7  # a step below this, with that factor, ends within rounding of the mode
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


def fit_laplace(K: Array, y: Array, scratch: Array | None = None) -> LaplaceFit:
    """Find the mode for the Gram matrix K and targets y in {0, 1}, and the log evidence.

    ``scratch``, of the shape of K, is overwritten where given: it becomes the adjoint.

    Raises
    ------
    NumericalError
        If no mode is found: K holds numbers too large for double precision.
    """
    if not np.isfinite(K[0, 0]):
        raise NumericalError("the Gram matrix is not finite")
    B = np.empty_like(K) if scratch is None else scratch
    a, f, L, root_weights = _find_mode(K, y, B.T)
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


def curvature_factor(K: Array, a: Array, y: Array, scratch: Array) -> tuple[Array, Array]:
    """Factor L of B at the mode whose dual coefficients are ``a``, and W^.5: for predictions.

    ``scratch``, of the shape of K, is overwritten and holds L.
    """
    proba = y - a
    root_weights = np.sqrt(np.maximum(proba * (1.0 - proba), 0.0))
    return _factor(K, root_weights, scratch.T), root_weights


def _find_mode(K: Array, y: Array, B: Array) -> tuple[Array, Array, Array, Array]:
    """Eqs. (5) to (7): (a, f, L, W^.5), L factorised within 1e-8 of the mode, in place of B."""
    n = len(y)
    a, f = np.zeros(n), np.zeros(n)
    root_weights = np.full(n, 0.5)
    for _ in range(_MAX_FACTORS):
        L = _factor(K, root_weights, B)
        error, _ = chord_steps(K, L.T, root_weights, y, a, f, _LAST_FACTOR, _MAX_STEPS, _MEMORY)
        if not np.isfinite(error):
            break
        proba = success_probability(f)
        root_weights = np.sqrt(proba * (1.0 - proba))
        if error < _LAST_FACTOR * max(1.0, np.abs(f).max()):
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

    def evaluate(self, theta: Array) -> Point:
        """Log density, gradient and dual coefficients at theta.

        Where the evidence cannot be computed the log density is -inf, so that no sampler goes
        there; that is so only for hyperparameters beyond e^40 or of no meaning in double precision.
        """
        n = len(self.y)
        if not is_within_range(theta):
            return _outside(theta, n)
        try:
            K = self.kernel.gram(theta, self.X, out=self.workspace.take("gram", n))
            fit = fit_laplace(K, self.y, scratch=self.workspace.take("factor", n))
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
    mean_coef : ndarray of shape (n_total, n)
        Coefficients of the predictive mean: ``dual_coef``, or that plus its correction.
    """

    X: Array
    y: Array
    kernel: Kernel
    theta: Array
    dual_coef: Array
    mean_coef: Array

    def moments(self, X: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Yield (rows, mean, variance) of f at rows of X, for every draw and block.

        Notes
        -----
        Mean k'(a + t q), variance k** - |L^-1 W^.5 k|^2: k'R k with R = W^.5 B^-1 W^.5, which is
        safe where W vanishes. The paper's mean is k'a. One BLAS thread, so that the bits do not
        depend on the machine's load.
        """
        with threadpool_limits(limits=1, user_api="blas"):
            yield from self._moments(X)

    def _moments(self, X: Array) -> Iterator[tuple[slice, Array, Array]]:
        n = len(self.y)
        scratch = Workspace()
        for theta, a, mean_coef in zip(self.theta, self.dual_coef, self.mean_coef, strict=True):
            K = self.kernel.gram(theta, self.X, out=scratch.take("gram", n))
            L, root_weights = curvature_factor(K, a, self.y, scratch.take("factor", n))
            for begin in range(0, len(X), _BLOCK):
                rows = slice(begin, begin + _BLOCK)
                cross = self.kernel.cross_gram(theta, X[rows], self.X)
                V = solve_lower(L, (cross * root_weights).T)
                explained = np.einsum("ij,ij->j", V, V)
                variance = self.kernel.diagonal(theta, X[rows]) - explained
                yield rows, cross @ mean_coef, np.maximum(variance, 0.0)


def mean_success_probability(draws: FunctionMoments, X: Array) -> Array:
    """Probability of target 1, averaged over the latent value and over draws (eq. 9)."""
    count, total = np.zeros(len(X)), np.zeros(len(X))
    for rows, mean, variance in draws.moments(X):
        count[rows] += 1.0
        total[rows] += expected_logistic(mean, variance)
    return total / count


def latent_moments(draws: FunctionMoments, X: Array) -> tuple[Array, Array]:
    """Posterior mean and variance of f: mean of variances plus variance of means."""
    count = np.zeros(len(X))
    mean, spread, variance = np.zeros(len(X)), np.zeros(len(X)), np.zeros(len(X))
    for rows, m, v in draws.moments(X):
        count[rows] += 1.0
        step = m - mean[rows]
        mean[rows] += step / count[rows]
        spread[rows] += step * (m - mean[rows])
        variance[rows] += v
    return mean, (variance + spread) / count
