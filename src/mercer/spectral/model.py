"""BaNK's regression on Fourier features: evidence, ridge, laws of the noise, where chains start.

**Model** (section 2.2 of the paper, conjugate form). y = Phi beta + H gamma + noise, with

    beta | s2 ~ N(0, s2 / ridge I)        features, shape (2 M,)
    gamma | s2 ~ N(0, s2 Lambda_H^-1)     linear part: a nearly flat intercept, a precision for
                                          the inputs
    s2 ~ IG(a_0, b_0)

**Evidence**, eq. (11) with the constant it leaves out: Lambda_n = F'F + Lambda_0 for F = [Phi, H],
mu_n = Lambda_n^-1 F'y, a_n = a_0 + n / 2, b_n = b_0 + (y'y - y'F Lambda_n^-1 F'y) / 2,

    log p(y) = -n/2 log 2 pi + a_0 log b_0 - a_n log b_n + log Gamma(a_n) / Gamma(a_0)
               + log|Lambda_0| / 2 - log|Lambda_n| / 2

b_n comes from the last pivot of the Cholesky factor of [F, y]'[F, y] with Lambda_0 added: no
difference of large numbers.

**Several outputs.** Given W and Lambda_0 each column of Y (n, q) has a regression of its own, with
its own beta, gamma and s2: log evidences add. Lambda_n is that of all, and one factor is enough:
b_n of output k is half the sum of squares of row k in the last block of that of [F, Y]'[F, Y]. The
amplitude of each output is its own, s2 / ridge; its ratio to the noise is that of all.

**Deviation.** The paper prints a prior N(mu_beta, sigma I) for beta in one place and Lambda_0 = I/2
relative to the noise in another; only the second gives eq. (11).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack
from scipy.special import logsumexp, poch
from scipy.stats import t as student_t

from mercer.errors import NumericalError
from mercer.estimation.standardize import LeftOut
from mercer.features.device import Device
from mercer.features.products import fill_design
from mercer.likelihoods.label_noise import (
    LEAST_ERROR,
    N_KINDS,
    SIZES,
    WIDTHS,
    added_variances,
    draw_shares,
    log_kinds,
    log_shares,
    rate_of,
)
from mercer.numerics.cholesky import factorise
from mercer.posterior.positive_laws import LOGNORMAL, STUDENT, VARYING, WITH_ERRORS
from mercer.sampling.metropolis import slice_step
from mercer.spectral.loops import read_factor, select_lower, tridiagonal_evidence

if TYPE_CHECKING:
    from mercer.spectral.rows import Say, Weigh

# Where the kernel and the function of each draw are looked at, for the diagnostics.

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Probe:
    """Fixed lags (10, d), differences of standardised inputs, and rows (20, d)."""

    lags: Array
    rows: Array
    has_linear_part: bool

    def kernel(self, frequencies: Array) -> Array:
        """Kernel at the lags, shape (10,)."""
        return feature_kernel(frequencies, self.lags)

    def function(self, frequencies: Array, coef: Array) -> Array:
        """Function values at the rows, standardised, shape (20,) or (q, 20)."""
        return np.asarray(coef @ design(frequencies, self.rows, self.has_linear_part))


def feature_kernel(frequencies: Array, lags: Array) -> Array:
    """Return phi(x)'phi(x + t) = (1/M) sum_j cos(W_j't) at lags t (n, d): eq. (2), shape (n,)."""
    return np.asarray(np.cos(lags @ frequencies.T).mean(axis=1))


def design(frequencies: Array, X: Array, has_linear_part: bool) -> Array:
    """Features, intercept and inputs of rows X (b, d), as rows: shape (2 M + p, b)."""
    n_linear = 1 + X.shape[1] if has_linear_part else 0
    out = np.empty((2 * len(frequencies) + n_linear, len(X)))
    fill_design(has_linear_part, frequencies, X, out)
    return out


# Of the precision of the features' coefficients, given or drawn.
RIDGE_LIMITS = (1e-12, 1e8)


# So that the logarithm of a lifted ridge is not below that of the least by rounding.
_ABOVE = 1.0 + 1e-9


def lowest_ridge(total: float) -> float:
    """Return the least ridge that rounding leaves of products whose trace is ``total``.

    Features of n rows are collinear in double precision below about the rounding of a sum of
    their squares, which is n.
    """
    return max(RIDGE_LIMITS[0], 16.0 * float(np.finfo(float).eps) * total)


# Of the intercept, relative to the noise variance: targets are centred, so this is nearly flat.
_INTERCEPT_PRECISION = 1e-4


@dataclass(frozen=True)
class GammaPrior:
    """Gamma(shape, rate)."""

    shape: float
    rate: float


@dataclass(frozen=True)
class RegressionModel:
    """What is fixed of the regression, with p columns of H: intercept and inputs, or none.

    The noise variance has shape a_0 and rate b_0, in squared units of the standardised target.
    Gamma priors are those of the precisions of the features' coefficients, None keeping it as
    it is, and of the inputs'.
    """

    n_rows: int
    n_linear: int
    noise_shape: float
    noise_rate: float
    ridge_prior: GammaPrior | None
    linear_prior: GammaPrior
    n_outputs: int = 1
    weight: float | None = None  # of all rows, where they have weights: the trace of Phi'Phi

    @property
    def lowest_ridge(self) -> float:
        """Least ridge that rounding leaves of the products of features."""
        return lowest_ridge(self.n_rows if self.weight is None else self.weight)

    @property
    def posterior_shape(self) -> float:
        """a_n."""
        return self.noise_shape + 0.5 * self.n_rows

    def linear_precisions(self, linear_precision: float) -> Array:
        """Diagonal of Lambda_H, shape (p,)."""
        if self.n_linear == 0:
            return np.empty(0)
        return np.array([_INTERCEPT_PRECISION] + [linear_precision] * (self.n_linear - 1))

    def prior_precisions(self, n_features: int, ridge: float, linear_precision: float) -> Array:
        """Diagonal of Lambda_0, shape (2 M + p,)."""
        features = np.full(n_features, self.lifted(ridge))
        return np.concatenate([features, self.linear_precisions(linear_precision)])

    def lifted(self, ridge: float) -> float:
        """Return a ridge as it is given, or one that fewer rows taught at least `lowest_ridge`."""
        return ridge if self.ridge_prior is None else max(ridge, _ABOVE * self.lowest_ridge)

    def added(self, prior_precisions: Array) -> Array:
        """Return what the diagonal of [F, Y]'[F, Y] takes: Lambda_0, then 2 b_0 of each output."""
        return np.append(prior_precisions, np.full(self.n_outputs, 2.0 * self.noise_rate))

    def log_evidence(self, log_det_ratio: float, rate: float) -> float:
        """log p(y | W) of an output, in nats, from log|Lambda_n| - log|Lambda_0| and its b_n."""
        a0, an = self.noise_shape, self.posterior_shape
        constant = -0.5 * self.n_rows * math.log(2.0 * math.pi) + math.lgamma(an) - math.lgamma(a0)
        ratio = a0 * math.log(self.noise_rate) - an * math.log(rate) - 0.5 * log_det_ratio
        return float(constant + ratio)

    def evidence_of_factor(self, factor: Array, prior_precisions: Array) -> float:
        """Log evidence in nats of all outputs, from the factor of [F, Y]'[F, Y] with `added`."""
        return _rates_and_evidence(self, factor, prior_precisions)[1]


