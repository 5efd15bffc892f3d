"""The exact evidence of a GP classifier by importance sampling from Gaussians near the mode.

The nugget that is part of the exact model, and the factor of the Gram matrix that it allows.

Latent values have the prior N(0, K + j I) with j = 1e-8 times the mean of diag K: white noise of a
ten-thousandth of the function's standard deviation, which no label can show. The rounding of the
factor of a Gram matrix of rank one is about 1e-16 n times that mean, so that up to 5000 rows j is
four orders of magnitude above it; the factor's condition is at most 1e4 n^.5.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import expit, logsumexp

from mercer.errors import NumericalError
from mercer.gp.loops import inverse_diagonal, weighted_identity_plus
from mercer.kernels.base import Kernel
from mercer.likelihoods.logistic import logistic_moments, targets_and_totals
from mercer.numerics.cholesky import (
    Workspace,
    add_nugget,
    factorise,
    invert_triangle,
    solve_factored,
)
from mercer.posterior.diagnostics import effective_sample_size
from mercer.sampling.sampler import Point

Array = NDArray[np.float64]


def lower_factor(K: Array) -> Array:
    """Return the lower triangular L, with zeros above, of K = L L'; K is not changed.

    Raises
    ------
    NumericalError
        If K is not positive definite to working precision.
    """
    return np.tril(factorise(K.T.copy(order="F")))


# Gaussians close to the posterior of latent values: Laplace's, shifted, and a variational one.
#
# All are N(K c, (K^-1 + W)^-1) with a diagonal W, so one class describes them. The shifted Laplace
# Gaussian has c = a + q, the mode moved to the mean in first order, and W at the mode. The
# variational one maximises the lower bound
#
#     E log p(y | f) - c'K c/2 + sum(gain)/2 - log|B|/2,  gain = 1 - diag B^-1,  B = I + W^.5 K
#     W^.5
#
# over c and W: there c = y - t E pi and W = t E pi (1 - pi), averages over the Gaussian itself, of
# rows that count t times, y of these in class 1. Its
# variances are wider than Laplace's where the likelihood is skewed, which is what the weights of
# importance sampling need.
#
# **Steps.** From Laplace's Gaussian, at most three times: with the variances fixed, Newton steps
# for c (concave), then W anew; the result is moved back towards the start of the step while the
# bound falls. So it is never worse than the Gaussian that it starts from, and where no step
# succeeds it is that one, and says so.
#
# **Cost.** Two factors and an inverse for every step: O(n^3).

_MAX_STEPS, _NEWTON_STEPS, _HALVINGS = 3, 4, 4
_SETTLED = 0.05  # change of log W, or of f in standard deviations, that no longer matters
SMALLEST_WEIGHT = 1e-12  # so that a logarithm and a root can be taken


@dataclass(frozen=True)
class Proposal:
    """N(K c, (K^-1 + W)^-1), n latent values in logits.

    ``coef`` (n,) is c, ``mean`` K c, ``root_weights`` W^.5, ``L`` (n, n) the factor of B in the
    lower triangle, Fortran-ordered, and ``log_det`` log|B|/2. ``bound`` is the lower bound of the
    log evidence, nats, minus infinity where it was not computed; unless ``is_settled`` the search
    that made it did not come to rest.
    """

    coef: Array
    mean: Array
    root_weights: Array
    L: Array
    log_det: float
    bound: float = -np.inf
    is_settled: bool = True


@dataclass(frozen=True)
class _Stage:
    """A proposal with the moments of its latent values."""

    proposal: Proposal
    weights: Array
    variance: Array


def make_proposal(K: Array, coef: Array, weights: Array) -> Proposal:
    """Make the Gaussian with these coefficients and this diagonal W, both of shape (n,).

    Raises
    ------
    NumericalError
        If B cannot be factorised in double precision.
    """
    root_weights = np.sqrt(weights)
    B = np.empty_like(K)
    weighted_identity_plus(K, root_weights, B)
    L = factorise(B.T)
    return Proposal(coef, K @ coef, root_weights, L, float(np.log(L.diagonal()).sum()))


def fit_variational(K: Array, y: Array, totals: Array, coef: Array, weights: Array) -> Proposal:
    """Climb the lower bound from the Gaussian with these coefficients and this W, (n,) each.

    K has its nugget; y (n,) of ``totals`` are of class 1. ``is_settled`` is False where a step that
    was needed could not be taken. A `NumericalError` if B cannot be factorised in double precision.
    """
    best = _stage(K, y, totals, coef, np.maximum(weights, SMALLEST_WEIGHT))
    for _ in range(_MAX_STEPS):
        new_coef = _newton(K, y, totals, best)
        new_mean = K @ new_coef
        slope = totals * logistic_moments(new_mean, best.variance).slope
        new_weights = np.maximum(slope, SMALLEST_WEIGHT)
        shift = (new_mean - best.proposal.mean) / np.sqrt(best.variance)
        stretch = np.log(new_weights / best.weights) * best.weights * best.variance
        change = max(float(np.abs(shift).max()), float(np.abs(stretch).max()))
        if change < _SETTLED:
            return best.proposal
        better = _raised(K, y, totals, best, new_coef, new_weights)
        if better is None:
            return replace(best.proposal, is_settled=False)
        best = better
    return best.proposal


def _stage(K: Array, y: Array, totals: Array, coef: Array, weights: Array) -> _Stage:
    """Make a proposal, its variances and its bound."""
    plain = make_proposal(K, coef, weights)
    gain = _gain(K, plain.L, weights)
    variance = gain / weights
    softplus = logistic_moments(plain.mean, variance).softplus
    log_likelihood = y @ plain.mean - np.sum(totals * softplus)
    bound = log_likelihood - 0.5 * (coef @ plain.mean) + 0.5 * gain.sum() - plain.log_det
    return _Stage(replace(plain, bound=float(bound)), weights, variance)


def _newton(K: Array, y: Array, totals: Array, stage: _Stage) -> Array:
    """Newton steps for the coefficients, variances and B fixed; each raises the bound."""
    old, variance = stage.proposal, stage.variance
    coef, mean, w = old.coef, old.mean, old.root_weights
    moments = logistic_moments(mean, variance)
    value = float(y @ mean - np.sum(totals * moments.softplus) - 0.5 * (coef @ mean))
    for _ in range(_NEWTON_STEPS):
        slope = y - totals * moments.logistic - coef
        step = slope - w * solve_factored(old.L, w * (K @ slope))
        step_mean = K @ step
        fraction, new_value = 2.0, -np.inf
        while not new_value >= value and fraction > 0.01:
            fraction *= 0.5
            new_coef, new_mean = coef + fraction * step, mean + fraction * step_mean
            moments = logistic_moments(new_mean, variance)
            told = float(y @ new_mean - np.sum(totals * moments.softplus))
            new_value = told - 0.5 * float(new_coef @ new_mean)
        if not new_value >= value:
            break
        coef, mean, value = new_coef, new_mean, new_value
        if (np.abs(step_mean) < _SETTLED * np.sqrt(variance)).all():
            break
    return coef


def _raised(
    K: Array, y: Array, totals: Array, best: _Stage, coef: Array, weights: Array
) -> _Stage | None:
    """Go to the new Gaussian, or part of the way, where the bound is higher; None if nowhere."""
    fraction = 1.0
    for _ in range(_HALVINGS):
        part_coef = best.proposal.coef + fraction * (coef - best.proposal.coef)
        part_weights = best.weights * (weights / best.weights) ** fraction
        stage = _stage(K, y, totals, part_coef, part_weights)
        if stage.proposal.bound > best.proposal.bound:
            return stage
        fraction *= 0.5
    return None


# The Gaussian whose marginals match those of the posterior: expectation propagation.
#
# Each row's likelihood is replaced by a Gaussian site exp(nu f - W f^2/2), such that the Gaussian
# of all sites and the prior has, at that row, the mean and variance of the law that results when
# the row's site is replaced by its likelihood. As a proposal it beats the variational Gaussian,
# which is too narrow where the signal variance is large (Kuss & Rasmussen 2005): errors of the log
# evidence are a third smaller.
#
# **One sweep**, all rows at once, from the marginals N(m, v) of the current Gaussian
#
# 1. Without the own site: v_c = 1/(1/v - W), m_c = v_c (m/v - nu).
# 2. With Z = E p(y | f) over N(m_c, v_c): alpha = d log Z/dm_c, beta = -d^2 log Z/dm_c^2, in
#    closed form for the mixture of normal distribution functions that stands for the logistic; of
#    rows that count more or less than once by the trapezoidal rule.
# 3. The new site: W = beta/(1 - v_c beta), nu = alpha/(1 - v_c beta) + W m_c. It is a Gaussian,
# since
#    the likelihood is log-concave.
#
# From Laplace's Gaussian a sweep lessens the change by two to five times at most signal variances;
# a proposal takes four at most. An evidence needs sites that have settled: where four whole sweeps
# do not settle them, as where one class is rare, half steps may.
#
# **Cost.** A factor and an inverse a sweep: O(n^3).

_MAX_SWEEPS, _MOST_HALF_SWEEPS = 4, 16
_MOMENTS_SETTLED = 0.03  # change of a mean or variance, in its own units, that no longer matters
_SMALLEST_LOSS = 1e-6  # of 1 - v_c beta: rounding of beta, where the likelihood is a step


def match_moments(
    K: Array, y: Array, totals: Array, coef: Array, weights: Array
) -> Proposal | None:
    """Sweep from Laplace's Gaussian, coefficients and W (n,); None where sweeps go astray.

    K has its nugget; y (n,) of ``totals`` are of class 1. A `NumericalError` if B cannot be
    factorised in double precision.
    """
    swept = _swept(K, y, totals, coef, weights, _MAX_SWEEPS)
    if swept is None:
        return None
    proposal, first, last = swept
    return proposal if last <= first else None


def _swept(
    K: Array, y: Array, totals: Array, coef: Array, weights: Array, most: int
) -> tuple[Proposal, float, float] | None:
    """Sweep until sites have settled, with the changes of the first and the last sweep.

    After `_MAX_SWEEPS` sites go half of the way. None where a change is not finite.
    """
    W = np.maximum(weights, SMALLEST_WEIGHT)
    proposal = make_proposal(K, coef, W)
    nu = coef + W * proposal.mean
    first = change = np.inf
    for sweep in range(most):
        gain = _gain(K, proposal.L, W)
        variance = gain / W
        new_W, new_nu, shift = _sites(y, totals, proposal.mean, variance, W, nu)
        stretch = np.log(new_W / W) * gain
        change = max(float(np.abs(shift).max()), float(np.abs(stretch).max()))
        if not np.isfinite(change):
            return None
        first = change if sweep == 0 else first
        if sweep < _MAX_SWEEPS:
            W, nu = new_W, new_nu
        else:
            W, nu = 0.5 * (W + new_W), 0.5 * (nu + new_nu)
        proposal = _gaussian(K, W, nu)
        if change < _MOMENTS_SETTLED:
            break
    return proposal, first, change


def matched_evidence(
    K: Array, y: Array, totals: Array, coef: Array, weights: Array
) -> float | None:
    """Log evidence, nats, of the Gaussian whose sites have settled; None where they do not.

    Each site is scaled so that with the others it has the mass of its likelihood: with Z_i of
    step 2 and E_i = E exp(nu f - W f^2/2) over N(m_c, v_c),
    log Z = -log|B|/2 + nu'm/2 + sum_i (log Z_i - log E_i).
    """
    swept = _swept(K, y, totals, coef, weights, _MAX_SWEEPS + _MOST_HALF_SWEEPS)
    if swept is None or not swept[2] < _MOMENTS_SETTLED:
        return None
    matched = swept[0]
    W, mean = matched.root_weights**2, matched.mean
    nu = matched.coef + W * mean
    cavity, centre = _without_own(mean, _gain(K, matched.L, W) / W, W, nu)
    log_Z, _, _ = _tilted(y, totals, centre, cavity)
    wider = 1.0 + W * cavity
    square = nu * nu * cavity + 2.0 * nu * centre - W * centre * centre
    log_E = 0.5 * (square / wider - np.log(wider))
    log_evidence = float(0.5 * (nu @ mean) - matched.log_det + (log_Z - log_E).sum())
    return log_evidence if np.isfinite(log_evidence) else None


def _gain(K: Array, L: Array, W: Array) -> Array:
    """1 - diag B^-1, B = L L': W times the variance of f, which is at most the prior's."""
    inverse = L.copy(order="F")
    invert_triangle(inverse)
    return np.asarray(np.clip(1.0 - inverse_diagonal(inverse.T), 1e-300, W * K.diagonal()))


def _without_own(mean: Array, variance: Array, W: Array, nu: Array) -> tuple[Array, Array]:
    """Step 1: variances and means of f without the own site."""
    cavity = 1.0 / np.maximum(1.0 / variance - W, 1e-300)
    return cavity, cavity * (mean / variance - nu)


def _tilted(y: Array, totals: Array, centre: Array, cavity: Array) -> tuple[Array, Array, Array]:
    """Step 2: log Z, nats, alpha and beta of every row."""
    side = 2.0 * y / totals - 1.0
    moments = logistic_moments(side * centre, cavity)
    Z = np.maximum(moments.logistic, 1e-300)
    alpha = side * moments.slope / Z
    log_Z, beta = np.log(Z), np.maximum(alpha**2 - moments.curvature / Z, 0.0)
    many = np.flatnonzero(totals != 1.0)
    if len(many) > 0:
        given = (each[many] for each in (y, totals, centre, cavity))
        log_Z[many], alpha[many], beta[many] = _tilted_by_counts(*given)
    return log_Z, alpha, beta


# Of the trapezoidal rule: its points, the depth in nats at which it ends, and halvings of an
# interval that holds a maximum or an end. The integrand is analytic within pi of the real line, so
# that the error falls like exp(-2 pi^2 / step): to rounding but where N(m_c, v_c) is very wide.
_N_POINTS, _DEPTH, _BISECTIONS = 256, 36.0, 60


def _tilted_by_counts(
    y: Array, totals: Array, centre: Array, cavity: Array
) -> tuple[Array, Array, Array]:
    """As `_tilted`, where y of ``totals`` are of class 1, whatever numbers these are."""

    def log_tilted(f: Array) -> Array:
        told = y * f - totals * np.logaddexp(0.0, f)
        return np.asarray(told - 0.5 * np.square(f - centre) / cavity)

    low, high = centre + cavity * (y - totals), centre + cavity * y
    for _ in range(_BISECTIONS):  # log-concave: the slope changes its sign once
        middle = 0.5 * (low + high)
        is_below = y - totals * expit(middle) - (middle - centre) / cavity > 0.0
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    mode = 0.5 * (low + high)
    best, ends = log_tilted(mode), []
    for sign in (-1.0, 1.0):
        near, far = np.zeros_like(mode), np.sqrt(2.0 * _DEPTH * cavity)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (near + far)
            is_within = best - log_tilted(mode + sign * middle) < _DEPTH
            near, far = np.where(is_within, middle, near), np.where(is_within, far, middle)
        ends.append(mode + sign * far)
    f = ends[0] + np.linspace(0.0, 1.0, _N_POINTS)[:, np.newaxis] * (ends[1] - ends[0])
    mass = np.exp(log_tilted(f) - best)
    total = mass.sum(axis=0)
    mean = (mass * f).sum(axis=0) / total
    variance = (mass * np.square(f - mean)).sum(axis=0) / total
    step = (ends[1] - ends[0]) / (_N_POINTS - 1)
    log_Z = best + np.log(total * step) - 0.5 * np.log(2.0 * np.pi * cavity)
    return log_Z, (mean - centre) / cavity, np.maximum((1.0 - variance / cavity) / cavity, 0.0)


def _sites(
    y: Array, totals: Array, mean: Array, variance: Array, W: Array, nu: Array
) -> tuple[Array, Array, Array]:
    """Steps 1 to 3: the new W and nu, and by how much means move, in standard deviations."""
    cavity, centre = _without_own(mean, variance, W, nu)  # step 1
    _, alpha, beta = _tilted(y, totals, centre, cavity)  # step 2
    left = np.maximum(1.0 - cavity * beta, _SMALLEST_LOSS)
    new_W = np.maximum(beta / left, SMALLEST_WEIGHT)  # step 3
    shift = (centre + cavity * alpha - mean) / np.sqrt(variance)
    return new_W, alpha / left + new_W * centre, shift


def _gaussian(K: Array, W: Array, nu: Array) -> Proposal:
    """Make the Gaussian of these sites: its coefficients are nu - W^.5 B^-1 W^.5 K nu."""
    plain = make_proposal(K, nu, W)
    w = plain.root_weights
    coef = nu - w * solve_factored(plain.L, w * plain.mean)
    return replace(plain, coef=coef, mean=K @ coef)


# Unbiased estimates of the evidence of a binary GP classifier by importance sampling.
#
# **Target.** Z = E p(y | f) over f ~ N(0, K), with the nugget in K (`mercer.gp.importance`).
#
# **One estimate**
#
# 1. A Gaussian N(m, (K^-1 + W)^-1), m = K c, close to the posterior of f, by expectation
# propagation
#    (`mercer.gp.importance`); where that fails, the variational one.
# 2. e = L_K z with z ~ N(0, I), so e ~ N(0, K); n ~ N(0, I);
#    delta = e - K u with u = W^.5 B^-1 (W^.5 e + n) has the covariance (K^-1 + W)^-1.
# 3. f = m + delta and m - delta; for a fixed share eps of the draws f = e and -e instead.
# 4. With r = prior/Gaussian = exp(-c'm/2 - c'(f - m) + (f - m)'W(f - m)/2 - log|B|/2) the weights
# are
#
#        w = p(y | f) / ((1 - eps)/r + eps)  <=  p(y | f)/eps.
#
# 5. A first set of 16 pairs says how many draws it takes until the error of log Z has a standard
#    deviation of about 0.15, and is thrown away: what is made of a second set is then unbiased.
# 6. Z is estimated by their mean; one f is drawn in proportion to them: given that estimate in a
#    pseudo-marginal chain it is a draw from the exact posterior of the latent values.
#
# **Why the prior is mixed in.** The Gaussian has lighter tails than the posterior wherever the
# likelihood is flatter than its quadratic approximation; its own weights then have infinite
# variance. Draws from the two parts are counted, not chosen at random, which leaves the mean
# unbiased and the weights as they are (the balance heuristic).
#
# **Coefficients.** K^-1 f = c +- (L_K^-T z - u), or +- L_K^-T z: no solve against K alone.
#
# **Cost.** Two factors of n x n besides those of step 1, and O(n^2) a draw.

_PRIOR_SHARE = 1.0 / 16.0  # of the pairs of draws, at least one pair
_PILOT_PAIRS = 16
_WANTED_STD = 0.15  # of log Z, nats: a second stage of nothing but this noise accepts 0.92


@dataclass(frozen=True)
class Estimate:
    """An estimate of the evidence, and a draw of the latent values that goes with it.

    ``log_evidence`` is the logarithm of the unbiased estimate, nats, ``log_std`` the standard
    deviation of its error, and ``ess`` the effective sample size, as its ``n_draws`` weights tell.
    ``latent`` (n,) is f drawn in proportion to the weights, logits, and ``coef`` (n,) is K^-1 f,
    nugget included. ``is_fallback``: the Gaussian that was asked for was not found and another one
    stood in.
    """

    log_evidence: float
    log_std: float
    ess: float
    latent: Array
    coef: Array
    n_draws: int
    is_fallback: bool


@dataclass(frozen=True)
class Weighted:
    """Pairs of draws with their weights; the second halves are mirror images of the first.

    ``log_weights`` (2, m), ``latent`` (2, n, m), and z and u (n, m), what the coefficients of a
    draw are made of; u is 0 for the draws ``is_prior`` (m,).
    """

    log_weights: Array
    latent: Array
    z: Array
    u: Array
    is_prior: NDArray[np.bool_]


def no_estimate(n: int) -> Estimate:
    """What stands where nothing was estimated or the evidence cannot be computed: no density."""
    return Estimate(-np.inf, 0.0, 0.0, np.zeros(n), np.zeros(n), 0, is_fallback=True)


@dataclass(frozen=True)
class EvidenceEstimator:
    """Estimates the evidence at points that Laplace's posterior has evaluated.

    ``y`` (n,) are classes, 0.0 or 1.0, or (2, n) how often each was seen at each row of X.
    ``proposal`` is "matched" (expectation propagation), "variational", or "laplace": Laplace's
    Gaussian moved by its first-order correction. ``min_draws`` and ``max_draws`` of an estimate are
    multiples of two, at least four; where both are the same no first set is drawn.
    """

    X: Array
    y: Array
    kernel: Kernel
    proposal: str = "matched"
    min_draws: int = 64
    max_draws: int = 2048
    workspace: Workspace = field(default_factory=Workspace, compare=False, repr=False)

    def estimate(self, rng: np.random.Generator, point: Point) -> Estimate:
        """Estimate the evidence at a point with "a" and "q" of Laplace's approximation.

        Minus infinity is its logarithm where a factor cannot be taken in double precision: such
        hyperparameters have no mass.
        """
        n, targets = len(self.X), targets_and_totals(self.y, 1)
        if not np.isfinite(point.log_density):
            return no_estimate(n)
        try:
            K = self.kernel.gram(point.position, self.X, out=self.workspace.take("gram", n))
            add_nugget(K)
            L = lower_factor(K)
            proposal = self._fit(K, *targets, point)
        except NumericalError:
            return no_estimate(n)
        n_pairs = self.min_draws // 2
        if self.max_draws > self.min_draws:  # step 5
            pilot = draw_weights(rng, K, L, *targets, proposal, _PILOT_PAIRS)
            n_pairs = _wanted_pairs(pilot, n_pairs, self.max_draws // 2)
        weighted = draw_weights(rng, K, L, *targets, proposal, n_pairs)
        return _summarise(rng, L, proposal, weighted)

    def _fit(self, K: Array, y: Array, totals: Array, point: Point) -> Proposal:
        a, q = point.extra["a"], point.extra["q"]
        proba = (y - a) / totals
        weights = np.maximum(totals * proba * (1.0 - proba), 0.0)
        if self.proposal == "laplace":
            return make_proposal(K, a + q, weights)
        if self.proposal == "variational":
            return fit_variational(K, y, totals, a, weights)
        matched = match_moments(K, y, totals, a, weights)
        if matched is None:
            return replace(fit_variational(K, y, totals, a, weights), is_settled=False)
        return matched


def draw_weights(
    rng: np.random.Generator,
    K: Array,
    L: Array,
    y: Array,
    totals: Array,
    proposal: Proposal,
    n_pairs: int,
) -> Weighted:
    """Steps 2 to 4: pairs of draws and the logarithms of their weights.

    ``L`` is the lower factor of K, nugget included; of ``n_pairs``, at least two, one at least is
    from the prior.
    """
    n = len(K)
    z, noise = rng.standard_normal((n, n_pairs)), rng.standard_normal((n, n_pairs))
    e = L @ z  # step 2
    w = proposal.root_weights[:, np.newaxis]
    u = w * solve_factored(proposal.L, w * e + noise)
    is_prior = np.arange(n_pairs) < _n_prior(n_pairs)
    u[:, is_prior] = 0.0
    delta = e - K @ u
    centre = np.where(is_prior, 0.0, proposal.mean[:, np.newaxis])
    latent = np.stack([centre + delta, centre - delta])  # step 3
    offset = latent - proposal.mean[:, np.newaxis]
    log_ratio = (  # step 4
        -0.5 * (proposal.coef @ proposal.mean)
        - proposal.coef @ offset
        + 0.5 * (proposal.root_weights**2 @ offset**2)
        - proposal.log_det
    )
    log_mixture = _log_mixture(log_ratio, _n_prior(n_pairs) / n_pairs)
    log_weights = log_likelihoods(y, totals, latent) - log_mixture
    return Weighted(log_weights, latent, z, u, is_prior)


def _log_mixture(log_ratio: Array, share: float) -> Array:
    """Logarithm of (1 - eps)/r + eps: the mixture's density over the prior's."""
    return np.asarray(np.logaddexp(np.log1p(-share) - log_ratio, np.log(share)))


def log_likelihoods(y: Array, totals: Array, latent: Array) -> Array:
    """Log p(y | f) for every column of latent values (.., n, m), shape (.., m).

    Of rows that count once sums of log(1 + e^-|f|) are logarithms of products of at most 512
    numbers up to 2, an eighth of the time.
    """
    smooth = 1.0 + np.exp(-np.abs(latent))
    if (totals != 1.0).any():
        return np.asarray(y @ latent - totals @ (np.maximum(latent, 0.0) + np.log(smooth)))
    total = y @ latent - np.maximum(latent, 0.0).sum(axis=-2)
    for begin in range(0, len(y), 512):
        total -= np.log(smooth[..., begin : begin + 512, :].prod(axis=-2))
    return np.asarray(total)


def _n_prior(n_pairs: int) -> int:
    """How many of the pairs are drawn from the prior."""
    return max(1, round(_PRIOR_SHARE * n_pairs))


def _log_std(weighted: Weighted) -> float:
    """Standard deviation of the logarithm of the mean weight, from the spread of the pairs."""
    pairs = np.exp(weighted.log_weights - logsumexp(weighted.log_weights)).sum(axis=0)
    parts = (pairs[weighted.is_prior], pairs[~weighted.is_prior])
    return float(np.sqrt(sum(len(part) * part.var() for part in parts)))


def _wanted_pairs(pilot: Weighted, fewest: int, most: int) -> int:
    """Double the least number of pairs until the error is small enough, as the pilot says."""
    n_pairs, needed = fewest, _PILOT_PAIRS * (_log_std(pilot) / _WANTED_STD) ** 2
    while n_pairs < min(needed, most):
        n_pairs *= 2
    return min(n_pairs, most)


def _choose(rng: np.random.Generator, W: Array) -> tuple[int, int]:
    """Draw side and pair in proportion to the weights W (2, m)."""
    ends = np.cumsum(W.ravel())
    index = int(np.searchsorted(ends, rng.random() * ends[-1], side="right"))
    side, pair = divmod(min(index, W.size - 1), int(W.shape[1]))
    return side, pair


def _summarise(
    rng: np.random.Generator, L: Array, proposal: Proposal, weighted: Weighted
) -> Estimate:
    """Step 6: the mean weight, and one draw in proportion to the weights."""
    log_weights = weighted.log_weights
    W = np.exp(log_weights - logsumexp(log_weights))
    side, j = _choose(rng, W)
    sign = 1.0 - 2.0 * side
    own = solve_triangular(L, weighted.z[:, j], lower=True, trans=1) - weighted.u[:, j]
    centre = np.zeros_like(own) if weighted.is_prior[j] else proposal.coef
    return Estimate(
        log_evidence=float(logsumexp(log_weights) - np.log(W.size)),
        log_std=_log_std(weighted),
        ess=effective_sample_size(log_weights.ravel()),
        latent=np.ascontiguousarray(weighted.latent[side][:, j]),
        coef=np.asarray(centre + sign * own),
        n_draws=W.size,
        is_fallback=not proposal.is_settled,
    )
