"""Small kernel regressions for the particle filter, and what its design must be, in NumPy."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mercer.basis.filter import Filter, State
from mercer.basis.length_scales import LengthScaleGrid
from mercer.basis.model import (
    Particles,
    Reservoir,
    Schedule,
    SetPrior,
    Statistics,
    integrated,
    sampled,
)

NEAREST, RIDGE = 32, 1e-6


@dataclass(frozen=True)
class FixedSlots:
    """A reservoir whose slots are written down: for each row one, or None."""

    slots: tuple[int | None, ...]
    n_slots: int

    def slot(self, n_seen: int) -> int | None:
        return self.slots[n_seen]


def make_filter(
    *,
    variances: str = "integrated",
    n_particles: int = 100,
    kind: str = "poisson",
    expected: float = 2.0,
    largest: int = 3,
    n_slots: int = 16,
    slots: tuple[int | None, ...] = (),
    retention: float = 1.0,
    lengthscales: tuple[float, ...] = (1.5, 0.6),
    scalings: tuple[tuple[float, ...], ...] = ((1.0,),),
    log_prior: tuple[float, ...] = (),
    n_shaping: int = 0,
    has_linear_part: bool = False,
    scheme: str = "systematic",
    schedule: Schedule | None = None,
) -> Filter:
    """A filter with the package's priors; every particle is moved after every row."""
    own = (np.array(log_prior), n_shaping) if log_prior else ()
    grid = LengthScaleGrid(np.array(lengthscales), np.array(scalings), "rbf", has_linear_part, *own)
    prior = {"integrated": integrated, "sampled": sampled}[variances](grid.n_mean)
    return Filter(
        n_particles=n_particles,
        prior=prior,
        sets=SetPrior(kind, expected, largest),
        grid=grid,
        reservoir=FixedSlots(slots, n_slots) if slots else Reservoir(n_slots, 5, retention < 1.0),
        schedule=schedule or Schedule(n_redraws=1, n_changes=2),
        scheme=scheme,
        retention=retention,
    )


def informed(filter_: Filter) -> Filter:
    """Give a filter priors that say more than the package's: each row weighs particles harder.

    Moves mend wrong weights after rows that say little; a test that looks for such weights needs
    rows that say much.
    """
    prior = filter_.prior._replace(
        noise_shape=1.25, noise_rate=0.0625, scale_shape=0.5, scale_rate=0.5
    )
    return replace(filter_, prior=prior)


def problem(n: int, d: int = 1, seed: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Inputs in [-2, 2] and noisy targets of a curve, of order one and not symmetric."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, d))
    return X, np.sin(2.0 * X[:, 0]) + 0.4 * X[:, -1] + 0.6 * rng.standard_normal(n)


def run(filter_: Filter, X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> State:
    """The state after all rows."""
    state = filter_.init(rng)
    for x, target in zip(X, y, strict=True):
        state, _ = filter_.learn(rng, state, x, float(target))
    return state


@dataclass(frozen=True)
class Design:
    """What the rows look like to the candidates held now.

    Attributes
    ----------
    features : ndarray of shape (L, n, m + r)
        Columns of the mean, then of the candidates; of rows that are gone as they were defined.
    weights : ndarray of shape (n,)
        Of the rows.
    centres : ndarray of shape (r, d)
    """

    features: np.ndarray
    weights: np.ndarray
    centres: np.ndarray


def plain_kernel(grid: LengthScaleGrid, A: np.ndarray, B: np.ndarray, level: int) -> np.ndarray:
    """The squared exponential at one level."""
    which, width = divmod(level, grid.n_widths)
    differences = (A[:, None] - B[None]) * grid.scalings[which]
    return np.exp(-0.5 * (differences**2).sum(-1) / grid.lengthscales[width] ** 2)


def plain_design(filter_: Filter, X: np.ndarray) -> Design:
    """Follow the candidates row by row, each row's features kept one by one."""
    grid, schedule = filter_.grid, filter_.schedule
    n, m = len(X), grid.n_mean
    F = np.zeros((grid.n_levels, n, m + min(n, filter_.reservoir.n_slots)))
    F[:, :, 0] = 1.0
    if grid.linear_part:
        F[:, :, 1:m] = X
    weights, held = np.ones(n), []
    for t in range(n):
        n_next = schedule.rows_in_block(t + 1)
        if filter_.retention**n_next < 0.5:
            n_next = 1
        elif not schedule.begins_block(t + 1):
            n_next = 0
        weights[: t + 1] *= filter_.retention**n_next
        for level in range(grid.n_levels):
            F[level, t, m : m + len(held)] = plain_kernel(grid, X[[t]], X[held], level)
        slot = filter_.reservoir.slot(t)
        if slot is None:
            continue
        first = max(t + 1 - schedule.n_buffered, 0)
        others = [c for c in range(len(held)) if c != slot]
        for level in range(grid.n_levels):
            now = plain_kernel(grid, X[first : t + 1], X[[t]], level)[:, 0]
            if first and others:
                F[level, :first, m + slot] = _projected(grid, F[level], X, held, others, t, level)[
                    :first
                ]
            elif first:
                F[level, :first, m + slot] = 0.0
            F[level, first : t + 1, m + slot] = now
        held = [*held[:slot], t, *held[slot + 1 :]]
    return Design(F, weights, X[held])


def _projected(grid, F, X, held, others, t, level) -> np.ndarray:
    """Features of a new candidate by those of the nearest others, on all rows."""
    Z = X[[held[c] for c in others]]
    distances = ((Z - X[t]) ** 2 * grid.scalings[0] ** 2).sum(1)
    near = np.argsort(distances, kind="stable")[:NEAREST]
    K = plain_kernel(grid, Z[near], Z[near], level)
    a = np.linalg.solve(
        K + RIDGE * np.eye(len(near)), plain_kernel(grid, Z[near], X[[t]], level)[:, 0]
    )
    return F[:, grid.n_mean + np.array(others)[near]] @ a


def plain_statistics(design: Design, y: np.ndarray) -> Statistics:
    """Weighted sums over the rows."""
    F, weights = design.features, design.weights
    return Statistics(
        np.einsum("n,lna,lnb->lab", weights, F, F),
        np.einsum("n,lna->la", weights * y, F),
        float(weights @ y**2),
        float(weights.sum()),
        len(design.centres),
    )


def placed(
    filter_: Filter, masks: np.ndarray, level: np.ndarray, scale: np.ndarray, noise: np.ndarray
) -> Particles:
    """Particles that hold these sets (bit c stands for candidate c), without their factors."""
    N, largest, m = len(masks), filter_.sets.largest, filter_.grid.n_mean
    members, size = np.zeros((N, largest), np.int64), np.zeros(N, np.int64)
    for c in range(int(masks.max()).bit_length()):
        holds = np.flatnonzero(masks >> c & 1)
        members[holds, size[holds]] = m + c
        size[holds] += 1
    P, zeros = m + largest, np.zeros
    return Particles(
        size, members, level.astype(np.int64), scale.astype(float), noise.astype(float),
        zeros((N, P, P)), zeros((N, P)), zeros(N), zeros(N), zeros(N), zeros(N), np.arange(N),
    )  # fmt: skip


def masks_of(particles: Particles, n_mean: int) -> np.ndarray:
    """The set of each particle, bit c standing for candidate c."""
    used = np.arange(particles.members.shape[1]) < particles.size[:, None]
    return np.where(used, 1 << np.maximum(particles.members - n_mean, 0), 0).sum(axis=1)
