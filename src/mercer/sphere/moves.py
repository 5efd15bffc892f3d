"""One pass of exact moves over a point of the Gaussian lift, at given costs of errors."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mercer.likelihoods.label_noise import LabelNoise
from mercer.sphere.circle.step import great_circle_move
from mercer.sphere.compiled import count_errors, line_moves, reflect_and_refract
from mercer.sphere.model import SphereModel

__all__ = ["MOVES", "Moves", "Passed", "default_moves"]

Array = NDArray[np.float64]

MOVES = ("hmc", "lines", "great_circle")

# Up to this rank line moves are worth their time.
_LARGEST_RANK_OF_LINES = 20

# Lengths of trajectories vary by this share.
_JITTER = 0.2
# Width of the window of a line move, in lengths of its direction: about the posterior's sd.
_WINDOW = 3.0
# A trajectory with more events than this for each row is given up.
_MAX_EVENTS_A_ROW = 100


def default_moves(rank: int, n_trajectories: int = 1) -> tuple[str, ...]:
    """The cycle that "auto" takes: lines alone in one dimension, trajectories from there on."""
    if rank == 1:
        return ("lines",)
    lines = ("lines",) if rank <= _LARGEST_RANK_OF_LINES else ()
    return ("hmc",) * n_trajectories + lines


@dataclass(frozen=True)
class Passed:
    """What a pass of moves did."""

    is_whole: bool = True
    n_events: int = 0
    n_reflections: int = 0
    n_crossings: int = 0

    def __add__(self, other: Passed) -> Passed:
        """What two passes did together."""
        return Passed(
            self.is_whole and other.is_whole,
            self.n_events + other.n_events,
            self.n_reflections + other.n_reflections,
            self.n_crossings + other.n_crossings,
        )


@dataclass(frozen=True)
class Moves:
    """Which moves, and their tuning.

    Attributes
    ----------
    names : tuple of str
        Out of `MOVES`, in the order in which a pass takes them.
    duration : float
        Of an HMC trajectory; a quarter of a period is pi/2.
    directions : ndarray of shape (k, n + r)
        [L d; d] for the directions d of the line moves, as long as the posterior's standard
        deviation along them.
    """

    names: tuple[str, ...]
    duration: float
    directions: Array = field(repr=False)

    @property
    def n_drawn(self) -> int:
        """Velocities or directions drawn ahead that one pass uses."""
        return sum(name != "lines" for name in self.names)

    def apply(
        self,
        rng: np.random.Generator,
        model: SphereModel,
        noise: LabelNoise,
        point: Array,
        drawn: Array,
    ) -> tuple[Array, Passed]:
        """Take each move once (a line move along every direction) from a point that is left alone.

        Parameters
        ----------
        noise : LabelNoise
            That of the model, or tempered.
        drawn : ndarray of shape (n_drawn, n + r)
            [L z; z] with z ~ N(0, I), independent of the point.
        """
        passed, k = Passed(), 0
        for name in self.names:
            if name == "lines":
                point, n_crossings = self._lines(rng, noise, point)
                passed = passed + Passed(n_crossings=n_crossings)
                continue
            if name == "hmc":
                point, own = self._trajectory(rng, model, noise, point, drawn[k])
                passed = passed + own
            else:
                point = great_circle_move(rng, point, drawn[k], model.n_rows, noise)[0]
            k += 1
        if set(self.names) == {"great_circle"}:  # which keeps the length
            length = np.linalg.norm(point[model.n_rows :])
            point = point * (np.sqrt(rng.chisquare(model.rank)) / length)
        return point, passed

    def _trajectory(
        self,
        rng: np.random.Generator,
        model: SphereModel,
        noise: LabelNoise,
        point: Array,
        velocity: Array,
    ) -> tuple[Array, Passed]:
        end, duration = point.copy(), self.duration * rng.uniform(1.0 - _JITTER, 1.0 + _JITTER)
        n_events, n_reflections, is_whole = reflect_and_refract(
            model.table, end, velocity.copy(), noise.group, _errors(noise, point), noise.step,
            noise.row_cost, duration, _MAX_EVENTS_A_ROW * model.n_rows,
        )  # fmt: skip
        return end if is_whole else point, Passed(is_whole, n_events, n_reflections)

    def _lines(
        self, rng: np.random.Generator, noise: LabelNoise, point: Array
    ) -> tuple[Array, int]:
        end, order = point.copy(), rng.permutation(len(self.directions))
        n_crossings = line_moves(
            rng, end, self.directions, order, noise.group, _errors(noise, point), noise.step,
            noise.row_cost, _WINDOW,
        )  # fmt: skip
        return end, int(n_crossings)


def _errors(noise: LabelNoise, point: Array) -> NDArray[np.int64]:
    errors = np.empty(len(noise.sizes), np.int64)
    count_errors(point[: len(noise.group)], noise.group, errors)
    return errors
