"""Warm-up of chains of classes: the step of the proposals, and that of the trajectories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mercer.sampling.sampler import Adaptation
from mercer.spectral.classes.state import ClassTuning
from mercer.spectral.proposals import TARGET_ACCEPTANCE, LearnedStep

__all__ = ["ClassAdaptation", "LearnedSteps"]

_TARGET_OF_TRAJECTORIES = 0.8


@dataclass(frozen=True)
class LearnedSteps:
    """Where both searches stand."""

    proposals: LearnedStep
    trajectory: LearnedStep


@dataclass(frozen=True)
class ClassAdaptation(Adaptation):
    """Search for the steps of what the chain has.

    Attributes
    ----------
    has_steps : bool
        Whether proposals take steps; those from the prior do not.
    """

    has_steps: bool

    def init(self, sampler: Any) -> LearnedSteps:
        """Begin at the sampler's own steps."""
        tuning = sampler.tuning
        return LearnedSteps(LearnedStep.first(tuning.step), LearnedStep.first(tuning.trajectory))

    def update(
        self, learned: LearnedSteps, sampler: Any, state: Any, info: Any
    ) -> tuple[LearnedSteps, Any]:
        """Move both steps by what the last sweep accepted."""
        proposals, trajectory = learned.proposals, learned.trajectory
        if self.has_steps:
            proposals = proposals.after(info.acceptance_rate - TARGET_ACCEPTANCE)
        if sampler.n_leapfrog > 0:
            trajectory = trajectory.after(info.trajectory_acceptance - _TARGET_OF_TRAJECTORIES)
        tuning = ClassTuning(proposals.step, trajectory=trajectory.step)
        return LearnedSteps(proposals, trajectory), self.with_tuning(sampler, tuning)

    def finish(self, learned: LearnedSteps, sampler: Any) -> Any:
        """Keep the averages of the searches."""
        tuning = ClassTuning(learned.proposals.average, trajectory=learned.trajectory.average)
        return self.with_tuning(sampler, tuning)
