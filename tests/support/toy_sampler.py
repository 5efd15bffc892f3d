"""A sampler that knows nothing of GPs: random-walk Metropolis on a skewed density."""

from __future__ import annotations

import dataclasses
import math
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mercer.sampling.sampler import Adaptation, Sampler

SHAPE = 1.5  # of the gamma variable whose logarithm is the target: E exp(x) = SHAPE


@dataclass(frozen=True)
class ToyState:
    """Position, with parts of every kind that a state may hold."""

    x: float
    n_moves: int
    path: np.ndarray
    extra: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class ToyInfo:
    """What the driver shows, and one number of each type."""

    acceptance_rate: float
    is_divergent: bool
    n_proposals: int


@dataclass(frozen=True)
class ToyTuning:
    """What warm-up changes."""

    width: float


@dataclass(frozen=True)
class ToySampler(Sampler[ToyState, ToyInfo]):
    """Metropolis on the log of a Gamma(SHAPE, 1) variable.

    ``before_step`` is called first in each step, with the state: tests stop or delay chains there.
    """

    tuning: ToyTuning = ToyTuning(1.0)
    before_step: Callable[[ToyState], None] | None = None

    def init(self, rng: np.random.Generator) -> ToyState:
        """Draw a start; ``path`` holds the last three positions."""
        x = float(rng.standard_normal())
        return ToyState(x, 0, np.full(3, x), {"square": np.array([x * x])})

    def step(self, rng: np.random.Generator, state: ToyState) -> tuple[ToyState, ToyInfo]:
        """Propose and accept or stay."""
        if self.before_step is not None:
            self.before_step(state)
        x = state.x + self.tuning.width * float(rng.standard_normal())
        change = _log_density(x) - _log_density(state.x)
        is_accepted = math.log(1.0 - rng.random()) < change
        x = x if is_accepted else state.x
        new = ToyState(
            x, state.n_moves + is_accepted, np.append(state.path[1:], x),
            {"square": np.array([x * x])},
        )  # fmt: skip
        return new, ToyInfo(math.exp(min(0.0, change)), False, 1)

    def record(self, state: ToyState) -> Mapping[str, np.ndarray]:
        """Record scalars, a vector and an integer."""
        return {
            "x": np.asarray(state.x),
            "path": state.path,
            "n_moves": np.asarray(state.n_moves),
        }


def _log_density(x: float) -> float:
    return SHAPE * x - math.exp(min(x, 500.0))


@dataclass(frozen=True)
class ToyLearned:
    """What warm-up has learned: the positions so far."""

    n_seen: int
    positions: np.ndarray


@dataclass(frozen=True)
class ToyAdaptation(Adaptation):
    """Set the width of the proposal to twice the standard deviation so far."""

    def init(self, sampler: ToySampler) -> ToyLearned:
        """Nothing is known."""
        return ToyLearned(0, np.empty(0))

    def update(self, learned, sampler, state, info):
        """Learn from one position."""
        positions = np.append(learned.positions, state.x)
        width = 2.0 * float(positions.std()) + 0.1
        new = ToyLearned(learned.n_seen + 1, positions)
        return new, self.with_tuning(sampler, ToyTuning(width))

    def finish(self, learned, sampler):
        """Round the width: a visible last touch."""
        return self.with_tuning(sampler, ToyTuning(round(sampler.tuning.width, 2)))

    def tuning(self, sampler):
        """Return the width."""
        return sampler.tuning

    def with_tuning(self, sampler, tuning):
        """Return the sampler with this width."""
        return dataclasses.replace(sampler, tuning=tuning)


@dataclass(frozen=True)
class Pause:
    """Sleep before each step."""

    seconds: float

    def __call__(self, state: ToyState) -> None:
        """Sleep."""
        time.sleep(self.seconds)


@dataclass
class AtCall:
    """Do something before the given step of this process, counted from one, and never again."""

    count: int
    action: Callable[[], None]
    seen: int = 0

    def __call__(self, state: ToyState) -> None:
        """Count and act."""
        self.seen += 1
        if self.seen == self.count:
            self.action()


@dataclass(frozen=True)
class Killed:
    """Kill the process before a step, always, or where ``path`` is not there yet."""

    path: Path
    is_once: bool = False

    def __call__(self, state: ToyState) -> None:
        """Leave a file, and kill."""
        if not (self.is_once and self.path.exists()):
            self.path.touch()
            os.kill(os.getpid(), signal.SIGKILL)
