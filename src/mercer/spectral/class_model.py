"""BaNK for classes: labels as sticks, the state, the model of one function, passes over rows.

**Sticks.** C classes are told apart by C - 1 functions f_1, .., f_{C-1} in order: is it the first
class, else is it the second, and so on:

    p(class k | x) = s(f_k(x)) prod_{l < k} (1 - s(f_l(x))),        s(f) = 1 / (1 + e^-f)

and the last class is what is left. Given the functions the likelihood is a product of logistic
ones, the l-th over the rows of the classes l, l + 1, .. only: with Polya-Gamma variables all
coefficients can be integrated out together, which those of a softmax cannot. Two classes are the
logistic model.

Of ordered classes these functions are one, less a threshold each (`OrderedLaw`).

The most frequent class comes first: the rest has the fewest rows, and the rare classes, at the end,
are compared with each other. Of two classes the function is that of the second label.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.special import expit

from mercer.features.device import Device
from mercer.features.products import fill_design, parts
from mercer.likelihoods.logistic import count_log_factor, count_log_mass
from mercer.likelihoods.polya_gamma import fill_polya_gamma, fill_polya_gamma_of_shapes
from mercer.sampling.metropolis import slice_step
from mercer.sampling.signals import is_late
from mercer.spectral.loops import slope_of_sticks
from mercer.spectral.missing import InputState
from mercer.spectral.mixture import MixtureState, ProposalTuning
from mercer.spectral.model import GammaPrior, Scales, factor_of
from mercer.spectral.rows import (
    Say,
    TrainingRows,
    Weigh,
    function_sums,
    numbers,
    weighted_products,
)

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClassCodes:
    """Label -> place in the order of the sticks."""

    values: Array  # (C,), the labels as numbers, ascending
    order: NDArray[np.int64]  # positions among ``values``, as classes are told apart

    def transform(self, y: Array) -> Array:
        """Return the place of each label, as float."""
        place = np.empty(len(self.order))
        place[self.order] = np.arange(len(self.order))
        coded: Array = place[np.searchsorted(self.values, y)]
        return coded


def class_codes(values: Array, counts: NDArray[np.int64]) -> ClassCodes:
    """Put classes in order, given how many rows each has."""
    if len(values) == 2:
        return ClassCodes(values, np.array([1, 0]))
    return ClassCodes(values, np.argsort(-counts, kind="stable"))


def signs_of(codes: Array, n_functions: int) -> Array:
    """1 or -1: whether a row belongs to the class that a function tells; 0 if it says nothing.

    Shape (K, n), from places of classes (n,).
    """
    k = np.arange(n_functions)[:, np.newaxis]
    return np.where(codes == k, 1.0, np.where(codes > k, -1.0, 0.0))


# Logistic regression on Fourier features given Polya-Gamma variables, coefficients integrated out.
#
# **Model.** For the rows of one stick (`mercer.spectral.class_model`), t_i in {0, 1},
#
#     p(t_i = 1) = 1 / (1 + e^-f_i),   f = Phi beta + H gamma
#     beta ~ N(0, I / ridge)           features, shape (2 M,)
#     gamma ~ N(0, Lambda_H^-1)        linear part: an intercept, a precision for the inputs
#
# **Augmentation** [1]_. With kappa_i = t_i - 1/2 and omega_i ~ PG(1, 0),
#
#     p(t_i | f_i) = 1/2 E exp(kappa_i f_i - omega_i f_i^2 / 2),   omega_i | f_i ~ PG(1, f_i),
#
# so that given omega this is the regression of targets z_i = kappa_i / omega_i with noise of
# variance 1 / omega_i: F = [Phi, H], Lambda_n = F' Omega F + Lambda_0, m = F' Omega z = F' kappa
# (kappa is not multiplied by omega), beta ~ N(Lambda_n^-1 m, Lambda_n^-1), and
#
#     log p(t | W, omega) = -n log 2 + log|Lambda_0| / 2 - log|Lambda_n| / 2 + m' Lambda_n^-1 m / 2
#
# There is no noise variance to be integrated out: the ratio of eq. (12) is that of these, not that
# of normal-inverse-gamma evidences.
#
# References
# ----------
# .. [1] N. G. Polson, J. G. Scott and J. Windle, "Bayesian Inference for Logistic Models Using
#    Polya-Gamma Latent Variables", JASA 2013.


@dataclass(frozen=True)
class LogisticModel:
    """What is fixed of the regressions of all sticks, with p columns of H: intercept and inputs.

    Gamma priors are those of the precisions of the features' coefficients, None keeping it as
    it is, and of the inputs'. The intercept has a standard deviation of 10 logits: shares of
    classes are left to the data.
    """

    n_linear: int
    ridge_prior: GammaPrior | None
    linear_prior: GammaPrior
    intercept_precision: float = 1e-2

    def linear_precisions(self, linear_precision: float) -> Array:
        """Diagonal of Lambda_H, shape (p,)."""
        if self.n_linear == 0:
            return np.empty(0)
        return np.array([self.intercept_precision] + [linear_precision] * (self.n_linear - 1))

    def prior_precisions(self, n_features: int, ridge: float, linear_precision: float) -> Array:
        """Diagonal of Lambda_0, shape (2 M + p,)."""
        linear = self.linear_precisions(linear_precision)
        return np.concatenate([np.full(n_features, ridge), linear])

    def added(self, prior_precisions: Array) -> Array:
        """Return what the diagonal of [F, z]' Omega [F, z] takes: Lambda_0, then `_ENOUGH`."""
        return np.append(prior_precisions, _ENOUGH)

    def evidence_of_factor(self, factor: Array, prior_precisions: Array) -> float:
        """log p(t | W, omega) + n log 2, in nats, from the factor of these products."""
        m = len(prior_precisions)
        return _log_evidence(factor.diagonal()[:m], factor[m, :m], prior_precisions)

    def precisions_of_all(self, n_features: int, ridges: Array, linear_precisions: Array) -> Array:
        """Those of every function, shape (K, 2 M + p), from precisions of shape (K,)."""
        return np.stack(
            [
                self.prior_precisions(n_features, float(ridge), float(linear))
                for ridge, linear in zip(ridges, linear_precisions, strict=True)
            ]
        )


