"""Samplers of classifiers of several classes, in the Gaussian lift."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array

from mercer.errors import DataError, RowsError
from mercer.likelihoods.label_noise import Confusion, LabelNoise
from mercer.sampling.hmc import mass_windows
from mercer.sampling.sampler import Adaptation, Sampler
from mercer.sphere.propagation import leads
from mercer.sphere.sampler import (
    LENGTH_IN_SD,
    N_LINES,
    QUARTER,
    REMEDY,
    WINDOW,
    FeatureRows,
    PriorStart,
    SeparatingStart,
    jittered,
)
from mercer.sphere.several_loops import cycles, perceptron

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SeveralModel(FeatureRows):
    """Density prod_c N(g_c; 0, I) exp(-cost of the wrong rows), g of shape (C, r).

    Row i of ``L`` (n, r) is right if f_c = (L g_c)_i is largest for its label, 0..C-1; a tie is
    an error. The g_c are not normalised: each by itself would be another model, and a common
    factor changes no class.
    """

    labels: NDArray[np.int64]
    noise: LabelNoise | Confusion

    @property
    def n_classes(self) -> int:
        """Number of classes C."""
        return self.noise.n_classes

    @cached_property
    def gram(self) -> Array:
        """L L', (n, n)."""
        return np.asarray(self.L @ self.L.T, dtype=np.float64)

    @cached_property
    def wall_products(self) -> NDArray[np.int8]:
        """Inner products of the walls between classes: (C, C - 1, C - 1, n).

        A wall of row i between its label y and another class c is the contrast e_y - e_c. Slots
        number the other classes: slot s is class s below the label, class s + 1 from there on.
        Entry [y, t, s, i] is of slot t of a row labelled y with slot s of row i.
        """
        n_classes = self.n_classes
        slots = np.arange(n_classes - 1)
        other = slots + (slots >= np.arange(n_classes)[:, np.newaxis])
        identity = np.eye(n_classes)
        contrasts = identity[:, np.newaxis] - identity[other]  # (C, C - 1, C)
        products = np.einsum("ytk,xsk->ytsx", contrasts, contrasts).astype(np.int8)
        return np.ascontiguousarray(products[..., self.labels])

    def point(self, g: Array) -> Array:
        """[f_c; g_c] with f_c = L g_c for each class: (C, n + r)."""
        return np.concatenate([g @ self.L.T, g], axis=1)

    def is_wrong(self, f: Array) -> NDArray[np.bool_]:
        """Which rows are wrong at latent values of shape (..., C, n): shape (..., n)."""
        return np.asarray(leads(f, self.labels)[0] <= 0.0)


# Where a chain of several classes starts: anywhere, or where no certain row is wrong.

# Multiplications and epochs that the perceptron may spend before the linear program is asked.
_PERCEPTRON_WORK, _MOST_EPOCHS = 2e8, 1000
# Leads below this, for rows and functions of unit length, are rounding.
_SMALLEST_LEAD = 1e-10


def make_several_start(model: SeveralModel) -> PriorStart | SeparatingStart:
    """Choose the start that the costs of the model ask for.

    A `DataError` where some rows must be right and no functions are right on all (trap K3).
    """
    rows = np.flatnonzero(model.noise.must_be_right)
    if len(rows) == 0:
        return PriorStart((model.n_classes, model.rank))
    try:
        functions = separating_functions(model.L[rows], model.labels[rows], model.n_classes, rows)
    except DataError:
        other = _one_class_for_all(model, rows)
        if other is None:
            raise
        functions = other
    return SeparatingStart(functions, float(np.linalg.norm(functions)))


def _one_class_for_all(model: SeveralModel, rows: NDArray[np.int64]) -> Array | None:
    """Functions by which all rows belong to one class that may be recorded as any, if it can be."""
    if not isinstance(model.noise, Confusion):
        return None
    for c in np.flatnonzero((model.noise.matrix > 0.0).all(axis=1)):
        try:
            labels = np.full(len(rows), c)
            return separating_functions(model.L[rows], labels, model.n_classes, rows)
        except DataError:
            continue
    return None


