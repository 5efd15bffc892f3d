"""What the samplers of classes share: how a chain starts and travels, what a draw keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.sampling.sampler import Sampler
from mercer.spectral.classes.ascent import Ascent
from mercer.spectral.classes.model import LogisticModel
from mercer.spectral.classes.products import log_likelihood
from mercer.spectral.classes.state import ClassState, ClassTuning
from mercer.spectral.classes.trajectory import move_together
from mercer.spectral.mixture.gibbs import Mixture
from mercer.spectral.probe import Probe
from mercer.spectral.rows import TrainingRows
from mercer.spectral.sampler import SpectralInfo, Start

__all__ = ["ClassChain", "TrajectoryInfo"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TrajectoryInfo(SpectralInfo):
    """Of a sweep that a trajectory went before: how probable its end was, and its step."""

    trajectory_acceptance: float
    trajectory_step: float


@dataclass(frozen=True, eq=False)
class ClassChain(Sampler[ClassState, SpectralInfo]):
    """What the samplers of classes share: state, start, record, and the steps of the mixture.

    Attributes
    ----------
    rows : TrainingRows
        Targets are places of classes, see `ClassCodes`.
    n_sticks : int
        K, the number of classes less one.
    model : LogisticModel
    mixture, start, n_frequencies, n_deviations, tuning, probe
        As in `mercer.spectral.sampler.SpectralSampler`.
    ascent : Ascent or None
        Steps up the posterior that the first step begins with.
    n_leapfrog : int
        Steps of the trajectory that each sweep begins with; 0 for none.
    """

    rows: TrainingRows
    n_sticks: int
    model: LogisticModel
    mixture: Mixture
    start: Start
    n_frequencies: int
    n_deviations: int
    tuning: ClassTuning
    probe: Probe
    ascent: Ascent | None = None
    n_leapfrog: int = 0

    def init(self, rng: np.random.Generator) -> ClassState:
        """Draw frequencies at the scales of the start; all functions are 0."""
        W, Z = self.start.frequencies(rng, self.n_frequencies)
        K, n_coef = self.n_sticks, 2 * len(W) + self.model.n_linear
        mean = np.zeros((K, n_coef))
        return ClassState(
            frequencies=W,
            mean=mean,
            deviations=np.zeros((K, self.n_deviations, n_coef)),
            ridge=np.full(K, self.start.ridge),
            linear_precision=np.full(K, self.start.linear_precision),
            mixture=self.mixture.init(rng, W, Z),
            log_likelihood=log_likelihood(self.rows, W, mean),
        )

    def before_sweep(
        self, rng: np.random.Generator, state: ClassState
    ) -> tuple[ClassState, float | None]:
        """Climb, if it is the first step, then take a trajectory, each where there is one.

        Returns
        -------
        state : ClassState
        acceptance_rate : float or None
            Of the trajectory.
        """
        if self.ascent is not None and not state.coef.any():
            state = self._climb(rng, self.ascent, state)
        if self.n_leapfrog == 0:
            return state, None
        return move_together(
            rng, self.rows, self.model, self.mixture, state, self.tuning.trajectory, self.n_leapfrog
        )

    def info(self, accepted: float, trajectory: float | None, log_density: float) -> SpectralInfo:
        """Report of a step: shares of accepted proposals and trajectories, log likelihood."""
        common = (accepted, self.tuning.step, log_density)
        if trajectory is None:
            return SpectralInfo(*common)
        return TrajectoryInfo(*common, trajectory, self.tuning.trajectory)

    def record(self, state: ClassState) -> Mapping[str, NDArray[Any]]:
        """Frequencies, law of the coefficients, partition, and what is monitored."""
        mixture = state.mixture
        return {
            "log_likelihood": np.array(state.log_likelihood),
            "n_components": np.array(mixture.n_components),
            "kernel": self.probe.kernel(state.frequencies),
            "function": self.probe.function(state.frequencies, state.coef),
            "ridge_precision": state.ridge,
            "linear_precision": state.linear_precision,
            "concentration": np.array(mixture.concentration),
            "base_scale": mixture.scale,
            "assignment": mixture.assignment,
            "frequencies": state.frequencies,
            "coef_mean": state.mean,
            "coef_deviation": state.deviations,
        }

    def _climb(self, rng: np.random.Generator, ascent: Ascent, state: ClassState) -> ClassState:
        """Climb from the start, which alone has functions that are 0.

        As a part of a step it can be stopped like one, and a resumed chain does not do it again.
        """
        m = self.n_frequencies
        W, mean = ascent.climb(state.frequencies, self.start.scales_of(m), self.n_sticks)
        mixture = self.mixture.init(rng, W, self.start.places(m))
        return replace(state, frequencies=W, mean=mean, mixture=mixture)

    def _linear(self, precision: float) -> Array:
        return self.model.linear_precisions(float(precision))

    def _draw_linear_precision(self, rng: np.random.Generator, coef: Array, old: float) -> float:
        """Draw the precision of the linear part of one function given its coefficients."""
        if self.model.n_linear <= 1:
            return old
        prior, slopes = self.model.linear_prior, coef[2 * self.n_frequencies + 1 :]
        rate = prior.rate + 0.5 * float(slopes @ slopes)
        return float(rng.gamma(prior.shape + 0.5 * len(slopes)) / rate)

    def _turn(self, rng: np.random.Generator, state: ClassState) -> ClassState:
        """The mixture; a frequency that changes its sign takes the sign of its sines with it."""
        mixture, signs = self.mixture.step(rng, state.mixture, state.frequencies)
        factors = np.ones(state.mean.shape[1])
        factors[1 : 2 * len(signs) : 2] = signs
        return replace(
            state,
            frequencies=signs[:, np.newaxis] * state.frequencies,
            mean=state.mean * factors,
            deviations=state.deviations * factors,
            mixture=mixture,
        )