@dataclass(frozen=True, eq=False)
class LogisticCoefficients:
    """The law of the coefficients of one stick given frequencies, precisions and omega."""

    mean: Array  # (2 M + p,), Lambda_n^-1 m
    factor: Array  # lower Cholesky factor of Lambda_n, Fortran-ordered
    log_evidence: float  # log p(t | W, omega) + n log 2, in nats

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Draw n deviations beta - mean, shape (n, 2 M + p)."""
        z = rng.standard_normal((len(self.mean), n))
        deviations, _ = lapack.dtrtrs(self.factor, z, lower=1, trans=1)
        return np.asarray(deviations).T


def logistic_coefficients(
    gram: Array, prior_precisions: Array, device: Device | None = None
) -> LogisticCoefficients:
    """Solve the regression from [F, z]' Omega [F, z]; a `NumericalError` where F is collinear."""
    m = len(prior_precisions)
    factor = factor_of(gram[:m, :m], prior_precisions, device)
    solved, _ = lapack.dtrtrs(factor, gram[:m, m], lower=1)
    mean, _ = lapack.dtrtrs(factor, solved, lower=1, trans=1)
    evidence = _log_evidence(np.diag(factor), solved, prior_precisions)
    return LogisticCoefficients(np.asarray(mean), factor, evidence)


def _log_evidence(diagonal: Array, solved: Array, prior_precisions: Array) -> float:
    """log p(t | W, omega) + n log 2, in nats, from the diagonal of a factor L and L^-1 m."""
    log_det_ratio = 2.0 * np.log(diagonal).sum() - np.log(prior_precisions).sum()
    evidence = 0.5 * float(solved @ solved) - 0.5 * float(log_det_ratio)
    return evidence if math.isfinite(evidence) else -math.inf


# Functions whose rows decide where chains start: the first ones look at the most rows.
_FUNCTIONS_OF_START = 3
# So that the pivot of z'Omega z, of which nothing is read, is positive whatever rounding does.
_ENOUGH = 1e12
_LEAST_CURVATURE = 1e-12


# Laws of the targets given K functions: what differs between classes and counts.


Parts = Iterator[tuple[NDArray[np.bool_] | None, Array]]
# (some rows, standardised numbers in place of their targets) -> where a search for the start ends.
Climb = Callable[[Any, Array], Scales]


