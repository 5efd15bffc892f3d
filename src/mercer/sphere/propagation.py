"""Expectation propagation over labels: evidence of a model, and draws from its normal law.

Of two classes, whose one function has the labels multiplied in, and of several.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from scipy.special import erfcx, expit, log_ndtr, logit, ndtr, ndtri, softmax

from mercer.errors import NumericalError
from mercer.likelihoods.label_noise import LabelNoise, log_incomplete_beta
from mercer.numerics.cholesky import factorise, invert_lower, invert_triangle, multiply_lower

Array = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# Evidence of a model in a few milliseconds: expectation propagation over its labels.
#
# **Target.** p(labels | model) = E[prod_i t_i(f_i)], f ~ N(0, L L' + s I), labels multiplied in,
# averaged over unknown rates: t_i is P(label | f_i > 0) on the right side, P(label | f_i <= 0)
# on the other. What is not in L (the nugget, and the parts of the Gram matrix too small to matter)
# is independent for every row and integrated out with t_i: a + b Phi(f_i / sqrt(s)).
#
# **One sweep** [1]_, [2]_, all rows at once.
#
# 1. The Gaussian with the sites: P = I + L' T L, marginals of f from its factor.
# 2. Take each site out of its marginal, match the moments of the rest times t_i, and move the site
#    towards that. Sites of labels that look wrong have negative precisions: where P is not positive
#    definite those are halved.
#
# Rates move to the mode of their posterior, as in EM, while the sites settle. Over the log odds of
# q C/(C - 1) the evidence is integrated by Laplace's method, its Hessian from differences of the
# gradient, for which sites need not move: log Z is stationary in them.
#
# **How good.** Beside long tempered runs mostly within half a nat where there is a nugget, and
# within two where there is none and the rank is low. Without a nugget and at low rates the sites
# may run away: smaller steps hold most of them; what is not at rest, or above 0, says nothing.
# From one rate to a rate for each class it may be a long way, on which log Z rises with each sweep:
# steps stay large, and sweeps do not end, as long as it does. Where sites run away it falls, and
# rises again: from the first fall on sweeps count.
#
# References
# ----------
# .. [1] Minka (2001), Expectation propagation for approximate Bayesian inference, UAI.
# .. [2] Rasmussen & Williams (2006), Gaussian Processes for Machine Learning, section 3.6.

_SQRT_2PI = math.sqrt(2.0 * math.pi)
# Sweeps from which on sites move by a share of the way, and the share; how many there are, those
# on which log Z rises while rates are learned counted only by the last number.
_DAMPING = ((40, 0.1), (24, 0.25), (12, 0.5), (0, 0.8))
_FEWEST_SWEEPS, _MOST_SWEEPS, _MOST_LEARNING = 2, 80, 400
# A sweep by which the log evidence, below 0, becomes so many times what it was is taken back, and
# those that follow go half as far, at least so far, and each so much farther; with a nugget of at
# least so much. Without one sites come back by such sweeps.
_FALL, _LEAST_DAMPING, _RECOVERY, _LEAST_NUGGET = 1.25, 0.05, 1.2, 1e-3
# Of these the first may fall: the sites are those of another model.
_FIRST_SWEEPS = 12
# Changes of the log evidence, in nats, below which sites are at rest: on the way to the mode of the
# rates, at it, and for differences of the gradient.
_NEARLY, _AT_REST, _FINE = 0.1, 0.03, 0.03
# What rows have besides L is first taken to be larger by so much, of a mean variance of one or two:
# where L has few columns sites fall to zero otherwise, a fixed point that has learned nothing.
_SOFTER = (0.4, 0.05)
# The rate that the search begins at, the least that it may find, and the largest, as a share of
# that at which a label says nothing, (C - 1)/C.
_FIRST_RATE, _RATES = 0.1, (1e-4, 0.9)
# Step in the log odds of a rate, as such a share; the least curvature there.
_STEP, _FLATTEST = 0.3, 0.05
# A precision is taken to be above this share of the prior's.
_SMALLEST = 1e-10
# Variance of a row that is zero: in `Spectrum.design` it has a direction of its own, too.
_NO_VARIANCE = 1e-12


@dataclass(frozen=True)
class Sites:
    """Gaussian factors exp(shift'f - f'precision f / 2) in the place of the labels.

    Of the one function of two classes (n,) each; of k functions (n, k, k) and (n, k).
    """

    precision: Array
    shift: Array

    def towards(self, other: Sites, share: float) -> Sites:
        """Move a share of the way to others."""
        return Sites(
            self.precision + share * (other.precision - self.precision),
            self.shift + share * (other.shift - self.shift),
        )


@dataclass(frozen=True)
class Approximation:
    """Log evidence (nats) by expectation propagation, at the known rates or those at the mode.

    Unless ``is_settled``, whether the sites came to rest at a probability, at most 1, it says
    nothing.
    """

    log_evidence: float
    is_settled: bool
    sites: Sites
    rates: Array


def approximate_evidence(
    L: Array, variance: Array, noise: LabelNoise, start: Approximation | None = None
) -> Approximation:
    """Approximate the log probability of the labels.

    ``L`` (n, r) holds the rows of the feature space, labels multiplied in, ``variance`` (n,)
    what each row has besides, independent of the others. The noise is one rate or one for each of
    two classes, known or learned, or a known rate above 0 for each row. ``start`` is that of a
    similar model, to begin at.
    """
    return _Labels(L, variance, noise).evidence(start)


@dataclass(frozen=True)
class Swept:
    """Sites after some sweeps, with what the last of them saw."""

    sites: Sites
    log_odds: Array  # of rates, as shares of the largest
    log_z: float
    gradient: Array  # of log_z in the log odds
    is_settled: bool


@dataclass(frozen=True)
class Gaussian:
    """What sites say: g of mean root' centre and covariance root' root; f; and log det P."""

    sites: Sites
    root: Array  # (r, r), of which the lower triangle counts
    centre: Array  # (r,)
    mean: Array  # (n,) of f, or (n, k)
    variance: Array  # (n,) of f, or (n, k, k)
    log_det: float


@dataclass(frozen=True)
class Propagation(ABC):
    """Expectation propagation over labels; the arguments are those of `approximate_evidence`."""

    L: Array
    variance: Array
    noise: LabelNoise

    @property
    def largest_rate(self) -> float:
        """At which a label says nothing: (C - 1)/C."""
        return (self.noise.n_classes - 1) / self.noise.n_classes

    #: Share of the way that sites move, at most, and what rows have besides L on the way to rest.
    largest_share: ClassVar[float] = 1.0
    softer: ClassVar[tuple[float, ...]] = _SOFTER
    follows_rates: ClassVar[bool] = True  # as long as the evidence rises

    @property
    def scale(self) -> float:
        """By which the changes of the evidence that count as rest are larger."""
        return 1.0

    def tells_rate(self, law: Any) -> bool:
        """Whether a law says that so many labels are wrong that the mode of a rate is enough."""
        return False

    @abstractmethod
    def no_sites(self) -> Sites:
        """Sites that say nothing."""

    @abstractmethod
    def _gaussian(self, sites: Sites) -> Gaussian:
        """Step 1, of sites as they may be."""

    @abstractmethod
    def _matched(self, at: Gaussian, log_odds: Array, share: float) -> tuple[Swept, Array]:
        """Step 2, and the probabilities that labels are wrong."""

    @abstractmethod
    def normal(self, sites: Sites, log_odds: Array) -> Any:
        """The law of classifiers that sites at rest say, and P(wrong) of each label."""

    def evidence(self, start: Approximation | None = None) -> Approximation:
        """Approximate the log probability of the labels, from that of a similar model on."""
        mode = self.mode(start)
        value, rates = mode.log_z, self.noise.rates
        if rates is None:
            rates = self.largest_rate * expit(mode.log_odds)
            value = self.integrated(mode) if mode.is_settled else value
        return Approximation(value, mode.is_settled and value <= 0.0, mode.sites, rates)

    def again(self, found: Approximation) -> Swept:
        """What the mode was when it was found for the same labels and learned rates."""
        log_odds = logit(found.rates / self.largest_rate)
        swept, _ = self._sweep(found.sites, log_odds, 0.0)
        return replace(swept, is_settled=found.is_settled)

    def mode(self, start: Approximation | None = None) -> Swept:
        """Sites at rest, at the known rates or where the learned ones are most probable."""
        is_learning = self.noise.prior is not None
        sites = start.sites if start is not None else self.no_sites()
        n_rates = 2 if self.noise.is_by_class else 1
        rates = np.full(n_rates, _FIRST_RATE) if start is None else np.resize(start.rates, n_rates)
        if not is_learning:
            assert self.noise.rates is not None
            rates = self.noise.rates
        log_odds = logit(rates / self.largest_rate)
        for more in self.softer if start is None else ():
            if self.variance.mean() < 0.9 * more:
                soft = replace(self, variance=self.variance + more)
                nearly = _NEARLY * max(1.0, len(self.L) / _ROWS_AT_REST)
                swept = soft.settle(sites, log_odds, nearly, is_learning=is_learning)
                sites, log_odds = swept.sites, swept.log_odds
        if is_learning:
            near = self.settle(sites, log_odds, _NEARLY, is_learning=True)
            sites, log_odds = near.sites, near.log_odds
        return self.settle(sites, log_odds, _AT_REST)

    def settle(
        self, sites: Sites, log_odds: Array, tolerance: float, *, is_learning: bool = False
    ) -> Swept:
        """Sweep until log Z is at rest; where rates are being learned they follow the errors."""
        before, swept, n_counted, climbs = np.inf, None, 0, is_learning
        tolerance, last, change, damping = tolerance * self.scale, sites, np.inf, 1.0
        has_nugget = self.variance.mean() > _LEAST_NUGGET
        for k in range(_MOST_LEARNING if is_learning and self.follows_rates else _MOST_SWEEPS):
            share = min(self.largest_share, next(s for n, s in _DAMPING if n_counted >= n))
            try:
                found, wrong = self._sweep(sites, log_odds, share * damping)
            except (NumericalError, np.linalg.LinAlgError):  # they ran away: back to the last law
                if swept is None:
                    raise
                swept, change = replace(swept, sites=last), np.inf
                break
            is_too_far = has_nugget and found.log_z < _FALL * before < 0.0
            if is_too_far and damping > _LEAST_DAMPING:
                damping, n_counted = 0.5 * damping, n_counted + 1
                sites = last.towards(sites, 0.5)
                continue
            damping, swept, last = min(1.0, _RECOVERY * damping), found, sites
            is_rising = before < swept.log_z < 0.0
            climbs &= is_rising or k < _FIRST_SWEEPS
            n_counted += not (climbs and is_rising)
            sites, change, before = swept.sites, abs(swept.log_z - before), swept.log_z
            is_at_rest = k + 1 >= _FEWEST_SWEEPS and change < tolerance
            if is_at_rest or n_counted == _MOST_SWEEPS:
                break
            if is_learning:
                log_odds = self._likely_rates(wrong)
        assert swept is not None
        return replace(swept, log_odds=log_odds, is_settled=bool(change < tolerance))

    def integrated(self, mode: Swept) -> float:
        """Log evidence over the rates by Laplace's method about a point near their mode."""
        n_rates = len(mode.log_odds)
        gradient = mode.gradient + self._prior_gradient(mode.log_odds)
        hessian = np.empty((n_rates, n_rates))
        for k in range(n_rates):
            shifted = mode.log_odds + _STEP * (np.arange(n_rates) == k)
            there = self.settle(mode.sites, shifted, _FINE).gradient
            hessian[k] = (there + self._prior_gradient(shifted) - gradient) / _STEP
        curvature, axes = np.linalg.eigh(-0.5 * (hessian + hessian.T))
        curvature = np.maximum(curvature, _FLATTEST)
        ahead = np.minimum(0.5 * (axes.T @ gradient) ** 2 / curvature, 1.0).sum()
        width = 0.5 * np.log(2.0 * math.pi / curvature).sum()
        return float(mode.log_z + self._log_prior(mode.log_odds) + ahead + width)

    def _sweep(self, sites: Sites, log_odds: Array, share: float) -> tuple[Swept, Array]:
        """One sweep; also the probabilities that labels are wrong."""
        return self._matched(self._gaussian(sites), log_odds, share)

    def log_posterior(self, swept: Swept) -> tuple[float, float]:
        """Log density of the rates at which sites have come to rest, and its slope along both."""
        value = swept.log_z + self._log_prior(swept.log_odds)
        return value, float((swept.gradient + self._prior_gradient(swept.log_odds)).sum())

    def _by_rate(self, of_wrong: Array, of_right: Array) -> Array:
        """Sums over rows: a wrong label is due to the rate of the other class."""
        if not self.noise.is_by_class:
            return np.array([(of_wrong + of_right).sum()])
        group = self.noise.group
        of_other, of_own = np.bincount(1 - group, of_wrong, 2), np.bincount(group, of_right, 2)
        return np.asarray(of_other + of_own, dtype=np.float64)

    def _likely_rates(self, wrong: Array) -> Array:
        """Log odds of the rates by the labels that are expected to be wrong."""
        assert self.noise.prior is not None
        a, b = self.noise.prior
        n_wrong = self._by_rate(wrong, np.zeros_like(wrong))
        n = self._by_rate(wrong, 1.0 - wrong)
        found, most = (n_wrong + a) / (n + a + b), self.largest_rate
        return np.asarray(logit(np.clip(found, _RATES[0], _RATES[1] * most) / most))

    def _log_prior(self, log_odds: Array) -> float:
        """Log density of the log odds, of q from its Beta law below the largest rate."""
        assert self.noise.prior is not None
        (a, b), most = self.noise.prior, self.largest_rate
        q, share = most * expit(log_odds), expit(log_odds)
        whole = log_incomplete_beta(np.array([a]), np.array([b]), most)[0]
        log_density = a * np.log(q) + (b - 1.0) * np.log1p(-q) + np.log1p(-share) - whole
        return float(log_density.sum())

    def _prior_gradient(self, log_odds: Array) -> Array:
        assert self.noise.prior is not None
        (a, b), share = self.noise.prior, expit(log_odds)
        q = self.largest_rate * share
        return np.asarray((a - (b - 1.0) * q / (1.0 - q)) * (1.0 - share) - share)


