"""GP regression: exact evidence under Gaussian noise, its hyperposterior, predictions.

The exact evidence of targets under a Gaussian process with Gaussian noise, and its adjoint.

**Target.** y ~ N(0, C), C = K + v 11' + s2 I = L L', where v is the prior variance of an intercept
that is integrated out:

    log p(y) = -y'a/2 - sum log L_ii - n/2 log 2 pi,    a = C^-1 y,
    d log p(y) = sum A_ij dC_ij,    A = (a a' - C^-1)/2 .

**Cost.** One Cholesky factor and one inverse: O(n^3).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack
from scipy.optimize import minimize_scalar

from mercer.errors import NumericalError
from mercer.estimation.model_file import require
from mercer.gp.hyperparameters import (
    LARGEST_LOG,
    NormalPrior,
    is_within_range,
    named_parameters,
    no_density,
    paper_start,
    places_of_weights,
    prior_start,
    stacked_parameters,
    starts_of_few,
    starts_of_one,
)
from mercer.gp.loops import evidence_adjoint
from mercer.kernels.base import Kernel
from mercer.numerics.cholesky import (
    FactorMemory,
    Workspace,
    add_nugget,
    factorise,
    invert_factored,
    one_blas_thread,
    solve_factored,
    solve_lower,
)
from mercer.posterior.diagnostics import flat_weights
from mercer.posterior.draws import Draws
from mercer.posterior.schema import Array as Rule
from mercer.posterior.schema import check_arrays
from mercer.sampling.sampler import Point

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ExactFit:
    """Evidence for one Gram matrix, with what its gradient and predictions need.

    ``log_evidence`` is in nats; ``dual_coef`` (n,) is a = C^-1 y: the mean at a new row is (k + v
    1)'a; ``adjoint`` (n, n) is the symmetric matrix A with d log p(y) = sum A_ij dC_ij.
    """

    log_evidence: float
    dual_coef: Array
    adjoint: Array


def fit_exact(
    K: Array,
    y: Array,
    noise_variance: float | Array,
    scratch: Array,
    intercept_variance: float = 0,
    inverse: Array | None = None,
) -> ExactFit:
    """Compute the evidence of targets y (n,) for the Gram matrix K (n, n).

    The variance of the noise is that of all rows or of each, (n,). ``scratch``, of the shape of K,
    becomes the adjoint, and ``inverse`` a triangle of C^-1. A `NumericalError` if C is not positive
    definite in double precision.
    """
    n = len(y)
    L = noisy_factor(K, noise_variance, scratch, intercept_variance)
    a = solve_factored(L, y)
    log_evidence = factored_evidence(L, y, a)
    adjoint = invert_factored(L).T
    if inverse is not None:
        inverse[:] = adjoint
    evidence_adjoint(adjoint, np.ones(n), a, np.zeros(n))
    return ExactFit(log_evidence, a, adjoint)


def factored_evidence(L: Array, y: Array, a: Array) -> float:
    """Log evidence of targets y (n,), in nats, from the factor L of C and a = C^-1 y."""
    return float(-0.5 * (y @ a) - np.log(L.diagonal()).sum() - 0.5 * len(y) * math.log(2 * math.pi))


def noisy_factor(
    K: Array, noise_variance: float | Array, scratch: Array, intercept_variance: float = 0.0
) -> Array:
    """Factor L of K + v 11' + s2 I, Fortran-ordered, in the memory of ``scratch``.

    Of K only the upper triangle counts, and it may be ``scratch`` itself. s2 is one number, or one
    for each row. A `NumericalError` if it is not positive definite in double precision.
    """
    np.add(K, intercept_variance, out=scratch)
    scratch.ravel()[:: len(K) + 1] += noise_variance
    return factorise(scratch.T)


_HALVED = 400  # rows from which half a Gram matrix takes less time than the whole one
_BLOCKS = 4


def fill_upper(C: Array, kernel: Kernel, theta: Array, X: Array) -> None:
    """Overwrite the upper triangle of C (n, n), at least, by covariances of the rows of X.

    That is all a factor needs, and in blocks of rows: ten sixteenths of the matrix.
    """
    n = len(X)
    if n < _HALVED:
        kernel.gram(theta, X, out=C)
        return
    for begin, end in pairwise(n * k // _BLOCKS for k in range(_BLOCKS + 1)):
        C[begin:end, begin:] = kernel.cross_gram(theta, X[begin:end], X[begin:])


@dataclass(frozen=True, eq=False)
class NoiseOfRows:
    """Rows that count w_i times (2: the row twice), with noise of variance c_i s2.

    ``weights`` (n,) are w_i and ``variances`` (n,) c_i, all above 0. Rows that count once may have
    variance that is ``added`` to that of the noise, (n,).

    A normal density of variance c_i s2 to the power w_i is one of variance c_i s2 / w_i, times

        (2 pi c_i s2)^-((w_i - 1) / 2) w_i^(-1/2) .
    """

    weights: Array
    variances: Array
    added: Array | None = None

    @cached_property
    def scales(self) -> Array:
        """c_i / w_i, shape (n,)."""
        return self.variances / self.weights

    @cached_property
    def n_more(self) -> float:
        """By how much the rows count more than once each: sum of w_i - 1."""
        return float((self.weights - 1.0).sum())

    def at(self, rows: NDArray[np.int64]) -> NoiseOfRows:
        """Those of some of the rows."""
        added = None if self.added is None else self.added[rows]
        return NoiseOfRows(self.weights[rows], self.variances[rows], added)

    def log_factor(self, noise_variance: float) -> float:
        """Log of the product of the factors above, s2 the variance of the noise; nats."""
        each = (self.weights - 1.0) * np.log(2.0 * np.pi * self.variances) + np.log(self.weights)
        return -0.5 * float(each.sum()) - 0.5 * self.n_more * math.log(noise_variance)


class NumberRows(NamedTuple):
    """Rows X (n, d), standardised, targets y (n,), and how rows count; None: all alike."""

    X: Array
    y: Array
    noise: NoiseOfRows | None

    def at(self, rows: NDArray[np.int64]) -> NumberRows:
        """Some of the rows."""
        return NumberRows(self.X[rows], self.y[rows], self.noise and self.noise.at(rows))


# The posterior of a GP regressor's hyperparameters: exact evidence times a normal prior.

# The variance of the noise is never below this times 1 + v0, v0 the variance of the function
# averaged over the rows: targets without any noise, or all the same, then have a proper posterior.
# The rounding of a factor of K + s2 I is about 1e-16 n v0, at 5000 rows a thousandth of it.
NOISE_FLOOR = 1e-9

# Of searches for the maximum. Of all log weights, from one start to the next: length scales down to
# a fiftieth.
_SHIFTS = (0.0, 3.0, 5.5, 8.0)
_NOISE_START, _LITTLE_NOISE = -2.0, -16.0  # that of targets that repeat


def whole_noise_variance(signal_variance: Array, log_noise_variance: Array) -> Array:
    """Variance of the noise with its floor: e^t + 1e-9 (1 + v0); arrays of the same shape."""
    return np.asarray(np.exp(log_noise_variance) + least_noise_variance(signal_variance))


def least_noise_variance(signal_variance: Array) -> Array:
    """The floor alone: 1e-9 (1 + v0)."""
    return np.asarray(NOISE_FLOOR * (1.0 + signal_variance))


@dataclass(frozen=True)
class RegressionPosterior:
    """log p(theta | y) up to a constant: log parameters of the kernel[, of the noise's variance].

    ``X`` (n, d) and ``y`` (n,) are standardised, and the prior is over theta (p,).
    ``log_noise_variance`` is None where it is the last of theta; the ``intercept_variance`` is that
    of the prior of an intercept, integrated out, 0 for none; ``noise_of_rows`` is there where rows
    count differently, or their noise differs. `evaluate` leaves C^-1 in ``inverse``, if given.
    """

    X: Array
    y: Array
    kernel: Kernel
    prior: NormalPrior
    is_paper: bool = False
    log_noise_variance: float | None = None
    intercept_variance: float = 0.0
    noise_of_rows: NoiseOfRows | None = None
    inverse: Array | None = field(default=None, compare=False, repr=False)
    workspace: Workspace = field(default_factory=Workspace, compare=False, repr=False)

    def __post_init__(self) -> None:
        wanted = self.kernel.n_parameters(self.X.shape[1]) + (self.log_noise_variance is None)
        if self.prior.mean.shape != (wanted,):
            raise ValueError(f"a prior of {len(self.prior.mean)} parameters for {wanted}")

    @cached_property
    def starts(self) -> tuple[Array, ...]:
        """Where searches for the maximum begin.

        The first is the paper's, from which its chain goes; with the wide prior its weights are the
        prior's means, so that with many inputs rows are not all alone. The others have shorter
        length scales: from a long one the search takes a fast function for noise. Of a sum each
        term looks at each input alone once.
        """
        d, kernel, rows = self.X.shape[1], self.kernel, self.noise_of_rows
        own = prior_start(d, kernel, self.prior)
        start = paper_start(d, kernel) if self.is_paper else own
        starts = [start + shift * places_of_weights(kernel, d) for shift in _SHIFTS]
        starts += [] if self.is_paper else starts_of_one(kernel, d, own)
        starts += starts_of_few(self.X, self.y[np.newaxis, np.newaxis], kernel, own)
        if self.log_noise_variance is None:
            starts = [np.append(each, _NOISE_START) for each in starts]
            if rows is not None and rows.n_more > 0.0:
                starts.append(np.append(starts[1][:-1], _LITTLE_NOISE))
        return tuple(starts)

    def evaluate(self, theta: Array, near: Array | None = None) -> Point:
        """Log density, gradient and dual coefficients at theta; ``near`` changes nothing.

        Where the evidence cannot be computed the log density is -inf, so that no sampler goes
        there; that is so only for hyperparameters beyond e^40 or of no meaning in double precision.
        """
        n = len(self.y)
        if not is_within_range(theta):
            return no_density(theta, self._extra(np.zeros(n), 0.0, 0.0))
        (kernel_theta, log_noise), noise = self.split(theta), self.noise_variance(theta)
        memory = self.workspace
        K, gradient_of = self.kernel.gram_and_gradient(
            kernel_theta, self.X, memory.take("gram", n), memory.take
        )
        try:
            scratch = memory.take("factor", n)
            variances, v = self.noise_at(noise), self.intercept_variance
            fit = fit_exact(K, self.y, variances, scratch, v, self.inverse)
        except NumericalError:
            return no_density(theta, self._extra(np.zeros(n), 0.0, 0.0))
        log_evidence, each = fit.log_evidence, self.noise_of_rows
        if each is None:
            trace = float(fit.adjoint.trace())
        else:
            log_evidence += each.log_factor(noise)
            trace = float(fit.adjoint.diagonal() @ each.scales) - 0.5 * each.n_more / noise
        fit.adjoint.ravel()[:: n + 1] += NOISE_FLOOR * trace / n  # the floor moves with the kernel
        gradient = np.zeros_like(theta)
        gradient[: len(kernel_theta)] = gradient_of(fit.adjoint)
        if self.log_noise_variance is None:
            gradient[-1] = np.exp(log_noise) * trace
        return Point(
            position=theta,
            log_density=log_evidence + self.prior.log_density(theta),
            gradient=gradient + self.prior.gradient(theta),
            extra=self._extra(fit.dual_coef, noise, log_evidence),
        )

    def values(
        self, point: Point, slopes: Array | None, rows: NDArray[np.int64]
    ) -> RegressionValues:
        """Return what evaluates the log density alone."""
        return RegressionValues(self, rows)

    def factored(
        self, theta: Array, K: Array | None = None
    ) -> tuple[float, Array, Array, float] | None:
        """Return s2, the factor of C in scratch memory, C^-1 y, and the log evidence; or None.

        K is the Gram matrix, where it is known.
        """
        if not is_within_range(theta):
            return None
        memory, n, noise = self.workspace, len(self.y), self.noise_variance(theta)
        C = memory.take("factor", n)
        if K is None:
            K = C
            fill_upper(K, self.kernel, self.split(theta)[0], self.X)
        try:
            L = noisy_factor(K, self.noise_at(noise), C, self.intercept_variance)
        except NumericalError:
            return None
        a = solve_factored(L, self.y)
        return noise, L, a, factored_evidence(L, self.y, a)

    def parameters(self, positions: Array) -> dict[str, Array]:
        """Split positions (.., p) into named log parameters."""
        n_kernel, known = self.kernel.n_parameters(self.X.shape[1]), self.log_noise_variance
        noise = positions[..., -1] if known is None else np.full(positions.shape[:-1], known)
        named = named_parameters(self.kernel, self.X.shape[1], positions[..., :n_kernel])
        return {**named, "log_noise_variance": np.asarray(noise)}

    def positions(self, draws: Draws) -> Array:
        """Put the positions (S, p) of draws together again: the inverse of `parameters`."""
        theta = stacked_parameters(self.kernel, {k: draws.flat(k) for k in draws.variables})
        if self.log_noise_variance is not None:
            return theta
        return np.column_stack([theta, draws.flat("log_noise_variance")])

    def predicted(self, draws: Mapping[str, Array]) -> Array:
        """Return the means of the function of draws at the monitored rows (..., k)."""
        return draws["latent"]

    def recorded(self, point: Point, rows: NDArray[np.int64]) -> Mapping[str, Array]:
        """Return log parameters, log density and evidence, function and dual coefficients."""
        return {
            **self.parameters(point.position),
            "log_density": np.asarray(point.log_density),
            "log_evidence": point.extra["log_evidence"],
            "latent": point.extra["f"][rows],
            "dual_coef": point.extra["dual_coef"],
        }

    def split(self, theta: Array) -> tuple[Array, float]:
        """Return the kernel's log parameters and the log variance of the noise."""
        if self.log_noise_variance is None:
            return theta[:-1], float(theta[-1])
        return theta, self.log_noise_variance

    def noise_variance(self, theta: Array) -> float:
        """The variance of the noise, with its floor."""
        log_noise = np.asarray(self.split(theta)[1])
        return float(whole_noise_variance(self._signal_variance(theta), log_noise))

    def noise_floor(self, theta: Array) -> float:
        """The least variance of the noise, whatever its parameter."""
        return float(least_noise_variance(self._signal_variance(theta)))

    def _signal_variance(self, theta: Array) -> Array:
        return np.asarray(self.kernel.diagonal(self.split(theta)[0], self.X).mean())

    def noise_at(self, noise_variance: float) -> float | Array:
        """The variance of the noise of all rows, or (n,) of each, that of one target given."""
        rows = self.noise_of_rows
        if rows is None:
            return noise_variance
        variances = noise_variance * rows.scales
        return variances if rows.added is None else variances + rows.added

    def _extra(self, dual_coef: Array, noise: float, log_evidence: float) -> dict[str, Array]:
        return {
            "dual_coef": dual_coef,
            "f": self.y - self.noise_at(noise) * dual_coef,  # (K + v 11') a = y - s2 a
            "log_evidence": np.asarray(log_evidence),
        }


@dataclass(frozen=True)
class RegressionValues:
    """The log density of `RegressionPosterior` without its gradient: one Cholesky factor."""

    model: RegressionPosterior
    rows: NDArray[np.int64]

    def __call__(self, theta: Array) -> tuple[float, Mapping[str, Array]]:
        """Return the log density, and what a draw records beside its parameters."""
        model, found = self.model, self.model.factored(theta)
        if found is None:
            return -np.inf, self._recorded(np.zeros(len(model.y)), 0.0, 0.0)
        noise, _, a, log_evidence = found
        if model.noise_of_rows is not None:
            log_evidence += model.noise_of_rows.log_factor(noise)
        return log_evidence + model.prior.log_density(theta), self._recorded(a, noise, log_evidence)

    def _recorded(self, a: Array, noise: float, log_evidence: float) -> dict[str, Array]:
        latent = (self.model.y - self.model.noise_at(noise) * a)[self.rows]
        return {"log_evidence": np.asarray(log_evidence), "latent": latent, "dual_coef": a}


# Predictions of a GP regressor: one draw after the other, blocks of rows within.
#
# Given a draw of the hyperparameters the function at new rows is normal: mean k'a, variance
# k** - |L^-1 k|^2 with L L' = K + s2 I, every covariance with the prior variance of the intercept
# added. The mean is averaged over all draws, whose a are kept; of the spread, which takes a
# factorisation for each draw, over 256 draws at most, evenly spaced.
#
# Cost, n training and m new rows: the mean O(n m) a draw, the spread O(n^3 + n^2 m) a draw. Memory
# is two n x n arrays and a block of rows, however many draws there are.

_BLOCK = 512  # rows predicted at a time
_SPREAD_DRAWS = 256


@dataclass(frozen=True, eq=False)
class FunctionDraws:
    """Draws of the law of the function, on standardised inputs and targets.

    Of training inputs ``X`` (n, d), with log parameters ``theta`` (S, p), ``noise_variance`` (S,),
    its floor included, and ``dual_coef`` (S, n), a row a draw. The ``intercept_variance`` is that
    of the prior of the intercept, which is part of the function, 0 for none; ``weights`` (S,) have
    sum 1, or are None where all count alike.

    ``noise_of_rows`` is of the training rows; new targets have the noise of ``noise_variance``, or
    of ``kinds_of_noise``, variances and shares (S, K) each. Training targets have
    ``added_variance`` (S, n) beside the noise, as their kinds of errors say.
    """

    X: Array
    kernel: Kernel
    theta: Array
    noise_variance: Array
    dual_coef: Array
    intercept_variance: float = 0.0
    weights: Array | None = None
    noise_of_rows: NoiseOfRows | None = None
    added_variance: Array | None = None
    kinds_of_noise: tuple[Array, Array] | None = None
    memory: FactorMemory = field(default_factory=FactorMemory, compare=False, repr=False)

    @cached_property
    def of_spread(self) -> NDArray[np.int64]:
        """Positions of the draws that the spread is averaged over: all that have weights."""
        n_total = len(self.theta)
        if self.weights is not None:
            return np.arange(n_total)
        return np.unique(np.linspace(0, n_total - 1, min(n_total, _SPREAD_DRAWS)).astype(np.int64))

    def chosen(self, positions: NDArray[np.int64], weights: Array) -> FunctionDraws:
        """Return some of the draws, with weights of their own."""
        added, kinds = self.added_variance, self.kinds_of_noise
        return replace(
            self,
            theta=self.theta[positions],
            noise_variance=self.noise_variance[positions],
            dual_coef=self.dual_coef[positions],
            weights=weights,
            added_variance=None if added is None else added[positions],
            kinds_of_noise=None if kinds is None else (kinds[0][positions], kinds[1][positions]),
            memory=FactorMemory(),
        )

    @property
    def noise_of_targets(self) -> tuple[Array, Array]:
        """Variances of each kind of noise of new targets, and their shares, both (S, K)."""
        noise = self.noise_variance[:, np.newaxis]
        return self.kinds_of_noise or (noise, np.ones_like(noise))

    @property
    def target_variance(self) -> Array:
        """Variance of new targets around the function of each draw, (S,)."""
        return np.asarray(np.multiply(*self.noise_of_targets).sum(axis=1))

    def fitted(self, y: Array) -> Array:
        """Mean of the function at the training rows by each draw, (S, n): (K + v 11') a."""
        noise = self.noise_variance[:, np.newaxis]
        if self.noise_of_rows is not None:
            noise = noise * self.noise_of_rows.scales
        if self.added_variance is not None:
            noise = noise + self.added_variance
        return np.asarray(y - noise * self.dual_coef)

    def expected(self, X: Array) -> Array:
        """Posterior mean of the function at rows X (m, d), shape (m,)."""
        total = np.zeros(len(X))
        weights = np.ones(len(self.theta)) if self.weights is None else self.weights
        with one_blas_thread():
            for theta, a, weight in zip(self.theta, self.dual_coef, weights, strict=True):
                for rows in _blocks(len(X)):
                    total[rows] += weight * (self._cross(theta, X[rows]) @ a)
        return np.asarray(total / weights.sum())

    def means(self, X: Array) -> Array:
        """Mean of the function at rows X (m, d) for every draw, shape (S, m)."""
        with one_blas_thread():
            each = zip(self.theta, self.dual_coef, strict=True)
            return np.stack([self._cross(theta, X) @ a for theta, a in each])

    def moments(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the function at rows X (m, d), both (m, C), for C draws."""
        chosen = self.of_spread
        means, variances = np.empty((len(chosen), len(X))), np.empty((len(chosen), len(X)))
        scratch = Workspace()
        with one_blas_thread():
            for c, i in enumerate(chosen):
                theta = self.theta[i]
                factors = self.memory.get(
                    int(i),
                    len(chosen),
                    lambda i=i: self._factors(i, scratch),  # type: ignore[misc]
                )
                for rows in _blocks(len(X)):
                    cross = self._cross(theta, X[rows])
                    means[c, rows] = cross @ self.dual_coef[i]
                    prior = self.kernel.diagonal(theta, X[rows]) + self.intercept_variance
                    V, *W = (np.einsum("ij,ij->j", v, v) for v in _whitened(factors, cross))
                    variances[c, rows] = prior - (V - sum(W))
        np.maximum(variances, 0.0, out=variances)
        return np.ascontiguousarray(means.T), np.ascontiguousarray(variances.T)

    def sample(self, rng: np.random.Generator, X: Array, n_draws: int) -> Array:
        """Draw new targets at rows X (m, d) from one function a draw, shape (n_draws, m)."""
        chosen = rng.choice(len(self.theta), size=n_draws, p=self.weights)
        noise, drawn = rng.standard_normal((n_draws, len(X))), np.empty((n_draws, len(X)))
        scratch = Workspace()
        with one_blas_thread():
            for i in np.unique(chosen):
                mean, L = self._new_targets(i, X, scratch)
                mine = chosen == i
                drawn[mine] = mean + noise[mine] @ L.T
        if self.kinds_of_noise is not None:  # of which the factors have the narrowest
            from mercer.posterior.predictive import draw_kinds

            variances, shares = (each[chosen] for each in self.kinds_of_noise)
            each = np.take_along_axis(variances, draw_kinds(rng, shares, len(X)), axis=1)
            more = each - self.noise_variance[chosen, np.newaxis]
            drawn += np.sqrt(more) * rng.standard_normal(drawn.shape)
        return drawn

    def joint(self, i: int, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and covariance (m, m) of the function at rows X (m, d), by draw ``i``."""
        scratch, n = Workspace(), len(self.theta)
        factors = self.memory.get(i, n, lambda: self._factors(i, scratch))
        cross = self._cross(self.theta[i], X)
        prior = self.kernel.gram(self.theta[i], X) + self.intercept_variance
        V, *W = _whitened(factors, cross)
        return cross @ self.dual_coef[i], prior - (V.T @ V - sum(w.T @ w for w in W))

    def _new_targets(self, i: int, X: Array, scratch: Workspace) -> tuple[Array, Array]:
        """Mean (m,) of new targets by draw ``i``, and the lower factor of their covariance.

        The joint covariance of old and new targets is factorised: with L22 the last block of its
        factor, L22 L22' is the covariance of the new ones given the old. Cost O((n + m)^3).
        """
        n, together = len(self.X), np.vstack([self.X, X])
        K = self.kernel.gram(self.theta[i], together, out=scratch.take("gram", len(together)))
        mean = (K[n:, :n] + self.intercept_variance) @ self.dual_coef[i]
        return mean, np.tril(self._factor(i, K, scratch)[n:, n:])

    def _cross(self, theta: Array, X: Array) -> Array:
        """Covariance of the function at rows X (m, d) and at the training rows, (m, n)."""
        cross = self.kernel.cross_gram(theta, X, self.X)
        cross += self.intercept_variance
        return cross

    def _factors(self, i: int, scratch: Workspace) -> tuple[Array, ...]:
        """Return what the spread of a draw needs: L, or L and L_B."""
        K = self.kernel.gram(self.theta[i], self.X, out=scratch.take("gram", len(self.X)))
        return (self._factor(i, K, scratch),)

    def _factor(self, i: int, K: Array, scratch: Workspace) -> Array:
        room, noise = scratch.take("factor", len(K)), self.noise_variance[i]
        if self.noise_of_rows is not None:
            scales = np.ones(len(K))  # new rows come after those of training
            scales[: len(self.X)] = self.noise_of_rows.scales
            noise = noise * scales
        if self.added_variance is not None:
            noise = np.full(len(K), noise)
            noise[: len(self.X)] += self.added_variance[i]
        return noisy_factor(K, noise, room, self.intercept_variance)


def function_draws(
    draws: Draws,
    X: Array,
    kernel: Kernel,
    intercept_variance: float = 0.0,
    noise_of_rows: NoiseOfRows | None = None,
) -> FunctionDraws:
    """Take what predictions need out of the draws of a fit to standardised rows X (n, d)."""
    values = {name: draws.flat(name) for name in draws.variables}
    theta = stacked_parameters(kernel, values)
    signal = np.array([kernel.diagonal(each, X).mean() for each in theta])
    noise = whole_noise_variance(signal, values["log_noise_variance"])
    return FunctionDraws(
        X, kernel, theta, noise, draws.flat("dual_coef"), intercept_variance, flat_weights(draws),
        noise_of_rows,
    )  # fmt: skip


def _whitened(factors: tuple[Array, ...], cross: Array) -> Iterator[Array]:
    """Yield V = L^-1 k', and L_B^-1 V: V'V less its square is what the rows explain at new ones."""
    for L in factors:
        cross = solve_lower(L, cross.T if L is factors[0] else cross)
        yield cross


def _blocks(n: int) -> list[slice]:
    return [slice(begin, begin + _BLOCK) for begin in range(0, n, _BLOCK)]


# Functions given more rows than can be factorised: inducing points.
#
# Hyperparameters are learned from some of the rows. Given them the function is to know all rows, n;
# its values at m of them, the inducing points Z, carry what it learns (FITC [1]_, [2]_). With
# Kmm = K(Z, Z) + nugget = L L' and V = L^-1 K(Z, X) the prior of the function at the rows is
# N(0, V'V + R), where the diagonal R makes every variance that of the kernel, and
#
#     y ~ N(0, V'V + Lambda),   Lambda = kappa (R + noise),   B = I + V Lambda^-1 V' ,
#     mean at a new row      k'L^-T B^-1 V Lambda^-1 y ,
#     variance               k** - |L^-1 k|^2 + |L_B^-1 L^-1 k|^2 ,   B = L_B L_B' .
#
# Few rows say little of the noise, so all of them say its scale: kappa is that of the largest
# evidence given the draw, or 1 where the noise is known; a value tried takes a factor of B alone.
#
# A row that counts w times has Lambda_ii / w, as w rows would have together, R of each their own.
#
# With all rows for inducing points R is the nugget, and both are those of the exact process. An
# intercept is integrated out: its variance is part of every covariance.
#
# **Cost.** O(n m^2) for each draw of the hyperparameters, over blocks of rows; O(m^2) a new row;
# the rows are not needed any more. Memory: two matrices of m x m a draw.
#
# References
# ----------
# .. [1] E. Snelson and Z. Ghahramani, Sparse Gaussian processes using pseudo-inputs, NIPS 18, 2006.
# .. [2] J. Quinonero-Candela and C. E. Rasmussen, A unifying view of sparse approximate Gaussian
#    process regression, JMLR 6 (2005).

MOST_PREDICTING = 4  # draws of a kernel that predict: each is conditioned on all rows
_CONDITIONED = 1024  # rows at a time
FARTHEST_SCALE = 3.0  # log kappa
LARGEST = 1e100  # standardised values are within this: their squares are finite


@dataclass(frozen=True, eq=False)
class InducedDraws(FunctionDraws):
    """`FunctionDraws` of all rows: ``X`` (m, d) are the inducing points, ``dual_coef`` (S, m).

    ``factors`` (S, m (m + 1) / 2) are L_B of each draw, its columns one after the other from the
    diagonal down; ``scales`` (S,) are kappa, which ``noise_variance`` has in it.
    """

    factors: Array = field(default_factory=lambda: np.empty((0, 0)))
    scales: Array = field(default_factory=lambda: np.empty(0))

    def _new_targets(self, i: int, X: Array, scratch: Workspace) -> tuple[Array, Array]:
        cross = self._cross(self.theta[i], X)
        V, W = _whitened(self._factors(i, scratch), cross)
        C = self.kernel.gram(self.theta[i], X) + self.intercept_variance
        C += W.T @ W - V.T @ V
        C.flat[:: len(X) + 1] += self.noise_variance[i]
        add_nugget(C)
        return cross @ self.dual_coef[i], np.tril(factorise(C.T))

    def _factors(self, i: int, scratch: Workspace) -> tuple[Array, ...]:
        K = self.kernel.gram(self.theta[i], self.X, out=scratch.take("gram", len(self.X)))
        B, _ = lapack.dtpttr(len(K), self.factors[i], uplo="L")
        return _prior_factor(K, self.intercept_variance), B


def induced_draws(
    draws: FunctionDraws,
    Z: Array,
    X: Array,
    y: Array,
    *,
    is_scaled: bool = True,
    noise_of_rows: NoiseOfRows | None = None,
) -> InducedDraws:
    """Condition the function of each draw, of some rows, on all: X (n, d) and y (n,), standardised.

    Of ``draws`` hyperparameters and weights are taken; Z (m, d) are the inducing points. The
    variance of the noise is learned anew, up to its scale, where ``is_scaled``. A `NumericalError`
    if a matrix cannot be factorised in double precision.
    """
    found = []
    if noise_of_rows is None:
        noise_of_rows = NoiseOfRows(np.ones(len(y)), np.ones(len(y)))
    with one_blas_thread():
        for theta, noise in zip(draws.theta, draws.noise_variance, strict=True):
            coef, factor, scale = _condition(
                draws, theta, noise, noise_of_rows, Z, X, y, is_scaled=is_scaled
            )
            found.append((coef, lapack.dtrttp(factor, uplo="L")[0], scale))
    coefs, factors, scales = (np.stack(each) for each in zip(*found, strict=True))
    return with_inducing(draws, Z, coefs, factors, scales)


def with_inducing(
    draws: FunctionDraws, Z: Array, coef: Array, factors: Array, scales: Array
) -> InducedDraws:
    """Put what was learned of all rows beside the hyperparameters of draws."""
    return InducedDraws(
        Z, draws.kernel, draws.theta, draws.noise_variance * scales, coef,
        draws.intercept_variance, draws.weights, factors=factors, scales=scales,
    )  # fmt: skip


def _prior_factor(K: Array, intercept_variance: float) -> Array:
    K += intercept_variance
    add_nugget(K)
    return factorise(K.T)


def _condition(
    draws: FunctionDraws,
    theta: Array,
    noise: float,
    noise_of_rows: NoiseOfRows,
    Z: Array,
    X: Array,
    y: Array,
    *,
    is_scaled: bool,
) -> tuple[Array, Array, float]:
    """Return L^-T B^-1 V Lambda^-1 y, L_B in the lower triangle, and kappa."""
    m, v = len(Z), draws.intercept_variance
    weights, variances = noise_of_rows.weights, noise * noise_of_rows.variances
    L = _prior_factor(draws.kernel.gram(theta, Z), v)
    G, b, square = np.zeros((m, m), order="F"), np.zeros(m), 0.0
    for begin in range(0, len(X), _CONDITIONED):
        rows = slice(begin, begin + _CONDITIONED)
        V = solve_lower(L, (draws.kernel.cross_gram(theta, X[rows], Z) + v).T)
        spread = _left(draws.kernel.diagonal(theta, X[rows]) + v, V) + variances[rows]
        spread /= weights[rows]
        b += V @ (y[rows] / spread)
        square += float(y[rows] @ (y[rows] / spread))
        V /= np.sqrt(spread)
        G = blas.dsyrk(1.0, V, beta=1.0, c=G, lower=1, overwrite_c=1)

    def factor(scale: float) -> Array:
        B = G / scale
        B.ravel("K")[:: m + 1] += 1.0
        return factorise(B)

    def cost(log_scale: float) -> float:
        L_B, scale = factor(math.exp(log_scale)), math.exp(log_scale)
        explained = solve_lower(L_B, b) / scale
        whole = weights.sum() * log_scale + square / scale - explained @ explained
        return 0.5 * float(whole) + float(np.log(L_B.diagonal()).sum())

    scale = 1.0
    if is_scaled:
        options = {"xatol": 0.01, "maxiter": 20}
        found = minimize_scalar(
            cost, bounds=(-FARTHEST_SCALE, FARTHEST_SCALE), method="bounded", options=options
        )
        scale = math.exp(found.x)
    L_B = factor(scale)
    coef, _ = lapack.dtrtrs(L, solve_factored(L_B, b) / scale, lower=1, trans=1)
    return coef, L_B, scale


def _left(whole: Array, V: Array) -> Array:
    """Return what the inducing points leave of the prior variances of rows."""
    return np.asarray(np.maximum(whole - np.einsum("ij,ij->j", V, V), 0.0))


def restored_induced(
    draws: Sequence[FunctionDraws], arrays: Mapping[str, Array]
) -> tuple[InducedDraws, ...]:
    """Put the draws of each kernel together again, from what a file says of inducing points."""
    Z = arrays["inducing/rows"]
    d = draws[0].X.shape[1]
    check_arrays(arrays, {"inducing/rows": Rule(("1+", d), least=-LARGEST, most=LARGEST)}, {})
    m, restored = len(Z), []
    starts = np.concatenate([[0], np.cumsum(np.arange(m, 1, -1))])  # of the columns of a factor
    for i, each in enumerate(draws):
        count, begin = len(each.theta), f"inducing/{i}/"
        shapes = {"coef": (count, m), "factor": (count, m * (m + 1) // 2), "scale": (count,)}
        for name, shape in shapes.items():
            check_arrays(arrays, {begin + name: Rule(shape, least=-LARGEST, most=LARGEST)}, {})
        coef, factors, scales = (arrays[begin + name] for name in shapes)
        require(bool((factors[:, starts] >= 1.0 - 1e-6).all()), begin + "factor")  # B = I + ..
        is_near = np.abs(np.log(np.maximum(scales, 1e-9))) <= FARTHEST_SCALE
        require(bool(is_near.all()), begin + "scale")
        induced = with_inducing(each, Z, coef, factors, scales)
        if begin + "theta" in arrays:  # not in files of versions that left the draws in place
            at = {name: arrays[begin + name] for name in ("theta", "noise_variance")}
            log_parameter = Rule((count, each.theta.shape[1]), least=-LARGEST_LOG, most=LARGEST_LOG)
            variance = Rule((count,), least=0.0, most=LARGEST, is_open=True)
            check_arrays(at, {"theta": log_parameter, "noise_variance": variance}, {})
            induced = replace(induced, theta=at["theta"], noise_variance=at["noise_variance"])
        restored.append(induced)
    return tuple(restored)
