"""The sums of a state with its pending rows."""

from __future__ import annotations

import numpy as np

from mercer.basis.filter import State
from mercer.basis.model import Statistics


def sums_of(state: State) -> Statistics:
    """What the particles know: rows in the sums, and rows that are not yet."""
    sums, n = state.statistics, state.n_pending
    rows, y = state.pending[:n], state.pending_y[:n]
    width = sums.gram.shape[1]
    rows = rows[:, :, :width]
    return sums._replace(
        gram=sums.gram + np.einsum("nla,nlb->lab", rows, rows),
        moment=sums.moment + np.einsum("n,nla->la", y, rows),
        square=sums.square + float(y @ y),
        n_rows=sums.n_rows + n,
    )
