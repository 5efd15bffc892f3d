"""The exact posterior of the hyperparameters by delayed acceptance.

**Target.** p(theta | y), proportional to the exact evidence Z(theta) times the prior, of which only
unbiased estimates Zhat can be had (`mercer.gp.exact.evidence`); jointly with the random numbers of
the estimate, so that the hyperparameters alone have exactly this law (pseudo-marginal).

**One step** (Christen & Fox 2005; Andrieu & Roberts 2009)

1. ``n_inner`` steps of HMC or NUTS, each reversible, on the tilted Laplace posterior
   Z_LA(theta) exp(slope'theta) times the prior: theta -> theta'.
2. A new estimate Zhat(theta').
3. Accept theta' with its estimate with probability
   min(1, [Zhat/(Z_LA exp(slope'theta'))](theta') / [Zhat/(Z_LA exp(slope'theta))](theta)).
   The estimate at the current theta is the one it was accepted with: made anew, it would change
   the law of the chain.

A latent function is drawn with each estimate; hyperparameters and function together are draws from
their exact joint posterior.

**Symbols**: rho = log Zhat - log Z_LA -> ``log_laplace_error``.

**Deviations.** Where step 1 ends at its start nothing is estimated. In warm-up step 3 may be left
out, with or without step 2: `mercer.gp.exact.adaptation`.

**Cost.** The steps on Laplace's posterior, and as much as four to eight of its gradients.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.gp.binary.model import HyperparameterPosterior
from mercer.gp.exact.evidence import Estimate, EvidenceEstimator, no_estimate
from mercer.gp.exact.tilt import TiltedTarget, tilted
from mercer.sampling.hmc import HMC, HMCInfo, HMCState
from mercer.sampling.nuts import NUTS, NUTSInfo, NUTSState
from mercer.sampling.sampler import Sampler
from mercer.sampling.target import Point

__all__ = [
    "Correction",
    "DelayedAcceptance",
    "ExactInfo",
    "ExactState",
    "log_laplace_error",
    "make_exact_sampler",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Correction:
    """How Laplace's chain is corrected; warm-up learns it.

    Attributes
    ----------
    slope : ndarray of shape (p,)
        Of the tilt of the first stage.
    is_estimated : bool
        Whether estimates are made.
    is_exact : bool
        Whether the second stage decides.
    """

    slope: Array
    is_estimated: bool
    is_exact: bool


@dataclass(frozen=True)
class ExactState:
    """The point at which the chain stands, and the estimate it was accepted with."""

    inner: HMCState | NUTSState
    estimate: Estimate

    @property
    def point(self) -> Point:
        """The hyperparameters as Laplace's posterior sees them."""
        return self.inner.point


@dataclass(frozen=True)
class ExactInfo:
    """What a diagnostician needs to know of one step; of the inner steps, means and sums."""

    acceptance_rate: float
    second_acceptance_rate: float
    is_accepted: bool
    is_divergent: bool
    n_leapfrog: int
    step_size: float
    log_laplace_error: float
    weights_ess: float
    n_evidence_draws: int
    is_fallback: bool


