"""What the state of the filters must be when it comes from a file.

Arrays that do not fit each other are refused: a compiled loop would read beyond their ends.
"""

from __future__ import annotations

import numpy as np

from mercer.basis.classes.filter import ClassFilter
from mercer.basis.classes.several import StickBreaking, StickState
from mercer.basis.classes.state import ClassState
from mercer.basis.saved_state import check_sets
from mercer.estimation.saved import is_finite, require

__all__ = ["check_sticks"]

# Standardised numbers are below this.
_LARGEST = 1e100


def check_sticks(state: StickState, template: StickState, sticks: StickBreaking) -> None:
    """Refuse states unless rows can be predicted and learned from them.

    Parameters
    ----------
    state : StickState
        From the file, with the types and dimensions of the template.
    template : StickState
        Of the same filters, before the first row.
    sticks : StickBreaking

    Raises
    ------
    ValueError
        It names what is wrong.
    """
    counts = [each.n_seen for each in state.states]  # each learns rows of those before it
    require(counts == sorted(counts, reverse=True), "n_seen")
    for each, like, filter_ in zip(state.states, template.states, sticks.filters, strict=True):
        _check_rows(each, like, filter_)
        _check_particles(each, like, filter_)


def _check_rows(state: ClassState, like: ClassState, filter_: ClassFilter) -> None:
    rows, B = state.rows, len(state.rows.sign)
    L, C, _ = like.rows.design.shape
    R, d = like.centres.shape
    shapes = {
        "rows/X": (rows.X, (B, d)),
        "rows/sign": (rows.sign, (B,)),
        "rows/design": (rows.design, (L, C, B)),
        "centres": (state.centres, (R, d)),
        "waiting": (state.waiting, (R, d)),
        "is_waiting": (state.is_waiting, (R,)),
    }
    for name, (array, shape) in shapes.items():
        is_small = bool((np.abs(array) < _LARGEST).all())
        require(array.shape == shape and is_small, name)
    n = state.n_seen
    require(n >= 0 and 0 < B <= filter_.schedule.n_buffered, "rows")
    require(n <= B or filter_.schedule.n_buffered == B, "rows")
    require(bool((np.abs(rows.sign[: state.n_held]) == 1.0).all()), "rows/sign")
    r, slots = state.n_candidates, np.flatnonzero(state.is_waiting)
    new = slots[slots >= r]
    require(0 <= r <= R and new.tolist() == list(range(r, r + len(new))), "is_waiting")
    require(r + len(new) == min(n, R), "n_candidates")
    totals = np.array([state.log_evidence, state.evidence_variance])
    require(is_finite(totals), "log_evidence")


def _check_particles(state: ClassState, like: ClassState, filter_: ClassFilter) -> None:
    particles, m = state.particles, filter_.prior.n_mean
    for name, mine, theirs in zip(particles._fields, particles, like.particles, strict=True):
        require(mine.shape == theirs.shape and is_finite(mine), f"particles/{name}")
    check_sets(particles, m, state.n_candidates, filter_.levels.n_levels)
    require(1 <= state.n_ancestors <= len(particles.size), "n_ancestors")
    scale = particles.scale
    require(bool(((scale >= 1e-6) & (scale <= 1e6)).all()), "particles/scale")
    require(bool((np.abs(particles.beta) < _LARGEST).all()), "particles/beta")