@dataclass(frozen=True)
class _Labels(Propagation):
    """Those of two classes."""

    def no_sites(self) -> Sites:
        """Of precision zero."""
        return Sites(np.zeros(len(self.L)), np.zeros(len(self.L)))

    def _gaussian(self, sites: Sites) -> Gaussian:
        """Step 1, of sites as they may be."""
        while True:
            # Of a matrix and itself a product is half the work.
            rooted = self.L * np.sqrt(np.maximum(sites.precision, 0.0))[:, np.newaxis]
            P = rooted.T @ rooted
            below = np.flatnonzero(sites.precision < 0.0)
            if len(below):
                rooted = self.L[below] * np.sqrt(-sites.precision[below])[:, np.newaxis]
                P -= rooted.T @ rooted
            P.flat[:: len(P) + 1] += 1.0
            try:
                C = factorise(P.T)
                break
            except NumericalError:
                low = np.minimum(sites.precision, 0.0)
                is_tiny = low.min() > -1e-3
                sites = replace(sites, precision=sites.precision - (1.0 if is_tiny else 0.5) * low)
        log_det = 2.0 * float(np.log(C.diagonal()).sum())
        invert_triangle(C)
        A = multiply_lower(C, self.L.T)
        centre = A @ sites.shift
        variance = np.maximum(np.einsum("ij,ij->j", A, A), _NO_VARIANCE)
        return Gaussian(sites, C, centre, A.T @ centre, variance, log_det)

    def _matched(self, at: Gaussian, log_odds: Array, share: float) -> tuple[Swept, Array]:
        """Step 2, and the same probabilities."""
        sites, marginal, mean = at.sites, at.variance, at.mean
        rates = 0.5 * expit(log_odds)
        own, other = self.noise.rates_of_rows(rates)
        cavity = np.maximum(1.0 / marginal - sites.precision, _SMALLEST / marginal)
        m = (mean / marginal - sites.shift) / cavity
        sd = np.sqrt(1.0 / cavity + self.variance)
        z = m / sd
        right = ndtr(z)
        total = other + (1.0 - own - other) * right  # of the tilted law
        slope = (1.0 - own - other) * np.exp(-0.5 * z * z) / (_SQRT_2PI * sd * total)
        bend = slope * (slope + z / sd)
        left = np.maximum(1.0 - bend / cavity, 1e-3)
        precision, shift = bend / left, (slope + m * bend) / left
        log_z = float(
            np.log(total).sum() + 0.5 * sites.shift @ mean - 0.5 * at.log_det
            + 0.5 * (m * m * cavity - mean * mean / marginal - np.log(cavity * marginal)).sum()
        )  # fmt: skip
        wrong = other * (1.0 - right) / total
        moved = sites.towards(Sites(precision, shift), share)
        by_rate = self._by_rate((1.0 - right) / total, -right / total)
        gradient = rates * (1.0 - 2.0 * rates) * by_rate
        return Swept(moved, log_odds, log_z, gradient, is_settled=False), wrong

    def normal(self, sites: Sites, log_odds: Array) -> NormalLaw:
        """The law of classifiers that sites at rest say, and P(wrong) of each label."""
        at = self._gaussian(sites)
        _, p_wrong = self._matched(at, log_odds, 0.0)
        return NormalLaw(at.centre, np.tril(at.root), at.mean, np.sqrt(at.variance), p_wrong)