class Law(ABC):
    """The likelihood of targets given K functions, with the values of its own parameters."""

    names: ClassVar[tuple[str, ...]] = ()  # of its own parameters, which are monitored
    # Whether Polya-Gamma variables hold functions so firmly that all coefficients are moved under
    # the likelihood itself before a sweep, in place of a trajectory.
    is_firm: ClassVar[bool] = False
    ridge_prior: ClassVar[GammaPrior]
    first_trajectory: ClassVar[float] = 0.1  # where the search for its step begins

    @property
    @abstractmethod
    def level_precision(self) -> float:
        """Prior precision of the intercept of each function."""

    def tasks(self, targets: Array, n_functions: int) -> Parts:
        """Rows of each function, None for all of them, and what they have for targets."""
        return numbers(targets, n_functions)

    @abstractmethod
    def weigher(self, rng: np.random.Generator) -> Weigh:
        """Draw omega, and give omega times the pseudo-targets."""

    @abstractmethod
    def curvature(self, index: int) -> Weigh:
        """Weights and weighted targets of Newton's method as least squares; the same everywhere."""

    @abstractmethod
    def log_mass(self, f: Array, y: Array) -> Array:
        """Log probability of each target (n,) given the functions (K, n), in nats."""

    @abstractmethod
    def climb(self, targets: Array, climb: Climb, deadline: float | None) -> Scales | None:
        """Search for the start as if targets were numbers; None where they say nothing."""

    def hearer(self, index: int) -> Say:
        """Say the log probability of targets."""
        return lambda f, y: float(self.log_mass(f, y).sum())

    def slope(self, f: Array, y: Array) -> tuple[float, Array]:
        """Log probability of all targets, in nats, and its derivative in the functions (K, n).

        For trajectories and climbs, which laws that are firm do without.
        """
        raise NotImplementedError

    def draw(
        self, rng: np.random.Generator, rows: TrainingRows, state: ClassState, precisions: Array
    ) -> ClassState:
        """Draw its own parameters given the functions, omega integrated out."""
        return state

    def recorded(self, found: dict[str, Array]) -> dict[str, Array]:
        """Say what one draw stores, given what it stores of the functions."""
        return found


# Classes: Polya-Gamma variables omega given the functions make products weighted by them, the
# targets z = kappa / omega (`mercer.spectral.rows.weighted_products`), for each stick over its own
# rows.


@dataclass(frozen=True)
class ClassLaw(Law):
    """Places of classes, told apart by K functions.

    Ridges are of logits of order one to ten: unlike that of numbers, the precision is not relative
    to a noise, and of separable classes it must not fall without end.
    """

    ridge_prior, level_precision = GammaPrior(1.0, 1.0), 1e-2

    def tasks(self, targets: Array, n_functions: int) -> Parts:
        """Rows of each stick, and their places of classes as 1/2 or -1/2."""
        for k in range(n_functions):
            is_in = targets >= k
            yield None if n_functions == 1 else is_in, (targets[is_in] == k) - 0.5

    def weigher(self, rng: np.random.Generator) -> Weigh:
        """Draw omega_i ~ PG(1, f_i); omega z is kappa."""

        def weigh(f: Array, kappa: Array) -> tuple[Array, Array]:
            omega = np.empty(len(f))
            fill_polya_gamma(rng, f, len(f), omega)
            return omega, kappa

        return weigh

    def curvature(self, index: int) -> Weigh:
        """Weights p (1 - p)."""

        def weigh(f: Array, kappa: Array) -> tuple[Array, Array]:
            weights = np.maximum(expit(f) * expit(-f), _LEAST_CURVATURE)
            return weights, weights * f + (kappa + 0.5 - expit(f))

        return weigh

    def log_mass(self, f: Array, y: Array) -> Array:
        """Sum over the functions that say something of a row."""
        sign = signs_of(y, len(f))
        return np.asarray(-np.logaddexp(0.0, -sign * f).sum(axis=0, where=sign != 0.0))

    def slope(self, f: Array, y: Array) -> tuple[float, Array]:
        """Residuals: of a row that a function says nothing of 0."""
        losses, residual = np.empty(f.size), np.empty(f.shape)
        n_told = slope_of_sticks(f, y, losses, residual)
        return -float(losses[:n_told].sum()), residual

    def masses(self, f: Array) -> Array:
        """Probability of each class, shape (K + 1, ...), given the functions (K, ...)."""
        left = np.cumprod(expit(-f), axis=0)
        return np.concatenate([expit(f[:1]), left[:-1] * expit(f[1:]), left[-1:]])

    def climb(self, targets: Array, climb: Climb, deadline: float | None) -> Scales | None:
        """As if the first functions were regressions of 0 and 1.

        Evidences add, scales are the geometric means over functions, the ridge is the lowest one.
        After ``deadline`` no other function is looked at.
        """
        found, is_cut = list[Scales](), False
        for k in range(min(int(targets.max()), _FUNCTIONS_OF_START)):
            if found and is_late(deadline):
                is_cut = True
                break
            is_in = targets >= k
            target = (targets[is_in] == k).astype(np.float64)
            if np.ptp(target) > 0.0:
                found.append(climb(is_in, (target - target.mean()) / target.std()))
        if not found:
            return None
        scales = np.exp(np.mean([np.log(each.scales) for each in found], axis=0))
        evidence = sum(each.log_evidence for each in found)
        is_cut |= any(each.is_cut for each in found)
        return Scales(scales, min(each.ridge for each in found), evidence, is_cut)