def separating_functions(
    L: Array, labels: NDArray[np.int64], n_classes: int, rows: NDArray[np.int64]
) -> Array:
    """Find g (C, r) whose largest function is that of the label on each row of L.

    By least squares, which is enough where the rank is that of the rows; else by a perceptron,
    a while; else by a linear program, which decides. ``rows`` are positions in the data, for
    messages.
    """
    lengths = np.linalg.norm(L, axis=1)
    if (lengths == 0.0).any():
        raise _inseparable(L, labels, rows)
    unit = np.ascontiguousarray(L / lengths[:, np.newaxis])
    targets = (labels[:, np.newaxis] == np.arange(n_classes)).astype(np.float64)
    g = np.ascontiguousarray(np.linalg.lstsq(unit, targets, rcond=None)[0].T)
    if _separates(g, unit, labels):
        return g
    n_epochs = min(_MOST_EPOCHS, 1 + int(_PERCEPTRON_WORK / (unit.size * n_classes)))
    if perceptron(unit, labels, g, n_epochs) and _separates(g, unit, labels):
        return g
    solution = _linear_program(unit, labels, n_classes)
    if solution is None or not _separates(solution, unit, labels):
        raise _inseparable(L, labels, rows)
    return solution


def _separates(g: Array, L: Array, labels: NDArray[np.int64]) -> bool:
    f = g @ L.T
    own = f[labels, np.arange(len(L))]
    f[labels, np.arange(len(L))] = -np.inf
    lengths = np.linalg.norm(g, axis=1).max() * np.linalg.norm(L, axis=1)
    return bool((own - f.max(axis=0) > _SMALLEST_LEAD * lengths).all())


def _linear_program(L: Array, labels: NDArray[np.int64], n_classes: int) -> Array | None:
    """Solve f_y - f_c >= 1 for all rows and all classes c other than the label y."""
    r = L.shape[1]
    row, other = np.nonzero(labels[:, np.newaxis] != np.arange(n_classes))
    values = np.concatenate([-L[row], L[row]], axis=1)  # -f_y + f_c <= -1
    columns = np.concatenate(
        [labels[row, np.newaxis] * r + np.arange(r), other[:, np.newaxis] * r + np.arange(r)],
        axis=1,
    )
    ends = 2 * r * np.arange(len(row) + 1)
    A = csr_array((values.ravel(), columns.ravel(), ends), shape=(len(row), n_classes * r))
    result = linprog(np.zeros(n_classes * r), A_ub=A, b_ub=-np.ones(len(row)), bounds=(None, None))
    return np.asarray(result.x).reshape(n_classes, r) if result.success else None


def _inseparable(L: Array, labels: NDArray[np.int64], rows: NDArray[np.int64]) -> DataError:
    """Name two rows that are equal and have different labels, if there are any."""
    scale = np.abs(L).max()
    order = np.lexsort((labels, L @ np.cos(np.arange(L.shape[1]))))
    for a, b in itertools.pairwise(order):
        is_equal = np.allclose(L[a], L[b], rtol=0.0, atol=1e-9 * scale)
        if is_equal and labels[a] != labels[b]:
            first, second = sorted((int(rows[a]), int(rows[b])))
            return RowsError([first, second], f" have equal inputs and different labels: {REMEDY}")
    return DataError(f"no classifier separates the classes: {REMEDY}")


# The moves of several classes and their tuning.

MOVES = ("hmc", "lines", "ellipse")
# A trajectory with more events than this for each wall is given up.
_MAX_EVENTS_A_WALL = 100
# Trajectories need a table of all pairs of rows: half a gigabyte at this number of rows.
_MOST_ROWS = 8000
# Nanoseconds that a step should take, and most cycles in one: then draws are nearly independent.
_STEP, _MOST_CYCLES = 1e6, 8