# The posterior that the approximation is of: normal laws of classifiers, one for each of some
# values of a rate that is learned, and weights.
#
# Where many labels look wrong a rate is known well, and its mode is enough. Else values a posterior
# standard deviation apart in those log odds, from the mode on as far as they have some weight;
# of two rates both move together. What tells a rate from the draws' errors does the rest.

# Standard deviation of the log odds below which the mode is enough; values on either side of it, at
# most; nats behind the mode beyond which they have no weight.
_KNOWN_RATE, _MOST_NODES, _NO_WEIGHT = 0.1, 8, 5.0
# Numbers of L, of which there are three matrices at once, at most.
LARGEST_PROPAGATED = 2**27
RESTLESS = (
    "expectation propagation had not come to rest: probabilities that labels are wrong are rough"
)
NOT_AT_REST = (
    "expectation propagation did not come to rest with these labels; sampler='auto' takes chains"
)


@dataclass(frozen=True)
class NormalLaw:
    """g = root' (centre + z), z ~ N(0, I), at known rates, and what it says of the labels.

    ``root`` (r, r) and ``centre`` (r,); mean and standard deviation of f = L g and ``p_wrong``, the
    probability that the label is wrong, of each row, (n,) each. Of a label that looks wrong the law
    of f has two parts, of which the normal one keeps mean and variance: the share of f <= 0 in it
    is not that probability.
    """

    centre: Array
    root: Array
    mean: Array
    sd: Array
    p_wrong: Array

    @property
    def about_labels(self) -> Array:
        """The probability that each is wrong."""
        return self.p_wrong

    def draw(
        self, rng: np.random.Generator, L: Array, nugget: float | Array, n: int
    ) -> tuple[Array, Array, BoolArray]:
        """Draw g (n, r), all of f (n, n_rows), and which labels are wrong: the lowest, by p_wrong.

        The noise of rows, of variance ``nugget``, all or (n_rows,), is drawn on the side that the
        label is said to be on.
        """
        G = (self.centre + rng.standard_normal((n, len(self.centre)))) @ self.root
        F = G @ L.T
        if not np.any(nugget):
            return G, F, self.mean + self.sd * ndtri(self.p_wrong) >= F
        own = np.sqrt(np.maximum(nugget, _NO_VARIANCE))
        highest = self.mean + np.sqrt(self.sd**2 + nugget) * ndtri(self.p_wrong)
        is_wrong = highest - own * rng.standard_normal(F.shape) >= F
        side = np.where(is_wrong, -1.0, 1.0)
        below = np.maximum(ndtr(side * F / own), np.finfo(float).tiny)
        return G, F - side * own * ndtri(rng.random(F.shape) * below), is_wrong