CLASSES = ClassLaw()


def log_likelihood(
    rows: TrainingRows, frequencies: Array, coef: Array, law: Law = CLASSES
) -> float:
    """Log probability of all targets, in nats: one pass, O(n M)."""
    return float(function_sums(rows, frequencies, coef, law.hearer))


def log_posterior(
    rows: TrainingRows, frequencies: Array, coef: Array, law: Law, precisions: Array
) -> float:
    """Log density of coefficients of prior precisions (K, 2 M + p), a constant left out."""
    prior = sum(float(p @ np.square(each)) for p, each in zip(precisions, coef, strict=True))
    return log_likelihood(rows, frequencies, coef, law) - 0.5 * prior


def newton(
    frequencies: Array, coef: Array, law: Law, precisions: Array, *rows: TrainingRows
) -> list[LogisticCoefficients]:
    """Normal laws whose means are one Newton step from these coefficients; rows in parts."""
    given = np.empty((0, frequencies.shape[1])), frequencies, coef, law.curvature, law.tasks
    parts = [weighted_products(each, *given) for each in rows]
    return [
        logistic_coefficients(np.sum([each.gram for each in of_function], axis=0), diagonal)
        for of_function, diagonal in zip(zip(*parts, strict=True), precisions, strict=True)
    ]


# Steps of a search for the maximum, halvings of a step that overshoots, and the length of a last
# step, in squared standard deviations of the posterior.
_MOST_STEPS, _MOST_HALVINGS, _SHORT = 40, 30, 1e-2


def maximise(
    frequencies: Array,
    coef: Array,
    law: Law,
    precisions: Array,
    rows: TrainingRows,
    deadline: float | None = None,
) -> Array:
    """Coefficients (K, 2 M + p) of the highest density, by Newton's method from ``coef``.

    After ``deadline``, of `time.monotonic`, no other step is taken.
    """
    if is_late(deadline):
        return coef
    density = log_posterior(rows, frequencies, coef, law, precisions)
    for _ in range(_MOST_STEPS):
        laws = newton(frequencies, coef, law, precisions, rows)
        step = np.stack([each.mean for each in laws]) - coef
        turned = (np.tril(each.factor).T @ s for each, s in zip(laws, step, strict=True))
        size = sum(float(each @ each) for each in turned)
        for _ in range(_MOST_HALVINGS):
            new_density = log_posterior(rows, frequencies, coef + step, law, precisions)
            if new_density >= density:
                coef, density = coef + step, new_density
                break
            step = 0.5 * step
        if size < _SHORT or is_late(deadline):
            break
    return coef


