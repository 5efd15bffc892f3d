"""Tiny classification problems whose sets, levels and coefficients can be summed over.

Two priors: a narrow one, with sets of two; a wide one, where latent values are large enough for
their Polya-Gamma variables to matter, with sets of one, so that quadrature has two dimensions.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy import stats
from scipy.special import roots_genlaguerre

from mercer.basis.class_filter import ClassFilter, ClassPrior, ClassSchedule, ClassState
from mercer.basis.length_scales import LengthScaleGrid
from mercer.basis.model import Reservoir, SetPrior
from support.statistics import FALSE_ALARM

X = np.array([[-1.0], [0.2], [1.1], [-0.4], [0.7], [-1.6], [1.9], [0.0]])
# One class, then the other: latent values are large where a row takes the particles by surprise.
SIGNS = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0, -1.0])
NARROW, WIDE = ClassPrior(3.0, 3.0, 1.0, 1.0, 1), ClassPrior(3.0, 40.0, 0.05, 0.05, 1)
LEVELS = LengthScaleGrid(np.array([1.0, 0.4]), np.ones((1, 1)), "rbf", linear_part=False)
# Nodes in each dimension of the coefficients, and for their variance.
N_NODES = {1: (90, 30), 2: (16, 12)}


def tiny_filter(
    n_particles: int,
    n_slots: int,
    schedule: ClassSchedule,
    *,
    is_wide: bool = False,
    retention: float = 1.0,
) -> ClassFilter:
    sets = SetPrior("negative_binomial", 2.0, 1 if is_wide else 2)
    reservoir = Reservoir(n_slots, 5, is_forgetting=False)
    prior = WIDE if is_wide else NARROW
    return ClassFilter(
        n_particles, prior, sets, LEVELS, reservoir, schedule, "systematic", retention
    )


def powers(filter_: ClassFilter, state: ClassState) -> np.ndarray:
    """Power of the likelihood of each row held, from the number of rows that came after it."""
    n, n_ring = state.n_held, len(state.rows.sign)
    position = np.arange(n)
    last = state.n_seen - 1
    age = (last - position) % n_ring if state.n_seen > n_ring else last - position
    return filter_.retention**age


def after_rows(filter_: ClassFilter, n_rows: int, seed: int) -> ClassState:
    rng = np.random.default_rng(seed)
    state = filter_.init(rng)
    for t in range(n_rows):
        state, _ = filter_.learn(rng, state, X[t], SIGNS[t])
    return state


def _normal_rule(n_nodes: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (M, dimension) and weights (M,) for a standard normal."""
    nodes, weights = hermegauss(n_nodes)
    weights = weights / weights.sum()
    grid = np.array(list(itertools.product(nodes, repeat=dimension)))
    products = np.array(list(itertools.product(weights, repeat=dimension))).prod(axis=1)
    return grid, products


def _set_evidence(
    K: np.ndarray, signs: np.ndarray, power: np.ndarray, prior: ClassPrior, n_nodes
) -> float:
    """p(signs | columns K (n, p)) by quadrature over coefficients and their variance."""
    precisions, weights = roots_genlaguerre(n_nodes[1], prior.scale_shape - 1.0)
    precisions, weights = precisions / prior.scale_rate, weights / weights.sum()
    Z, of_nodes = _normal_rule(n_nodes[0], K.shape[1])
    total = 0.0
    for precision, weight in zip(precisions, weights, strict=True):
        spread = np.full(K.shape[1], 1.0 / math.sqrt(precision))
        spread[0] = 1.0 / math.sqrt(prior.constant_precision)
        log_likelihood = -np.logaddexp(0.0, -(Z * spread) @ K.T * signs) @ power
        total += weight * float(of_nodes @ np.exp(log_likelihood))
    return total


def exact_of(
    filter_: ClassFilter, state: ClassState, more: int = 0
) -> dict[tuple[int, ...], float]:
    """Prior times evidence of each (level, members...), given the rows and candidates held.

    By enumeration and quadrature, with ``more`` nodes than usual.
    """
    n, r, k_max = state.n_held, state.n_candidates, filter_.sets.largest
    n_nodes = tuple(count + more for count in N_NODES[k_max])
    log_size, cells, power = filter_.sets.log_size(r), {}, powers(filter_, state)
    for level in range(LEVELS.n_levels):
        design = LEVELS.design(state.rows.X[:n], state.centres[:r], level)
        for k in range(min(k_max, r) + 1):
            for members in itertools.combinations(range(1, r + 1), k):
                K = design[:, [0, *members]]
                evidence = _set_evidence(K, state.rows.sign[:n], power, filter_.prior, n_nodes)
                cells[(level, *members)] = math.exp(log_size[k]) / LEVELS.n_levels * evidence
    return cells


def cells_of(state: ClassState) -> list[tuple[int, ...]]:
    """The cell of each particle."""
    p = state.particles
    return [
        (int(level), *sorted(members[:size].tolist()))
        for level, members, size in zip(p.level, p.members, p.size, strict=True)
    ]


