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

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.sampling.sampler import Adaptation
from mercer.spectral.mixture.gibbs import Mixture
from mercer.spectral.mixture.state import MixtureState

__all__ = ["TARGET_ACCEPTANCE", "LearnedStep", "ProposalTuning", "StepAdaptation", "propose"]

Array = NDArray[np.float64]

#: Of proposals of frequencies.
TARGET_ACCEPTANCE = 0.3
_SMALLEST_STEP = 1e-6
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
    """Where Robbins & Monro's search for a step of at most 1 stands."""

    n_seen: int
    log_step: float
    log_average: float

    @classmethod
    def first(cls, step: float) -> LearnedStep:
        """Begin at a step."""
        return cls(0, math.log(step), math.log(step))

    def after(self, excess: float) -> LearnedStep:
        """Move by how much more than wanted was accepted."""
        n = self.n_seen + 1
        log_step = self.log_step + 2.0 / math.sqrt(n) * excess
        log_step = min(max(log_step, math.log(_SMALLEST_STEP)), 0.0)
        share = 1.0 if n <= _FIRST_STEPS else (n - _FIRST_STEPS) ** -0.6
        return LearnedStep(n, log_step, share * log_step + (1.0 - share) * self.log_average)

    @property
    def step(self) -> float:
        """The step to try next."""
        return math.exp(self.log_step)

    @property
    def average(self) -> float:
        """The step to keep."""
        return math.exp(self.log_average)


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
        return LearnedStep.first(sampler.tuning.step)

    def update(
        self, learned: LearnedStep, sampler: Any, state: Any, info: Any
    ) -> tuple[LearnedStep, Any]:
        """Move the step by what the last sweep accepted."""
        learned = learned.after(info.acceptance_rate - TARGET_ACCEPTANCE)
        level = sum(learned.n_seen >= end for end in self.more_rows_after)
        return learned, self.with_tuning(sampler, ProposalTuning(learned.step, level))

    def finish(self, learned: LearnedStep, sampler: Any) -> Any:
        """Keep the average of the search, and look at all rows."""
        tuning = ProposalTuning(learned.average, len(self.more_rows_after))
        return self.with_tuning(sampler, tuning)