# Ordered classes: one function and C - 1 thresholds.
#
# **Model.** Is it the lowest class, else the next, and so on, the continuation-ratio logit [1]_:
# with classes 0, .., C - 1 from lowest to highest,
#
#     P(y = k | y >= k) = s(theta_k - f),        k = 0, .., C - 2,
#
# the sticks of classes whose functions F_k = theta_k - f differ by constants only. The larger f,
# the higher the class: P(y > k) = prod_{l <= k} s(f - theta_l). Two classes are the logistic model.
#
# **Prior.** A threshold less the intercept g of f is a normal of standard deviation 10 logits: with
# t_k = theta_k - g, independent t_k ~ N(0, 1 / tau). The level of f and that of all thresholds are
# one parameter. It is in the intercept, g = -mean(t) ~ N(0, 1 / ((C - 1) tau)), and the thresholds,
# independent of it, add up to 0; without a linear part they hold the level.
#
# **Augmentation.** Each stick k <= y of a row has its omega_k ~ PG(1, theta_k - f) and its
# kappa_k = 1[y = k] - 1/2. Together they say of f what one pseudo-target does that has the weight
# sum_k omega_k; times that weight it is sum_k (omega_k theta_k - kappa_k). One Gram matrix serves
# all classes, where those that have no order need C - 1.
#
# **Thresholds.** Given f - g the t_k are independent, with omega integrated out: a slice step each,
# of density N(t_k; 0, 1 / tau) prod_{y = k} s(t_k - f + g) prod_{y > k} s(f - g - t_k). They take
# the level with them, g and theta are computed from them, and the sweep draws g again, with all
# other coefficients, given theta.
#
# **Scale.** Far thresholds and a large function hang together: a last slice step is on the factor c
# of all coefficients and thresholds, whose density is that of c (beta, theta) times c to the power
# of their number.
#
# References
# ----------
# .. [1] A. Agresti, "Analysis of Ordinal Categorical Data", 2nd ed. (Wiley 2010), section 4.2.


_NOWHERE = "no density at threshold"


@dataclass(frozen=True, eq=False)
class OrderedLaw(Law):
    """Ranks 0, .., C - 1 of ordered classes, given one function, and their thresholds."""

    thresholds: Array  # (C - 1,), theta; they add up to 0 where the function has a level
    has_level: bool
    precision: float = 1e-2  # tau

    names, ridge_prior = ("thresholds",), ClassLaw.ridge_prior

    @classmethod
    def of(cls, n_each: NDArray[np.int64], *, has_level: bool) -> OrderedLaw:
        """Start, given the rows of each class from lowest to highest, with a function that is 0."""
        above = n_each[::-1].cumsum()[-2::-1]
        return cls(np.log((n_each[:-1] + 0.5) / (above + 0.5)), has_level)

    @property
    def level_precision(self) -> float:
        """That of the mean of all thresholds."""
        return len(self.thresholds) * self.precision

    def sticks(self, f: Array) -> Array:
        """Functions F (C - 1, ...) of unordered classes that say the same as f (1, ...)."""
        return self.thresholds.reshape(-1, *[1] * (f.ndim - 1)) - f

    def weigher(self, rng: np.random.Generator) -> Weigh:
        """Draw omega of all sticks of a row."""
        return self._together(CLASSES.weigher(rng))

    def curvature(self, index: int) -> Weigh:
        """Weights p (1 - p) of all sticks of a row."""
        return self._together(CLASSES.curvature(index))

    def _together(self, weigh: Weigh) -> Weigh:
        def weigh_sticks(f: Array, y: Array) -> tuple[Array, Array]:
            total, weighted = np.zeros((2, len(f)))
            tasks = CLASSES.tasks(y, len(self.thresholds))
            for threshold, (is_in, kappa) in zip(self.thresholds, tasks, strict=True):
                own = slice(None) if is_in is None else is_in
                weights, of_stick = weigh(threshold - f[own], kappa)
                total[own] += weights
                weighted[own] += weights * threshold - of_stick
            return total, weighted

        return weigh_sticks

    def log_mass(self, f: Array, y: Array) -> Array:
        """Those of the sticks."""
        return CLASSES.log_mass(self.sticks(f), y)

    def masses(self, f: Array) -> Array:
        """Probability of each class, shape (C, ...), given the function (1, ...)."""
        return CLASSES.masses(self.sticks(f))

    def slope(self, f: Array, y: Array) -> tuple[float, Array]:
        """All sticks pull at the one function."""
        value, residual = CLASSES.slope(self.sticks(f), y)
        return value, -residual.sum(axis=0, keepdims=True)

    def climb(self, targets: Array, climb: Climb, deadline: float | None) -> Scales | None:
        """As if ranks were numbers."""
        return climb(..., (targets - targets.mean()) / targets.std()) if np.ptp(targets) else None

    def draw(
        self, rng: np.random.Generator, rows: TrainingRows, state: ClassState, precisions: Array
    ) -> ClassState:
        """Take a slice step on each threshold less the intercept, then one on the scale of all."""
        coef, at = state.coef, 2 * len(state.frequencies)
        f, y = functions_at_rows(rows, state.frequencies, coef)
        level = float(coef[0, at]) if self.has_level else 0.0
        t = self.thresholds - level
        for k in range(len(t)):
            is_in = y >= k
            own, sign = f[0, is_in] - level, np.where(y[is_in] == k, 1.0, -1.0)

            def log_density(x: float, own: Array = own, sign: Array = sign) -> float:
                tails = np.logaddexp(0.0, sign * (own - x)).sum()
                return float(-tails - 0.5 * self.precision * x * x)

            # The step is on the logarithm of what it is given.
            t[k] = math.log(slice_step(rng, log_density, math.exp(t[k]), f"{_NOWHERE} {t[k]:.3g}"))
        law = replace(self, thresholds=t)
        if self.has_level:
            f, coef[0, at] = f - level - t.mean(), -t.mean()
            law = replace(self, thresholds=t - t.mean())
        square = float(precisions[0] @ np.square(coef[0]))
        square += self.precision * float(law.thresholds @ law.thresholds)
        n_free = coef.size + len(t) - self.has_level

        def log_density_of_scale(x: float) -> float:
            c = math.exp(x)
            scaled = replace(law, thresholds=c * law.thresholds)
            return float(scaled.log_mass(c * f, y).sum() - 0.5 * square * c * c + n_free * x)

        c = slice_step(rng, log_density_of_scale, 1.0, f"{_NOWHERE}s {t}")
        law = replace(law, thresholds=c * law.thresholds)
        return replace(state, mean=c * coef, deviations=np.zeros_like(state.deviations), law=law)

    def recorded(self, found: dict[str, Array]) -> dict[str, Array]:
        """The thresholds besides."""
        return {**found, "thresholds": self.thresholds}


