"""Draws as an ArviZ InferenceData (ArviZ before 1.0) or as a DataTree (from 1.0)."""

from __future__ import annotations

import inspect
import warnings
from types import ModuleType
from typing import Any

import numpy as np

from mercer.posterior.draws import Draws

__all__ = ["to_arviz"]

# ArviZ's names for what the samplers report; other statistics keep theirs.
_ARVIZ_NAMES = {"is_divergent": "diverging", "n_leapfrog": "n_steps", "log_density": "lp"}


def to_arviz(draws: Draws) -> Any:
    """Convert draws to the container of the installed ArviZ.

    Weighted draws keep their weights as the statistic "log_weights": ArviZ itself ignores them.

    Parameters
    ----------
    draws : Draws
        The draws; labels become coordinates.

    Returns
    -------
    arviz.InferenceData or xarray.DataTree
        Groups posterior and sample_stats (the latter only where there is something in it).

    Raises
    ------
    ImportError
        When ArviZ is missing.
    """
    arviz = _import_arviz()
    groups = {"posterior": {name: np.asarray(x) for name, x in draws.variables.items()}}
    stats = {_ARVIZ_NAMES.get(name, name): np.asarray(x) for name, x in draws.stats.items()}
    if draws.log_weights is not None:
        stats["log_weights"] = np.asarray(draws.log_weights)
    if stats:
        groups["sample_stats"] = stats
    dims = {name: [f"{name}_dim_0"] for name in draws.labels}
    coords = {f"{name}_dim_0": list(entries) for name, entries in draws.labels.items()}
    if "posterior" in inspect.signature(arviz.from_dict).parameters:  # ArviZ before 1.0
        return arviz.from_dict(**groups, coords=coords, dims=dims)
    return arviz.from_dict(groups, coords=coords, dims=dims)


def _import_arviz() -> ModuleType:
    """Import ArviZ without the notice that its 0.23 prints about 1.0."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            import arviz
    except ImportError as error:
        raise ImportError("to_arviz() needs ArviZ: pip install mercer[arviz]") from error
    module: ModuleType = arviz
    return module