@dataclass(frozen=True, eq=False)
class Coefficients:
    """The law of the coefficients given frequencies and precisions; q outputs are a first axis."""

    mean: Array  # mu_n, (2 M + p,)
    factor: Array  # lower Cholesky factor of Lambda_n, Fortran-ordered
    rate: Any  # b_n: a float, or (q,)
    log_evidence: float  # nats

    def draw(self, rng: np.random.Generator, posterior_shape: float, n: int) -> tuple[Any, Array]:
        """Draw the noise variance and, given it, n deviations beta - mu_n, shape (n, 2 M + p)."""
        outputs = np.shape(self.rate)
        noise_variance = self.rate / rng.gamma(posterior_shape, size=outputs or None)
        z = rng.standard_normal((self.mean.shape[-1], n * math.prod(outputs)))
        deviations = self.deviations(z).T.reshape(*outputs, n, -1)
        return noise_variance, np.sqrt(noise_variance)[..., np.newaxis, np.newaxis] * deviations

    def deviations(self, z: Array) -> Array:
        """Turn standard normals (2 M + p, k) into draws of beta - mu_n for s2 = 1."""
        deviations, _ = lapack.dtrtrs(self.factor, z, lower=1, trans=1)
        return np.asarray(deviations)


def coefficients(
    model: RegressionModel, gram: Array, prior_precisions: Array, device: Device | None = None
) -> Coefficients:
    """Solve the regression from [F, y]'[F, y]; a `NumericalError` where F is collinear."""
    m = len(prior_precisions)
    factor = factor_of(gram, model.added(prior_precisions), device)
    inner, solved = np.asfortranarray(factor[:m, :m]), factor[m:, :m].T
    mean, _ = lapack.dtrtrs(inner, solved, lower=1, trans=1)
    rates, evidence = _rates_and_evidence(model, factor, prior_precisions)
    if model.n_outputs == 1:
        return Coefficients(np.asarray(mean)[:, 0], inner, rates[0], evidence)
    return Coefficients(np.ascontiguousarray(mean.T), inner, np.array(rates), evidence)


