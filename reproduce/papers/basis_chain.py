"""The paper's model by long chains on all rows at once: what its one pass is held against.

The target and the moves are those of `mercer.basis.filter` after the last row, started from no
centres; nothing is resampled.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mercer.basis.ensemble import filter_law
from mercer.basis.filter import Filter, State
from mercer.basis.length_scales import LengthScaleGrid
from mercer.basis.loops import move_particles
from mercer.basis.model import Prior, Reservoir, Schedule, SetPrior, sampled
from mercer.basis.population_loops import discount
from mercer.estimation.standardize import TargetScale, scale_target
from mercer.posterior.predictive import StudentMixture
from reproduce.papers.basis_answer import LEVEL, Answer, Problem

__all__ = ["Run", "learned", "long_chains", "paper_filter"]

Array = NDArray[np.float64]

_N_CHAINS, _N_CHANGES, _KEEP_EVERY = 8, 10, 10
# Rows that may be learned: each is moved over, so that the sums hold them all.
_MOST_ROWS = 512


def paper_filter(
    width: float,
    expected: float,
    *,
    n_particles: int = 250,
    n_centres: int = 50,
    prior: Prior | None = None,
) -> Filter:
    """Return the filter of the paper's model, for one input: one width, both variances sampled."""
    grid = LengthScaleGrid(np.array([width / math.sqrt(2.0)]), np.ones((1, 1)), "rbf", False)
    return Filter(
        n_particles=n_particles,
        prior=prior or sampled(grid.n_mean),
        sets=SetPrior("poisson", expected, n_centres),
        grid=grid,
        reservoir=Reservoir(_MOST_ROWS, 0, False),
        schedule=Schedule(n_eager=_MOST_ROWS, n_buffered=_MOST_ROWS),
        scheme="systematic",
        retention=1.0,
    )


class Run:
    """A filter that has learned rows.

    Attributes
    ----------
    filter : Filter
    state : State
    scale : TargetScale
    """

    def __init__(self, filter_: Filter, state: State, scale: TargetScale) -> None:
        self.filter, self.state, self.scale = filter_, state, scale

    def mean(self, X: Array) -> Array:
        """Posterior mean of the function at rows X (m, 1)."""
        law = filter_law(self.filter, self.state, X, has_noise=False)
        return np.asarray(self.scale.centre + self.scale.scale * law.mean)


def learned(filter_: Filter, X: Array, y: Array, rng: np.random.Generator) -> Run:
    """Learn rows X (n, 1), y (n,), at most 512, one after the other."""
    scale = scale_target(y)
    state = filter_.init(rng)
    for x, target in zip(X, scale.transform(y), strict=True):
        state, _ = filter_.learn(rng, state, x, float(target))
    return Run(filter_, state, scale)


def long_chains(
    problem: Problem, width: float, expected: float, seed: int, n_sweeps: int
) -> Answer:
    """Run chains of the paper's model on all rows; the first half of the sweeps is dropped."""
    rng = np.random.default_rng(seed)
    run = learned(paper_filter(width, expected, n_particles=_N_CHAINS), problem.X, problem.y, rng)
    filter_, state = run.filter, _started_anew(run)
    particles, sums = state.particles, state.statistics
    log_size = filter_.sets.log_size(sums.n_candidates)
    laws, targets, sizes, noises = [], [], [], []
    for sweep in range(n_sweeps):
        move_particles(
            rng, sums, filter_.prior, log_size, filter_.grid.n_widths, particles, 1.0, 1,
            _N_CHANGES, filter_.grid.log_prior_after(state.n_seen),
        )  # fmt: skip
        if sweep < n_sweeps // 2 or sweep % _KEEP_EVERY:
            continue
        laws.append(filter_law(filter_, state, problem.X_test, has_noise=False))
        targets.append(filter_law(filter_, state, problem.X_test))
        sizes.append(particles.size.mean())
        noises.append(np.sqrt(particles.noise).mean())
    function, target = _joined(laws, run.scale), _joined(targets, run.scale)
    return Answer(
        function.mean,
        float(np.mean(sizes)),
        float(np.mean(noises)) * run.scale.scale,
        function.interval(LEVEL),
        target.interval(LEVEL),
    )


def _started_anew(run: Run) -> State:
    """Take all centres away, and all differences of weight."""
    state = run.state
    particles = state.particles
    particles.size[:] = 0
    log_size = run.filter.sets.log_size(state.statistics.n_candidates)
    discount(state.statistics, run.filter.prior, log_size, particles)
    particles.log_weight[:] = -math.log(len(particles.size))
    return replace(state, particles=particles)


def _joined(laws: list[StudentMixture], scale: TargetScale) -> StudentMixture:
    """One mixture of all laws, in equal parts, in units of the target."""
    locations = np.concatenate([law.locations for law in laws], axis=1)
    scales = np.concatenate([law.scales for law in laws], axis=1)
    n = locations.shape[1]
    return StudentMixture(
        scale.centre + scale.scale * locations, scale.scale * scales, np.full(n, 1.0 / n), math.inf
    )
