"""The scalars inside a `Draws`: what trace and rank plots show, one panel each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mercer.errors import UsageError
from mercer.posterior.draws import Draws

__all__ = ["MOST_SCALARS", "Scalar", "choose"]

MOST_SCALARS: Final = 12


@dataclass(frozen=True)
class Scalar:
    """One number per draw.

    Attributes
    ----------
    name : str
        Such as "log_density" or "log_weight[glu]".
    values : ndarray of shape (n_chains, n_draws)
    """

    name: str
    values: NDArray[np.float64]


def choose(draws: Draws, names: Sequence[str] | None) -> tuple[Scalar, ...]:
    """Return the named scalars, at most 12 of them.

    Parameters
    ----------
    draws : Draws
    names : sequence of str, optional
        Variables ("log_weight", which stands for all of its entries) or single entries
        ("log_weight[glu]"); the monitored variables if None.

    Raises
    ------
    UsageError
        If a name is unknown, or nothing is left to show.
    """
    if names is None:
        names = draws.monitored
    single = {entry: name for name in draws.variables for entry in draws.entry_names(name)}
    chosen: list[str] = []
    for name in names:
        if name in draws.variables:
            chosen.extend(draws.entry_names(name))
        elif name in single:
            chosen.append(name)
        else:
            raise UsageError(f"no variable {name!r} among the draws: {', '.join(draws.variables)}")
    if not chosen:
        raise UsageError("nothing to show: no variable is named, and none is monitored")
    return tuple(_scalar(draws, entry, single[entry]) for entry in chosen[:MOST_SCALARS])


def _scalar(draws: Draws, entry: str, variable: str) -> Scalar:
    position = draws.entry_names(variable).index(entry)
    values = draws.variables[variable].reshape(draws.n_chains, draws.n_draws, -1)
    return Scalar(entry, np.asarray(values[:, :, position], dtype=np.float64))