class Evidence(Protocol):
    """What makes an evidence of the products of a regression, coefficients integrated out."""

    def added(self, prior_precisions: Array) -> Array:
        """Return what the diagonal of the products takes."""

    def evidence_of_factor(self, factor: Array, prior_precisions: Array) -> float:
        """Log evidence in nats, up to a constant, of the factor of these products."""


def evidence_of_products(model: Evidence, gram: Array, prior_precisions: Array) -> float:
    """Log evidence in nats from [F, y]'[F, y]; minus infinity where F is collinear."""
    bordered = _raised(gram, model.added(prior_precisions))
    return _evidence_of_bordered(model, bordered, prior_precisions)


def evidence_of_choice(
    model: Evidence, gram: Array, products: Any, took: NDArray[np.bool_], priors: Array
) -> float:
    """Log evidence in nats where some frequencies (M,) are replaced by new ones, as `select`."""
    bordered = np.empty(gram.shape, order="F")
    select_lower(gram, products.among, products.across, took, model.added(priors), bordered)
    return _evidence_of_bordered(model, bordered, priors)


def factor_of(gram: Array, added: Array, device: Device | None = None) -> Array:
    """Cholesky factor of products with more on their diagonal, Fortran-ordered."""
    return factorise(_raised(gram, added)) if device is None else device.factorise(gram, added)


def _raised(gram: Array, added: Array) -> Array:
    raised = np.array(gram, order="F")
    raised.flat[:: len(gram) + 1] += added
    return raised


def _evidence_of_bordered(model: Evidence, bordered: Array, priors: Array) -> float:
    try:
        factor = factorise(bordered)
    except NumericalError:
        return -math.inf
    return model.evidence_of_factor(factor, priors)


def _rates_and_evidence(
    model: RegressionModel, factor: Array, prior_precisions: Array
) -> tuple[list[float], float]:
    written = np.empty(model.n_outputs)
    log_det_ratio = read_factor(factor, prior_precisions, written)
    rates = written.tolist()
    return rates, sum(model.log_evidence(log_det_ratio, rate) for rate in rates)


# Draws of the ridge precision with all coefficients and the noise integrated out.
#
# The linear part is eliminated from the products (a Schur complement), what is left is brought to
# tridiagonal form once (dsytrd, its reflectors applied to the targets' column), and each
# evaluation of the evidence is then a recursion over 2 M numbers. One slice (Neal 2003, stepping
# out and shrinking) on the logarithm of the precision.

# The prior is cut off here, and at `lowest_ridge` where that is more.
# That LAPACK reduces before it updates the rest; without room for more than one, one by one.
_COLUMNS_AT_ONCE = 16


@dataclass(frozen=True, eq=False)
class RidgeDensity:
    """Log posterior density of log ridge, up to a constant.

    ``diagonal`` and ``off`` are tridiagonal T = Q'AQ, ``b`` (q, 2 M) is Q'c, with A, c and
    ``target`` (q,) what is left of Phi'Phi, Phi'y and y'y of each output once the linear part is
    eliminated; ``shape`` and ``rate`` are a_n and b_0. The shape is None where the variance of the
    noise is 1, as given Polya-Gamma variables.
    """

    diagonal: Array
    off: Array
    b: Array
    target: Array
    shape: float | None
    rate: float
    prior: GammaPrior
    lowest: float

    def lifted(self, ridge: float) -> float:
        """Return a ridge, or one that is barely allowed where it is less."""
        return max(ridge, _ABOVE * self.lowest)

    def __call__(self, log_ridge: float) -> float:
        """Evaluate at one value; minus infinity below ``lowest`` or beyond `RIDGE_LIMITS`."""
        ridge = math.exp(log_ridge)
        if not self.lowest <= ridge <= RIDGE_LIMITS[1]:
            return -math.inf
        total = 0.0
        for b, target in zip(self.b, self.target, strict=True):
            log_det, quadratic = tridiagonal_evidence(self.diagonal, self.off, b, ridge)
            if self.shape is None:
                total += 0.5 * (quadratic - log_det + len(self.diagonal) * log_ridge)
                continue
            noise_rate = self.rate + 0.5 * (target - quadratic)
            if not (noise_rate > 0.0 and math.isfinite(log_det)):
                return -math.inf
            evidence = -0.5 * log_det - self.shape * math.log(noise_rate)
            total += evidence + 0.5 * len(self.diagonal) * log_ridge
        value = float(total + self.prior.shape * log_ridge - self.prior.rate * ridge)
        return value if math.isfinite(value) else -math.inf


