"""The model: what a particle's target is made of.

**Target.** y_s = f(x_s) + noise, f(x) = sum_j beta_j k(x, c_j) + mean, the centres c_1 .. c_k a
subset of r candidates: all subsets of k share p_r(k), which is p(k) cut to 0 .. min(k_max, r) and
normalised. Since r grows, so does that constant: it stays in the evidence (eq. (2) of [1]_).

**Variances**, integrated (the default): noise s2 ~ IG(a, b), beta_j | s2 ~ N(0, g s2), the mean's
coefficients N(0, s2 / rho), g ~ IG(1/2, 1/40) cut to [1e-6, 1e6]; s2 and beta are integrated out,
the particle carries g. Sampled, as in the paper: s2 and the variance of all coefficients, both
inverse gamma, are carried. The paper's a = b = 0 is improper at every t and is not offered.

References
----------
.. [1] J. Vermaak, S. J. Godsill and A. Doucet, Sequential Bayesian Kernel Regression, NIPS 2003.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from mercer.basis.arrays import Array, Prior

__all__ = ["SetPrior", "integrated", "sampled"]

# On a standardised target. Of the noise hardly anything is said, half a row's worth: its variance
# is that of the target or a hundredth of it. Centre and scale of the target come from the rows
# themselves, so more would be said twice, and intervals of few rows be too narrow. Coefficients'
# variance: half of the prior is below a twentieth of the noise's, with tails so heavy that a curve
# without noise is not shrunk. The mean is known to ten noise standard deviations.
_NOISE = 0.25, 0.2
_SCALE = 0.5, 0.025
_MEAN_PRECISION = 0.01
# The paper's variances, made proper.
_PAPER_NOISE = 1.0, 0.1
_PAPER_SCALE = 1.0, 1.0


def integrated(n_mean: int) -> Prior:
    """Return the priors of the default, for a mean with so many columns."""
    return Prior(*_NOISE, *_SCALE, _MEAN_PRECISION, n_mean, is_sampled=False)


def sampled(n_mean: int) -> Prior:
    """Return the priors of the paper's model: both variances carried, one for all coefficients."""
    return Prior(*_PAPER_NOISE, *_PAPER_SCALE, 1.0, n_mean, is_sampled=True)


@dataclass(frozen=True)
class SetPrior:
    """How many centres: Poisson, or negative binomial with shape 1 (its mean integrated out).

    Attributes
    ----------
    kind : {"poisson", "negative_binomial"}
    expected : float
        Mean before it is cut.
    largest : int
        k_max.
    """

    kind: str
    expected: float
    largest: int

    def log_size(self, n_candidates: int) -> Array:
        """Return log p_r(k) - log C(r, k) for k = 0 .. k_max + 1: -inf where k is not allowed."""
        return _log_size(self.kind, self.expected, self.largest, n_candidates)


@functools.lru_cache(maxsize=64)
def _log_size(kind: str, expected: float, largest: int, r: int) -> Array:
    result = np.full(largest + 2, -math.inf)
    k = np.arange(min(r, largest) + 1)
    log_p = k * math.log(expected) - gammaln(k + 1)
    if kind == "negative_binomial":
        log_p = k * math.log(expected / (1.0 + expected))
    log_sum = log_p.max() + math.log(np.exp(log_p - log_p.max()).sum())
    log_subsets = gammaln(r + 1) - gammaln(k + 1) - gammaln(r - k + 1)
    result[: len(k)] = log_p - log_sum - log_subsets
    result.flags.writeable = False  # shared by all who ask
    return result
