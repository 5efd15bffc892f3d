"""The posterior output of any sampler: draws of named variables, chain by chain."""

from __future__ import annotations

import html
import inspect
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from mercer.errors import INSTALL, UsageError

__all__ = ["Draws"]

#: In a note on draws: some chains had no time to come to the posterior.
IN_WARMUP = "during warm-up"


# A small table that prints as aligned text, as HTML in a notebook, and as plain Python types.


Cell = str | int | float | bool | None

_MISSING = "-"


@dataclass(frozen=True)
class Table:
    """Named columns and rows of text, numbers, booleans or None.

    NumPy scalars become Python's own; numbers print with four significant digits, None as a dash.

    Parameters
    ----------
    columns : sequence of str
        Names of the columns, each once.
    rows : sequence of sequences
        One entry per column in each row.

    Raises
    ------
    UsageError
        When a row has another length than `columns`, or a name comes twice.

    Examples
    --------
    >>> print(Table(("name", "rhat"), (("noise_std", 1.00213), ("log_weight[glu]", 1.0))))
    name              rhat
    noise_std        1.002
    log_weight[glu]      1
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        columns = tuple(str(name) for name in self.columns)
        if len(set(columns)) != len(columns):
            raise UsageError(f"the columns of a table need different names, got {columns}")
        rows = tuple(tuple(_plain(cell) for cell in row) for row in self.rows)
        for row in rows:
            if len(row) != len(columns):
                raise UsageError(f"a row has {len(row)} entries, the table {len(columns)} columns")
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "rows", rows)

    def __str__(self) -> str:
        texts = [[_escape(name) for name in self.columns]]
        texts += [[_text(cell) for cell in row] for row in self.rows]
        is_number = [self._is_numeric(position) for position in range(len(self.columns))]
        widths = [max(len(row[j]) for row in texts) for j in range(len(self.columns))]
        lines = []
        for row in texts:
            cells = [
                text.rjust(width) if right else text.ljust(width)
                for text, width, right in zip(row, widths, is_number, strict=True)
            ]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)

    __repr__ = __str__  # what an interpreter shows

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(_escape(name))}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_text(cell))}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def to_dict(self) -> dict[str, Any]:
        """Return the "columns" (list of str) and "rows" (list of lists), ready for JSON."""
        return {"columns": list(self.columns), "rows": [list(row) for row in self.rows]}

    def column(self, name: str) -> tuple[Cell, ...]:
        """Return the entries of one column; a `UsageError` when there is none of that name."""
        if name not in self.columns:
            raise UsageError(f"no column {name!r}; there are {', '.join(self.columns)}")
        position = self.columns.index(name)
        return tuple(row[position] for row in self.rows)

    def _is_numeric(self, position: int) -> bool:
        cells = [row[position] for row in self.rows]
        return bool(cells) and not any(isinstance(cell, str) for cell in cells)


def _plain(cell: Any) -> Cell:
    """Turn a NumPy scalar into Python's own type."""
    value = cell.item() if isinstance(cell, np.generic) else cell
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise UsageError(f"a table holds text, numbers, booleans and None, not {type(value).__name__}")


def _text(cell: Cell) -> str:
    """Write one entry."""
    if cell is None:
        return _MISSING
    if isinstance(cell, float):
        return f"{cell:.0f}" if 1e3 <= abs(cell) < 1e7 else f"{cell:.4g}"
    return _escape(str(cell))


