"""Components with independent inputs, and their base measure.

Sigma_kl ~ IG(nu0 / 2, t_l / 2) and mu_kl | Sigma_kl ~ N(0, Sigma_kl / kappa0) for each input l, so
that a frequency in a new component has independent inputs t_nu0 of squared scale
t_l (1 + 1 / kappa0) / nu0. A component costs O(d) numbers: the base for many inputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln

from mercer.errors import UsageError
from mercer.spectral.mixture.base import (
    Array,
    BaseMeasure,
    Components,
    Labels,
    ScalePrior,
    group_moments,
    require_positive,
)
from mercer.spectral.mixture.student import t_characteristic, t_log_density

__all__ = ["DiagonalBase", "DiagonalComponents"]


@dataclass(frozen=True)
class DiagonalComponents(Components):
    """Normal distributions with diagonal covariances.

    Attributes
    ----------
    means, variances : ndarray of shape (K, d)
    """

    means: Array
    variances: Array

    @property
    def stds(self) -> Array:
        """Standard deviation of each input, shape (K, d)."""
        return np.sqrt(self.variances)

    def log_densities(self, W: Array) -> Array:
        """Log density of frequencies W (n, d) under each component, shape (n, K), in nats.

        Differences are squared, not expanded: a component may be far narrower than its mean.
        """
        out = np.empty((len(W), self.n_components))
        for k, (mean, std) in enumerate(zip(self.means, self.stds, strict=True)):
            z = (W - mean) / std
            out[:, k] = np.einsum("ij,ij->i", z, z) + 2.0 * np.log(std).sum()
        out += W.shape[1] * math.log(2.0 * math.pi)
        out *= -0.5
        return out

    def draw_noise(self, rng: np.random.Generator, assignment: Labels) -> Array:
        """Draw N(0, Sigma_k) for each entry k of ``assignment`` (n,), shape (n, d)."""
        noise = rng.standard_normal((len(assignment), self.means.shape[1]))
        noise *= self.stds[assignment]
        return noise

    def characteristic(self, lags: Array) -> Array:
        """Real part exp(-t'Sigma t / 2) cos(mu't) at lags t (n, d), shape (n, K)."""
        damping = np.exp(-0.5 * (lags**2 @ self.variances.T))
        return np.asarray(damping * np.cos(lags @ self.means.T))


@dataclass(frozen=True)
class _Posterior:
    """Parameters of each component's normal-inverse-gamma: kappa, nu (K,), mean, t (K, d)."""

    kappa: Array
    nu: Array
    mean: Array
    scale: Array


@dataclass(frozen=True)
class DiagonalBase(BaseMeasure[DiagonalComponents]):
    """Product of normal-inverse-gamma distributions, one an input.

    Attributes
    ----------
    scale : ndarray of shape (d,)
        t_l, in squared units of a frequency.
    kappa0 : float
        mu_kl | Sigma_kl ~ N(0, Sigma_kl / kappa0).
    nu0 : float
        Sigma_kl ~ IG(nu0 / 2, t_l / 2); its mean is t_l / (nu0 - 2) for nu0 > 2.

    Raises
    ------
    UsageError
        If one of them is not positive.
    """

    scale: Array
    kappa0: float = 0.1
    nu0: float = 3.0

    def __post_init__(self) -> None:
        require_positive("scale", self.scale)
        require_positive("kappa0", self.kappa0)
        require_positive("nu0", self.nu0)

    @classmethod
    def from_std(cls, std: Array, kappa0: float = 0.1, nu0: float = 3.0) -> DiagonalBase:
        """Make the base whose components have variances of mean ``std``^2, shape (d,)."""
        if not nu0 > 2.0:
            raise UsageError(f"nu0 must be over 2 for variances to have a mean; got {nu0}")
        return cls((nu0 - 2.0) * np.asarray(std, dtype=np.float64) ** 2, kappa0, nu0)

    @property
    def n_inputs(self) -> int:
        """Length of a frequency."""
        return int(self.scale.shape[0])

    def with_scale(self, scale: Array) -> DiagonalBase:
        """Return the same base with another t, shape (d,)."""
        return replace(self, scale=scale)

    @property
    def _predictive_variance(self) -> Array:
        """Squared scales of the t distributions of a new component, shape (d,)."""
        return self.scale * (1.0 + 1.0 / self.kappa0) / self.nu0

    def log_predictive(self, W: Array) -> Array:
        """Log density of frequencies W (n, d) alone in a new component, shape (n,), in nats."""
        variance = self._predictive_variance
        logs = t_log_density(W**2 / variance, self.nu0, 1, 0.0)
        return np.asarray(logs.sum(axis=1) - 0.5 * np.log(variance).sum())

    def log_marginal_predictive(self, values: Array, j: int) -> Array:
        """Log density of input j of a frequency in a new component at values (n,)."""
        variance = self._predictive_variance[j]
        return t_log_density(values**2 / variance, self.nu0, 1, math.log(variance))

    def log_marginal(self, W: Array) -> float:
        """Log density of frequencies W (m, d) that share one component, in nats."""
        after = self._posterior(W, np.zeros(len(W), dtype=np.int64), 1)
        of_each = (
            gammaln(0.5 * after.nu[0])
            - gammaln(0.5 * self.nu0)
            + 0.5 * (math.log(self.kappa0) - np.log(after.kappa[0]))
            - 0.5 * len(W) * math.log(math.pi)
        )
        scales = self.nu0 * np.log(self.scale) - after.nu[0] * np.log(after.scale[0])
        return float(self.n_inputs * of_each + 0.5 * scales.sum())

    def _posterior(self, W: Array, assignment: Labels, n_components: int) -> _Posterior:
        counts, means, residuals = group_moments(W, assignment, n_components)
        is_member = (assignment == np.arange(n_components)[:, np.newaxis]).astype(np.float64)
        kappa = self.kappa0 + counts
        share = (counts / kappa)[:, np.newaxis]
        spread = is_member @ residuals**2 + self.kappa0 * share * means**2
        return _Posterior(kappa, self.nu0 + counts, share * means, self.scale + spread)

    def draw_components(
        self, rng: np.random.Generator, W: Array, assignment: Labels, n_components: int
    ) -> DiagonalComponents:
        """Draw each (mu_k, Sigma_k) given its members among W (n, d); from the prior if none."""
        after = self._posterior(W, assignment, n_components)
        variances = after.scale / rng.chisquare(after.nu[:, np.newaxis], after.scale.shape)
        noise = rng.standard_normal(variances.shape)
        means = after.mean + np.sqrt(variances / after.kappa[:, np.newaxis]) * noise
        return DiagonalComponents(means, variances)

    def draw_scale(
        self, rng: np.random.Generator, components: DiagonalComponents, prior: ScalePrior
    ) -> DiagonalBase:
        """Draw t_l ~ Gamma(a + K nu0 / 2, a / t0_l + sum_k 1 / (2 Sigma_kl)) for each input."""
        half_count = 0.5 * self.nu0 * components.n_components
        half_sum = 0.5 * (1.0 / components.variances).sum(axis=0)
        return self.with_scale(prior.draw_posterior(rng, half_count, half_sum))

    def characteristic(self, lags: Array) -> Array:
        """Characteristic function of a frequency in a new component at lags (n, d), shape (n,)."""
        of_inputs = t_characteristic(lags**2 * self._predictive_variance, self.nu0)
        return np.asarray(of_inputs.prod(axis=1))
