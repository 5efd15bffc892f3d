"""Many rows: trajectories that meet only the rows near the boundary, corrected by the others.

**Target.** That of `mercer.sphere.sampler`, for noise that is common to all rows.

**One step**: a number of trajectories, each by delayed acceptance.

0. The length of g is drawn anew from its law, and so is g in directions that no row has a part in.
1. Follow a trajectory of reflecting and refracting HMC on the surrogate: only the active rows cost
   anything, the far ones are taken to have as many errors as they had at the end of warm-up.
2. Accept its end with probability min(1, exp(-(D(end) - D(start)))), D the cost of all errors
   less that of the surrogate. The errors of the far rows come from one product in single
   precision for many trajectories at once; what was drawn after a rejection is drawn again.

**Deviations.** Not in the paper. Active are the rows with |mean f| < 8 sd(f) under the draws of
warm-up, 20 for each dimension at least; the set is frozen then, so that the chain is exact. Far
rows hardly ever err otherwise than at their mean, and acceptance is close to one.

**Cost.** O(m + r) an event for m active rows, and O(n r) a trajectory in the product.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from mercer.data.source import take_rows
from mercer.likelihoods.label_noise import LabelNoise
from mercer.sampling.sampler import Adaptation, Sampler
from mercer.sphere.loops import reflect_and_refract
from mercer.sphere.sampler import LENGTH_IN_SD, MAX_EVENTS_A_ROW, QUARTER, SphereModel, jittered
from mercer.sphere.space import Space, each_of

if TYPE_CHECKING:
    from mercer.data.dask import HeldArrays

Array = NDArray[np.float64]
Rows: TypeAlias = "NDArray[np.floating[Any]] | HeldArrays"
# Distances of rows from the boundary, and which are wrong.
Measure = Callable[[NDArray[Any]], tuple[NDArray[Any], NDArray[np.bool_]]]


@dataclass(frozen=True)
class Screening:
    """What warm-up changes: rows that a trajectory meets, and the length of trajectories.

    ``n_far_errors`` is the number of errors that the surrogate takes the other rows to have;
    ``n_trajectories`` are those of a step, 0 for as many as the sampler may take.
    """

    active: NDArray[np.int64]
    n_far_errors: int
    duration: float
    n_trajectories: int = 0


@dataclass(frozen=True)
class ScreenedState:
    """A classifier g of shape (r,) and its errors, of all rows."""

    g: Array
    n_errors: int


@dataclass(frozen=True)
class ScreenedInfo:
    """What a diagnostician needs to know of one step; the rate is over its trajectories."""

    acceptance_rate: float
    n_errors: int
    n_events: int


@dataclass(frozen=True)
class ScreenedSampler(Sampler[ScreenedState, ScreenedInfo]):
    """A chain over classifiers of many rows, with noise that is common to all of them.

    Labels are multiplied into the rows of ``L`` (n, r), float32 or float64, which workers may hold:
    of them a step asks for counts of errors, a new screening for the rows nearest. A step has up to
    ``n_trajectories``, what one product looks at: fewer where that costs next to nothing beside
    them, as warm-up finds. ``start`` and ``recorder`` are as for
    `SphereSampler`; the recorder is given (number of errors, g). ``idle`` are the columns of L
    without a value: those of g keep their prior.
    """

    L: Rows
    noise: LabelNoise
    screening: Screening
    n_trajectories: int
    start: Callable[[np.random.Generator], Array]
    recorder: Callable[[int, Array], Mapping[str, NDArray[np.generic]]]
    idle: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    @cached_property
    def near(self) -> SphereModel:
        """The surrogate: the active rows, in double precision."""
        L = some_rows(self.L, self.screening.active).astype(np.float64)
        group, row_cost = np.zeros(len(L), np.int64), np.zeros(len(L))
        return SphereModel(L, replace(self.noise, group=group, row_cost=row_cost))

    @property
    def n_followed(self) -> int:
        """Trajectories of a step."""
        return self.screening.n_trajectories or self.n_trajectories

    def init(self, rng: np.random.Generator) -> ScreenedState:
        """Draw a start and count its errors."""
        near = self.near.noise
        _ = self.near.table, near.jumps, near.total, self.noise.total  # made once, here
        g = self.start(rng)
        n_near = self._near_errors(self.near.point(g))
        return ScreenedState(g, n_near + self._far_errors(g[np.newaxis])[0])

    def step(
        self, rng: np.random.Generator, state: ScreenedState
    ) -> tuple[ScreenedState, ScreenedInfo]:
        """Take trajectories, accepted or rejected one by one."""
        length = np.sqrt(rng.chisquare(len(state.g)))  # of g: errors do not depend on it
        g = state.g * (length / np.linalg.norm(state.g))
        g[self.idle] = rng.standard_normal(len(self.idle))
        point = self.near.point(g)
        n_far = state.n_errors - self._near_errors(point)
        n_left, n_accepted, n_events = self.n_followed, 0, 0
        n_ahead = n_left  # what is followed before the far rows are looked at
        while n_left > 0:
            path, more_events = self._follow(rng, point, min(n_ahead, n_left))  # step 1
            n_ahead *= 2
            far = self._far_errors(path[:, self.near.n_rows :])
            n_events += more_events
            for k in range(len(path)):  # step 2
                n_left -= 1
                gap = self._excess(path[k], far[k]) - self._excess(point, n_far)
                if rng.random() >= np.exp(min(0.0, -gap)):
                    n_ahead = 1
                    break
                point, n_far = path[k], far[k]
                n_accepted += 1
        g = point[self.near.n_rows :].copy()
        n_errors = self._near_errors(point) + n_far
        info = ScreenedInfo(n_accepted / self.n_followed, n_errors, n_events)
        return ScreenedState(g, n_errors), info

    def record(self, state: ScreenedState) -> Mapping[str, NDArray[np.generic]]:
        """Return what the recorder makes of the classifier."""
        return self.recorder(state.n_errors, state.g)

    def _follow(
        self, rng: np.random.Generator, point: Array, n_trajectories: int
    ) -> tuple[Array, int]:
        """Points at the ends of successive trajectories of the surrogate."""
        near, screening = self.near, self.screening
        velocities = near.extended(rng.standard_normal((n_trajectories, near.rank)))
        path, total = np.empty((n_trajectories, near.n_rows + near.rank)), 0
        for k in range(n_trajectories):
            end = point.copy()
            errors = np.array([self._near_errors(point) + screening.n_far_errors])
            duration = float(jittered(rng, screening.duration, ()))
            n_events, _, is_whole = reflect_and_refract(
                near.table, end, velocities[k], near.noise.jumps, errors, near.noise.total,
                near.noise.row_cost, duration, MAX_EVENTS_A_ROW * near.n_rows + 1000,
            )  # fmt: skip
            point = path[k] = end if is_whole else point
            total += n_events
        return path, total

    def _excess(self, point: Array, n_far: int) -> float:
        """Cost of all errors less the cost that the surrogate saw."""
        n_near, total = self._near_errors(point), self.noise.total[0, :, 0]
        return float(total[n_near + n_far] - total[n_near + self.screening.n_far_errors])

    def _near_errors(self, point: Array) -> int:
        return int(np.count_nonzero(point[: self.near.n_rows] <= 0.0))

    def _far_errors(self, G: Array) -> list[int]:
        """Errors of the far rows for each row of G, shape (k, r)."""
        if len(self.screening.active) == len(self.L):
            return [0] * len(G)
        vectors = np.ascontiguousarray(G.T, dtype=self.L.dtype)
        count = functools.partial(_wrong_rows, vectors, self.screening.active)
        return [int(errors) for errors in np.sum(each_of(self.L, count), axis=0)]


def idle_columns(L: Rows) -> NDArray[np.int64]:
    """Columns in which every row is zero."""
    return np.flatnonzero(~np.any(each_of(L, _has_value), axis=0))


def _has_value(_first: int, blocks: Iterator[NDArray[Any]]) -> NDArray[np.bool_]:
    return np.asarray(np.any([block.any(axis=0) for block in blocks], axis=0))


def some_rows(L: Rows, rows: NDArray[np.int64]) -> NDArray[Any]:
    """Rows of L at ascending positions."""
    if isinstance(L, np.ndarray):
        return L[rows]
    return np.concatenate(each_of(L, functools.partial(take_rows, rows)))


def _wrong_rows(
    vectors: NDArray[Any], left_out: NDArray[np.int64], first: int, blocks: Iterator[NDArray[Any]]
) -> NDArray[np.int64]:
    """Count the rows that each of the classifiers (r, k) gets wrong, but for those left out."""
    errors = np.zeros(vectors.shape[1], np.int64)
    for block in blocks:
        is_wrong = block @ vectors <= 0.0
        low, high = np.searchsorted(left_out, (first, first + len(block)))
        is_wrong[left_out[low:high] - first] = False
        errors += np.count_nonzero(is_wrong, axis=0)
        first += len(block)
    return errors


# Warm-up of the screened sampler: which rows are near the boundary, and how long to travel.

# Active rows: |mean f| below so many standard deviations of f.
_N_SD = 8.0
# The table of the active rows has so many squared numbers at most.
_LARGEST_ACTIVE = 12_000
# Active rows for each dimension, before anything is known and at least: a short window of draws
# makes spreads too small.
_ROWS_A_DIMENSION = 20
# The covariance of few draws is shrunk by this share towards its mean variance.
_SHRINKAGE = 0.2
# Shares of warm-up after which the active rows are chosen anew.
_ROUNDS = (0.1, 0.2, 0.3, 0.4, 0.55, 0.75)
# Time of a number of the far rows in a product, beside that of a near row at an event.
_PRODUCT = 2.4
# From one round to the next trajectories become longer at most by this factor.
_LARGEST_GROWTH = 3.0
# Below this share of accepted trajectories a round has left the rows it knew: they become more,
# and trajectories shorter by the factor that follows. As each rejection has the far rows looked at
# anew, so many make a step until the next round.
_ACCEPTED, _SHORTER, _FEW_TRAJECTORIES = 0.5, 0.25, 4


@dataclass(frozen=True)
class LearnedPlace:
    """Steps seen, and since the last round the g, shape (k, r), and the acceptance rates' sum."""

    n_seen: int
    window: Array
    accepted: float