def exact_particles(
    filter_: ClassFilter, state: ClassState, n: int, rng: np.random.Generator
) -> ClassState:
    """Replace the particles by n exact draws from the target: by rejection from the prior."""
    r, k_max, prior = state.n_candidates, filter_.sets.largest, filter_.prior
    counts = np.array([math.comb(r, k) for k in range(k_max + 1)])
    of_size = counts * np.exp(filter_.sets.log_size(r)[: k_max + 1])
    held, kept = state.n_held, []
    designs = [
        LEVELS.design(state.rows.X[:held], state.centres[:r], level)
        for level in range(LEVELS.n_levels)
    ]
    while sum(len(part[0]) for part in kept) < n:
        M = 10 * n
        size = rng.choice(k_max + 1, M, p=of_size / of_size.sum())
        members = 1 + rng.permuted(np.tile(np.arange(r), (M, 1)), axis=1)[:, :k_max]
        level = rng.integers(0, LEVELS.n_levels, M)
        scale = prior.scale_rate / rng.gamma(prior.scale_shape, 1.0, M)
        beta = rng.standard_normal((M, 1 + k_max)) * np.sqrt(scale)[:, None]
        beta[:, 0] *= 1.0 / np.sqrt(scale * prior.constant_precision)
        beta[:, 1:][np.arange(k_max) >= size[:, None]] = 0.0
        f = np.empty((M, held))
        for a, design in enumerate(designs):
            at = level == a
            features = design[:, members[at]]  # (held, M', k_max)
            f[at] = beta[at, :1] + np.einsum("smk,mk->ms", features, beta[at, 1:])
        log_likelihood = -np.logaddexp(0.0, -f * state.rows.sign[:held]) @ powers(filter_, state)
        ok = np.log(rng.random(M)) < log_likelihood
        kept.append([a[ok] for a in (size, members, level, scale, beta, log_likelihood)])
    size, members, level, scale, beta, log_likelihood = (
        np.concatenate(parts)[:n] for parts in zip(*kept, strict=True)
    )
    particles = type(state.particles)(
        size, members, level, scale, beta, np.full(n, -math.log(n)), log_likelihood, np.arange(n)
    )
    return replace(state, particles=particles)


def largest_z(
    filter_: ClassFilter, n_rows: int, n_runs: int, n_cases: int
) -> tuple[float, float, float]:
    """E[Zhat]/Z; largest |z| of that and of E[Zhat W 1{cell}]/Z - p(cell); its limit."""
    exact = exact_of(filter_, after_rows(filter_, n_rows, 0))
    Z = sum(exact.values())
    cells = [cell for cell, mass in exact.items() if mass > 0.03 * Z]
    values = np.empty((n_runs, 1 + len(cells)))
    for run in range(n_runs):
        state = after_rows(filter_, n_rows, 1000 + run)
        found = Counter()
        for cell, weight in zip(cells_of(state), np.exp(state.particles.log_weight), strict=True):
            found[cell] += weight
        ratio = math.exp(state.log_evidence) / Z
        values[run] = [ratio, *(ratio * found[cell] for cell in cells)]
    truth = np.array([1.0, *(exact[cell] / Z for cell in cells)])
    error = values.std(axis=0, ddof=1) / math.sqrt(n_runs)
    z = np.abs(values.mean(axis=0) - truth) / error
    limit = stats.t.isf(FALSE_ALARM / (2.0 * n_cases * values.shape[1]), n_runs - 1)
    return float(values[:, 0].mean()), float(z.max()), float(limit)


def moved_from_exact(
    filter_: ClassFilter, n_rows: int, n: int, n_cases: int, move: Callable[..., Any]
) -> tuple[float, float]:
    """After one round of moves from exact starts: chi-square of the cells over its limit, and the
    smaller p of bias and scale against other exact draws.
    """
    state, rng = after_rows(filter_, n_rows, 0), np.random.default_rng(18)
    exact = exact_of(filter_, state)
    expected = n * np.array(list(exact.values())) / sum(exact.values())
    others = exact_particles(filter_, state, n, rng).particles
    state = exact_particles(filter_, state, n, rng)
    r = state.n_candidates
    for _ in range(3):
        state = filter_._approximate(state, r)
    move(rng, *filter_._arguments(state), filter_.sets.log_size(r), 2, r, 2, state.particles, 0, n)
    counts = Counter(cells_of(state))
    seen = np.array([counts[cell] for cell in exact])
    assert expected.min() > 10.0
    value = float(((seen - expected) ** 2 / expected).sum())
    limit = stats.chi2.isf(FALSE_ALARM / n_cases, len(expected) - 1)
    new = state.particles
    pairs = (others.scale, new.scale), (others.beta[:, 0], new.beta[:, 0])
    return value / float(limit), min(float(stats.ks_2samp(*pair).pvalue) for pair in pairs)