def _escape(text: str) -> str:
    """Escape control characters, so that a name cannot steer a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def finite_or_none(value: float) -> float | None:
    """Return a number as an entry of a table: None for NaN and infinities."""
    return float(value) if math.isfinite(value) else None


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
    segments : tuple of int
        Lengths of successive parts of every chain, where these come from different models in
        proportion to their weights. Empty where all come from one.

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
    segments: tuple[int, ...] = ()

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
        if self.segments and (min(self.segments) < 1 or sum(self.segments) != shape[1]):
            raise UsageError(f"segments {self.segments} are not the {shape[1]} draws of a chain")
        if self.log_weights is not None:
            _check_log_weights(self.log_weights, shape)

    def __repr__(self) -> str:
        names = ", ".join(self.variables)
        return f"<Draws: {self.size_words}; {names}>"

    def _repr_html_(self) -> str:
        """Show in a notebook what there is, without its arrays."""
        rows = tuple(
            (name, "x".join(map(str, np.shape(values)[2:])) or "number", name in self.monitored)
            for name, values in self.variables.items()
        )
        table = Table(("variable", "shape of a draw", "monitored"), rows)._repr_html_()
        return f"<p>{html.escape(self.size_words)}</p>{table}"

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
        """Whether the draws have weights, and are no chains."""
        return self.log_weights is not None

    @property
    def size_words(self) -> str:
        """How many there are, such as "4 chains of 500 draws"."""
        if self.is_weighted:
            return f"{self.n_total} weighted draws"
        if self.n_total == 1:
            return "one point, nothing drawn"
        chains, draws = f"{self.n_chains} chain", f"{self.n_draws} draw"
        return f"{chains}{'s' * (self.n_chains > 1)} of {draws}{'s' * (self.n_draws > 1)}"

    def flat(self, name: str) -> NDArray[Any]:
        """Return the draws of one variable, chain after chain: ndarray of shape (n_total, ...).

        A `UsageError` when there is no such variable.
        """
        self._check_name(name)
        values = self.variables[name]
        return values.reshape(self.n_total, *values.shape[2:])

    def every(self, step: int) -> Draws:
        """Return one draw of ``step`` of each chain, the last of them; of one model, unweighted."""
        return self._at(np.s_[:, step - 1 :: step])

    def first_chains(self, n: int) -> Draws:
        """Return the draws of the first n chains, unweighted."""
        return self._at(np.s_[:n])

    def _at(self, places: Any) -> Draws:
        variables, stats = (
            {name: values[places] for name, values in each.items()}
            for each in (self.variables, self.stats)
        )
        return replace(self, variables=variables, stats=stats)

    def chosen(self, positions: NDArray[np.int64], weights: NDArray[np.float64]) -> Draws:
        """Return some of the draws, with weights of their own, as one population.

        Parameters
        ----------
        positions : ndarray of shape (m,), int
            Among all, chain after chain.
        weights : ndarray of shape (m,)
            Positive.
        """
        variables = {name: self.flat(name)[positions][np.newaxis] for name in self.variables}
        log_weights = np.log(weights)[np.newaxis]
        return Draws(variables, {}, self.labels, self.monitored, log_weights)

    def entry_names(self, name: str) -> tuple[str, ...]:
        """Return one name per scalar entry of a variable, in C order.

        "noise_std" for a scalar, "log_weight[glu]" with labels, "f[0]" or "W[0,1]" without. A
        `UsageError` when there is no such variable.
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
        from mercer.posterior.diagnostics import summarise  # which needs this class

        return summarise(self)

    def to_arviz(self) -> Any:
        """Return the draws as ArviZ holds them.

        Labels become coordinates. ArviZ knows no weights: weighted draws are drawn again, each as
        often as it weighs, and shuffled, so that its means and intervals are those of the
        posterior. Its effective sizes then count copies; ``diagnostics_`` has the true ones.

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
        arviz = _import_arviz()
        groups = {"posterior": {name: self._equal(x) for name, x in self.variables.items()}}
        stats = {_ARVIZ_NAMES.get(name, name): self._equal(x) for name, x in self.stats.items()}
        if stats:
            groups["sample_stats"] = stats
        dims = {name: [f"{name}_dim_0"] for name in self.labels}
        coords = {f"{name}_dim_0": list(entries) for name, entries in self.labels.items()}
        if "posterior" in inspect.signature(arviz.from_dict).parameters:  # ArviZ before 1.0
            return arviz.from_dict(**groups, coords=coords, dims=dims)
        return arviz.from_dict(groups, coords=coords, dims=dims)

    def _equal(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values (n_chains, n_draws, ...) of draws that weigh the same, always as many."""
        if self.log_weights is None:
            return np.asarray(values)
        flat = np.asarray(values).reshape(-1, *np.shape(values)[2:])
        weights = np.exp(self.log_weights - self.log_weights.max()).ravel()
        ends = np.cumsum(weights) / weights.sum()
        chosen = np.searchsorted(ends, (np.arange(len(flat)) + 0.5) / len(flat))
        order = np.random.default_rng(0).permutation(np.minimum(chosen, len(flat) - 1))
        return np.asarray(flat[order].reshape(np.shape(values)))

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


# A few draws in the place of many.

_PROJECTED = 512  # features are first projected on so many random directions
_WEIGHT_OF_SUM = 100.0  # of the weights, in units of the mean square of the features


