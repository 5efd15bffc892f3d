"""The moves of several classes and their tuning."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mercer.likelihoods.label_noise import Confusion
from mercer.sphere.several.compiled import cycles
from mercer.sphere.several.model import SeveralModel

__all__ = [
    "MOVES",
    "QUARTER",
    "WINDOW",
    "SeveralMoves",
    "cycles_a_step",
    "default_moves",
    "first_moves",
    "moves_along",
]

Array = NDArray[np.float64]

MOVES = ("hmc", "lines", "ellipse")
QUARTER = 0.5 * math.pi
# Width of the window of a line move, in posterior standard deviations.
WINDOW = 3.0

# Lengths of trajectories vary by this share.
_JITTER = 0.2
# Directions of a class in a cycle where trajectories do most of the work.
_N_LINES = 16
# A trajectory with more events than this for each wall is given up.
_MAX_EVENTS_A_WALL = 100
# Trajectories need a table of all pairs of rows: half a gigabyte at this number of rows.
_MOST_ROWS = 8000
# Nanoseconds that a step should take, and most cycles in one: then draws are nearly independent.
_STEP, _MOST_CYCLES = 1e6, 8


@dataclass(frozen=True)
class SeveralMoves:
    """Which moves a cycle has, and their tuning.

    Attributes
    ----------
    names : tuple of str
        Out of `MOVES`; a cycle takes them in that order.
    duration : float
        Of a trajectory; a quarter of a period is pi/2.
    directions : ndarray of shape (r, r)
        Of the line moves: orthonormal columns, so that coordinates along them are N(0, 1).
    widths : ndarray of shape (r,)
        Of the windows of the line moves.
    H : ndarray of shape (r, n)
        directions' L': changes of f for each unit of a coordinate.
    rows : ndarray of shape (n, r), or (0, r) without trajectories
        The transpose of H.
    """

    names: tuple[str, ...]
    duration: float
    directions: Array
    widths: Array
    H: Array = field(repr=False)
    rows: Array = field(repr=False)

    def apply(
        self,
        rng: np.random.Generator,
        model: SeveralModel,
        g: Array,
        n_cycles: int,
        matrix: Array | None = None,
    ) -> tuple[Array, Array, NDArray[np.int64]]:
        """Take cycles of moves from g (C, r), at a confusion matrix (C, C) where there is one.

        Returns
        -------
        f, g : ndarray of shapes (C, n), (C, r)
        counts : ndarray of int64
            Whole trajectories, events, reflections, breakpoints, angles tried.
        """
        (n_classes, r), n = g.shape, model.n_rows
        group, step, row_cost = _costs(model, matrix)
        n_hmc, n_turns = (n_cycles * (name in self.names) for name in ("hmc", "ellipse"))
        Z = rng.standard_normal((1 + n_hmc + n_turns, n_classes, r))
        Z[0] = g @ self.directions
        points = np.concatenate([(Z.reshape(-1, r) @ self.H).reshape(*Z.shape[:2], n), Z], axis=2)
        durations = self.duration * rng.uniform(1.0 - _JITTER, 1.0 + _JITTER, n_cycles)
        counts = cycles(
            rng, points[0], points[1 : 1 + n_hmc], points[1 + n_hmc :], durations,
            _MAX_EVENTS_A_WALL * (n_classes - 1) * n, *_tables(model, bool(n_hmc)), self.rows,
            self.H, self.widths, _n_lines(self.names, r), model.labels, group, step, row_cost,
        )  # fmt: skip
        return points[0, :, :n], points[0, :, n:] @ self.directions.T, counts


def default_moves(model: SeveralModel) -> tuple[str, ...]:
    """All moves, without trajectories where their table of pairs of rows would be too large.

    Or where costs depend on which class wins a row: trajectories know whether it is right only.
    """
    is_slow = model.n_rows > _MOST_ROWS or isinstance(model.noise, Confusion)
    return ("lines", "ellipse") if is_slow else MOVES


def _costs(model: SeveralModel, matrix: Array | None) -> tuple[NDArray[np.int64], Array, Array]:
    """Group, step and row_cost of the compiled loops."""
    noise = model.noise
    if isinstance(noise, Confusion):
        penalty = noise.penalty(noise.matrix if matrix is None else matrix)
        return np.zeros(model.n_rows, np.int64), penalty[np.newaxis], np.zeros(model.n_rows)
    return noise.group, noise.step, noise.row_cost


def cycles_a_step(model: SeveralModel, names: tuple[str, ...] = MOVES) -> int:
    """Cycles that take about a millisecond, by rule of thumb."""
    n, n_walls = model.n_rows, (model.n_classes - 1) * model.n_rows
    cost = 10_000.0 + model.n_classes * _n_lines(names, model.rank) * (800.0 + n)
    if "hmc" in names:  # events times the cost of one
        cost += 0.4 * n_walls * (300.0 + 0.6 * n_walls)
    return int(np.clip(_STEP / cost, 1, _MOST_CYCLES))


def _n_lines(names: tuple[str, ...], r: int) -> int:
    if "lines" not in names:
        return 0
    return min(r, _N_LINES) if "hmc" in names else r


def _tables(model: SeveralModel, is_needed: bool) -> tuple[Array, NDArray[np.int8]]:
    """What trajectories need; empty where there are none, since both are large."""
    if is_needed:
        return model.gram, model.wall_products
    return np.empty((0, 0)), np.empty((0, 0, 0, 0), np.int8)


def moves_along(
    model: SeveralModel, names: tuple[str, ...], duration: float, directions: Array, widths: Array
) -> SeveralMoves:
    """Prepare moves, lines along the orthonormal columns of ``directions``."""
    H = np.ascontiguousarray(directions.T @ model.L.T, dtype=np.float64)
    rows = np.ascontiguousarray(H.T) if "hmc" in names else np.empty((0, model.rank))
    return SeveralMoves(names, duration, directions, widths, H, rows)


def first_moves(model: SeveralModel, names: tuple[str, ...] = MOVES) -> SeveralMoves:
    """Moves before anything is known.

    Lines along the principal axes of the feature space with windows of the prior; trajectories of
    a length from the shape of the data.
    """
    n, r = model.L.shape
    products = model.L.T @ model.L
    diagonal = products.diagonal()
    is_rotated = np.abs(products - np.diag(diagonal)).max() > 1e-9 * diagonal.max()
    directions = np.linalg.eigh(products)[1][:, ::-1] if is_rotated else np.eye(r)
    return moves_along(
        model, names, min(QUARTER, 8.0 * r / n), np.ascontiguousarray(directions),
        np.full(r, WINDOW),
    )  # fmt: skip
