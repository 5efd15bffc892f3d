"""The posterior output of any sampler: draws of named variables, chain by chain."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import UsageError
from mercer.posterior.table import Table

__all__ = ["Draws", "to_arviz"]


@dataclass(frozen=True, eq=False)
class Draws:
    """Kept draws of one fit, with what the sampler reported about each.

    Parameters
    ----------
    variables : mapping of str to ndarray of shape (n_chains, n_draws, ...)
        One array per variable; the first two axes are the same for all.
    stats : mapping of str to ndarray of shape (n_chains, n_draws)
        The sampler's report per draw, such as "acceptance_rate" (of 1), "is_divergent" (bool),
        "energy" (nats), "n_leapfrog", "step_size" and "log_density" (nats).
    labels : mapping of str to tuple of str
        Names of the entries of a vector variable.
    monitored : tuple of str
        The variables that get R-hat and effective sample sizes.
    log_weights : ndarray of shape (n_chains, n_draws), optional
        Log importance weights (nats, up to a constant) when the draws are weighted.

    Raises
    ------
    UsageError
        When shapes or names do not fit together.

    Examples
    --------
    >>> draws = Draws({"slope": np.zeros((2, 5, 3))}, {}, {"slope": ("a", "b", "c")}, ("slope",))
    >>> draws.n_chains, draws.n_draws, draws.n_total, draws.flat("slope").shape
    (2, 5, 10, (10, 3))
    """

    variables: Mapping[str, NDArray[Any]]
    stats: Mapping[str, NDArray[Any]]
    labels: Mapping[str, tuple[str, ...]]
    monitored: tuple[str, ...]
    log_weights: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        if not self.variables:
            raise UsageError("draws need at least one variable")
        shape = np.shape(next(iter(self.variables.values())))[:2]
        if len(shape) < 2 or 0 in shape:
            raise UsageError("draws need axes (n_chains, n_draws, ...) that are not empty")
        for name, values in self.variables.items():
            if np.shape(values)[:2] != shape:
                raise UsageError(f"variable {name!r} has shape {np.shape(values)}, not {shape}...")
        for name, values in self.stats.items():
            if np.shape(values) != shape:
                raise UsageError(f"statistic {name!r} has shape {np.shape(values)}, not {shape}")
        for name in (*self.labels, *self.monitored):
            self._check_name(name)
        for name, entries in self.labels.items():
            if self.variables[name].shape[2:] != (len(entries),):
                raise UsageError(
                    f"variable {name!r} has {len(entries)} labels and entries of shape "
                    f"{self.variables[name].shape[2:]}"
                )
        if self.log_weights is not None:
            _check_log_weights(self.log_weights, shape)

    @property
    def n_chains(self) -> int:
        """Number of chains (of independent populations, when the draws are weighted)."""
        return int(next(iter(self.variables.values())).shape[0])

    @property
    def n_draws(self) -> int:
        """Number of kept draws in each chain."""
        return int(next(iter(self.variables.values())).shape[1])

    @property
    def n_total(self) -> int:
        """Number of kept draws over all chains."""
        return self.n_chains * self.n_draws

    @property
    def is_weighted(self) -> bool:
        """Whether these are populations of weighted particles, not chains."""
        return self.log_weights is not None

    @property
    def size_words(self) -> str:
        """How many there are, such as "4 chains of 500 draws"."""
        if self.is_weighted:
            return f"{self.n_total} weighted particles"
        return f"{self.n_chains} chain{'s' * (self.n_chains > 1)} of {self.n_draws} draws"

    def flat(self, name: str) -> NDArray[Any]:
        """Return the draws of one variable, chain after chain.

        Parameters
        ----------
        name : str
            The variable.

        Returns
        -------
        ndarray of shape (n_total, ...)

        Raises
        ------
        UsageError
            When there is no such variable.
        """
        self._check_name(name)
        values = self.variables[name]
        return values.reshape(self.n_total, *values.shape[2:])

    def entry_names(self, name: str) -> tuple[str, ...]:
        """Return one name per scalar entry of a variable, in C order.

        Parameters
        ----------
        name : str
            The variable.

        Returns
        -------
        tuple of str
            "noise_std" for a scalar, "log_weight[glu]" with labels, "f[0]" or "W[0,1]" without.

        Raises
        ------
        UsageError
            When there is no such variable.
        """
        self._check_name(name)
        shape = self.variables[name].shape[2:]
        if not shape:
            return (name,)
        if name in self.labels:
            return tuple(f"{name}[{label}]" for label in self.labels[name])
        return tuple(f"{name}[{','.join(map(str, index))}]" for index in np.ndindex(shape))

    def summary(self) -> Table:
        """Summarise the monitored variables, then the other scalars and labelled vectors.

        Returns
        -------
        Table
            Columns name, mean, sd, q05, q95 (5 % and 95 % quantiles), mcse (standard error of the
            mean), ess_bulk, ess_tail and rhat. The last four are empty for what is not monitored.
        """
        from mercer.posterior.diagnostics import summarise  # summary.py needs this class

        return summarise(self)

    def to_arviz(self) -> Any:
        """Return the draws as ArviZ holds them.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            Whichever the installed ArviZ has, with groups posterior and, where the sampler
            reported something, sample_stats.

        Raises
        ------
        ImportError
            When ArviZ is missing.
        """
        pass  # arviz_export.py needs this class

        return to_arviz(self)

    def _check_name(self, name: str) -> None:
        if name not in self.variables:
            raise UsageError(f"no variable {name!r}; there are {', '.join(self.variables)}")


def _check_log_weights(log_weights: NDArray[Any], shape: tuple[int, ...]) -> None:
    """Refuse weights of another shape, and weights that no normalisation can repair."""
    if np.shape(log_weights) != shape:
        raise UsageError(f"log_weights have shape {np.shape(log_weights)}, not {shape}")
    peaks = np.max(log_weights, axis=1)
    if not np.all(np.isfinite(peaks)):  # NaN, +inf, or a chain in which every weight is zero
        raise UsageError("log_weights need a finite maximum in every chain")


# Draws as an ArviZ InferenceData (ArviZ before 1.0) or as a DataTree (from 1.0).

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