@dataclass(frozen=True)
class ScreenedAdaptation(Adaptation):
    """Choose the active rows in rounds over ``n_warmup`` steps, then freeze them.

    In warm-up too the far rows count: a chain that nears them waits for the next round.
    """

    n_warmup: int

    def init(self, sampler: ScreenedSampler) -> LearnedPlace:
        """Nothing is known."""
        return LearnedPlace(0, np.empty((0, sampler.near.rank)), 0.0)

    def update(
        self, learned: LearnedPlace, sampler: Any, state: Any, info: Any
    ) -> tuple[LearnedPlace, Any]:
        """Gather g; at the end of a round choose the rows and the duration anew."""
        # On the sphere, blown up: the length of g is drawn afresh and says nothing; nor does what
        # no row has a part in, which would make all else shorter and longer.
        direction = np.where(np.isin(np.arange(len(state.g)), sampler.idle), 0.0, state.g)
        direction *= math.sqrt(len(state.g)) / np.linalg.norm(direction)
        n_seen, window = learned.n_seen + 1, np.vstack([learned.window, direction])
        accepted = learned.accepted + info.acceptance_rate
        if n_seen not in [round(share * self.n_warmup) for share in _ROUNDS]:
            return LearnedPlace(n_seen, window, accepted), sampler
        old: Screening = sampler.screening
        if accepted > _ACCEPTED * len(window):
            settled = window[len(window) // 3 :]
            if not np.ptp(settled, axis=0).any():  # no step was taken: wait for the next round
                return LearnedPlace(n_seen, window, accepted), sampler
            screening = _chosen(sampler, settled, _LARGEST_GROWTH * old.duration)
            n_trajectories = _n_worthwhile(sampler, info.n_events)
        else:
            screening = _around(sampler.L, direction, 2 * len(old.active), _SHORTER * old.duration)
            n_trajectories = min(_FEW_TRAJECTORIES, sampler.n_trajectories)
        screening = replace(screening, n_trajectories=n_trajectories)
        sampler = dataclasses.replace(sampler, screening=screening)
        return LearnedPlace(n_seen, window[:0], 0.0), sampler

    def finish(self, learned: LearnedPlace, sampler: Any) -> Any:
        """Return the sampler as the last round left it."""
        return sampler

    def tuning(self, sampler: Any) -> Screening:
        """Return the active rows and the duration."""
        return sampler.screening  # type: ignore[no-any-return]

    def with_tuning(self, sampler: Any, tuning: Screening) -> Any:
        """Put them in place."""
        return dataclasses.replace(sampler, screening=tuning)


def _n_worthwhile(sampler: ScreenedSampler, n_events: int) -> int:
    """Trajectories that cost as much as the far rows' product that they share; 2 at least.

    Where many labels look wrong, a trajectory meets every near row several times.
    """
    n, r = sampler.L.shape
    n_near, most = len(sampler.screening.active), sampler.n_trajectories
    each = n_near * max(n_events, 1) / sampler.n_followed
    return int(np.clip(math.ceil(_PRODUCT * (n - n_near) * r / each), min(2, most), most))


def first_screening(L: Rows, g: Array) -> Screening:
    """The rows nearest to a first guess of the classifier."""
    n, r = L.shape
    return _around(L, g, _ROWS_A_DIMENSION * r, min(QUARTER, 2.0 * r / n))


def _around(L: Rows, g: Array, count: int, duration: float) -> Screening:
    """The rows nearest to the boundary of g, in angle."""
    measure = functools.partial(_angles, g.astype(L.dtype))
    active, n_far_errors = _nearest_rows(L, measure, lambda _: min(count, _LARGEST_ACTIVE))
    return Screening(active, n_far_errors, duration)


def _angles(g: NDArray[Any], block: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    f = block @ g
    lengths = np.sqrt(np.einsum("ij,ij->i", block, block))
    return np.abs(f) / np.maximum(lengths, np.finfo(block.dtype).tiny), f <= 0.0


def _chosen(sampler: ScreenedSampler, draws: Array, longest: float) -> Screening:
    """The rows whose side the draws leave open."""
    L, (n_draws, r) = sampler.L, draws.shape
    mean, deviations = draws.mean(axis=0), draws - draws.mean(axis=0)
    variance = float(np.mean(np.delete(deviations, sampler.idle, axis=1) ** 2))
    scale, fewest = math.sqrt((1.0 - _SHRINKAGE) / n_draws), _ROWS_A_DIMENSION * r
    vectors = np.vstack([mean, scale * deviations]).T.astype(L.dtype)
    measure = functools.partial(_deviations, vectors, _SHRINKAGE * variance)
    active, n_far_errors = _nearest_rows(
        L, measure, lambda n_near: max(min(max(n_near, fewest), _LARGEST_ACTIVE), r)
    )
    duration = min(QUARTER, LENGTH_IN_SD * math.sqrt(variance), longest)
    return Screening(active, n_far_errors, max(duration, 1e-9))


def _deviations(
    vectors: NDArray[Any], floor: float, block: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """|mean f| / sd(f) at each row, under the shrunk covariance of the draws."""
    products = block @ vectors
    f, squares = products[:, 0], np.einsum("ij,ij->i", products[:, 1:], products[:, 1:])
    sd = np.sqrt(squares + floor * np.einsum("ij,ij->i", block, block))
    return np.abs(f) / np.maximum(sd, np.finfo(block.dtype).tiny), f <= 0.0


def _nearest_rows(
    L: Rows, measure: Measure, count: Callable[[int], int], most: int = _LARGEST_ACTIVE
) -> tuple[NDArray[np.int64], int]:
    """Positions of the smallest distances, ascending, and how many of the other rows are wrong.

    ``count`` says how many, given the number of rows with a distance below `_N_SD`: up to ``most``,
    or one for each column.
    """
    most = max(most, L.shape[1])
    found = each_of(L, functools.partial(_nearest_of_run, measure, most))
    *nearest, near, wrong = zip(*found, strict=True)
    distance, position, is_wrong = map(np.concatenate, nearest)
    chosen = _smallest(distance, count(sum(near)))
    return position[chosen], sum(wrong) - int(np.count_nonzero(is_wrong[chosen]))


def _nearest_of_run(
    measure: Measure, most: int, first: int, blocks: Iterator[NDArray[Any]]
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.bool_], int, int]:
    """The nearest rows of a run, their positions and whether they are wrong; and two counts."""
    distances, wrong = zip(*map(measure, blocks), strict=True)
    distance, is_wrong = np.concatenate(distances), np.concatenate(wrong)
    chosen, n_near = _smallest(distance, most), np.count_nonzero(distance < _N_SD)
    n_wrong = int(np.count_nonzero(is_wrong))
    return distance[chosen], first + chosen, is_wrong[chosen], int(n_near), n_wrong


def _smallest(distance: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Positions of the smallest distances, ascending; of equal ones the first."""
    if count >= len(distance):
        return np.arange(len(distance))
    limit = np.partition(distance, count - 1)[count - 1]
    below = np.flatnonzero(distance < limit)
    equal = np.flatnonzero(distance == limit)[: count - len(below)]
    return np.sort(np.concatenate([below, equal])).astype(np.int64)


# The rows of a problem, and where chains start.

# Rows that a start is fitted to, and again to one in so many of as many nearest to its boundary and
# of the others: starts lie further apart than draws.
_START_ROWS, _ONE_IN = 200_000, 2
# Iterations of a start and the change of its mean log likelihood that ends them: of a row among
# millions. It begins where f has this standard deviation: saturated, it would end at once.
_START_ITERATIONS, _START_CHANGE, _START_SD = 100, 1e-12, 2.0
# Logit of twice the rate of flipped labels: the first value, and bounds.
_START_LOGIT, _LARGEST_LOGIT = -2.0, 12.0


def signed_in_single_precision(space: Space, labels: NDArray[np.int64]) -> Rows:
    """Rows of the feature space, labels multiplied in, kept where the inputs are."""
    L: Rows = space.kept(functools.partial(_signed, np.packbits(labels == 1)))
    return L


def _signed(
    is_second: NDArray[np.uint8], first: int, blocks: Iterator[NDArray[np.float32]]
) -> Iterator[NDArray[np.float32]]:
    """Multiply labels, packed eight to a byte, into rows."""
    for block in blocks:
        last = first + len(block)
        own = np.unpackbits(is_second[first // 8 : -(-last // 8)])[first % 8 :][: len(block)]
        yield block * np.where(own, np.float32(1.0), np.float32(-1.0))[:, np.newaxis]
        first = last


@dataclass(frozen=True)
class LinearStart:
    """Logistic regression with flipped labels on half of the rows, others for each chain.

    Of many rows it is fitted to some, then to those nearest to the boundary that was found: these
    say nearly all that is to be known, and the others, of which few are taken, weigh more.
    """

    L: Rows

    def __call__(self, rng: np.random.Generator) -> Array:
        """Draw the rows and fit; the length is that of a draw from the prior."""
        n, r = self.L.shape
        n_some = min(n // 2, max(_START_ROWS, 10 * r))
        chosen = np.sort(rng.choice(n, n_some, replace=False))
        A = some_rows(self.L, chosen)
        x = _most_likely((A,), np.ones(n_some), _least_squares(A))
        if n_some < n // 2:
            measure = functools.partial(_angles, x[:r].astype(self.L.dtype))
            nearest, _ = _nearest_rows(self.L, measure, lambda _: n_some, n_some)
            near = some_rows(self.L, np.sort(rng.choice(nearest, n_some // _ONE_IN, replace=False)))
            A = A[np.flatnonzero(~np.isin(chosen, nearest))[::_ONE_IN]]
            weights = np.repeat([(n - n_some) / max(len(A), 1), _ONE_IN], [len(A), len(near)])
            x = _most_likely((A, near), weights, x)
        return np.asarray(x[:r] * (math.sqrt(r) / np.linalg.norm(x[:r])))


def _least_squares(A: NDArray[Any]) -> Array:
    """[g; logit of twice the rate] to begin with."""
    r, product = A.shape[1], (A.T @ A).astype(np.float64)
    product.flat[:: r + 1] += 1e-6 * product.trace() / r
    total = A.sum(axis=0)
    return np.append(np.linalg.solve(product, total if total.any() else A[0]), _START_LOGIT)


def _most_likely(parts: tuple[NDArray[Any], ...], weights: Array, x: Array) -> Array:
    """Maximum over [g; logit of 2q] of the mean log(q + (1 - 2q) sigmoid(A g)), A in parts.

    The length of g begins at what is right for the last part.
    """
    weights, ends = weights / weights.sum(), np.cumsum([len(A) for A in parts])[:-1]
    sd = float(np.std(parts[-1] @ x[:-1].astype(parts[-1].dtype)))
    unit = (_START_SD / sd if sd > 0.0 else 1.0) * float(np.linalg.norm(x[:-1]))

    def loss(x: Array) -> tuple[float, Array]:
        g, q = (unit * x[:-1]).astype(parts[0].dtype), 0.5 * expit(x[-1])
        right = expit(np.concatenate([A @ g for A in parts]).astype(np.float64))
        p = q + (1.0 - 2.0 * q) * right
        slope = weights * (1.0 - 2.0 * q) * right * (1.0 - right) / p
        by_logit = q * (1.0 - 2.0 * q) * float(weights @ ((1.0 - 2.0 * right) / p))
        each = zip(np.split(slope.astype(g.dtype), ends), parts, strict=True)
        by_g = np.sum([own @ A for own, A in each], axis=0)
        return -float(weights @ np.log(p)), -np.append(unit * by_g, by_logit)

    bounds = [(None, None)] * (len(x) - 1) + [(-_LARGEST_LOGIT, _LARGEST_LOGIT)]
    options = {"maxiter": _START_ITERATIONS, "ftol": _START_CHANGE, "gtol": _START_CHANGE}
    x = np.append(x[:-1] / np.linalg.norm(x[:-1]), x[-1])
    return np.asarray(minimize(loss, x, jac=True, bounds=bounds, options=options).x)  # L-BFGS-B