def ridge_density(
    model: RegressionModel, gram: Array, linear_precision: float, device: Device | None = None
) -> RidgeDensity:
    """Prepare the density of the ridge from [Phi, H, Y]'[Phi, H, Y]."""
    prior = model.ridge_prior
    if prior is None:
        raise ValueError("the ridge is fixed")
    precisions = model.linear_precisions(linear_precision)
    reduced = reduce_products(gram, precisions, model.n_outputs, device)
    return RidgeDensity(
        *reduced, model.posterior_shape, model.noise_rate, prior, model.lowest_ridge
    )


def reduce_products(
    gram: Array, linear_precisions: Array, n_outputs: int = 1, device: Device | None = None
) -> tuple[Array, Array, Array, Array]:
    """Eliminate the linear part of [Phi, H, Y]'[Phi, H, Y], bring the rest to tridiagonal form.

    On a device to diagonal form, by its eigenvalues. Returns diagonal, off, b and target of
    `RidgeDensity`; a `NumericalError` where the linear part is collinear to working precision.
    """
    p = len(linear_precisions)
    m = len(gram) - p - n_outputs
    if device is not None:
        diagonal, b, target = device.spectrum(gram, m, linear_precisions)
        return diagonal, np.zeros(m - 1), b, target
    # Symmetric to the last bit: rows become the columns that LAPACK reads.
    left = np.delete(np.delete(gram, slice(m, m + p), axis=0), slice(m, m + p), axis=1).T
    if p:
        inner = np.array(gram[m : m + p, m : m + p], order="F")
        inner[np.arange(p), np.arange(p)] += linear_precisions
        across = np.delete(gram[:, m : m + p], slice(m, m + p), axis=0).T
        solved = blas.dtrsm(1.0, factorise(inner), across, lower=1)
        left = blas.dsyrk(-1.0, solved, beta=1.0, c=left, trans=1, lower=1, overwrite_c=1)
    inner = np.asfortranarray(left[:m, :m])
    packed, diagonal, off, tau, info = lapack.dsytrd(inner, lower=1, lwork=_COLUMNS_AT_ONCE * m)
    b = np.array(left[m:, :m], order="C")
    if m > 1 and info == 0:
        reflectors = np.asfortranarray(packed[1:, :-1])
        columns = b[:, 1:].T
        room = max(n_outputs, 64)
        rotated, _, info = lapack.dormqr("L", "T", reflectors, tau, columns, room)
        b[:, 1:] = rotated.T
    if info != 0:
        raise NumericalError(f"reduction to tridiagonal form failed ({info})")
    return diagonal, off, b, left.diagonal()[m:]


def draw_ridge(rng: np.random.Generator, density: Callable[[float], float], ridge: float) -> float:
    """Take one slice step on log ridge; leaves the density invariant."""
    what = f"features are collinear to working precision at ridge {ridge:.3g}"
    return slice_step(rng, density, ridge, what)


# Noise that is a mixture of normals: given a weight w_i of each row, and a pseudo-target in place
# of its target y_i, it is normal with variance s2 / w_i; all above holds of weighted products.
#
# Student's t of nu degrees of freedom: w_i ~ Gamma(nu/2, nu/2), and given an error e_i
#
#     w_i ~ Gamma((nu + 1) / 2, (nu + e_i^2 / s2) / 2).
#
# nu has equal prior probability at 2 + 2^(j/2), j = -4, .., 12: the noise has a variance. It is
# drawn given the errors with the weights integrated out, before these.
#
# Contaminated (`mercer.likelihoods.label_noise`): a right target of kind k has the weight 1 / c_k.
# The error of a wrong one is a sum u + v, u ~ N(0, 10 s2) and v ~ N(0, t_k^2). Given kind and e,
# u ~ N(10 s2 e / (10 s2 + t_k^2), 10 s2 t_k^2 / (10 s2 + t_k^2)): its row has the pseudo-target
# f + u and the weight 1/10. The shares of the kinds are drawn given kinds that are drawn for it;
# weights and pseudo-targets have kinds drawn anew, given the shares.
#
# Heteroscedastic: w_i = exp(-g(x_i)), g(x) = (psi(x) - c)'gamma, with features psi of Q frequencies
# that stay: one along each input, whose sine is a bounded slope and whose cosine a bowl, and some
# drawn at the scales of the start. c is their mean over rows, so that s2 alone has the level: given
# the function the two are then independent in Fisher's information. gamma ~ N(0, tau^2 I), tau with
# equal prior probability at 2^(j/2), j = -10, .., 6. With r_i = e_i^2 w_i / s2 the log likelihood
#
#     -1/2 sum_i (log 2 pi s2 + g_i + r_i)
#
# is concave in gamma, with gradient sum_i (r_i - 1) / 2 psi_i and the information sum_i psi_i
# psi_i' / 2 whatever gamma: with it and the prior's as the mass of Hamilton's dynamics a quarter of
# a turn, a few leapfrog steps, gives a gamma that is all but independent of the one before.
# Waves of large coefficients that cancel among the rows do not beyond them: each draw's g is cut at
# its range among the rows that taught it, which changes none of their likelihoods.

