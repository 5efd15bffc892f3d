"""The table that `Draws.summary()` returns."""

from __future__ import annotations

import numpy as np

from mercer.posterior.diagnostics import diagnose
from mercer.posterior.draws import Draws
from mercer.posterior.moments import flat_weights, mean_sd, quantiles
from mercer.posterior.table import Cell, Table, finite_or_none

__all__ = ["summarise"]

_JUDGED = ("mcse", "ess_bulk", "ess_tail", "rhat")


def summarise(draws: Draws) -> Table:
    """Tabulate mean, spread, quantiles and, for what is monitored, the diagnostics.

    Parameters
    ----------
    draws : Draws
        Monitored variables come first, then the other scalars and labelled vectors.

    Returns
    -------
    Table
        Columns name, mean, sd, q05, q95, mcse, ess_bulk, ess_tail, rhat.
    """
    weights = flat_weights(draws)
    table = diagnose(draws).table
    judged = zip(*map(table.column, _JUDGED), strict=True)
    known: dict[Cell, tuple[Cell, ...]] = dict(zip(table.column("name"), judged, strict=True))
    others = [
        name
        for name, values in draws.variables.items()
        if name not in draws.monitored and (name in draws.labels or values.ndim == 2)
    ]
    rows: list[tuple[Cell, ...]] = []
    for name in (*draws.monitored, *others):
        flat = draws.flat(name).reshape(draws.n_total, -1).astype(float)
        mean, sd = mean_sd(flat, weights)
        for j, entry in enumerate(draws.entry_names(name)):
            is_finite = bool(np.isfinite(mean[j]))
            ends = quantiles(flat[:, j], weights, (0.05, 0.95)) if is_finite else (None, None)
            judged_cells = known.get(entry, (None,) * len(_JUDGED))
            rows.append((entry, *map(finite_or_none, (mean[j], sd[j])), *ends, *judged_cells))
    return Table(("name", "mean", "sd", "q05", "q95", *_JUDGED), tuple(rows))