def approximate_posterior(
    L: Array,
    variance: Array,
    noise: LabelNoise,
    labels: NDArray[np.int64] | None = None,
    known: Approximation | None = None,
) -> tuple[Array, tuple[NormalLaw | SeveralLaw, ...]]:
    """Weights (k,) and laws of classifiers by expectation propagation.

    The arguments are those of `approximate_evidence`; of several classes ``labels`` are given, and
    not multiplied into L. If ``known``, of the same at learned rates, the mode is that. A
    `NumericalError` where sites do not rest; the law of several classes says that they did not.
    """
    problem: Propagation = _Labels(L, variance, noise)
    if labels is not None:
        problem = SeveralLabels(L, variance, noise, labels)
    swept = problem.mode() if known is None else problem.again(known)
    log_odds, most = swept.log_odds, problem.largest_rate
    is_settled = swept.is_settled and swept.log_z <= 0.0
    if not is_settled and (labels is None or not np.isfinite(swept.log_z)):
        raise NumericalError(NOT_AT_REST)
    law = problem.normal(swept.sites, log_odds)
    law = law if is_settled else replace(law, is_settled=False)
    if not is_settled or problem.noise.prior is None or problem.tells_rate(law):
        return np.ones(1), (law,)
    value, slope = problem.log_posterior(swept)
    there = problem.settle(swept.sites, log_odds + _STEP, _FINE)
    width = max((slope - problem.log_posterior(there)[1]) / _STEP, _FLATTEST) ** -0.5
    nodes = [(value, swept)]
    for step in (width, -width) if width >= _KNOWN_RATE else ():
        sites = swept.sites
        for k in range(1, _MOST_NODES + 1):
            q = most * expit(log_odds + k * step).min()
            if not _RATES[0] < q < _RATES[1] * most:
                break
            other = problem.settle(sites, log_odds + k * step, _AT_REST)
            sites, found = other.sites, problem.log_posterior(other)[0]
            if not other.is_settled or found < value - _NO_WEIGHT:
                break
            nodes.append((found, other))
    values = np.array([found for found, _ in nodes])
    weights = np.exp(values - values.max())
    others = (problem.normal(one.sites, one.log_odds) for _, one in nodes[1:])
    return weights / weights.sum(), (law, *others)