_WIDE = 1.0 + LEAST_ERROR  # variance of u, in s2
_WEIGHTS = np.concatenate([1.0 / WIDTHS, np.full(len(SIZES), 1.0 / _WIDE)])  # of each kind
_RARE = 1e-12  # the least weight
# Of g: the most on either side of 0; frequencies along one input, of at most so many inputs; drawn
# ones, in multiples of the scales of the start.
MOST_LOG, _ALONG, _MOST_ALONG = 20.0, (0.8, 1.6, 3.2), 32
_N_BESIDE, _SIZES_BESIDE = 24, (0.3, 1.0, 2.0)
_TURN, _N_LEAPS, _JITTER = 0.5 * math.pi, 3, 0.2  # of a trajectory
_N_CLIMBS, _FARTHEST_CLIMB = 8, 0.5  # steps of a climb, and most of log variances, root mean square

Hear = Callable[[Array], Array]  # parameter -> what the rows say of it


class ScaleMixture(ABC):
    """A law of the noise given s2, its variance or squared scale, and a parameter of its own."""

    name: ClassVar[str]  # of what is monitored of the parameter
    first: Array  # parameter where chains start
    has_far_errors: ClassVar[bool] = True  # whether far targets mean little to the start
    waits: ClassVar[float] = 0.0  # share of warm-up in which the parameter is ``first``
    beside: Array | None = None  # (Q, d), frequencies whose features `hearer` is told of as well

    def placed(self, rng: np.random.Generator, scales: Array, X: Array) -> ScaleMixture:
        """Return the law for rows like X (n, d), whose function has frequencies of these scales."""
        return self

    def known_by(self, frequencies: Array, coef: Array, parameter: Array) -> tuple[Array, Array]:
        """Frequencies and coefficients of what `weigher` is told of: the function."""
        return frequencies, coef

    @abstractmethod
    def weigher(self, noise_variance: float, parameter: Array, rng: np.random.Generator) -> Weigh:
        """Return what draws weights and pseudo-targets of rows."""

    @abstractmethod
    def hearer(self, noise_variance: float, parameter: Array, rng: np.random.Generator) -> Say:
        """Return what says of rows (functions (1, b), targets) what `draw` needs, to be summed."""

    @abstractmethod
    def log_likelihood(self, said: Array, parameter: Array) -> float:
        """Log density of all targets given function, s2 and parameter, in nats."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, said: Array, parameter: Array, hear: Hear) -> Array:
        """Draw the parameter; ``hear`` asks the rows what they say of another one."""

    def recorded(self, parameter: Array) -> dict[str, Array]:
        """What is recorded of the parameter."""
        return {self.name: parameter}


class ContaminatedNoise(ScaleMixture):
    """Errors of kinds whose shares, the parameter, are learned; some are far larger than noise."""

    name, first = "log_rate", log_shares(0.3)

    def weigher(self, noise_variance: float, parameter: Array, rng: np.random.Generator) -> Weigh:
        """Weights of right targets; 1/10 and what is left of the error of wrong ones."""
        added, wide = added_variances(noise_variance), _WIDE * noise_variance

        def weigh(f: Array, y: Array) -> tuple[Array, Array]:
            errors = y - f
            kinds = _draw_kinds(rng, log_kinds(errors, noise_variance, parameter))
            total = noise_variance + added[kinds]
            spread = np.sqrt(wide * np.maximum(total - wide, 0.0) / total)
            left = wide / total * errors + spread * rng.standard_normal(len(y))
            weights = _WEIGHTS[kinds]
            return weights, weights * np.where(kinds < len(WIDTHS), y, f + left)

        return weigh

    def hearer(self, noise_variance: float, parameter: Array, rng: np.random.Generator) -> Say:
        """Log likelihood, numbers of rows of each kind as drawn."""

        def say(f: Array, y: Array) -> Array:
            logs = log_kinds(y - f[0], noise_variance, parameter)
            counts = np.bincount(_draw_kinds(rng, logs), minlength=N_KINDS)
            return np.append(logsumexp(logs, axis=1).sum(), counts)

        return say

    def log_likelihood(self, said: Array, parameter: Array) -> float:
        """Return what was heard."""
        return float(said[0])

    def draw(self, rng: np.random.Generator, said: Array, parameter: Array, hear: Hear) -> Array:
        """Given the number of rows of each kind."""
        return draw_shares(rng, said[1:])

    def recorded(self, parameter: Array) -> dict[str, Array]:
        """The logarithms of the rate and of all shares."""
        return {self.name: np.log(rate_of(parameter)), "log_shares": parameter}


def _draw_kinds(rng: np.random.Generator, logs: Array) -> NDArray[np.int64]:
    """Draw a kind for each row from log joint densities (b, 15)."""
    total = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
    level = rng.random(len(logs)) * total[:, -1]
    return np.asarray((total[:, :-1] <= level[:, np.newaxis]).sum(axis=1))


class StudentNoise(ScaleMixture):
    """Student's t, whose degrees of freedom are the parameter."""

    name, first = "noise_df", np.asarray(4.0)
    degrees: ClassVar[Array] = np.asarray(2.0 + 2.0 ** (0.5 * np.arange(-4, 13)), np.float64)

    def weigher(self, noise_variance: float, parameter: Array, rng: np.random.Generator) -> Weigh:
        """Weights that are low where errors are large; targets as they are."""
        scale = math.sqrt(noise_variance)

        def weigh(f: Array, y: Array) -> tuple[Array, Array]:
            rates = 0.5 * (parameter + np.square((y - f) / scale))
            drawn = rng.standard_gamma(0.5 * (parameter + 1.0), len(y)) / rates
            weights = np.maximum(drawn, _RARE)
            return weights, weights * y

        return weigh

    def hearer(self, noise_variance: float, parameter: Array, rng: np.random.Generator) -> Say:
        """Log likelihood for each number of degrees of freedom."""
        df, scale = self.degrees[:, np.newaxis], math.sqrt(noise_variance)
        heights = np.log(poch(0.5 * df, 0.5) / (scale * np.sqrt(np.pi * df)))

        def say(f: Array, y: Array) -> Array:
            squares = np.square((y - f) / scale)
            logs = heights - 0.5 * (df + 1.0) * np.log1p(squares / df)
            return np.asarray(logs.sum(axis=1))

        return say

    def log_likelihood(self, said: Array, parameter: Array) -> float:
        """Return what was heard of these degrees of freedom."""
        return float(said[np.argmin(np.abs(self.degrees - parameter))])

    def draw(self, rng: np.random.Generator, said: Array, parameter: Array, hear: Hear) -> Array:
        """Given the errors alone: the weights are integrated out."""
        return np.asarray(one_of(rng, self.degrees, said))