@dataclass(frozen=True)
class DelayedAcceptance(Sampler[ExactState, ExactInfo]):
    """Delayed acceptance: Laplace's chain proposes, estimates of the evidence decide.

    Attributes
    ----------
    inner : HMC or NUTS
        On Laplace's posterior, with its start, recorder and tuning.
    model : HyperparameterPosterior
        The target of ``inner``.
    estimator : EvidenceEstimator
    rows : ndarray of shape (k,), int
        The rows whose latent values are monitored.
    correction : Correction
    n_inner : int
        Inner steps between two decisions.
    """

    inner: HMC | NUTS
    model: HyperparameterPosterior
    estimator: EvidenceEstimator
    rows: NDArray[np.int64]
    correction: Correction
    n_inner: int = 1

    def init(self, rng: np.random.Generator) -> ExactState:
        """Draw a start, evaluate it and estimate its evidence."""
        inner = self.inner.init(rng)
        return ExactState(inner, self._estimate(rng, inner.point))

    def step(self, rng: np.random.Generator, state: ExactState) -> tuple[ExactState, ExactInfo]:
        """Take the inner steps and decide about where they end."""
        correction = self.correction
        old = state
        if correction.is_estimated and state.estimate.n_draws == 0:  # a new part of warm-up
            old = ExactState(state.inner, self._estimate(rng, state.point))
        end, told = self._propose(rng, state.inner)  # step 1
        new, rate, is_accepted = old, 1.0, False
        if end is not state.inner:
            proposed = ExactState(end, self._estimate(rng, end.point))  # step 2
            rate = self._acceptance_rate(old, proposed)
            is_accepted = bool(rng.random() < rate)  # step 3
            new = proposed if is_accepted else old
        info = ExactInfo(
            acceptance_rate=float(np.mean([info.acceptance_rate for info in told])),
            second_acceptance_rate=rate,
            is_accepted=is_accepted,
            is_divergent=any(info.is_divergent for info in told),
            n_leapfrog=sum(info.n_leapfrog for info in told),
            step_size=self.inner.tuning.step_size,
            log_laplace_error=log_laplace_error(self.model, new),
            weights_ess=new.estimate.ess,
            n_evidence_draws=new.estimate.n_draws,
            is_fallback=new.estimate.is_fallback,
        )
        return new, info

    def record(self, state: ExactState) -> Mapping[str, Array]:
        """Return what the inner sampler records, Laplace's error and the exact function."""
        estimate = state.estimate
        return {
            **self.inner.record(state.inner),  # type: ignore[arg-type]
            "log_laplace_error": np.asarray(log_laplace_error(self.model, state)),
            "exact_latent": estimate.latent[self.rows],
            "exact_coef": estimate.coef,
        }

    def _propose(
        self, rng: np.random.Generator, start: HMCState | NUTSState
    ) -> tuple[HMCState | NUTSState, list[HMCInfo | NUTSInfo]]:
        """Take the inner steps; returns the start itself where none was accepted."""
        slope = self.correction.slope
        inner: Sampler[Any, Any] = replace(self.inner, target=TiltedTarget(self.model, slope))
        origin = replace(start, point=tilted(start.point, slope))
        told: list[HMCInfo | NUTSInfo] = []
        end = origin
        for _ in range(self.n_inner if self.correction.is_exact else 1):
            end, info = inner.step(rng, end)
            told.append(info)
        if np.array_equal(end.point.position, origin.point.position):
            return start, told
        return replace(end, point=tilted(end.point, -slope)), told

    def _estimate(self, rng: np.random.Generator, point: Point) -> Estimate:
        if not self.correction.is_estimated:
            return no_estimate(len(self.model.y))
        return self.estimator.estimate(rng, point)

    def _acceptance_rate(self, old: ExactState, new: ExactState) -> float:
        """Acceptance probability of the second stage."""
        if not self.correction.is_exact:
            return 1.0
        if not math.isfinite(new.estimate.log_evidence):
            return 0.0
        if not math.isfinite(old.estimate.log_evidence):
            return 1.0
        change = log_laplace_error(self.model, new) - log_laplace_error(self.model, old)
        change -= float(self.correction.slope @ (new.point.position - old.point.position))
        return math.exp(min(0.0, change))


def log_laplace_error(model: HyperparameterPosterior, state: ExactState) -> float:
    """Return rho = log Zhat - log Z_LA at a state, nats; not a number where there is no Zhat."""
    if not math.isfinite(state.estimate.log_evidence):
        return math.nan
    point = state.point
    log_laplace = point.log_density - model.prior.log_density(point.position)
    return state.estimate.log_evidence - log_laplace


def make_exact_sampler(
    inner: HMC | NUTS,
    model: HyperparameterPosterior,
    rows: NDArray[np.int64],
    *,
    n_inner: int = 1,
) -> DelayedAcceptance:
    """Make the sampler whose first stage is ``inner``, a sampler of ``model``.

    Parameters
    ----------
    inner : HMC or NUTS
    model : HyperparameterPosterior
    rows : ndarray of shape (k,), int
        The rows whose latent values are monitored.
    n_inner : int
        Inner steps between two decisions.
    """
    estimator = EvidenceEstimator(model.X, model.y, model.kernel)
    correction = Correction(np.zeros(len(model.prior.mean)), is_estimated=True, is_exact=True)
    return DelayedAcceptance(inner, model, estimator, rows, correction, n_inner)