# Expectation propagation for several classes: as of two, of contrasts.
#
# **Target.** The labels depend on the C functions through K = C - 1 contrasts h = A f alone, A the
# rows of Helmert's matrix: orthonormal, so that a priori these are independent, each as one f is.
# With q the rate and e = q/(C - 1) a label y has the probability
#
#     t(h) = e + (1 - q - e) 1[f_y is largest],      f_y - f_c = (A_y - A_c)'h  for every other c.
#
# **One sweep**, all rows at once. Sites are exp(shift'h - h'precision h/2), with K x K precisions
# that need not be positive; P = I + [L' W_kl L]_kl.
#
# 1. Marginals of h at every row from P^-1: K x K.
# 2. With m, V a row's marginal without its site and U = V + s I the cone {f_y is largest} has log
#    probability log p, gradient and second derivatives in m by expectation propagation over its K
#    walls [3]_; then with log Z = log(e + (1 - q - e) p), G its gradient, H its second derivatives
#
#        precision = -(I + H V)^-1 H,     shift = precision m + (I + H V)^-1 G .
#
# **How good.** Of two classes it is that of two classes. Of three to five rows the evidence is
# within .12 nats of draws of the prior, P(wrong) within .06; of 150 rows P(wrong) is within .02 of
# chains on average (tests). Without a nugget and at low rates it is off by more.
#
# **Cost.** O(K^2 n r^2 + K^3 r^3) a sweep.
#
# References
# ----------
# .. [3] Cunningham, Hennig & Lacoste-Julien (2011), Gaussian probabilities and expectation
#    propagation, arXiv:1111.6832.

_MOST_INNER, _INNER_AT_REST = 30, 1e-4  # sweeps over the walls; change of precision times variance
_SHARE = 0.8  # of the way that sites of walls move
_LEAST_KEPT, _LEAST_LEFT = 1e-3, 1e-3  # of a precision without its site; of a variance with it
_FARTHEST, _FAR = 1e3, 50.0  # standard deviations on the wrong side of a wall
_IMPOSSIBLE = -40.0  # log probability of a cone of which nothing more is known
# At rest the evidence may change four times as much as that of two classes, and of more rows than
# so many by as much more: sweeps are slower.
_LOOSER, _ROWS_AT_REST = 4.0, 2000
_MANY_WRONG = 16.0  # labels, by which the log odds of their rate are known to a fourth
_SWEEPS_OF_NOISE, _MOST_HALVINGS = 5, 20