def one_of(rng: np.random.Generator, values: Array, logs: Array) -> float:
    """Draw one of some values from the logarithms of their probabilities."""
    total = np.cumsum(np.exp(logs - logs.max()))
    return float(values[int((total[:-1] <= rng.random() * total[-1]).sum())])


@dataclass(frozen=True, eq=False)
class HeteroscedasticNoise(ScaleMixture):
    """Normal noise whose log variance is a function of the inputs; parameter (tau, gamma)."""

    name: ClassVar[str] = "noise_spread"
    has_far_errors: ClassVar[bool] = False
    waits: ClassVar[float] = 0.8  # else noise explains what no frequency does yet
    spreads: ClassVar[Array] = np.asarray(2.0 ** (0.5 * np.arange(-10, 7)), np.float64)
    beside: Array = field(default_factory=lambda: np.empty((0, 0)))  # V (Q, d)
    centre: Array = field(default_factory=lambda: np.empty(0))  # (2 Q,)
    information: Array = field(default_factory=lambda: np.empty((0, 0)))  # of a row, (2 Q, 2 Q)
    first: Array = field(default_factory=lambda: np.ones(1))

    def placed(self, rng: np.random.Generator, scales: Array, X: Array) -> HeteroscedasticNoise:
        """Draw frequencies, and take the mean of their features at the rows."""
        d = len(scales)
        inputs = np.eye(d)[np.argsort(-scales, kind="stable")[:_MOST_ALONG]]
        along = np.vstack([each * inputs for each in _ALONG])
        sizes = np.resize(_SIZES_BESIDE, _N_BESIDE)[:, np.newaxis]
        beside = np.vstack([along, rng.standard_normal((_N_BESIDE, d)) * sizes * scales])
        features = design(beside, X, has_linear_part=False)
        centre, first = features.mean(axis=1), np.append(1.0, np.zeros(2 * len(beside)))
        return HeteroscedasticNoise(beside, centre, 0.5 * np.cov(features, ddof=0), first)

    def known_by(self, frequencies: Array, coef: Array, parameter: Array) -> tuple[Array, Array]:
        """Those of the log variance, with none for what is always in the model."""
        n_linear = len(coef) - 2 * len(frequencies)
        return self.beside, np.append(parameter[1:], np.zeros(n_linear))

    def weigher(self, noise_variance: float, parameter: Array, rng: np.random.Generator) -> Weigh:
        """Weights exp(-g); targets as they are."""
        level = float(self.centre @ parameter[1:])

        def weigh(g: Array, y: Array) -> tuple[Array, Array]:
            weights = np.exp(-_tame(g - level))
            return weights, weights * y

        return weigh

    def hearer(self, noise_variance: float, parameter: Array, rng: np.random.Generator) -> Say:
        """Log likelihood for each spread with gamma / tau as it is, gradient, rows."""
        ratios = self.spreads[:, np.newaxis] / parameter[0]

        def say(f: Array, y: Array) -> Array:
            features = f[1:] - self.centre[:, np.newaxis]
            squares, g = np.square(y - f[0]) / noise_variance, parameter[1:] @ features
            every = _tame(ratios * g)
            logs = math.log(2.0 * math.pi * noise_variance) + every + squares * np.exp(-every)
            slope = 0.5 * features @ (squares * np.exp(-_tame(g)) - 1.0)
            return np.concatenate([-0.5 * logs.sum(axis=1), slope, [len(y)]])

        return say

    def log_likelihood(self, said: Array, parameter: Array) -> float:
        """Return what was heard of this spread."""
        return float(said[np.argmin(np.abs(self.spreads - parameter[0]))])

    def draw(self, rng: np.random.Generator, said: Array, parameter: Array, hear: Hear) -> Array:
        """Take a trajectory of gamma; then tau with gamma / tau as it is, then with gamma.

        The first one begins at the end of a climb.
        """
        if np.array_equal(parameter, self.first):
            for _ in range(_N_CLIMBS):
                parameter = self.climbed(said, parameter)
                said = hear(parameter)
        tau, factor = parameter[0], self._factor(said, parameter)
        z = rng.standard_normal(len(factor))
        step = _TURN / _N_LEAPS * rng.uniform(1.0 - _JITTER, 1.0 + _JITTER)
        new, heard, velocity = parameter, said, lapack.dtrtrs(factor, z, lower=1, trans=1)[0]
        for _ in range(_N_LEAPS):
            velocity = velocity + 0.5 * step * self._ahead(heard, new, factor)
            new = np.append(tau, new[1:] + step * velocity)
            heard = hear(new)
            velocity = velocity + 0.5 * step * self._ahead(heard, new, factor)
        left = velocity @ factor
        gain = self._log_density(heard, new) - self._log_density(said, parameter)
        if math.log(1.0 - rng.random()) < gain + 0.5 * float(z @ z - left @ left):
            parameter, said = new, heard
        n = len(self.spreads)
        gamma = parameter[1:] * (one_of(rng, self.spreads, said[:n]) / tau)
        logs = -len(gamma) * np.log(self.spreads) - 0.5 * gamma @ gamma / np.square(self.spreads)
        return np.append(one_of(rng, self.spreads, logs), gamma)

    def climbed(self, said: Array, parameter: Array) -> Array:
        """Take a step of Fisher's scoring, that moves log variances by one half at most."""
        factor = self._factor(said, parameter)
        ahead = self._ahead(said, parameter, factor)
        moved = math.sqrt(2.0 / said[-1]) * float(np.linalg.norm(ahead @ factor))
        return np.append(
            parameter[0], parameter[1:] + _FARTHEST_CLIMB / max(moved, _FARTHEST_CLIMB) * ahead
        )

    def recorded(self, parameter: Array) -> dict[str, Array]:
        """What `log_variances` needs, and tau."""
        coef = np.append(parameter[1:], -self.centre @ parameter[1:])
        tau = np.array(parameter[0])
        return {self.name: tau, "noise_frequencies": self.beside, "noise_coef": coef}

    def _factor(self, said: Array, parameter: Array) -> Array:
        """Lower factor of the mass: information of all rows and of the prior."""
        mass = said[-1] * self.information + parameter[0] ** -2 * np.eye(len(self.centre))
        return np.tril(factorise(np.asfortranarray(mass)))

    def _ahead(self, said: Array, parameter: Array, factor: Array) -> Array:
        """Solve the mass for the gradient of the log density."""
        slope = said[len(self.spreads) : -1] - parameter[0] ** -2 * parameter[1:]
        return np.asarray(lapack.dpotrs(factor, slope, lower=1)[0])

    def _log_density(self, said: Array, parameter: Array) -> float:
        """Log density of gamma given tau, up to a constant."""
        gamma = parameter[1:] / parameter[0]
        return self.log_likelihood(said, parameter) - 0.5 * float(gamma @ gamma)


