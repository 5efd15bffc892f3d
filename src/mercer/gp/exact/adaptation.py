"""Warm-up of delayed acceptance: Laplace's chain first, then its errors, then the exact chain.

1. In the first half nothing is estimated: the chain finds Laplace's posterior and its mass.
2. Until five sixths the chain is still Laplace's, and every point that it visits gets an estimate:
   from these comes the slope of the tilt.
3. The rest is the exact chain, on its way from Laplace's posterior to the exact one.

Step size and mass are learned all the way, as for the inner sampler alone. Under 60 steps the
chain is exact from its start, without a tilt.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.gp.exact.sampler import Correction, DelayedAcceptance, log_laplace_error
from mercer.gp.exact.tilt import fit_slope
from mercer.sampling.adaptation import HamiltonianAdaptation, LearnedTuning
from mercer.sampling.leapfrog import HamiltonianTuning
from mercer.sampling.sampler import Adaptation

__all__ = ["ExactAdaptation", "ExactTuning", "LearnedCorrection"]

Array = NDArray[np.float64]

_SHORTEST = 60  # steps of warm-up with all three parts


@dataclass(frozen=True)
class ExactTuning:
    """All that warm-up changes."""

    hamiltonian: HamiltonianTuning
    correction: Correction


@dataclass(frozen=True)
class LearnedCorrection:
    """What warm-up has learned so far.

    Attributes
    ----------
    hamiltonian : LearnedTuning
    theta : ndarray of shape (k, p)
        Points with estimates of their evidence.
    errors : ndarray of shape (k,)
        Estimates of Laplace's errors there, nats.
    """

    hamiltonian: LearnedTuning
    theta: Array
    errors: Array


@dataclass(frozen=True)
class ExactAdaptation(Adaptation):
    """Tune `DelayedAcceptance` over the steps of ``hamiltonian``."""

    hamiltonian: HamiltonianAdaptation

    def init(self, sampler: DelayedAcceptance) -> LearnedCorrection:
        """Begin with nothing but the inner sampler's step size."""
        p = len(sampler.correction.slope)
        learned = self.hamiltonian.init(sampler.inner)
        return LearnedCorrection(learned, np.empty((0, p)), np.empty(0))

    def update(
        self, learned: LearnedCorrection, sampler: DelayedAcceptance, state: Any, info: Any
    ) -> tuple[LearnedCorrection, DelayedAcceptance]:
        """Learn from one step; go on to the next part of the warm-up where it begins."""
        tuned, inner = self.hamiltonian.update(learned.hamiltonian, sampler.inner, state, info)
        learned = dataclasses.replace(learned, hamiltonian=tuned)
        if sampler.correction.is_estimated and not sampler.correction.is_exact:
            learned = _noted(learned, sampler, state)
        correction = self._correction(learned, sampler.correction)
        return learned, dataclasses.replace(sampler, inner=inner, correction=correction)

    def finish(self, learned: LearnedCorrection, sampler: DelayedAcceptance) -> DelayedAcceptance:
        """Fix step size and mass; the correction is fixed already."""
        inner = self.hamiltonian.finish(learned.hamiltonian, sampler.inner)
        return dataclasses.replace(sampler, inner=inner)

    def tuning(self, sampler: DelayedAcceptance) -> ExactTuning:
        """Step size, mass and correction."""
        return ExactTuning(self.hamiltonian.tuning(sampler.inner), sampler.correction)

    def with_tuning(self, sampler: DelayedAcceptance, tuning: ExactTuning) -> DelayedAcceptance:
        """Return the sampler with this tuning."""
        inner = self.hamiltonian.with_tuning(sampler.inner, tuning.hamiltonian)
        return dataclasses.replace(sampler, inner=inner, correction=tuning.correction)

    def _correction(self, learned: LearnedCorrection, now: Correction) -> Correction:
        """Correction of the next step."""
        n_warmup, n_seen = self.hamiltonian.n_warmup, learned.hamiltonian.n_seen
        if n_warmup < _SHORTEST:
            return now
        if n_seen == 1:
            return dataclasses.replace(now, is_estimated=False, is_exact=False)
        if n_seen == n_warmup // 2:
            return dataclasses.replace(now, is_estimated=True)
        if n_seen == n_warmup - n_warmup // 6:
            slope = fit_slope(learned.theta, learned.errors)
            return Correction(slope, is_estimated=True, is_exact=True)
        return now


def _noted(learned: LearnedCorrection, sampler: DelayedAcceptance, state: Any) -> LearnedCorrection:
    """Add the point of a state, unless it is the last one or has no estimate."""
    error = log_laplace_error(sampler.model, state)
    is_last = len(learned.theta) > 0 and np.array_equal(learned.theta[-1], state.point.position)
    if is_last or not np.isfinite(error):
        return learned
    return dataclasses.replace(
        learned,
        theta=np.vstack([learned.theta, state.point.position]),
        errors=np.append(learned.errors, error),
    )
