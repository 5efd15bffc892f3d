"""Proposals of frequencies, all drawn at the start of a sweep, and their tuning.

Each depends on its own frequency at most and leaves its conditional prior N(mu_Zj, Sigma_Zj)
invariant, so that only the evidence decides:

    "prior"   W* = mu + noise                                   the paper, section 3.3
    "pcn"     W* = mu + rho (W - mu) + sqrt(1 - rho^2) noise    preconditioned Crank-Nicolson

with noise ~ N(0, Sigma). The step sqrt(1 - rho^2) is tuned in warm-up; 1 is the prior.

With many rows the first part of the regression's warm-up looks at few of them: sweeps are cheap
there, the posterior is wide, and most of the way to where it concentrates is covered.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.sampling.sampler import Adaptation
from mercer.spectral.mixture.gibbs import Mixture
from mercer.spectral.mixture.state import MixtureState

__all__ = ["ProposalTuning", "StepAdaptation", "propose"]

Array = NDArray[np.float64]

_TARGET_ACCEPTANCE = 0.3
_FIRST_STEPS = 5  # of warm-up, without weight in the average: the way in


@dataclass(frozen=True)
class ProposalTuning:
    """What warm-up changes.

    Attributes
    ----------
    step : float
        sqrt(1 - rho^2), in (0, 1].
    level : int
        Which rows are looked at: that of the sampler's ``few``, if it has them, or all.
    """

    step: float
    level: int = 0


def propose(
    rng: np.random.Generator,
    mixture: Mixture,
    state: MixtureState,
    frequencies: Array,
    tuning: ProposalTuning,
) -> Array:
    """Propose a new value for every frequency, shape (M, d)."""
    centre = mixture.centre(state)
    rho = math.sqrt(max(1.0 - tuning.step**2, 0.0))
    return centre + rho * (frequencies - centre) + tuning.step * mixture.draw_noise(rng, state)


@dataclass(frozen=True)
class LearnedStep:
    """Where the search for the step stands."""

    n_seen: int
    log_step: float
    log_average: float


@dataclass(frozen=True)
class StepAdaptation(Adaptation):
    """Robbins & Monro's search for the step that is accepted 3 times in 10.

    Attributes
    ----------
    more_rows_after : tuple of int
        Numbers of warm-up sweeps after which more rows are looked at: one for each of ``few``.
    """

    more_rows_after: tuple[int, ...] = ()

    def init(self, sampler: Any) -> LearnedStep:
        """Begin at the sampler's own step."""
        log_step = math.log(sampler.tuning.step)
        return LearnedStep(0, log_step, log_step)

    def update(
        self, learned: LearnedStep, sampler: Any, state: Any, info: Any
    ) -> tuple[LearnedStep, Any]:
        """Move the step by what the last sweep accepted."""
        n = learned.n_seen + 1
        gain = 2.0 / math.sqrt(n)
        log_step = learned.log_step + gain * (info.acceptance_rate - _TARGET_ACCEPTANCE)
        log_step = min(max(log_step, math.log(1e-6)), 0.0)
        share = 1.0 if n <= _FIRST_STEPS else (n - _FIRST_STEPS) ** -0.6
        average = share * log_step + (1.0 - share) * learned.log_average
        level = sum(n >= end for end in self.more_rows_after)
        tuning = ProposalTuning(math.exp(log_step), level)
        return LearnedStep(n, log_step, average), self.with_tuning(sampler, tuning)

    def finish(self, learned: LearnedStep, sampler: Any) -> Any:
        """Keep the average of the search, and look at all rows."""
        tuning = ProposalTuning(math.exp(learned.log_average), len(self.more_rows_after))
        return self.with_tuning(sampler, tuning)

    def tuning(self, sampler: Any) -> ProposalTuning:
        """The step."""
        tuning: ProposalTuning = sampler.tuning
        return tuning

    def with_tuning(self, sampler: Any, tuning: ProposalTuning) -> Any:
        """Return the sampler with this step and these rows."""
        return dataclasses.replace(sampler, tuning=tuning)