def leads(f: Array, labels: NDArray[np.int64]) -> tuple[Array, Array]:
    """Lead of the recorded class over the best other at f (..., C, n), and f without the former."""
    is_label = labels == np.arange(f.shape[-2])[:, np.newaxis]
    own, others = np.where(is_label, f, -np.inf).max(axis=-2), np.where(is_label, -np.inf, f)
    return own - others.max(axis=-2), others


@dataclass(frozen=True)
class SeveralLabels(Propagation):
    """Labels 0..C-1, (n,), wrong at one rate, known or learned, or at known rates of rows."""

    labels: NDArray[np.int64]
    largest_share: ClassVar[float] = 0.5  # with .8 sites of contrasts swing
    softer: ClassVar[tuple[float, ...]] = ()
    follows_rates: ClassVar[bool] = False  # a sweep takes seconds

    @property
    def scale(self) -> float:
        """Of what the evidence may change by where sites are at rest."""
        return _LOOSER * max(1.0, len(self.L) / _ROWS_AT_REST)

    def no_sites(self) -> Sites:
        """Of precision zero."""
        n, K = len(self.L), self.noise.n_classes - 1
        return Sites(np.zeros((n, K, K)), np.zeros((n, K)))

    def normal(self, sites: Sites, log_odds: Array) -> SeveralLaw:
        """The law of contrasts that sites at rest say, and P(class) of each row."""
        at = self._gaussian(sites)
        mean, B, _ = _without_sites(at)
        log_p = np.stack(
            [self._log_cone(mean, B, walls)[0] for walls in _walls(self.noise.n_classes)], axis=1
        )
        right, wrong = self._log_rates(log_odds)
        is_label = self.labels[:, np.newaxis] == np.arange(self.noise.n_classes)
        log_p += np.where(is_label, right[:, np.newaxis], wrong[:, np.newaxis])
        return SeveralLaw(at.centre, np.tril(at.root), self.labels, softmax(log_p, axis=1))

    def tells_rate(self, law: Any) -> bool:
        """Where it is known to a fourth: sweeps are slower than those of two classes."""
        return float(law.p_wrong.sum()) > _MANY_WRONG

    def _gaussian(self, sites: Sites) -> Gaussian:
        L, (n, r), K = self.L, self.L.shape, self.noise.n_classes - 1
        pairs = list(itertools.combinations_with_replacement(range(K), 2))
        parts = [slice(k * r, (k + 1) * r) for k in range(K)]
        for _ in range(_MOST_HALVINGS):
            P = np.eye(K * r)
            for k, j in pairs:  # what stands above the diagonal
                P[parts[k], parts[j]] += L.T @ (L * sites.precision[:, k, j, np.newaxis])
            try:
                C = factorise(P.T)
                break
            except NumericalError:
                values, vectors = np.linalg.eigh(sites.precision)
                low = np.minimum(values, 0.0)
                values -= (1.0 if low.min() > -1e-3 else 0.5) * low
                precision = (vectors * values[:, np.newaxis]) @ vectors.swapaxes(1, 2)
                sites = replace(sites, precision=precision)
        else:
            raise NumericalError(NOT_AT_REST)
        log_det = 2.0 * float(np.log(C.diagonal()).sum())
        root = invert_lower(C)
        S, centre = root.T @ root, root @ (L.T @ sites.shift).T.ravel()
        variance = np.empty((n, K, K))
        for k, j in pairs:
            variance[:, k, j] = np.einsum("ij,ij->i", L @ S[parts[k], parts[j]], L)
            variance[:, j, k] = variance[:, k, j]
        mean = L @ (root.T @ centre).reshape(K, r).T
        return Gaussian(sites, root, centre, mean, variance, log_det)

    def _matched(self, at: Gaussian, log_odds: Array, share: float) -> tuple[Swept, Array]:
        sites = at.sites
        mean, B, log_z = _without_sites(at)
        walls = _walls(self.noise.n_classes)[self.labels]
        log_p, slope, bend = self._log_cone(mean, B, walls)
        right, wrong = self._log_rates(log_odds)
        with np.errstate(divide="ignore"):  # at the largest rate there is
            log_right = right + np.log1p(-np.exp(wrong - right)) + log_p
        log_total = np.logaddexp(wrong, log_right)
        weight = np.where(log_p < _IMPOSSIBLE, 0.0, np.exp(log_right - log_total))
        G = weight[:, np.newaxis] * slope
        bend = weight[:, np.newaxis, np.newaxis] * (bend - _outer(slope)) + _outer(G)  # -H
        values, Q = np.linalg.eigh(bend)
        left = np.maximum(1.0 - values, _LEAST_LEFT)
        F = np.linalg.inv(B).swapaxes(1, 2) @ Q
        precision = (F * (values / left)[:, np.newaxis]) @ F.swapaxes(1, 2)
        shift = _times(precision, mean) + _times(F, _times(Q.swapaxes(1, 2), G) / left)
        moved = sites.towards(Sites(precision, shift), share)
        log_z += float(log_total.sum() - 0.5 * at.log_det + 0.5 * np.sum(sites.shift * at.mean))
        if not np.isfinite(log_z):
            raise NumericalError(NOT_AT_REST)
        p, n_others = np.exp(log_p - log_total), self.noise.n_classes - 1
        by_rate = float(((np.exp(-log_total) - p) / n_others - p).sum())
        q = self.largest_rate * expit(log_odds)
        gradient = q * (1.0 - q / self.largest_rate) * by_rate
        is_wrong = 1.0 - np.exp(right + log_p - log_total)
        return Swept(moved, log_odds, log_z, gradient, is_settled=False), is_wrong

    def _log_rates(self, log_odds: Array) -> tuple[Array, Array]:
        """Log P(label | its class), and log P(label | another), of each row."""
        q, _ = self.noise.rates_of_rows(self.largest_rate * expit(log_odds))
        with np.errstate(divide="ignore"):
            return np.log1p(-q), np.log(q / (self.noise.n_classes - 1))

    def _log_cone(self, mean: Array, B: Array, walls: Array) -> tuple[Array, Array, Array]:
        """`log_orthant` of the leads at rows with covariance B B' and noise, in units of B."""
        A = walls @ B
        own = self.variance[:, np.newaxis, np.newaxis] * (walls @ walls.swapaxes(-1, -2))
        log_p, slope, bend = log_orthant(_times(walls, mean), A @ A.swapaxes(1, 2) + own)
        return log_p, _times(A.swapaxes(1, 2), slope), A.swapaxes(1, 2) @ bend @ A