def _tame(g: Array) -> Array:
    """Cut log variances where weights would leave no digits."""
    return np.clip(g, -MOST_LOG, MOST_LOG)


def log_variances(frequencies: Array, coef: Array, X: Array) -> Array:
    """Log variance of heteroscedastic noise at rows X (n, d), beside that of s2: shape (..., n).

    ``coef`` (..., 2 Q + 1) are those of one draw or of several.
    """
    F = design(frequencies, X, has_linear_part=False)
    return _tame(coef[..., :-1] @ F + coef[..., -1:])


COUNTS = "negative_binomial"  # targets are counts: `mercer.spectral.class_model.CountModel`

#: By the name that an estimator's ``noise`` has.
NOISES: Mapping[str, ScaleMixture | None] = {
    "normal": None,
    LOGNORMAL: None,
    **dict.fromkeys(WITH_ERRORS, ContaminatedNoise()),
    STUDENT: StudentNoise(),
    VARYING: HeteroscedasticNoise(),
    COUNTS: None,
}


# Where chains start.

N_FREQUENCIES = 128  # of the search for it
# Of the error of a row that is left out the least part that is seen with it, and the least noise.
_LEAST_LEFT, _LEAST_NOISE = 1e-3, 1e-3
_MEDIAN_OF_NORMAL = 0.6745  # of the size of a standard normal variable


