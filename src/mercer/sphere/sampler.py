"""Samplers of classifiers under label noise, in the Gaussian lift.

**Target.** g ~ N(0, I_r) times the likelihood of the labels, eq. (2); the direction g / |g| has
the posterior of the paper's w, and |g| is independent of it.

**One step**: a pass of the moves, each exact, without rejection or step size.

- ``hmc``: free flight g cos t + v sin t with v ~ N(0, I). At the wall of a row the normal velocity
  is reflected, or refracted where its energy pays the cost of the change.
- ``lines``: Gibbs moves along fixed directions, restricted to a window around the point.
- ``great_circle``: the paper's step, `mercer.sphere.great_circle`.

**Symbols** (paper -> code): w -> g / |g|, <w, x_i> -> f_i / |g|, m -> n, v -> a row of ``block``,
b and zeta are not needed.

**Deviations.** The paper has the great circle alone. Velocities and directions do not depend on
the state, so [L z; z] is drawn ahead for a block of steps: one matrix product.

**Cost.** Of a trajectory: O(n + r) an event, about n T / pi events in time T. Of a line move and
of a great circle: O(n) and O(n log n), and O(n r) for its share of the product.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from mercer.errors import DataError, RowsError
from mercer.likelihoods.label_noise import LabelNoise, Walls, walls_of
from mercer.sampling.hmc import mass_windows
from mercer.sampling.sampler import Adaptation, Sampler
from mercer.sphere.great_circle import great_circle_moves
from mercer.sphere.loops import count_errors, line_moves, trajectories
from mercer.sphere.propagation import NormalLaw, SeveralLaw

# The posterior of a classifier in feature space, given labels that may be wrong.

Array = NDArray[np.float64]

# A row that must be right is given this much where rounding put it on its wall.
_TOUCH = 1e-12
# Rows whose directions differ by less are parallel: features of equal inputs differ by rounding.
_PARALLEL = 1e-11


def signed_rows(L: Array, labels: NDArray[np.int64]) -> Array:
    """Multiply the rows of the feature space by labels 0 -> -1 and 1 -> +1."""
    return np.asarray(np.where(labels[:, np.newaxis] == 1, L, -L))


@dataclass(frozen=True)
class FeatureRows:
    """Rows ``L`` (n, r) of the feature space."""

    L: Array

    @property
    def n_rows(self) -> int:
        """Number of rows n."""
        return len(self.L)

    @property
    def rank(self) -> int:
        """Dimension r of the feature space."""
        return int(self.L.shape[1])


@dataclass(frozen=True)
class SphereModel(FeatureRows):
    """Density N(g; 0, I) exp(-cost of the rows with L_i g <= 0): the Gaussian lift of eq. (2).

    The direction g / |g| has the paper's posterior: its prior is uniform on the sphere, and the
    likelihood does not depend on |g|. Labels are multiplied into the rows of ``L`` (n, r).
    """

    noise: LabelNoise

    @cached_property
    def table(self) -> Array:
        """What an event of `reflect_and_refract` adds: row j is [L L_j; L_j], (n, n + r)."""
        n, r = self.L.shape
        table = np.empty((n, n + r))
        np.matmul(self.L, self.L.T, out=table[:, :n])
        table[:, n:] = self.L
        return table

    def point(self, g: Array) -> Array:
        """[f; g] with f = L g; rows that must be right are, where rounding alone denied it."""
        f = self.L @ g
        f[self.noise.must_be_right & (f <= 0.0)] = _TOUCH
        return np.concatenate([f, g])

    def extended(self, Z: Array) -> Array:
        """[L z; z] for each row z of Z, shape (k, n + r): one matrix product."""
        return np.concatenate([Z @ self.L.T, Z], axis=1)


def merged(model: SphereModel) -> tuple[SphereModel, Walls]:
    """Return the same density with one row for all that lie on one line, and which these are.

    Rows of equal inputs would be walls a rounding error apart, and where their labels contradict
    each other all of them be right between.
    """
    walls = walls_of(model.L, model.noise.must_be_right, _PARALLEL)
    if walls.are_rows:
        return model, walls
    noise = model.noise.merged(walls.into, walls.scale < 0.0)
    return SphereModel(model.L[walls.first], noise), walls


# Where a chain starts: anywhere if every label may be wrong, else where no certain row is.

# Cosines below this are rounding: equal inputs with different labels would pass for separated.
_SMALLEST_COSINE = 1e-10

REMEDY = "with noise_rate=0 every label must be right; use noise_rate > 0"


@dataclass(frozen=True)
class PriorStart:
    """A draw from the prior, g (r,) of two classes, (C, r) of several."""

    shape: tuple[int, ...]

    def __call__(self, rng: np.random.Generator) -> Array:
        """Draw g ~ N(0, I)."""
        return rng.standard_normal(self.shape)


@dataclass(frozen=True)
class SeparatingStart:
    """A g of this length, right where it must be, with the length of a draw from the prior."""

    g: Array
    length: float

    def __call__(self, rng: np.random.Generator) -> Array:
        """Draw the length."""
        return np.asarray(self.g * (np.sqrt(rng.chisquare(self.g.size)) / self.length))


def make_start(model: SphereModel) -> PriorStart | SeparatingStart:
    """Choose the start that the costs of the model ask for.

    A `DataError` where some rows must be right and no classifier is right on all of them (trap
    K3).
    """
    is_certain = model.noise.must_be_right
    if not is_certain.any():
        return PriorStart((model.rank,))
    g = separating_point(model.L[is_certain], np.flatnonzero(is_certain))
    return SeparatingStart(g, 1.0)


def separating_point(L: Array, rows: NDArray[np.int64]) -> Array:
    """Find u with |u| = 1 and L u > 0, by least squares or a linear program.

    Labels are multiplied into L; ``rows`` are the positions of its rows in the data, for
    messages.
    """
    lengths = np.linalg.norm(L, axis=1)
    is_zero = lengths == 0.0
    if is_zero.any():
        row = int(rows[is_zero.argmax()])
        raise RowsError([row], f" is zero in the feature space, so always wrong: {REMEDY}")
    unit = L / lengths[:, np.newaxis]
    g = np.linalg.lstsq(unit, np.ones(len(L)), rcond=None)[0]
    if not _separates(g, unit):
        result = linprog(
            np.zeros(L.shape[1]), A_ub=-unit, b_ub=-np.ones(len(L)), bounds=(None, None)
        )
        if not result.success or not _separates(result.x, unit):
            raise _inseparable(unit, rows)
        g = result.x
    return np.asarray(g / np.linalg.norm(g))


def _separates(g: Array, unit: Array) -> bool:
    return bool((unit @ g > _SMALLEST_COSINE * np.linalg.norm(g)).all())


def _inseparable(unit: Array, rows: NDArray[np.int64]) -> DataError:
    """Name two rows that are opposite, labels multiplied in, if there are any."""
    order = np.argsort(np.abs(unit @ np.cos(np.arange(unit.shape[1]))))
    for a, b in itertools.pairwise(order):
        if np.allclose(unit[a], -unit[b], rtol=0.0, atol=1e-9):
            first, second = sorted((int(rows[a]), int(rows[b])))
            return RowsError(
                [first, second],
                f" contradict each other, as equal inputs with different labels do: {REMEDY}",
            )
    return DataError(f"no classifier separates the classes: {REMEDY}")


# One pass of exact moves over a point of the Gaussian lift, at given costs of errors.

MOVES = ("hmc", "lines", "great_circle")

# Up to this rank line moves are worth their time.
_LARGEST_RANK_OF_LINES = 20

# Lengths of trajectories vary by this share.
_JITTER = 0.2
# Width of the window of a line move, in lengths of its direction: about the posterior's sd.
WINDOW = 3.0
# A trajectory with more events than this for each row is given up.
MAX_EVENTS_A_ROW = 100


def default_moves(rank: int, n_trajectories: int = 1) -> tuple[str, ...]:
    """The cycle that "auto" takes: lines alone in one dimension, trajectories from there on."""
    if rank == 1:
        return ("lines",)
    lines = ("lines",) if rank <= _LARGEST_RANK_OF_LINES else ()
    return ("hmc",) * n_trajectories + lines


def jittered(rng: np.random.Generator, duration: float, shape: int | tuple[int, ...]) -> Array:
    """Draw the lengths of trajectories around this one."""
    return duration * rng.uniform(1.0 - _JITTER, 1.0 + _JITTER, shape)


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
    """Which moves, out of `MOVES` and in the order in which a pass takes them, and their tuning.

    ``duration`` is that of a trajectory; a quarter of a period is pi/2. ``directions`` (k, n +
    r) are [L d; d] for the directions d of the line moves, as long as the posterior's standard
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

        The noise is that of the model, or tempered; ``drawn`` (n_drawn, n + r) holds [L z;
        z] with z ~ N(0, I), independent of the point.
        """
        passed, k, point = Passed(), 0, point.copy()
        for name, same in itertools.groupby(self.names):
            count = len(list(same))
            if name == "lines":
                for _ in range(count):
                    passed = passed + self._walk(rng, noise, point)
                continue
            own = drawn[k : k + count]
            k += count
            if name == "hmc":
                passed = passed + self._fly(rng, model, noise, point, own)
            else:
                point = great_circle_moves(rng, point, own, model.n_rows, noise)[0]
        if set(self.names) == {"great_circle"}:  # which keeps the length
            length = np.linalg.norm(point[model.n_rows :])
            point = point * (np.sqrt(rng.chisquare(model.rank)) / length)
        return point, passed

    def durations(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Draw the lengths of trajectories."""
        return jittered(rng, self.duration, shape)

    def _fly(
        self,
        rng: np.random.Generator,
        model: SphereModel,
        noise: LabelNoise,
        point: Array,
        velocities: Array,
    ) -> Passed:
        counts = np.zeros(3, np.int64)
        trajectories(
            model.table, point, velocities, self.durations(rng, len(velocities)), noise.jumps,
            noise.total, noise.row_cost, 1.0, MAX_EVENTS_A_ROW * model.n_rows, counts,
        )  # fmt: skip
        n_events, n_reflections, n_given_up = counts.tolist()
        return Passed(n_given_up == 0, n_events, n_reflections)

    def _walk(self, rng: np.random.Generator, noise: LabelNoise, point: Array) -> Passed:
        order, errors = rng.permutation(len(self.directions)), np.empty(len(noise.sizes), np.int64)
        count_errors(point[: len(noise.row_cost)], noise.jumps, errors)
        n_crossings = line_moves(
            rng, point, self.directions, order, noise.jumps, errors, noise.total, noise.row_cost,
            WINDOW, 1.0,
        )  # fmt: skip
        return Passed(n_crossings=int(n_crossings))


