"""Components with full covariances, and their base measure: the normal-inverse-Wishart.

Sigma_k ~ IW(nu0, Psi0) and mu_k | Sigma_k ~ N(0, Sigma_k / kappa0), with Psi0 = t Psi: one common
scale t. A frequency in a new component is multivariate t with nu0 - d + 1 degrees of freedom and
scale matrix Psi0 (kappa0 + 1) / (kappa0 (nu0 - d + 1)). A component costs O(d^2) numbers and its
draw O(d^3) flops: up to about 30 inputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import multigammaln

from mercer.errors import NumericalError, UsageError
from mercer.numerics.cholesky import factorise, solve_lower
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

__all__ = ["FullBase", "FullComponents"]


@dataclass(frozen=True)
class FullComponents(Components):
    """Normal distributions with any covariance.

    Attributes
    ----------
    means : ndarray of shape (K, d)
    factors : ndarray of shape (K, d, d)
        Lower Cholesky factors of the covariances.
    """

    means: Array
    factors: Array

    @property
    def covariances(self) -> Array:
        """Sigma_k, shape (K, d, d)."""
        return np.asarray(self.factors @ self.factors.transpose(0, 2, 1))

    @property
    def stds(self) -> Array:
        """Standard deviation of each input, shape (K, d)."""
        return np.asarray(np.sqrt((self.factors**2).sum(axis=2)))

    def log_densities(self, W: Array) -> Array:
        """Log density of frequencies W (n, d) under each component, shape (n, K), in nats."""
        out = np.empty((len(W), self.n_components))
        for k, (mean, L) in enumerate(zip(self.means, self.factors, strict=True)):
            z = solve_lower(L, (W - mean).T)
            out[:, k] = np.einsum("ij,ij->j", z, z) + 2.0 * np.log(L.diagonal()).sum()
        out += W.shape[1] * math.log(2.0 * math.pi)
        out *= -0.5
        return out

    def draw_noise(self, rng: np.random.Generator, assignment: Labels) -> Array:
        """Draw N(0, Sigma_k) for each entry k of ``assignment`` (n,), shape (n, d)."""
        noise = rng.standard_normal((len(assignment), self.means.shape[1]))
        return np.asarray(np.einsum("nij,nj->ni", self.factors[assignment], noise))

    def characteristic(self, lags: Array) -> Array:
        """Real part exp(-t'Sigma t / 2) cos(mu't) at lags t (n, d), shape (n, K)."""
        square = np.empty((len(lags), self.n_components))
        for k, L in enumerate(self.factors):
            square[:, k] = ((lags @ L) ** 2).sum(axis=1)
        return np.asarray(np.exp(-0.5 * square) * np.cos(lags @ self.means.T))


@dataclass(frozen=True)
class FullBase(BaseMeasure[FullComponents]):
    """Normal-inverse-Wishart distribution.

    Attributes
    ----------
    psi : ndarray of shape (d, d)
        Psi, positive definite, in squared units of a frequency.
    kappa0 : float
        mu_k | Sigma_k ~ N(0, Sigma_k / kappa0).
    nu0 : float
        Sigma_k ~ IW(nu0, t Psi), with mean t Psi / (nu0 - d - 1); at least d + 2.
    scale : ndarray of shape (1,)
        t, a factor.

    Raises
    ------
    UsageError
        If one of them is out of its range.
    """

    psi: Array
    kappa0: float
    nu0: float
    scale: Array = field(default_factory=lambda: np.ones(1))

    def __post_init__(self) -> None:
        require_positive("scale", self.scale)
        require_positive("kappa0", self.kappa0)
        if not self.n_inputs + 2 <= self.nu0 < math.inf:
            raise UsageError(
                f"nu0 must be finite and at least the number of inputs plus 2, "
                f"{self.n_inputs + 2}; got {self.nu0}"
            )
        try:
            self._factor()
        except NumericalError as error:
            raise UsageError("psi must be a positive definite matrix") from error

    @classmethod
    def from_std(cls, std: Array, kappa0: float = 0.1, nu0: float | None = None) -> FullBase:
        """Make the base whose covariances have mean diag(``std``^2); nu0 is d + 2 unless given."""
        std = np.asarray(std, dtype=np.float64)
        degrees = len(std) + 2.0 if nu0 is None else nu0
        return cls((degrees - len(std) - 1.0) * np.diag(std**2), kappa0, degrees)

    @property
    def n_inputs(self) -> int:
        """Length of a frequency."""
        return int(self.psi.shape[0])

    def with_scale(self, scale: Array) -> FullBase:
        """Return the same base with another t, shape (1,)."""
        return replace(self, scale=scale)

    def _factor(self) -> Array:
        """Lower Cholesky factor of Psi, without t."""
        return _lower(self.psi)

    @property
    def _degrees(self) -> float:
        """Degrees of freedom of a frequency in a new component."""
        return self.nu0 - self.n_inputs + 1.0

    @property
    def _inflation(self) -> float:
        """Scale matrix of a frequency in a new component is this times Psi."""
        return float(self.scale[0]) * (1.0 + 1.0 / self.kappa0) / self._degrees

    def log_predictive(self, W: Array) -> Array:
        """Log density of frequencies W (n, d) alone in a new component, shape (n,), in nats."""
        L = self._factor()
        z = solve_lower(L, W.T)
        log_determinant = 2.0 * np.log(L.diagonal()).sum() + len(L) * math.log(self._inflation)
        square = np.einsum("ij,ij->j", z, z) / self._inflation
        return t_log_density(square, self._degrees, len(L), float(log_determinant))

    def log_marginal_predictive(self, values: Array, j: int) -> Array:
        """Log density of input j of a frequency in a new component at values (n,)."""
        variance = self._inflation * float(self.psi[j, j])
        return t_log_density(values**2 / variance, self._degrees, 1, math.log(variance))

    def log_marginal(self, W: Array) -> float:
        """Log density of frequencies W (m, d) that share one component, in nats."""
        m, d = W.shape
        kappa, nu, _, psi = self._posterior(W, np.zeros(m, dtype=np.int64), 1)
        before = 2.0 * np.log(self._factor().diagonal()).sum() + d * math.log(self.scale[0])
        after = 2.0 * np.log(_lower(psi[0]).diagonal()).sum()
        return float(
            multigammaln(0.5 * nu[0], d)
            - multigammaln(0.5 * self.nu0, d)
            - 0.5 * m * d * math.log(math.pi)
            + 0.5 * (self.nu0 * before - nu[0] * after)
            + 0.5 * d * (math.log(self.kappa0) - math.log(kappa[0]))
        )

    def _posterior(
        self, W: Array, assignment: Labels, n_components: int
    ) -> tuple[Array, Array, Array, Array]:
        """Return kappa, nu (K,), mean (K, d) and Psi (K, d, d) of each component."""
        counts, means, residuals = group_moments(W, assignment, n_components)
        kappa = self.kappa0 + counts
        share = (counts / kappa)[:, np.newaxis]
        psi = np.empty((n_components, self.n_inputs, self.n_inputs))
        for k, mean in enumerate(means):
            own = residuals[assignment == k]
            psi[k] = self.scale[0] * self.psi + own.T @ own
            psi[k] += self.kappa0 * share[k] * np.outer(mean, mean)
        return kappa, self.nu0 + counts, share * means, psi

    def draw_components(
        self, rng: np.random.Generator, W: Array, assignment: Labels, n_components: int
    ) -> FullComponents:
        """Draw each (mu_k, Sigma_k) given its members among W (n, d); from the prior if none."""
        kappa, nu, means, psi = self._posterior(W, assignment, n_components)
        factors = _draw_factors(rng, nu, psi)
        noise = rng.standard_normal(means.shape) / np.sqrt(kappa)[:, np.newaxis]
        return FullComponents(means + np.einsum("kij,kj->ki", factors, noise), factors)

    def draw_scale(
        self, rng: np.random.Generator, components: FullComponents, prior: ScalePrior
    ) -> FullBase:
        """Draw t ~ Gamma(a + K d nu0 / 2, a / t0 + sum_k tr(Psi Sigma_k^-1) / 2)."""
        root = self._factor()
        traces = [(solve_lower(L, root) ** 2).sum() for L in components.factors]
        half_count = 0.5 * self.nu0 * components.means.size
        return self.with_scale(prior.draw_posterior(rng, half_count, np.array([0.5 * sum(traces)])))

    def characteristic(self, lags: Array) -> Array:
        """Characteristic function of a frequency in a new component at lags (n, d), shape (n,)."""
        square = ((lags @ self._factor()) ** 2).sum(axis=1)
        return t_characteristic(self._inflation * square, self._degrees)


def _lower(A: Array) -> Array:
    """Lower Cholesky factor with zeros above the diagonal."""
    return np.tril(factorise(np.array(A, order="F")))


def _draw_factors(rng: np.random.Generator, nu: Array, psi: Array) -> Array:
    """Draw the lower Cholesky factors of Sigma_k ~ IW(nu_k, Psi_k); nu (K,), psi (K, d, d).

    With Psi = L L' and a Wishart(nu, I) matrix A A', Sigma = (L A'^-1)(L A'^-1)'. Bartlett's
    triangle is taken upper, A_ii^2 ~ chi^2 of nu - d + i degrees, so that L A'^-1 is lower.
    """
    d = psi.shape[1]
    i = np.arange(d)
    A = np.triu(rng.standard_normal(psi.shape), 1)
    A[:, i, i] = np.sqrt(rng.chisquare(nu[:, np.newaxis] - d + 1.0 + i))
    factors = np.empty(psi.shape)
    for k, scale in enumerate(psi):
        # Solve A C' = L'; with rows and columns in the other order, A is lower.
        factors[k] = solve_lower(A[k, ::-1, ::-1], _lower(scale).T[::-1])[::-1].T
    return np.tril(factors)
