"""What the state of a filter must be when it comes from a file.

Arrays that do not fit each other are refused: a compiled loop would read beyond their ends. So are
numbers that no stream leads to, where a prediction would not be finite.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.basis.arrays import Particles
from mercer.basis.bank import BankState
from mercer.basis.printed import AnyFilter
from mercer.basis.settings import FilterSettings
from mercer.basis.state import State
from mercer.estimation.saved import is_finite, require

__all__ = ["check_bank", "check_sets"]

_WEIGHT_TOLERANCE = 5e-9  # within what resampling takes for weights
# Standardised numbers are below 1e100, their products below the square of that.
_LARGEST, _LARGEST_FACTOR, _LARGEST_SUM = 1e100, 1e110, 1e210


def check_bank(
    state: BankState, template: BankState, filters: tuple[AnyFilter, ...], settings: FilterSettings
) -> None:
    """Refuse a state unless rows can be predicted and learned from it.

    Parameters
    ----------
    state : BankState
        From the file, with the types and dimensions of the template.
    template : BankState
        Of the same filters, before the first row.
    filters : tuple of Filter
    settings : FilterSettings

    Raises
    ------
    ValueError
        It names what is wrong.
    """
    surprises = state.surprises
    is_right = surprises.last.shape == template.surprises.last.shape
    require(is_right and bool(np.isin(surprises.last, (0, 1)).all()), "surprises/last")
    require(0 <= surprises.n_set_aside <= surprises.n_met, "surprises")
    require(state.scores.shape == template.scores.shape and is_finite(state.scores), "scores")
    for each, like, filter_ in zip(state.states, template.states, filters, strict=True):
        _check_shapes(each, like)
        _check_counts(each, settings.max_candidates)
        _check_particles(each, like.particles, filter_)


def _check_shapes(state: State, like: State) -> None:
    L, C = state.statistics.moment.shape
    m = like.statistics.moment.shape[1] - len(like.centres)
    R, n_ring, block = C - m, len(state.rows.y), like.pending.shape[0]
    A, d = like.rows.distances.shape[0], like.rows.X.shape[1]
    require(len(like.statistics.moment) == L and R >= 0, "statistics/moment")
    shapes: dict[str, tuple[NDArray[Any], tuple[int, ...]]] = {
        "gram": (state.statistics.gram, (L, C, C)),
        "moment": (state.statistics.moment, (L, C)),
        "centres": (state.centres, (R, d)),
        "rows/X": (state.rows.X, (n_ring, d)),
        "rows/y": (state.rows.y, (n_ring,)),
        "rows/distances": (state.rows.distances, (A, n_ring, R)),
        "rows/age": (state.rows.age, (n_ring,)),
        "pending": (state.pending, (block, L, C)),
        "pending_y": (state.pending_y, (block,)),
        "leaving": (state.leaving, (len(like.leaving), L, C)),
        "leaving_y": (state.leaving_y, like.leaving_y.shape),
    }
    if state.old.gram.shape[1]:
        shapes |= {
            "old/gram": (state.old.gram, (L, C, C)),
            "old/moment": (state.old.moment, (L, C)),
        }
    for name, (array, shape) in shapes.items():
        require(array.shape == shape and _is_at_most(array, _LARGEST_SUM), name)
    for y in (state.rows.y, state.pending_y, state.leaving_y):
        require(_is_at_most(y, _LARGEST), "rows/y")
    require(bool((state.rows.distances >= 0.0).all()), "rows/distances")


def _check_counts(state: State, most_candidates: int) -> None:
    sums, ages = state.statistics, state.rows.age
    require(0 <= state.n_pending <= len(state.pending_y), "n_pending")
    require(0 <= state.n_leaving <= len(state.leaving_y), "n_leaving")
    require(state.n_seen >= 0 and len(state.rows.y) > 0, "n_seen")
    require(sums.n_candidates == min(state.n_seen, most_candidates), "statistics/n_candidates")
    require(sums.n_candidates <= len(state.centres) <= most_candidates, "centres")
    require(bool(((ages >= 0) & (ages <= state.n_discounts)).all()), "rows/age")
    totals = np.array([sums.square, sums.n_rows, state.evidence_variance])
    require(is_finite(totals) and bool((totals >= 0.0).all()), "statistics")
    require(bool(np.isfinite(state.log_evidence)), "log_evidence")


def _check_particles(state: State, like: Particles, filter_: AnyFilter) -> None:
    particles, prior, m = state.particles, filter_.prior, filter_.prior.n_mean
    for name, mine, theirs in zip(particles._fields, particles, like, strict=True):
        require(mine.shape == theirs.shape and is_finite(mine), f"particles/{name}")
    require(_is_at_most(particles.factor, _LARGEST_FACTOR), "particles/factor")
    check_sets(particles, m, state.statistics.n_candidates, filter_.levels.n_levels)
    N, k_max = particles.members.shape
    require(1 <= state.n_ancestors <= N, "n_ancestors")
    require(bool(((particles.scale > 0.0) & (particles.noise > 0.0)).all()), "particles/scale")
    require(bool((prior.noise_rate + 0.5 * particles.rss > 0.0).all()), "particles/rss")
    is_used = np.arange(m + k_max) < m + particles.size[:, np.newaxis]
    pivots = np.where(is_used, np.diagonal(particles.factor, axis1=1, axis2=2), 1.0)
    has_begun = state.n_seen > 0
    require(bool((pivots > 0.0).all()) or not has_begun, "particles/factor")


def check_sets(particles: Any, n_mean: int, n_candidates: int, n_levels: int) -> None:
    """Refuse particles whose sets, levels, ancestors or weights are none.

    Parameters
    ----------
    particles : Particles or ClassParticles
        Arrays of the right shapes.
    n_mean, n_candidates, n_levels : int
    """
    N, k_max = particles.members.shape
    sizes, members, ancestors = particles.size, particles.members, particles.ancestor
    require(sizes.min() >= 0 and sizes.max() <= k_max, "particles/size")
    used = np.arange(k_max) < sizes[:, np.newaxis]
    is_column = (members >= n_mean) & (members < n_mean + n_candidates)
    # What is not used stands apart, so that a row with equal entries names a column twice.
    columns = np.sort(np.where(used, members, -1 - np.arange(k_max)), axis=1)
    is_set = bool((is_column | ~used).all() and (np.diff(columns, axis=1) > 0).all())
    require(is_set, "particles/members")
    is_level = (particles.level >= 0) & (particles.level < n_levels)
    require(bool(is_level.all()), "particles/level")
    require(bool(((ancestors >= 0) & (ancestors < N)).all()), "particles/ancestor")
    total = float(np.exp(np.minimum(particles.log_weight, 1.0)).sum())
    require(abs(total - 1.0) < _WEIGHT_TOLERANCE, "particles/log_weight")


def _is_at_most(values: NDArray[Any], largest: float) -> bool:
    """Whether all numbers are at most so large; NaN is not."""
    return bool((np.abs(values) <= largest).all())