# Velocities that one product draws ahead, at least; afterwards f = L g is computed anew.
_BLOCK = 32


@dataclass(frozen=True)
class SphereState:
    """A classifier, ``point`` = [f; g] with labels multiplied in, and directions drawn ahead.

    Rows of ``block`` (b, n + r) are [L z; z], z ~ N(0, I); ``n_used`` of them are spent.
    """

    point: Array
    block: Array
    n_used: int


@dataclass(frozen=True)
class SphereInfo:
    """What a diagnostician needs to know of one pass of moves."""

    acceptance_rate: float
    n_errors: int
    n_events: int
    n_reflections: int
    n_crossings: int


@dataclass(frozen=True)
class SphereSampler(Sampler[SphereState, SphereInfo]):
    """A chain over classifiers.

    ``start`` draws the first g (r,), of positive density; ``recorder`` turns (f, g) into the
    named arrays of one draw, f with the labels multiplied in.
    """

    model: SphereModel
    moves: Moves
    start: Callable[[np.random.Generator], Array]
    recorder: Callable[[Array, Array], Mapping[str, NDArray[np.generic]]]

    def init(self, rng: np.random.Generator) -> SphereState:
        """Draw a start; no velocities are drawn ahead yet."""
        _ = self.model.noise.jumps, self.model.noise.total
        if "hmc" in self.moves.names:
            _ = self.model.table  # made once, here
        n, r = self.model.L.shape
        return SphereState(self.model.point(self.start(rng)), np.empty((0, n + r)), 0)

    def step(self, rng: np.random.Generator, state: SphereState) -> tuple[SphereState, SphereInfo]:
        """Take one pass of moves."""
        point, block, n_used = state.point, state.block, state.n_used
        n_drawn = self.moves.n_drawn
        if len(block) == 0 or n_used + n_drawn > len(block):
            n_passes = -(-_BLOCK // max(n_drawn, 1))
            Z = rng.standard_normal((n_passes * n_drawn, self.model.rank))
            block, n_used = self.model.extended(Z), 0
            point = self.model.point(point[self.model.n_rows :])
        drawn = block[n_used : n_used + n_drawn]
        end, passed = self.moves.apply(rng, self.model, self.model.noise, point, drawn)
        n_errors = int(np.count_nonzero(end[: self.model.n_rows] <= 0.0))
        info = SphereInfo(
            float(passed.is_whole),
            n_errors,
            int(passed.n_events),
            int(passed.n_reflections),
            passed.n_crossings,
        )
        return SphereState(end, block, n_used + n_drawn), info

    def record(self, state: SphereState) -> Mapping[str, NDArray[np.generic]]:
        """Return what the recorder makes of the classifier."""
        n = self.model.n_rows
        return self.recorder(state.point[:n], state.point[n:])


# Warm-up of the sphere samplers: the length of a trajectory, and directions for the line moves.
#
# Both come from the spread of g over the draws of a window. A trajectory of pi/2 would make g
# independent where no wall is met; in a narrow cone it need be no longer than takes it across.
# Directions are the principal axes of the covariance, as long as the deviation along them.
#
# The number of errors, and the rate that is learned from it, moves more slowly than g. Of the
# trajectories of a draw as many are kept as leave it correlated by a half from draw to draw, as if
# by a process of order one.

QUARTER = 0.5 * math.pi
# Trajectories are this many posterior standard deviations long, where that is below a quarter.
LENGTH_IN_SD = 6.0
# The covariance is rotated into directions up to this rank; above, line moves keep their axes.
_LARGEST_ROTATED = 100
# Directions of the line moves (of a class) where trajectories do most of the work.
N_LINES = 16


# Correlation of the numbers of errors of successive draws that is small enough.
_CORRELATION = 0.5


@dataclass(frozen=True)
class SphereTuning:
    """What warm-up changes: durations, directions d of shape (k, r), trajectories of a draw."""

    duration: float
    directions: Array
    n_trajectories: int


@dataclass(frozen=True)
class LearnedSpread:
    """Steps seen, the g of the window in hand, shape (k, r), and the errors of later steps."""

    n_seen: int
    window: Array
    n_errors: Array


@dataclass(frozen=True)
class SphereAdaptation(Adaptation):
    """Tune over ``n_warmup`` steps, in windows, each twice as long as the last."""

    n_warmup: int

    def init(self, sampler: Any) -> LearnedSpread:
        """Nothing is known."""
        return LearnedSpread(0, np.empty((0, sampler.model.rank)), np.empty(0))

    def update(
        self, learned: LearnedSpread, sampler: Any, state: Any, info: Any
    ) -> tuple[LearnedSpread, Any]:
        """Gather g; at the end of a window tune to its spread."""
        n_seen, window = learned.n_seen + 1, learned.window
        first, ends = mass_windows(self.n_warmup)
        if first < n_seen <= max(ends, default=0):
            window = np.vstack([window, state.point[sampler.model.n_rows :]])
        if n_seen in ends:
            sampler = self.with_tuning(sampler, _tuned(window, sampler.moves, sampler.model))
            window = window[:0]
        n_errors = learned.n_errors
        if n_seen > self.n_warmup // 3:
            n_errors = np.append(n_errors, float(info.n_errors))
        return LearnedSpread(n_seen, window, n_errors), sampler

    def finish(self, learned: LearnedSpread, sampler: Any) -> Any:
        """Return the sampler as the last window left it, with as many trajectories as it needs."""
        tuning = self.tuning(sampler)
        n_needed = _n_needed(tuning.n_trajectories, learned.n_errors)
        return self.with_tuning(sampler, dataclasses.replace(tuning, n_trajectories=n_needed))

    def tuning(self, sampler: Any) -> SphereTuning:
        """Return duration, directions and trajectories."""
        n, moves = sampler.model.n_rows, sampler.moves
        return SphereTuning(moves.duration, moves.directions[:, n:], moves.names.count("hmc"))

    def with_tuning(self, sampler: Any, tuning: SphereTuning) -> Any:
        """Put them in place."""
        directions = sampler.model.extended(tuning.directions)
        others = tuple(name for name in sampler.moves.names if name != "hmc")
        names = ("hmc",) * tuning.n_trajectories + others
        moves = Moves(names, tuning.duration, directions)
        return dataclasses.replace(sampler, moves=moves)


def first_moves(names: tuple[str, ...], model: SphereModel) -> Moves:
    """Moves before anything is known: axes as directions, lengths from the shape of the data."""
    n, r = model.L.shape
    n_lines = 0 if "lines" not in names else r if "hmc" not in names else min(r, N_LINES)
    directions = model.extended(np.eye(r)[:n_lines])
    return Moves(names, min(QUARTER, 8.0 * r / n), directions)


def _tuned(window: Array, moves: Moves, model: SphereModel) -> SphereTuning:
    n, r = model.L.shape
    deviations = window - window.mean(axis=0)
    directions = window * (math.sqrt(r) / np.linalg.norm(window, axis=1, keepdims=True))
    sd = math.sqrt(float(np.mean(directions.var(axis=0))))  # without that of the length
    duration = QUARTER if n <= r else min(QUARTER, max(LENGTH_IN_SD * sd, 1e-6))
    axes = moves.directions[:, n:]
    if len(axes) > 0 and r <= _LARGEST_ROTATED and len(window) > 2 * r:
        variances, vectors = np.linalg.eigh(deviations.T @ deviations / len(window))
        scaled = (vectors * np.sqrt(np.maximum(variances, 1e-12 * variances.max()))).T[::-1]
        axes = np.ascontiguousarray(scaled[: len(axes)])
    return SphereTuning(duration, axes, moves.names.count("hmc"))


def _n_needed(n_trajectories: int, n_errors: Array) -> int:
    """Trajectories after which the numbers of errors are correlated by a half, at most as many.

    With a standard error on top of what was seen: few draws ask for more trajectories.
    """
    if n_trajectories <= 1 or len(n_errors) < 3:
        return n_trajectories
    deviations = n_errors - n_errors.mean()
    seen = float(deviations[1:] @ deviations[:-1]) / max(float(deviations @ deviations), 1e-300)
    correlation = max(seen, 0.0) + 1.0 / math.sqrt(len(n_errors))
    if correlation >= _CORRELATION:
        return n_trajectories
    return math.ceil(n_trajectories * math.log(_CORRELATION) / math.log(correlation))


# Independent draws from the normal laws of expectation propagation.


@dataclass(frozen=True)
class NormalState:
    """Draws made ahead: vectors (b, r) or (b, C, r), f, and wrong labels; that of ``index``."""

    vectors: Array
    f: Array
    is_wrong: NDArray[np.bool_]
    index: int


@dataclass(frozen=True)
class NormalInfo:
    """Nothing can go wrong with an independent draw."""

    n_errors: int


@dataclass(frozen=True)
class NormalSampler(Sampler[NormalState, NormalInfo]):
    """Classifiers from normal laws, (k,) with ``weights``, of L (n, r), labels multiplied in.

    Rows have independent noise of variance ``nugget``, all or (n,), besides. ``lift`` turns draws
    of f (b, n) and g (b, r) into vectors of the whole feature space; ``recorder`` names the arrays
    of f, vector, and which labels are wrong. Of several classes f are (b, C, n), g (b, C, r), and L
    is as it is.
    """

    L: Array
    nugget: float | Array
    weights: Array
    laws: tuple[NormalLaw | SeveralLaw, ...]
    lift: Callable[[Array, Array], Array]
    recorder: Callable[[Array, Array, NDArray[np.bool_]], Mapping[str, NDArray[Any]]]

    @property
    def about_labels(self) -> Array:
        """P(the label of each row is wrong), (n,), or P(class), (n, C), without noise of draws."""
        return np.tensordot(self.weights, np.stack([law.about_labels for law in self.laws]), 1)

    def init(self, rng: np.random.Generator) -> NormalState:
        """Draw some."""
        counts = rng.multinomial(_BLOCK, self.weights)
        each = zip(self.laws, counts, strict=True)
        drawn = [law.draw(rng, self.L, self.nugget, k) for law, k in each]
        order = rng.permutation(_BLOCK)
        G, F, is_wrong = (np.concatenate(part)[order] for part in zip(*drawn, strict=True))
        return NormalState(self.lift(F, G), F, is_wrong, 0)

    def step(self, rng: np.random.Generator, state: NormalState) -> tuple[NormalState, NormalInfo]:
        """Take the next; draw others after the last."""
        is_last = state.index + 1 == len(state.f)
        state = self.init(rng) if is_last else replace(state, index=state.index + 1)
        return state, NormalInfo(int(np.count_nonzero(state.is_wrong[state.index])))

    def record(self, state: NormalState) -> Mapping[str, NDArray[Any]]:
        """Return what the recorder makes of the classifier."""
        k = state.index
        return self.recorder(state.f[k], state.vectors[k], state.is_wrong[k])