def representatives(
    features: NDArray[np.float64], weights: NDArray[np.float64], most: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Choose at most ``most`` draws, and weights of them, whose averages agree with those of all.

    ``features`` (N, k) are what is averaged, ``weights`` (N,) sum to 1. The positions that are
    returned ascend; their weights are positive, with sum 1.

    Orthogonal matching pursuit with non-negative weights: of the draws that are left the one joins
    whose direction lessens the sum of squared differences most, and the weights of all that are
    chosen are fitted anew by non-negative least squares, which may drop some.
    """
    if len(features) <= most:
        return np.arange(len(features)), weights
    if features.shape[1] > _PROJECTED:
        rng = np.random.default_rng(0)  # the same directions always
        features = features @ rng.standard_normal((features.shape[1], _PROJECTED))
    centred = features - weights @ features
    size = weights @ np.square(centred).sum(axis=1)
    if not size > 0.0:  # draws that are all alike
        return np.array([np.argmax(weights)]), np.ones(1)
    # Weights of any sum whose differences vanish: the sum counts as one more average, a large one.
    products = centred @ centred.T + _WEIGHT_OF_SUM * size
    wanted = np.full(len(features), _WEIGHT_OF_SUM * size)
    length = np.sqrt(products.diagonal())
    positions, chosen = np.array([np.argmax(weights)]), np.ones(1)
    for _ in range(3 * most):
        gain = (wanted - products[:, positions] @ chosen) / length
        gain[positions] = -np.inf
        best = int(np.argmax(gain))
        if len(positions) == most or gain[best] <= 1e-8 * length[best]:
            break
        positions = np.append(positions, best)
        own = products[np.ix_(positions, positions)]
        own.flat[:: len(own) + 1] *= 1.0 + 1e-9  # draws may be alike
        root = np.linalg.cholesky(own)
        try:
            found, _ = nnls(root.T, np.linalg.solve(root, wanted[positions]))
        except RuntimeError:  # rounding leads it round in circles: all is as close as can be
            positions = positions[:-1]
            break
        positions, chosen = positions[found > 0.0], found[found > 0.0]
    order = np.argsort(positions)
    return positions[order], chosen[order] / chosen.sum()


# Weights of several laws, by what they said of held-out rows.

_MOST_STEPS, _STACKED = 1000, 1e-6  # of a weight
_LEAST_LEFT = 0.01  # of a weight, after a step


def stacking_weights(
    scores: NDArray[np.float64], prior_rows: float = 0.0
) -> tuple[NDArray[np.float64], float]:
    """Return the weights of the mixture of highest log score on m rows, and that score [1]_.

    Parameters
    ----------
    scores : ndarray of shape (K, m)
        Log predictive probability or density of each row under each of K laws.
    prior_rows : float, default=0.0
        Of a Dirichlet prior of the weights, whose parameters are 1 more than this: the log score
        has so many times the sum of log weights added, before it is maximised.

    By expectation maximisation, two steps at a time extrapolated where that gains [2]_: alone it
    takes a thousand steps where a weight tends to 0. What is maximised is concave in the weights.

    References
    ----------
    .. [1] Y. Yao, A. Vehtari, D. Simpson and A. Gelman, Using stacking to average Bayesian
       predictive distributions, Bayesian Analysis 13 (2018), eq. (4).
    .. [2] R. Varadhan and C. Roland, Simple and globally convergent methods for accelerating the
       convergence of any EM algorithm, Scandinavian Journal of Statistics 35 (2008).
    """
    highest = scores.max(axis=0)
    ratios = np.exp(scores - highest)
    n_laws, n_rows = scores.shape

    def step(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        counts = weights * (ratios @ (1.0 / (weights @ ratios))) + prior_rows
        return np.asarray(counts / (n_rows + n_laws * prior_rows))

    def gain(weights: NDArray[np.float64]) -> float:
        prior = prior_rows * np.log(weights).sum() if prior_rows else 0.0
        return float(np.log(weights @ ratios).sum() + prior)

    weights = np.full(n_laws, 1.0 / n_laws)
    for _ in range(_MOST_STEPS):
        first = step(weights)
        new = step(first)
        change, bend = first - weights, new - 2.0 * first + weights
        length = np.sqrt(change @ change / max(bend @ bend, 1e-300))
        if 1.0 < length < 1e6:
            far = weights + 2.0 * length * change + length**2 * bend
            far = np.maximum(far, _LEAST_LEFT * new)
            far /= far.sum()
            new = far if gain(far) > gain(new) else new
        is_done = np.abs(new - weights).max() < _STACKED
        weights = new
        if is_done:
            break
    return weights, float(np.log(weights @ ratios).sum() + highest.sum())


# ArviZ's names for what the samplers report; other statistics keep theirs.
_ARVIZ_NAMES = {"is_divergent": "diverging", "n_leapfrog": "n_steps", "log_density": "lp"}


def _import_arviz() -> ModuleType:
    """Import ArviZ without the notice that its 0.23 prints about 1.0."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            import arviz
    except ImportError as error:
        raise ImportError(f"to_arviz() needs ArviZ; {INSTALL.format('arviz')}") from error
    module: ModuleType = arviz
    return module


def are_drawn(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which columns of positive draws (n_total, d) vary from draw to draw; all where none does."""
    found = np.asarray(values.max(axis=0) > 1.01 * values.min(axis=0))
    return found if found.any() else ~found
