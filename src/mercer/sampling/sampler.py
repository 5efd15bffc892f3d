"""The interface of a sampler and of its warm-up, and the one loop over steps."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

# A log density that samplers can move on, and a point at which it has been evaluated.

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Point:
    """A position with all that evaluating the target there gave."""

    position: Array  # (p,)
    log_density: float  # up to a constant, in nats; -inf where the target has no mass
    gradient: Array  # (p,), of the log density
    #: by-products of the evaluation that are recorded with a draw
    extra: Mapping[str, Array] = field(default_factory=dict)


class Target(Protocol):
    """Anything with a differentiable log density on R^p."""

    def evaluate(self, theta: Array) -> Point:
        """Evaluate log density and gradient at a position of shape (p,)."""
        ...


StateT = TypeVar("StateT")
InfoT = TypeVar("InfoT")


class Sampler(ABC, Generic[StateT, InfoT]):
    """A Markov chain with a target: settings, tuning and model in a frozen dataclass.

    State and Info are frozen dataclasses. State holds arrays, numbers, mappings of names to arrays
    and further such dataclasses, so that a checkpoint can hold it; Info holds one number a field.
    """

    @abstractmethod
    def init(self, rng: np.random.Generator) -> StateT:
        """Draw the state that a chain starts from."""

    @abstractmethod
    def step(self, rng: np.random.Generator, state: StateT) -> tuple[StateT, InfoT]:
        """Take one step that leaves the target invariant; changes nothing but ``rng``."""

    @abstractmethod
    def record(self, state: StateT) -> Mapping[str, NDArray[Any]]:
        """Return the named arrays that one draw stores."""


class Adaptation(ABC):
    """How a sampler is tuned during warm-up; returns new samplers, changes none.

    What it has learned is a frozen dataclass with the same kinds of fields as a State.
    """

    @abstractmethod
    def init(self, sampler: Any) -> Any:
        """Return what is known before the first step."""

    @abstractmethod
    def update(self, learned: Any, sampler: Any, state: Any, info: Any) -> tuple[Any, Any]:
        """Learn from one warm-up step; return what is learned and the sampler for the next."""

    @abstractmethod
    def finish(self, learned: Any, sampler: Any) -> Any:
        """Return the sampler that takes the kept draws."""

    def tuning(self, sampler: Any) -> Any:
        """Return the part of the sampler that warm-up changes, as a frozen dataclass."""
        return sampler.tuning

    def with_tuning(self, sampler: Any, tuning: Any) -> Any:
        """Return the sampler with that part replaced: the inverse of ``tuning``."""
        return dataclasses.replace(sampler, tuning=tuning)