def approximate_several(L: Array, variance: Array, noise: LabelNoise, labels: Any) -> Approximation:
    """As `approximate_evidence`, of several classes."""
    if len(L) < L.shape[1]:  # as many columns as rows say the same
        L = np.asarray(np.linalg.qr(L.T, mode="r")).T
    return SeveralLabels(L, variance, noise, labels).evidence()


def log_orthant(mean: Array, covariance: Array) -> tuple[Array, Array, Array]:
    """Log P(d > 0) of d ~ N(mean, covariance), (n, K) and (n, K, K), and derivatives in the mean.

    By expectation propagation, exact for K = 1: log probability (n,), gradient (n, K), and minus
    the second derivatives (n, K, K).
    """
    n, K = mean.shape
    tau, nu, centre, marginal = np.zeros((n, K)), np.zeros((n, K)), mean, covariance
    for k in range(_MOST_INNER):
        cavity, shift, _, moments = _beside_walls(marginal, centre, tau, nu)
        to_tau = np.maximum(1.0 / moments[1] - cavity, 0.0)
        to_nu = moments[0] * (to_tau + cavity) - shift
        change, share = np.abs(to_tau - tau) / (cavity + tau), _SHARE if k else 1.0
        tau, nu = tau + share * (to_tau - tau), nu + share * (to_nu - nu)
        root = np.sqrt(tau)
        inside = root[:, :, np.newaxis] * covariance * root[:, np.newaxis] + np.eye(K)
        bend = root[:, :, np.newaxis] * np.linalg.inv(inside) * root[:, np.newaxis]
        marginal = covariance - covariance @ bend @ covariance
        force = nu - tau * mean
        slope = force - _times(bend, _times(covariance, force))
        centre = mean + _times(covariance, slope)
        if change.max(initial=0.0) < _INNER_AT_REST:
            break
    cavity, shift, log_z, _ = _beside_walls(marginal, centre, tau, nu)
    log_z += 0.5 * np.log1p(tau / cavity)
    log_z += 0.5 * shift**2 / cavity - 0.5 * (nu + shift) ** 2 / (cavity + tau)
    log_z += nu * mean - 0.5 * tau * mean**2 + 0.5 * force * _times(marginal, force)
    log_p = log_z.sum(axis=1) - 0.5 * np.linalg.slogdet(inside)[1]
    return np.minimum(log_p, 0.0), slope, bend


def _beside_walls(
    marginal: Array, mean: Array, tau: Array, nu: Array
) -> tuple[Array, Array, Array, tuple[Array, Array]]:
    """Precision and shift of marginals without their sites; log mass, mean, variance above zero."""
    v = np.maximum(np.diagonal(marginal, axis1=1, axis2=2), _NO_VARIANCE)  # but for rounding
    precision = np.maximum(1.0 / v - tau, _NO_VARIANCE / v)
    shift, sd = mean / v - nu, precision**-0.5
    z = np.clip(shift * sd, -_FARTHEST, _FARTHEST)
    ratio = math.sqrt(2.0 / math.pi) / erfcx(-z / math.sqrt(2.0))
    left = np.where(z < -_FAR, 1.0 / np.square(np.minimum(z, -1.0)), 1.0 - ratio * (z + ratio))
    return precision, shift, log_ndtr(z), (sd * (z + ratio), np.clip(left, 1e-10, 1.0) * sd**2)