# Counts: one function, the logarithm of the mean.
#
# **Model.** y_i ~ NB(r, logit p_i = g_i - log r), g = offset + f: the mean is e^g, the variance
# e^g + e^2g / r. The literature [1]_, [2]_ has the logit itself for the function, of mean r e^f;
# there the level of f and r hang together, and a chain that draws one given the other creeps. Here
# mean and r are orthogonal in the Fisher information. log r ~ N(log_centre, log_spread^2).
#
# **Augmentation.** With kappa_i = (y_i - r) / 2 and omega_i ~ PG(y_i + r, g_i - log r): a
# regression of log r - offset + kappa_i / omega_i with noise of variance 1 / omega_i.
#
# **Dispersion.** log r is drawn given the function with omega integrated out, by one slice.
#
# References
# ----------
# .. [1] M. Zhou and L. Carin, "Negative Binomial Process Count and Mixture Modeling", IEEE TPAMI
#    37 (2015).
# .. [2] J. W. Pillow and J. G. Scott, "Fully Bayesian inference for neural models with
#    negative-binomial spiking", NIPS 2012.

_LOG_SPREAD = 2.0
# A weight this small says nothing, and is no 0 to divide by.
_LEAST_WEIGHT = 1e-30


@dataclass(frozen=True)
class CountModel(Law):
    """Counts: their dispersion r, the level of the function, and the prior of log r.

    Logarithms of means are smaller than logits: a function with a standard deviation above 3 has
    probability .02, and the level is within factors of 500 of the mean of all counts.
    """

    dispersion: float
    offset: float
    log_centre: float
    log_spread: float = _LOG_SPREAD

    names, is_firm = ("dispersion",), True
    ridge_prior, level_precision, first_trajectory = GammaPrior(2.0, 1.0), 0.1, 0.5

    @classmethod
    def of(cls, y: Array, *, has_level: bool) -> CountModel:
        """Fit counts y (n,): the function is that of the logarithm of their mean, if so asked.

        r is about the root of one plus the mean: from .02 to 50 times that with probability .95.
        """
        mean = (float(y.sum()) + 0.5) / len(y)
        centre = 0.5 * math.log1p(mean)
        return cls(math.exp(centre), math.log(mean) if has_level else 0.0, centre)

    @property
    def _shift(self) -> float:
        return math.log(self.dispersion) - self.offset

    def weigher(self, rng: np.random.Generator) -> Weigh:
        """Draw omega; omega times the pseudo-target is kappa + omega (log r - offset)."""

        def weigh(f: Array, y: Array) -> tuple[Array, Array]:
            omega = np.empty(len(f))
            fill_polya_gamma_of_shapes(rng, y + self.dispersion, f - self._shift, len(f), omega)
            omega = np.maximum(omega, _LEAST_WEIGHT)
            return omega, 0.5 * (y - self.dispersion) + omega * self._shift

        return weigh

    def curvature(self, index: int) -> Weigh:
        """Weights (y + r) p (1 - p)."""

        def weigh(f: Array, y: Array) -> tuple[Array, Array]:
            total, p = y + self.dispersion, expit(f - self._shift)
            weights = np.maximum(total * p * expit(self._shift - f), _LEAST_WEIGHT)
            return weights, weights * f + y - total * p

        return weigh

    def log_mass(self, f: Array, y: Array) -> Array:
        """Of the negative binomial law."""
        return np.asarray(count_log_mass(y, f[0] - self._shift, self.dispersion))

    def climb(self, targets: Array, climb: Climb, deadline: float | None) -> Scales | None:
        """As if the logarithms of one more were numbers."""
        logs = np.log1p(targets)
        return climb(..., (logs - logs.mean()) / logs.std()) if np.ptp(logs) > 0.0 else None

    def draw(
        self, rng: np.random.Generator, rows: TrainingRows, state: ClassState, precisions: Array
    ) -> ClassState:
        """Take one slice step on log r."""
        (f,), y = functions_at_rows(rows, state.frequencies, state.coef)
        values, n_each = np.unique(y, return_counts=True)
        g = f + self.offset

        def log_density(log_r: float) -> float:
            r, z = math.exp(log_r), (log_r - self.log_centre) / self.log_spread
            own = n_each @ count_log_factor(values, r)
            tails = y @ np.logaddexp(0.0, log_r - g) + r * np.logaddexp(0.0, g - log_r).sum()
            return float(own - tails - 0.5 * z * z)

        nowhere = f"no density at dispersion {self.dispersion:.3g}"
        dispersion = slice_step(rng, log_density, self.dispersion, nowhere)
        return replace(state, law=replace(self, dispersion=dispersion))

    def recorded(self, found: dict[str, Array]) -> dict[str, Array]:
        """Of its one function, whose level is put back, and r."""
        found |= {name: found[name][0] for name in _OF_EACH_FUNCTION}
        found["function"] = found["function"] + self.offset
        m2 = 2 * len(found["frequencies"])
        if found["coef_mean"].shape[0] > m2:
            level = np.zeros(found["coef_mean"].shape[0])
            level[m2] = self.offset
            found["coef_mean"] = found["coef_mean"] + level
        return {**found, "dispersion": np.array(self.dispersion)}


