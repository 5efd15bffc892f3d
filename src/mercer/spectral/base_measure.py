"""Base measures of the frequencies' mixture: diagonal and full covariances.

A component of the mixture is a normal distribution of frequencies, N(mu_k, Sigma_k). The base
measure is the prior of (mu_k, Sigma_k), conjugate and centred at 0.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, kve

from mercer.errors import NumericalError, UsageError
from mercer.numerics.cholesky import factorise, solve_lower
from mercer.spectral.loops import log_densities_around, normal_log_densities

Array = NDArray[np.float64]
Labels = NDArray[np.int64]


class Components(ABC):
    """K normal distributions of frequencies in d inputs."""

    means: Array

    @property
    def n_components(self) -> int:
        """K."""
        return int(self.means.shape[0])

    def with_others(self, others: Components) -> Components:
        """Return these components followed by others of their kind."""
        return self._of(lambda name: np.concatenate([getattr(self, name), getattr(others, name)]))

    def chosen(self, which: Labels) -> Components:
        """Return some of the components, in the order of ``which``."""
        return self._of(lambda name: getattr(self, name)[which])

    def _of(self, make: Callable[[str], Array]) -> Components:
        kind: Any = type(self)
        return kind(*(make(each.name) for each in fields(kind)))  # type: ignore[no-any-return]

    @property
    @abstractmethod
    def stds(self) -> Array:
        """Standard deviation of each input, shape (K, d)."""

    @abstractmethod
    def log_densities(self, W: Array) -> Array:
        """Log density of frequencies W (n, d) under each component, shape (n, K), in nats."""

    @abstractmethod
    def draw_noise(self, rng: np.random.Generator, assignment: Labels) -> Array:
        """Draw N(0, Sigma_k) for each entry k of ``assignment`` (n,), shape (n, d)."""

    @abstractmethod
    def carry(self, W: Array, assignment: Labels, others: Components) -> Array:
        """Take frequencies W (n, d) along from these components to others of the same number.

        Where a frequency stands in its component, in units of its spread, stays as it is.
        """

    @abstractmethod
    def stretched(self, factor: Array) -> Components:
        """Return the components of frequencies times a factor, (d,) or (1,)."""

    @abstractmethod
    def characteristic(self, lags: Array) -> Array:
        """Real part exp(-t'Sigma t / 2) cos(mu't) at lags t (n, d), shape (n, K)."""


C = TypeVar("C", bound=Components)


@dataclass(frozen=True)
class ScalePrior:
    """Gamma(shape, shape / mean) prior of each scale of a base measure.

    The mean t0 is in squared units of a frequency for a diagonal base, a factor for a full one.
    """

    shape: float
    mean: Array

    def __post_init__(self) -> None:
        require_positive("shape of the prior of the scale", self.shape)
        require_positive("mean of the prior of the scale", self.mean)

    def draw(self, rng: np.random.Generator) -> Array:
        """Draw the scales from their prior."""
        return rng.gamma(self.shape, self.mean / self.shape)

    def draw_posterior(self, rng: np.random.Generator, half_count: float, half_sum: Array) -> Array:
        """Draw t from its prior times t^half_count exp(-half_sum t)."""
        return np.asarray(
            rng.gamma(self.shape + half_count, 1.0 / (self.shape / self.mean + half_sum))
        )


class BaseMeasure(ABC, Generic[C]):
    """A conjugate prior of components: mu_k | Sigma_k ~ N(0, Sigma_k / kappa0), nu0 for Sigma_k.

    ``scale`` is what the chain may redraw: see the two kinds.
    """

    scale: Array
    kappa0: float
    nu0: float

    @property
    @abstractmethod
    def n_inputs(self) -> int:
        """Length of a frequency."""

    @abstractmethod
    def with_scale(self, scale: Array) -> BaseMeasure[C]:
        """Return the same base with another scale."""

    @abstractmethod
    def log_predictive(self, W: Array) -> Array:
        """Log density of frequencies W (n, d) alone in a new component, shape (n,), in nats."""

    @abstractmethod
    def draw_components(
        self, rng: np.random.Generator, W: Array, assignment: Labels, n_components: int
    ) -> C:
        """Draw each (mu_k, Sigma_k) given its members among W (n, d); from the prior if none."""

    @abstractmethod
    def log_densities_around(self, rng: np.random.Generator, w: Array, W: Array) -> Array:
        """Draw a component whose one member is w (d,); log densities of W (n, d) under it, (n,)."""

    @abstractmethod
    def draw_scale(
        self, rng: np.random.Generator, components: C, prior: ScalePrior
    ) -> BaseMeasure[C]:
        """Draw the scale given all components, and return the base with it."""

    @abstractmethod
    def characteristic(self, lags: Array) -> Array:
        """Characteristic function of a frequency in a new component at lags (n, d), shape (n,)."""

    @abstractmethod
    def log_marginal_predictive(self, values: Array, j: int) -> Array:
        """Log density of input j of a frequency in a new component at values (n,)."""


def require_positive(name: str, value: float | Array) -> None:
    """Refuse what is not a finite positive number; the error names the parameter."""
    if isinstance(value, float) and 0.0 < value < math.inf:
        return
    values = np.asarray(value)
    if values.size and not (values.min() > 0.0 and values.max() < math.inf):  # nor for NaN
        raise UsageError(f"{name} must be positive and finite; got {value}")


def group_moments(
    W: Array, assignment: Labels, n_components: int
) -> tuple[Array, Array, Array, Array]:
    """Moments of the members of each component among frequencies W (n, d).

    Returns who is a member (K, n), 1 or 0, their number (K,), their mean (K, d), 0 if there are
    none, and W less the mean (n, d).
    """
    is_member = (assignment == np.arange(n_components)[:, np.newaxis]).astype(np.float64)
    counts = is_member.sum(axis=1)
    means = (is_member @ W) / np.maximum(counts, 1.0)[:, np.newaxis]
    return is_member, counts, means, W - means[assignment]


# Student's t in any dimension: log density and characteristic function, from squared lengths.


def t_log_density(square: Array, degrees: float, n_inputs: int, log_determinant: float) -> Array:
    """Log density of the multivariate t where (x - m)' S^-1 (x - m) is ``square``, in nats.

    ``log_determinant`` is log |S|, S the scale matrix.
    """
    half = 0.5 * (degrees + n_inputs)
    constant = gammaln(half) - gammaln(0.5 * degrees) - 0.5 * log_determinant
    constant -= 0.5 * n_inputs * math.log(math.pi * degrees)
    return np.asarray(constant - half * np.log1p(square / degrees))


def t_characteristic(square: Array, degrees: float) -> Array:
    """Characteristic function of the centred multivariate t at u where u' S u is ``square``.

    K_v(r) r^v / (Gamma(v) 2^(v-1)), in [0, 1], with v = degrees / 2 and r^2 = degrees u'Su.
    Where the Bessel function overflows, r is so small that 1 - r^2 / (4 (v - 1)) is left of the
    series.
    """
    v = 0.5 * degrees
    r = np.sqrt(degrees * square)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        scaled = kve(v, r)
        logs = np.log(scaled) - r + v * np.log(r) - gammaln(v) - (v - 1.0) * math.log(2.0)
    near_zero = 1.0 - r**2 / (4.0 * (v - 1.0)) if v > 1.0 else np.ones_like(r)
    return np.asarray(np.where(np.isposinf(scaled), near_zero, np.exp(np.minimum(logs, 0.0))))


# Components with independent inputs, and their base measure.
#
# Sigma_kl ~ IG(nu0 / 2, t_l / 2) and mu_kl | Sigma_kl ~ N(0, Sigma_kl / kappa0) for each input l,
# so that a frequency in a new component has independent inputs t_nu0 of squared scale t_l (1 + 1 /
# kappa0) / nu0. A component costs O(d) numbers: the base for many inputs.


@dataclass(frozen=True)
class DiagonalComponents(Components):
    """Normal distributions with diagonal covariances; means and variances are (K, d)."""

    means: Array
    variances: Array

    @property
    def stds(self) -> Array:
        """Standard deviation of each input, shape (K, d)."""
        return np.sqrt(self.variances)

    def log_densities(self, W: Array) -> Array:
        """Log density of frequencies W (n, d) under each component, shape (n, K), in nats."""
        out = np.empty((len(W), self.n_components))
        normal_log_densities(np.array(W, order="C"), self.means, self.variances, out)
        return out

    def draw_noise(self, rng: np.random.Generator, assignment: Labels) -> Array:
        """Draw N(0, Sigma_k) for each entry k of ``assignment`` (n,), shape (n, d)."""
        noise = rng.standard_normal((len(assignment), self.means.shape[1]))
        noise *= self.stds[assignment]
        return noise

    def carry(self, W: Array, assignment: Labels, others: Components) -> Array:
        """Take frequencies W (n, d) along to other components."""
        ratio = others.stds / self.stds
        moved = others.means[assignment] + (W - self.means[assignment]) * ratio[assignment]
        return np.asarray(moved)

    def stretched(self, factor: Array) -> DiagonalComponents:
        """Return the components of frequencies times a factor (d,)."""
        return DiagonalComponents(self.means * factor, self.variances * factor**2)

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

    mu_kl | Sigma_kl ~ N(0, Sigma_kl / kappa0), Sigma_kl ~ IG(nu0 / 2, t_l / 2) with mean t_l /
    (nu0 - 2) for nu0 > 2; ``scale`` (d,) is t_l, in squared units of a frequency.
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

    def _posterior(self, W: Array, assignment: Labels, n_components: int) -> _Posterior:
        is_member, counts, means, residuals = group_moments(W, assignment, n_components)
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

    def log_densities_around(self, rng: np.random.Generator, w: Array, W: Array) -> Array:
        """Draw a component whose one member is w (d,); log densities of W (n, d) under it, (n,)."""
        out, d = np.empty((len(W), 1)), len(w)
        drawn = rng.chisquare(self.nu0 + 1.0, d), rng.standard_normal(d)
        log_densities_around(*drawn, w, W, self.scale, self.kappa0, out)
        return out[:, 0]

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


# Components with full covariances, and their base measure: the normal-inverse-Wishart.
#
# Sigma_k ~ IW(nu0, Psi0) and mu_k | Sigma_k ~ N(0, Sigma_k / kappa0), with Psi0 = t Psi: one
# common scale t. A frequency in a new component is multivariate t with nu0 - d + 1 degrees of
# freedom and scale matrix Psi0 (kappa0 + 1) / (kappa0 (nu0 - d + 1)). A component costs O(d^2)
# numbers and its draw O(d^3) flops: up to about 30 inputs.


@dataclass(frozen=True)
class FullComponents(Components):
    """Normal distributions with any covariance: means (K, d), lower Cholesky factors (K, d, d)."""

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

    def carry(self, W: Array, assignment: Labels, others: Any) -> Array:
        """Take frequencies W (n, d) along to other components."""
        moved = np.empty_like(W)
        for k, L in enumerate(self.factors):
            own = assignment == k
            z = solve_lower(L, (W[own] - self.means[k]).T)
            moved[own] = others.means[k] + (others.factors[k] @ z).T
        return moved

    def stretched(self, factor: Array) -> FullComponents:
        """Return the components of frequencies times a factor (1,)."""
        return FullComponents(self.means * factor, self.factors * factor)

    def characteristic(self, lags: Array) -> Array:
        """Real part exp(-t'Sigma t / 2) cos(mu't) at lags t (n, d), shape (n, K)."""
        square = np.empty((len(lags), self.n_components))
        for k, L in enumerate(self.factors):
            square[:, k] = ((lags @ L) ** 2).sum(axis=1)
        return np.asarray(np.exp(-0.5 * square) * np.cos(lags @ self.means.T))


@dataclass(frozen=True)
class FullBase(BaseMeasure[FullComponents]):
    """Normal-inverse-Wishart distribution.

    mu_k | Sigma_k ~ N(0, Sigma_k / kappa0), Sigma_k ~ IW(nu0, t Psi) with mean t Psi / (nu0 - d
    - 1), nu0 at least d + 2; ``psi`` (d, d) is in squared units of a frequency, ``scale`` (1,)
    the factor t.
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

    def _posterior(
        self, W: Array, assignment: Labels, n_components: int
    ) -> tuple[Array, Array, Array, Array]:
        """Return kappa, nu (K,), mean (K, d) and Psi (K, d, d) of each component."""
        _, counts, means, residuals = group_moments(W, assignment, n_components)
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

    def log_densities_around(self, rng: np.random.Generator, w: Array, W: Array) -> Array:
        """Draw a component whose one member is w (d,); log densities of W (n, d) under it, (n,)."""
        alone = self.draw_components(rng, w[np.newaxis], np.zeros(1, dtype=np.int64), 1)
        return alone.log_densities(W)[:, 0]

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
