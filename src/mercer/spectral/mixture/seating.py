"""One Gibbs pass over the component and the sign of every frequency.

The components are instantiated. Frequency j leaves its own, which is dropped if j was alone; it
joins component k with probability proportional to m_k N(W_j; mu_k, Sigma_k), eq. (8) of the paper,
or a new one with concentration times its prior predictive density, whose parameters then come from
their posterior given W_j.

**Signs.** The likelihood does not change under W_j -> -W_j, nor does the base measure, so a pass
may draw (Z_j, s_j) together, from m_k N(s W_j; mu_k, Sigma_k).

**Deviation.** The paper draws the parameters of a new component from the prior: then Z does not
have the posterior of the model.

**Cost.** O(M K d) for the densities in NumPy, O(M K) exponentials in the compiled loop, and O(M d)
for each new component.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.spectral.mixture import compiled
from mercer.spectral.mixture.base import Array, BaseMeasure, Components, Labels

__all__ = ["reseat"]

# Empty slots that are added together when a new component finds none.
_SPARE = 8


def reseat(
    rng: np.random.Generator,
    base: BaseMeasure[Any],
    components: Components,
    assignment: Labels,
    concentration: float,
    W: Array,
    is_symmetric: bool,
) -> tuple[Labels, Array]:
    """Draw the assignment, and the signs, of frequencies W (M, d) given the components.

    Returns
    -------
    assignment : ndarray of shape (M,), int64
        In 0, .., K - 1, without gaps. The components that it refers to are still to be drawn.
    signs : ndarray of shape (M,)
        1 or -1; the assignment is that of the frequencies times these.
    """
    sides = [W, -W] if is_symmetric else [W]
    tables = np.stack([components.log_densities(side) for side in sides])
    log_new = base.log_predictive(W) + np.log(concentration)
    counts = np.bincount(assignment, minlength=components.n_components)
    assignment, signs = assignment.copy(), np.ones(len(W))
    uniforms = rng.random(len(W))
    first = 0
    while first < len(W):
        if counts.all():
            counts = np.append(counts, np.zeros(_SPARE, dtype=np.int64))
            tables = np.concatenate([tables, np.empty((*tables.shape[:2], _SPARE))], axis=2)
        opened = compiled.seat(first, uniforms, tables, log_new, assignment, signs, counts)
        first = opened + 1
        if first < len(W):
            only = signs[opened] * W[opened : opened + 1]
            born = base.draw_components(rng, only, np.zeros(1, dtype=np.int64), 1)
            for table, side in zip(tables, sides, strict=True):
                table[first:, assignment[opened]] = born.log_densities(side[first:])[:, 0]
    return np.unique(assignment, return_inverse=True)[1].astype(np.int64), signs