_OF_EACH_FUNCTION = (
    "function", "ridge_precision", "linear_precision", "coef_mean", "coef_deviation",
)  # fmt: skip


def functions_at_rows(rows: TrainingRows, frequencies: Array, coef: Array) -> tuple[Array, Array]:
    """Functions (K, n) and targets (n,) at all rows."""
    found, targets = [], []
    for X, y in (part for block in rows.blocks() for part in parts(*block)):
        F = np.empty((coef.shape[1], len(X)))
        fill_design(rows.has_linear_part, frequencies, X, F)
        found.append(coef @ F)
        targets.append(y)
    return np.concatenate(found, axis=1), np.concatenate(targets)


# Where a chain of classes stands, and what its warm-up changes.


@dataclass(frozen=True)
class ClassState:
    """Where the chain stands; K functions."""

    frequencies: Array  # (M, d)
    mean: Array  # (K, 2 M + p), of the coefficients given frequencies and the last omega
    deviations: Array  # (K, k, 2 M + p), draws around it; the first is the chain's
    ridge: Array  # (K,)
    linear_precision: Array  # (K,)
    mixture: MixtureState
    log_likelihood: float  # nats
    law: Law = CLASSES
    is_start_cut: bool = False  # whether ``max_seconds`` ended the climb to the chain's start
    inputs: InputState = field(default_factory=InputState)  # empty unless missing ones are drawn

    @property
    def coef(self) -> Array:
        """The coefficients, shape (K, 2 M + p)."""
        return self.mean + self.deviations[:, 0]


@dataclass(frozen=True)
class ClassTuning(ProposalTuning):
    """The step of the proposals, and that of the trajectories before sweeps.

    Of counts, which have none, that of the moves of all coefficients, up to 1.
    """

    trajectory: float = 0.1
