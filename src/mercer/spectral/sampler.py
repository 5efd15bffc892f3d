"""BaNK for regression: Gibbs and Metropolis steps over frequencies and their mixture.

**Target** p(W, Z, mu, Sigma, ridge, ... | y): frequencies W_j ~ N(mu_Zj, Sigma_Zj) under a
Dirichlet-process mixture, and the regression of `mercer.spectral.model`.

**One step** (a sweep)

1. Proposals for all frequencies given Z, mu, Sigma.
2. One pass over the rows: products of proposed and current features.
3. Each frequency in its turn, accepted by the ratio of evidences, eqs. (9) to (12), beta and s2
   integrated out.
4. The ridge, beta and s2 integrated out.
5. s2, then beta.
6. The precision of the linear part given beta and s2.
7. Z with the signs of the frequencies, (mu, Sigma), base scale, concentration: eq. (8) and
   section 3.2.

Whatever uses beta or s2 comes after the last change of W: a stale beta in 6 would break the law.

**Symbols** (paper -> code): W -> ``frequencies``, beta -> ``coef``, Lambda_0 -> ``ridge``,
sigma_eps -> ``noise_variance``, Phi'Phi -> part of ``gram``.

**Deviations.** The ridge is drawn, not 1/2, unless it is given; a linear part; the products are
computed once a sweep and not by low-rank updates, which changes no decision.

**Cost** of a step: 12 n M^2 flops and O(M^3).

References
----------
.. [1] Oliva et al., Bayesian nonparametric kernel-learning (AISTATS 2016).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.sampling.sampler import Sampler
from mercer.spectral.compiled import select
from mercer.spectral.halving import Decisions, decide, join
from mercer.spectral.mixture.gibbs import Mixture
from mercer.spectral.mixture.state import MixtureState
from mercer.spectral.model import RegressionModel, coefficients
from mercer.spectral.probe import Probe
from mercer.spectral.proposals import ProposalTuning, propose
from mercer.spectral.ridge import draw_ridge, ridge_density
from mercer.spectral.rows import TrainingRows

__all__ = ["CoefDraw", "SpectralInfo", "SpectralSampler", "SpectralState", "Start"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CoefDraw:
    """The law of the coefficients given all else, and draws from it.

    Attributes
    ----------
    mean : ndarray of shape (2 M + p,)
        mu_n.
    deviations : ndarray of shape (k, 2 M + p)
        Draws of beta - mu_n; mu_n - deviation is a draw as well.
    noise_variance : float
        s2.
    log_evidence : float
        log p(y | W, ridge, linear precision), in nats.
    """

    mean: Array
    deviations: Array
    noise_variance: float
    log_evidence: float


@dataclass(frozen=True)
class SpectralState:
    """Where the chain stands.

    Attributes
    ----------
    frequencies : ndarray of shape (M, d)
    gram : ndarray of shape (2 M + p + 1, 2 M + p + 1)
        [Phi, H, y]'[Phi, H, y] of these frequencies.
    ridge, linear_precision : float
    mixture : MixtureState
    coef : CoefDraw
    n_rows : int
        Rows that ``gram`` is a sum over.
    """

    frequencies: Array
    gram: Array
    ridge: float
    linear_precision: float
    mixture: MixtureState
    coef: CoefDraw
    n_rows: int


@dataclass(frozen=True)
class SpectralInfo:
    """What a diagnostician needs: share of accepted proposals, their step, evidence in nats."""

    acceptance_rate: float
    step_size: float
    log_density: float


@dataclass(frozen=True, eq=False)
class Start:
    """Where chains start: each draws frequencies around these scales.

    Attributes
    ----------
    scales : ndarray of shape (d,)
        Standard deviation of the frequencies of each input.
    factors : tuple of float
        One component at each multiple of the scales.
    ridge, linear_precision : float
    """

    scales: Array
    factors: tuple[float, ...]
    ridge: float
    linear_precision: float

    def frequencies(self, rng: np.random.Generator, n: int) -> tuple[Array, NDArray[np.int64]]:
        """Draw n frequencies, (n, d), and say which factor each has."""
        return rng.standard_normal((n, len(self.scales))) * self.scales_of(n), self.places(n)

    def places(self, n: int) -> NDArray[np.int64]:
        """Which factor each of n frequencies has, shape (n,)."""
        return np.arange(n) * len(self.factors) // n

    def scales_of(self, n: int) -> Array:
        """Standard deviations that n frequencies are drawn with, shape (n, d)."""
        return np.outer(np.array(self.factors)[self.places(n)], self.scales)


@dataclass(frozen=True, eq=False)
class SpectralSampler(Sampler[SpectralState, SpectralInfo]):
    """Sweeps over all frequencies, then over what their law depends on.

    Attributes
    ----------
    rows : TrainingRows
    model : RegressionModel
    mixture : Mixture
    start : Start
    n_frequencies : int
        M.
    n_deviations : int
        Draws of the coefficients that each kept draw stores.
    tuning : ProposalTuning
    probe : Probe
        Where kernel and function are recorded for the diagnostics.
    few : tuple of TrainingRows
        Parts of the rows, larger and larger, that warm-up looks at first.
    """

    rows: TrainingRows
    model: RegressionModel
    mixture: Mixture
    start: Start
    n_frequencies: int
    n_deviations: int
    tuning: ProposalTuning
    probe: Probe
    few: tuple[TrainingRows, ...] = ()

    @property
    def rows_now(self) -> TrainingRows:
        """The rows that a step looks at: all of them once warm-up is over."""
        return (*self.few, self.rows)[self.tuning.level]

    @property
    def model_now(self) -> RegressionModel:
        """The regression on those rows."""
        return replace(self.model, n_rows=self.rows_now.n_rows)

    def init(self, rng: np.random.Generator) -> SpectralState:
        """Draw frequencies at the scales of the start, one component for each of its factors."""
        start = self.start
        W, Z = start.frequencies(rng, self.n_frequencies)
        mixture = self.mixture.init(rng, W, Z)
        return self._complete(
            rng, W, self.rows_now.gram(W), start.ridge, start.linear_precision, mixture
        )

    def step(
        self, rng: np.random.Generator, state: SpectralState
    ) -> tuple[SpectralState, SpectralInfo]:
        """Take one sweep."""
        if state.n_rows != self.rows_now.n_rows:
            gram = self.rows_now.gram(state.frequencies)
            state = replace(state, gram=gram, n_rows=self.rows_now.n_rows)
        decisions, W, gram = self._sweep(rng, state)
        ridge = state.ridge
        if self.model.ridge_prior is not None:
            density = ridge_density(self.model_now, gram, state.linear_precision)
            ridge = draw_ridge(rng, density, ridge)
        new = self._complete(rng, W, gram, ridge, state.linear_precision, state.mixture)
        new = self._turn(rng, new)
        accepted = float(decisions.is_accepted.mean())
        return new, SpectralInfo(accepted, self.tuning.step, new.coef.log_evidence)

    def record(self, state: SpectralState) -> Mapping[str, NDArray[Any]]:
        """Frequencies, law of the coefficients, noise, partition, and what is monitored."""
        coef, mixture = state.coef, state.mixture
        return {
            "log_evidence": np.array(coef.log_evidence),
            "noise_std": np.array(math.sqrt(coef.noise_variance)),
            "n_components": np.array(mixture.n_components),
            "kernel": self.probe.kernel(state.frequencies),
            "function": self.probe.function(state.frequencies, coef.mean + coef.deviations[0]),
            "ridge_precision": np.array(state.ridge),
            "linear_precision": np.array(state.linear_precision),
            "concentration": np.array(mixture.concentration),
            "base_scale": mixture.scale,
            "assignment": mixture.assignment,
            "frequencies": state.frequencies,
            "coef_mean": coef.mean,
            "coef_deviation": coef.deviations,
        }

    def _sweep(
        self, rng: np.random.Generator, state: SpectralState
    ) -> tuple[Decisions, Array, Array]:
        """Steps 1 to 3: decisions, frequencies and their products."""
        W = state.frequencies
        proposed = propose(rng, self.mixture, state.mixture, W, self.tuning)
        log_uniform = np.log(rng.random(len(W)))
        products = self.rows_now.products(proposed, W)
        model = self.model_now
        precisions = model.linear_precisions(state.linear_precision)
        joint = join(state.gram, products.among, products.across, state.ridge, precisions)
        decisions = decide(joint, log_uniform, model.posterior_shape, model.noise_rate)
        is_accepted = decisions.is_accepted
        gram = select(state.gram, products.among, products.across, is_accepted)
        return decisions, np.where(is_accepted[:, np.newaxis], proposed, W), gram

    def _complete(
        self,
        rng: np.random.Generator,
        W: Array,
        gram: Array,
        ridge: float,
        linear_precision: float,
        mixture: MixtureState,
    ) -> SpectralState:
        """Steps 5 and 6: draw noise, coefficients and the precision of the linear part."""
        model, n_features = self.model_now, 2 * len(W)
        law = coefficients(model, gram, model.prior_precisions(n_features, ridge, linear_precision))
        noise_variance, deviations = law.draw(rng, model.posterior_shape, self.n_deviations)
        draw = CoefDraw(law.mean, deviations, noise_variance, law.log_evidence)
        if model.n_linear > 1:
            slopes = (law.mean + deviations[0])[n_features + 1 :]
            prior = model.linear_prior
            rate = prior.rate + 0.5 * float(slopes @ slopes) / noise_variance
            linear_precision = rng.gamma(prior.shape + 0.5 * len(slopes)) / rate
        return SpectralState(
            W, gram, ridge, float(linear_precision), mixture, draw, self.rows_now.n_rows
        )

    def _turn(self, rng: np.random.Generator, state: SpectralState) -> SpectralState:
        """Step 7; a frequency that changes its sign takes the sign of its sine with it."""
        mixture, signs = self.mixture.step(rng, state.mixture, state.frequencies)
        factors = np.ones(len(state.gram))
        factors[1 : 2 * len(signs) : 2] = signs
        coef = state.coef
        turned = CoefDraw(
            coef.mean * factors[:-1],
            coef.deviations * factors[:-1],
            coef.noise_variance,
            coef.log_evidence,
        )
        return replace(
            state,
            frequencies=signs[:, np.newaxis] * state.frequencies,
            gram=state.gram * np.outer(factors, factors),
            mixture=mixture,
            coef=turned,
        )