def _without_sites(at: Gaussian) -> tuple[Array, Array, float]:
    """Mean (n, K) and root B (n, K, K) of the covariance of rows without their sites.

    Also what these contribute to the log evidence.
    """
    values, vectors = np.linalg.eigh(at.variance)
    values = np.sqrt(np.maximum(values, _NO_VARIANCE))
    R = vectors * values[:, np.newaxis]
    taken, Q = np.linalg.eigh(R.swapaxes(1, 2) @ at.sites.precision @ R)
    # Of a site that would leave less than nothing so much is taken out that a little stays.
    part = np.minimum((1.0 - _LEAST_KEPT) / np.maximum(taken[:, -1:], 1e-300), 1.0)
    F, kept = R @ Q, 1.0 - part * taken
    whole = _times(Q.swapaxes(1, 2), _times(vectors.swapaxes(1, 2), at.mean) / values)
    own = (whole - part * _times(F.swapaxes(1, 2), at.sites.shift)) / np.sqrt(kept)
    B = F / np.sqrt(kept)[:, np.newaxis]
    log_z = 0.5 * float(np.sum(own**2) - np.sum(whole**2) - np.log(kept).sum())
    return _times(B, own), B, log_z


def _walls(n_classes: int) -> Array:
    """What takes contrasts to the leads of each class over the others: (C, K, K)."""
    A = helmert(n_classes).T
    return np.stack([A[c] - np.delete(A, c, axis=0) for c in range(n_classes)])


def _times(matrices: Array, vectors: Array) -> Array:
    return np.asarray((matrices @ vectors[..., np.newaxis])[..., 0])


def _outer(vectors: Array) -> Array:
    return vectors[:, :, np.newaxis] * vectors[:, np.newaxis]


@dataclass(frozen=True)
class SeveralLaw:
    """Contrasts root' (centre + z), z ~ N(0, I), at known rates, and what they say of the labels.

    ``root`` (K r, K r), ``centre`` (K r,), ``labels`` as recorded, and P(class) of each row in
    ``about_labels`` (n, C). As of `NormalLaw`, the share of draws in which a label is wrong would
    not be that probability. Unless it ``is_settled`` sites had not come to rest.
    """

    centre: Array
    root: Array
    labels: NDArray[np.int64]
    about_labels: Array
    is_settled: bool = True

    @property
    def p_wrong(self) -> Array:
        """The probability that each label is wrong."""
        return 1.0 - self.about_labels[np.arange(len(self.labels)), self.labels]

    def draw(
        self, rng: np.random.Generator, L: Array, nugget: float | Array, n: int
    ) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Draw g (n, C, r), f (n, C, n_rows), and which labels are wrong: the lowest leads.

        These by P(class). The noise of rows, of variance ``nugget``, is drawn such that the class
        of a row is the label, or another where that is wrong.
        """
        A = helmert(self.about_labels.shape[1])
        H = (self.centre + rng.standard_normal((n, len(self.centre)))) @ self.root
        G = np.einsum("kc,bkr->bcr", A, H.reshape(n, len(A), L.shape[1]))
        F = G @ L.T
        own, has_noise = np.sqrt(np.maximum(nugget, _NO_VARIANCE)), np.any(nugget)
        noisy = F + own * rng.standard_normal(F.shape) if has_noise else F
        lead, others = leads(noisy, self.labels)
        rank = lead.argsort(axis=0).argsort(axis=0)
        is_wrong = rank + rng.random(len(self.labels)) < self.p_wrong * n
        if has_noise:
            largest = np.where(is_wrong, others.argmax(axis=1), self.labels)[:, np.newaxis]
            F = F + own * _noise_within(rng, F / own, (noisy - F) / own, largest)
        return G, F, is_wrong


def _noise_within(
    rng: np.random.Generator, f: Array, noise: Array, largest: NDArray[np.int64]
) -> Array:
    """Draw standard normal noise (b, C, n) given which of f + noise is ``largest`` (b, 1, n).

    A few sweeps of Gibbs' sampler, from noise of any kind.
    """
    is_largest = largest == np.arange(f.shape[1])[:, np.newaxis]
    tiny = np.finfo(float).tiny
    for _ in range(_SWEEPS_OF_NOISE):
        bar = np.where(is_largest, -np.inf, f + noise).max(axis=1, keepdims=True)
        above = np.maximum(ndtr(f - bar), tiny)  # P(noise > bar - f)
        noise = np.where(is_largest, -ndtri(rng.random(f.shape) * above), noise)
        top = np.where(is_largest, f + noise, -np.inf).max(axis=1, keepdims=True)
        below = np.maximum(ndtr(top - f), tiny)
        noise = np.where(is_largest, noise, ndtri(rng.random(f.shape) * below))
    return noise