@dataclass(frozen=True)
class SeveralMoves:
    """Which moves a cycle has, out of `MOVES` and in that order, and their tuning.

    ``duration`` is that of a trajectory; a quarter of a period is pi/2. Line moves go along the
    orthonormal columns of ``directions`` (r, r), so that coordinates along them are N(0, 1),
    within windows of ``widths`` (r,). ``H`` (r, n) is directions' L', the change of f for each
    unit of a coordinate, and ``rows`` its transpose, (0, r) without trajectories.
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

        Returns f (C, n), g, and counts: whole trajectories, events, reflections,
        breakpoints, angles tried.
        """
        (n_classes, r), n = g.shape, model.n_rows
        group, step, row_cost = _costs(model, matrix)
        n_hmc, n_turns = (n_cycles * (name in self.names) for name in ("hmc", "ellipse"))
        Z = rng.standard_normal((1 + n_hmc + n_turns, n_classes, r))
        Z[0] = g @ self.directions
        points = np.concatenate([(Z.reshape(-1, r) @ self.H).reshape(*Z.shape[:2], n), Z], axis=2)
        counts = cycles(
            rng, points[0], points[1 : 1 + n_hmc], points[1 + n_hmc :],
            jittered(rng, self.duration, n_cycles),
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
    return min(r, N_LINES) if "hmc" in names else r


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


# A sampler of several classes under label noise, in the Gaussian lift.
#
# **Target.** `mercer.sphere.several.SeveralModel`: g_c ~ N(0, I_r) for C classes, times the
# likelihood of the labels, eq. (2) of Graepel & Herbrich with C classes; with it, where rates are
# by class and learned, the confusion matrix.
#
# **One step**: a number of cycles. Each has the moves, all exact, without rejection or step size:
#
# 1. ``hmc``: free flight g cos t + v sin t of all classes, v ~ N(0, I). A row has a wall for each
#    class other than its label, where the lead f_y - f_c changes sign. There the velocity along
#    (e_y - e_c) L_i is reflected or refracted if the row becomes right or wrong by it.
# 2. ``lines``, for each class and along directions, in random order: the coordinate of g_c is drawn
#    from its conditional, normal times a piecewise constant, restricted to a window around it.
#    Along the line a row changes at most once: class c wins it from its best rival, or loses it.
# 3. ``ellipse``: the mean over classes and the length of the contrasts are drawn anew, since the
#    labels depend on neither; then the contrasts turn together towards one more draw from the
#    prior, by elliptical slice sampling.
#
# Where the confusion matrix is learned it is drawn anew after the cycles, given the classes; there
# are no trajectories then.
#
# **Symbols** (paper -> code): w -> the contrasts of g over their length, m -> n, q -> in
# ``noise``.
#
# **Deviations.** The paper has two classes and the great circle alone.
#
# **Cost.** O(n C) an event of a trajectory. O(n) a line move: the best rivals, O(n C), are found
# once for the lines of a class. The slice counts errors about a dozen times, O(n C) each.
# Velocities of all cycles of a step come from one matrix product.
#
# References
# ----------
# Murray, Adams & MacKay, Elliptical slice sampling, 2010.

# Steps that a chain takes away from its start before the first is counted.
_FIRST_STEPS = 2


@dataclass(frozen=True)
class SeveralState:
    """C classifiers: ``point`` is [f_c; g_c] for each class, (C, n + r).

    ``matrix`` (C, C) is the confusion matrix where it is learned, else empty.
    """

    point: Array
    matrix: Array = dataclasses.field(default_factory=lambda: np.empty((0, 0)))


@dataclass(frozen=True)
class SeveralInfo:
    """What a diagnostician needs to know of one step."""

    acceptance_rate: float
    n_errors: int
    n_events: int
    n_reflections: int
    n_breakpoints: int
    n_trials: int


@dataclass(frozen=True)
class SeveralSampler(Sampler[SeveralState, SeveralInfo]):
    """A chain over classifiers of several classes, ``n_cycles`` cycles a step.

    ``start`` draws the first g (C, r), of positive density; ``recorder`` turns g (C, r) and f
    (C, n) into the named arrays of one draw.
    """

    model: SeveralModel
    moves: SeveralMoves
    start: Callable[[np.random.Generator], Array]
    recorder: Callable[[Array, Array], Mapping[str, NDArray[Any]]]
    n_cycles: int = 1

    def init(self, rng: np.random.Generator) -> SeveralState:
        """Draw a start and take a few steps from it."""
        noise = self.model.noise
        matrix = noise.matrix if isinstance(noise, Confusion) else np.empty((0, 0))
        state = SeveralState(self.model.point(self.start(rng)), matrix)
        for _ in range(_FIRST_STEPS):
            state, _ = self.step(rng, state)
        return state

    def step(
        self, rng: np.random.Generator, state: SeveralState
    ) -> tuple[SeveralState, SeveralInfo]:
        """Take ``n_cycles`` cycles of moves."""
        g = state.point[:, self.model.n_rows :]
        noise, matrix = self.model.noise, state.matrix
        f, g, counts = self.moves.apply(
            rng, self.model, g, self.n_cycles, matrix if matrix.size else None
        )
        if isinstance(noise, Confusion):
            matrix = noise.draw(rng, f.argmax(axis=0), matrix)
        n_whole, n_events, n_reflections, n_breakpoints, n_trials = (int(k) for k in counts)
        info = SeveralInfo(
            n_whole / self.n_cycles if "hmc" in self.moves.names else 1.0,
            int(np.count_nonzero(self.model.is_wrong(f))),
            n_events,
            n_reflections,
            n_breakpoints,
            n_trials,
        )
        return SeveralState(np.concatenate([f, g], axis=1), matrix), info

    def record(self, state: SeveralState) -> Mapping[str, NDArray[Any]]:
        """Return what the recorder makes of the classifiers, and the confusion matrix."""
        n = self.model.n_rows
        recorded = self.recorder(state.point[:, :n], state.point[:, n:])
        return {**recorded, "confusion": state.matrix} if state.matrix.size else recorded


# Warm-up of the sampler of several classes: length of a trajectory, directions of line moves.
#
# Contrasts, g_c less the mean over classes, are what the labels speak of. Their covariance, pooled
# over classes, is estimated in windows of the warm-up, each twice as long as the last. Directions
# are its principal axes, and windows a few standard deviations wide; trajectories are as long as
# it takes to cross the posterior. Above a limit of the rank the axes stay those of the feature
# space, and the variances along them alone are learned.

# The covariance is rotated into directions up to this rank.
_LARGEST_ROTATED = 64


@dataclass(frozen=True)
class SeveralTuning:
    """What warm-up changes: duration, directions (r, r), and widths of windows (r,)."""

    duration: float
    directions: Array
    widths: Array


@dataclass(frozen=True)
class LearnedContrasts:
    """What warm-up has gathered: ``n_seen`` steps, ``count`` of them in the window in hand.

    ``sums`` (C, r) are those of the contrasts, ``products`` (r, r) those of their outer
    products over classes and draws; (1, r), the diagonal, where axes stay.
    """

    n_seen: int
    count: int
    sums: Array
    products: Array


@dataclass(frozen=True)
class SeveralAdaptation(Adaptation):
    """Tune over ``n_warmup`` steps, in windows, each twice as long as the last."""

    n_warmup: int

    def init(self, sampler: Any) -> LearnedContrasts:
        """Nothing is known."""
        return _nothing(sampler.model, 0)

    def update(
        self, learned: LearnedContrasts, sampler: Any, state: Any, info: Any
    ) -> tuple[LearnedContrasts, Any]:
        """Gather contrasts; at the end of a window tune to their spread."""
        learned = dataclasses.replace(learned, n_seen=learned.n_seen + 1)
        first, ends = mass_windows(self.n_warmup)
        if first < learned.n_seen <= max(ends, default=0):
            g = state.point[:, sampler.model.n_rows :]
            learned = _gathered(learned, (g - g.mean(axis=0)) @ sampler.moves.directions)
        if learned.n_seen in ends:
            sampler = self.with_tuning(sampler, _tuned(learned, sampler.moves))
            learned = _nothing(sampler.model, learned.n_seen)
        return learned, sampler

    def finish(self, learned: LearnedContrasts, sampler: Any) -> Any:
        """Return the sampler as the last window left it."""
        return sampler

    def tuning(self, sampler: Any) -> SeveralTuning:
        """Return duration, directions and widths."""
        moves = sampler.moves
        return SeveralTuning(moves.duration, moves.directions, moves.widths)

    def with_tuning(self, sampler: Any, tuning: SeveralTuning) -> Any:
        """Put duration, directions and widths in place."""
        moves = moves_along(
            sampler.model, sampler.moves.names, tuning.duration, tuning.directions, tuning.widths
        )
        return dataclasses.replace(sampler, moves=moves)


def _nothing(model: SeveralModel, n_seen: int) -> LearnedContrasts:
    r = model.rank
    products = np.zeros((r if r <= _LARGEST_ROTATED else 1, r))
    return LearnedContrasts(n_seen, 0, np.zeros((model.n_classes, r)), products)


def _gathered(learned: LearnedContrasts, contrasts: Array) -> LearnedContrasts:
    if len(learned.products) == 1:
        products = np.sum(contrasts**2, axis=0, keepdims=True)
    else:
        products = contrasts.T @ contrasts
    return dataclasses.replace(
        learned,
        count=learned.count + 1,
        sums=learned.sums + contrasts,
        products=learned.products + products,
    )


def _tuned(learned: LearnedContrasts, moves: SeveralMoves) -> SeveralTuning:
    """Tune to the pooled covariance, in coordinates along the present directions.

    A contrast has (C - 1)/C of the variance of g_c. Shrunk as in `mercer.sampling.hmc`.
    """
    n_classes, k = len(learned.sums), learned.count
    share = 1.0 / ((n_classes - 1) * k) * (k / (k + 5.0))
    directions = moves.directions
    if len(learned.products) == 1:
        variances = share * (learned.products[0] - np.sum(learned.sums**2, axis=0) / k)
    else:
        covariance = share * (learned.products - learned.sums.T @ learned.sums / k)
        variances, axes = np.linalg.eigh(covariance)
        variances, axes = variances[::-1], axes[:, ::-1]
        directions = np.ascontiguousarray(directions @ axes)
    variances = np.clip(variances, 1e-12, 1.0)
    duration = min(QUARTER, LENGTH_IN_SD * float(np.sqrt(variances.mean())))
    return SeveralTuning(duration, directions, WINDOW * np.sqrt(variances))