@dataclass(frozen=True)
class Scales:
    """Standard deviation of the frequencies of each input, and the ridge that goes with it.

    ``log_evidence`` is that of the rows they were found on, in nats; NaN before the search.
    ``is_cut`` says that time ended the search.
    """

    scales: Array
    ridge: float
    log_evidence: float = math.nan
    is_cut: bool = False
    waves: tuple[Array, ...] = ()  # (d,) each: see `mercer.spectral.settings`


def fitted_values(
    rng: np.random.Generator, X: Array, y: Array, model: RegressionModel, found: Scales
) -> Array:
    """Fit features drawn at the scales found to rows; the function at these, shape of y."""
    _, F, law = _first_law(rng, X, y, model, found)
    return np.asarray((law.mean @ F).T)


def left_out(
    rng: np.random.Generator, X: Array, y: Array, model: RegressionModel, found: Scales
) -> LeftOut:
    """Say of each target y (n,) what the others say of it, by features drawn at the scales found.

    Without row i the shape is a_n - 1/2 and the rate b_n - (1 - h_i) e_i^2 / 2, with h_i its
    leverage and e_i its error by the others: its target is Student's t around these.
    """
    _, F, law = _first_law(rng, X, y, model, found)
    left = _without_leverage(law, F)
    errors, shape = (y - law.mean @ F) / left, model.posterior_shape - 0.5
    rates = np.maximum(law.rate - 0.5 * left * np.square(errors), model.noise_rate)
    stds = np.sqrt(rates / (shape * left))
    logs = student_t.logpdf(errors, 2.0 * shape, scale=stds)
    return logs, y - errors, stds, law.rate / model.posterior_shape


def _first_law(
    rng: np.random.Generator, X: Array, y: Array, model: RegressionModel, found: Scales
) -> tuple[Array, Array, Coefficients]:
    W = rng.standard_normal((N_FREQUENCIES, X.shape[1])) * found.scales
    F = design(W, X, model.n_linear > 0)
    bordered = np.vstack([F, y.T])
    prior = model.prior_precisions(2 * len(W), found.ridge, 1.0)
    return W, F, coefficients(model, bordered @ bordered.T, prior)


def _without_leverage(law: Coefficients, F: Array) -> Array:
    """Return 1 - h, the part of the error of a row left out that is seen with it: (n,)."""
    whitened, _ = lapack.dtrtrs(law.factor, F, lower=1)
    return np.asarray(np.maximum(1.0 - np.square(whitened).sum(axis=0), _LEAST_LEFT))


@dataclass(frozen=True, eq=False)
class FirstFunction:
    """The function by which targets are first told to be far, and the noise around it."""

    frequencies: Array  # (M, d)
    coef: Array  # (2 M + p,)
    noise_std: float

    @classmethod
    def of(
        cls,
        rng: np.random.Generator,
        rows: tuple[Array, Array],
        right: NDArray[np.bool_],
        counts: NDArray[np.bool_],
        model: RegressionModel,
        found: Scales,
    ) -> tuple[FirstFunction, Array]:
        """Fit right rows of X (n, d), y (n,); and the errors (n,), as if a right row were left out.

        The noise is that of a normal law with the middle error of the rows that count.
        """
        X, y = rows
        model = replace(model, n_rows=int(right.sum()))
        W, F, law = _first_law(rng, X[right], y[right], model, found)
        errors = y - law.mean @ design(W, X, model.n_linear > 0)
        errors[right] /= _without_leverage(law, F)
        middle = float(np.median(np.abs(errors[counts])))
        std = max(middle / _MEDIAN_OF_NORMAL, _LEAST_NOISE)
        return cls(W, law.mean, std), errors
