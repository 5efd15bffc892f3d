"""Unbiased estimates of the evidence of a binary GP classifier by importance sampling.

**Target.** Z = E p(y | f) over f ~ N(0, K), with the nugget in K (`mercer.gp.exact.nugget`).

**One estimate**

1. A Gaussian N(m, (K^-1 + W)^-1), m = K c, close to the posterior of f, by expectation propagation
   (`mercer.gp.exact.propagation`); where that fails, the variational one.
2. e = L_K z with z ~ N(0, I), so e ~ N(0, K); n ~ N(0, I);
   delta = e - K u with u = W^.5 B^-1 (W^.5 e + n) has the covariance (K^-1 + W)^-1.
3. f = m + delta and m - delta; for a fixed share eps of the draws f = e and -e instead.
4. With r = prior/Gaussian = exp(-c'm/2 - c'(f - m) + (f - m)'W(f - m)/2 - log|B|/2) the weights are

       w = p(y | f) / ((1 - eps)/r + eps)  <=  p(y | f)/eps.

5. A first set of 16 pairs says how many draws it takes until the error of log Z has a standard
   deviation of about 0.15, and is thrown away: what is made of a second set is then unbiased.
6. Z is estimated by their mean; one f is drawn in proportion to them: given that estimate in a
   pseudo-marginal chain it is a draw from the exact posterior of the latent values.

**Why the prior is mixed in.** The Gaussian has lighter tails than the posterior wherever the
likelihood is flatter than its quadratic approximation; its own weights then have infinite
variance. Draws from the two parts are counted, not chosen at random, which leaves the mean
unbiased and the weights as they are (the balance heuristic).

**Coefficients.** K^-1 f = c +- (L_K^-T z - u), or +- L_K^-T z: no solve against K alone.

**Cost.** Two factors of n x n besides those of step 1, and O(n^2) a draw.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from mercer.errors import NumericalError
from mercer.gp.exact.nugget import add_nugget, lower_factor
from mercer.gp.exact.propagation import match_moments
from mercer.gp.exact.proposal import Proposal, fit_variational, make_proposal
from mercer.kernels.base import Kernel
from mercer.numerics.cholesky import solve_factored
from mercer.numerics.workspace import Workspace
from mercer.sampling.resampling import effective_sample_size
from mercer.sampling.target import Point

__all__ = [
    "Estimate",
    "EvidenceEstimator",
    "Weighted",
    "draw_weights",
    "log_likelihoods",
    "no_estimate",
]

Array = NDArray[np.float64]

_PRIOR_SHARE = 1.0 / 16.0  # of the pairs of draws, at least one pair
_PILOT_PAIRS = 16
_WANTED_STD = 0.15  # of log Z, nats: a second stage of nothing but this noise accepts 0.92


@dataclass(frozen=True)
class Estimate:
    """An estimate of the evidence, and a draw of the latent values that goes with it.

    Attributes
    ----------
    log_evidence : float
        Logarithm of the unbiased estimate, nats.
    log_std : float
        Standard deviation of the error of ``log_evidence``, as the weights themselves tell.
    ess : float
        Effective sample size of the weights.
    latent : ndarray of shape (n,)
        f drawn in proportion to the weights, logits.
    coef : ndarray of shape (n,)
        K^-1 f, nugget included in K.
    n_draws : int
        Draws that it was made of.
    is_fallback : bool
        Whether the Gaussian that was asked for was not found and another one stood in.
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

    Attributes
    ----------
    log_weights : ndarray of shape (2, m)
    latent : ndarray of shape (2, n, m)
    z, u : ndarray of shape (n, m)
        What the coefficients of a draw are made of; u is 0 for draws from the prior.
    is_prior : ndarray of shape (m,), bool
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

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Standardised inputs.
    y : ndarray of shape (n,)
        Targets, 0.0 or 1.0.
    kernel : Kernel
    proposal : str
        "matched" (expectation propagation), "variational", or "laplace": Laplace's Gaussian moved
        by its first-order correction.
    min_draws, max_draws : int
        Of an estimate; multiples of two, at least four. Where both are the same no first set is
        drawn.
    """

    X: Array
    y: Array
    kernel: Kernel
    proposal: str = "matched"
    min_draws: int = 64
    max_draws: int = 2048
    workspace: Workspace = field(default_factory=Workspace, compare=False, repr=False)

    def estimate(self, rng: np.random.Generator, point: Point) -> Estimate:
        """Estimate the evidence at a point.

        Parameters
        ----------
        rng : numpy.random.Generator
        point : Point
            With the dual coefficients "a" and their correction "q" of Laplace's approximation.

        Returns
        -------
        Estimate
            With minus infinity as its logarithm where a factor cannot be taken in double precision:
            such hyperparameters have no mass.
        """
        n = len(self.y)
        if not np.isfinite(point.log_density):
            return no_estimate(n)
        try:
            K = self.kernel.gram(point.position, self.X, out=self.workspace.take("gram", n))
            add_nugget(K)
            L = lower_factor(K)
            proposal = self._fit(K, point)
        except NumericalError:
            return no_estimate(n)
        n_pairs = self.min_draws // 2
        if self.max_draws > self.min_draws:  # step 5
            pilot = draw_weights(rng, K, L, self.y, proposal, _PILOT_PAIRS)
            n_pairs = _wanted_pairs(pilot, n_pairs, self.max_draws // 2)
        weighted = draw_weights(rng, K, L, self.y, proposal, n_pairs)
        return _summarise(rng, L, proposal, weighted)

    def _fit(self, K: Array, point: Point) -> Proposal:
        a, q = point.extra["a"], point.extra["q"]
        proba = self.y - a
        weights = np.maximum(proba * (1.0 - proba), 0.0)
        if self.proposal == "laplace":
            return make_proposal(K, a + q, weights)
        if self.proposal == "variational":
            return fit_variational(K, self.y, a, weights)
        matched = match_moments(K, self.y, a, weights)
        if matched is None:
            return replace(fit_variational(K, self.y, a, weights), is_settled=False)
        return matched


def draw_weights(
    rng: np.random.Generator, K: Array, L: Array, y: Array, proposal: Proposal, n_pairs: int
) -> Weighted:
    """Steps 2 to 4: pairs of draws and the logarithms of their weights.

    Parameters
    ----------
    rng : numpy.random.Generator
    K, L : ndarray of shape (n, n)
        Gram matrix with its nugget, and its lower factor.
    y : ndarray of shape (n,)
    proposal : Proposal
    n_pairs : int
        At least two: one of them at least is from the prior.
    """
    n = len(y)
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
    return Weighted(log_likelihoods(y, latent) - log_mixture, latent, z, u, is_prior)


def _log_mixture(log_ratio: Array, share: float) -> Array:
    """Logarithm of (1 - eps)/r + eps: the mixture's density over the prior's."""
    return np.asarray(np.logaddexp(np.log1p(-share) - log_ratio, np.log(share)))


def log_likelihoods(y: Array, latent: Array) -> Array:
    """Log p(y | f) for every column of latent values (.., n, m), shape (.., m).

    Sums of log(1 + e^-|f|) are logarithms of products of at most 512 numbers up to 2, an eighth of
    the time.
    """
    smooth = 1.0 + np.exp(-np.abs(latent))
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
