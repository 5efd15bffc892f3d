"""Missing inputs, drawn along with the function: what they may be, and where that matters.

**Model.** Rows of standardised inputs are normal, and where inputs are missing says nothing of
their values that the others of their row do not (missing at random):

    x_i | m, S ~ N(m, S),   m | S ~ N(0, S),   S ~ inverse Wishart(d + 2, I), of mean I

**A move** follows each sweep. Given all inputs, mean and precision P = S^-1 are drawn from their
normal-Wishart law; given these and the function f, the cells of each column from p(x_ij | rest of
the row) p(y_i | f(x_i)): x_ij is normal around c = x_ij - [P (x_i - m)]_j / P_jj with variance 1 /
P_jj, and c + a (x_ij - c) + sqrt((1 - a^2) / P_jj) z, which leaves that law as it is, is accepted
by the ratio of the likelihoods alone, for steps from a = 0, a value anew, to small ones.

**Predictions** of rows with gaps take for each draw what its m and P say of them: the mixture over
draws is then over what the inputs may be as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import ndtri

from mercer.random import stream
from mercer.spectral.loops import fill_gaps

if TYPE_CHECKING:
    from mercer.posterior.draws import Draws
    from mercer.spectral.rows import MemoryRows

Array = NDArray[np.float64]
Gaps = NDArray[np.bool_]

#: Variables of draws that hold the law of the inputs.
OF_INPUTS: Final = ("input_mean", "input_precision")
_STEPS: Final = (0.0, 0.6, 0.95)  # how much of a cell's distance from its mean a proposal keeps
_ROUNDS_OF_START: Final = 20  # of the inputs by themselves, before the first sweep


def fill_at_random(rng: np.random.Generator, X: Array) -> tuple[Array, Gaps]:
    """Fill gaps, NaN, with other values of their column, which keeps its law; say where they are.

    A column without any value, as one that is left out of some rows, becomes 0.
    """
    is_missing, X = np.isnan(X), X.copy()
    for j in np.flatnonzero(is_missing.any(axis=0)):
        gaps = is_missing[:, j]
        known = X[~gaps, j] if not gaps.all() else np.zeros(1)
        X[gaps, j] = rng.choice(known, int(gaps.sum()))
    return X, is_missing


@dataclass(frozen=True)
class InputState:
    """What a chain holds of missing inputs: empty where there are none."""

    cells: Array = field(default_factory=lambda: np.empty(0))  # row after row, standardised
    mean: Array = field(default_factory=lambda: np.empty(0))  # m, (d,)
    precision: Array = field(default_factory=lambda: np.empty((0, 0)))  # P, (d, d)

    @property
    def law(self) -> dict[str, Array]:
        """What a chain records of it."""
        return dict(zip(OF_INPUTS, (self.mean, self.precision), strict=True))


def draw_input_law(rng: np.random.Generator, X: Array) -> tuple[Array, Array]:
    """Draw mean (d,) and precision (d, d) of the inputs, given all of them, (n, d)."""
    n, d = X.shape
    mean = X.sum(axis=0) / (n + 1.0)
    deviations = X - mean
    scatter = np.eye(d) + deviations.T @ deviations + np.outer(mean, mean)
    bartlett = np.tril(rng.standard_normal((d, d)), -1)
    bartlett += np.diag(np.sqrt(rng.chisquare(d + 2.0 + n - np.arange(d))))
    # P = F F' ~ Wishart(d + 2 + n, scatter^-1)
    factor = solve_triangular(np.linalg.cholesky(scatter), bartlett, trans=1, lower=True)
    step = np.linalg.solve(factor.T, rng.standard_normal(d))
    return mean + step / np.sqrt(n + 1.0), factor @ factor.T


def propose_cells(
    rng: np.random.Generator, cells: Array, centre: Array, variance: float, kept: float
) -> Array:
    """Move normal cells so that their law stays; ``kept`` of their distance from the centre is."""
    spread = np.sqrt((1.0 - kept**2) * variance)
    return np.asarray(centre + kept * (cells - centre) + spread * rng.standard_normal(len(cells)))


def normal_log_likelihood(
    function: Callable[[Array], Array], noise_variance: Any
) -> Callable[[Array, Array], Array]:
    """That of targets around a function of rows, (b,), or (q, b) with a variance of each."""

    def log_likelihood(X: Array, y: Array) -> Array:
        squares = np.atleast_2d(np.square(y - function(X)))
        return np.asarray(-0.5 * (squares.T / noise_variance).sum(axis=1))

    return log_likelihood


@dataclass(frozen=True, eq=False)
class MissingInputs:
    """The cells (n, d) of the training rows that are missing, and the moves that draw them."""

    is_missing: Gaps

    def filled(self, rows: Any, inputs: InputState) -> MemoryRows:
        """Put what a chain holds in the place of gaps of rows in memory."""
        filled: MemoryRows = replace(rows, X=rows.X.copy())
        filled.X[self.is_missing] = inputs.cells
        return filled

    def init(self, rng: np.random.Generator, rows: Any) -> InputState:
        """Draw cells by what the inputs say of one another, from rows that are filled somehow."""
        X = rows.X.copy()
        for _ in range(_ROUNDS_OF_START):
            law = draw_input_law(rng, X)
            fill_gaps(X, self.is_missing, *law, rng.standard_normal(X.shape))
        return InputState(X[self.is_missing], *law)

    def step(
        self,
        rng: np.random.Generator,
        rows: MemoryRows,
        log_likelihood: Callable[[Array, Array], Array],
    ) -> InputState:
        """Draw the law of the inputs of filled rows, then the cells given that and the targets.

        ``log_likelihood`` is that of targets (b,), or of several outputs (q, b), at rows (b, d). In
        this order the law depends on the function through the inputs only that this was drawn with:
        it goes with any function drawn with these.
        """
        mean, precision = draw_input_law(rng, rows.X)
        has_gap = self.is_missing.any(axis=1)
        X, y, gaps = rows.X[has_gap], rows.y[has_gap].T, self.is_missing[has_gap]
        columns = [(j, np.flatnonzero(gaps[:, j])) for j in np.flatnonzero(gaps.any(axis=0))]

        now = log_likelihood(X, y) if columns else np.empty(0)
        for kept in _STEPS:
            for j, own in columns:
                moved, cells = X[own], X[own, j]
                centre = cells - (moved - mean) @ precision[j] / precision[j, j]
                moved[:, j] = propose_cells(rng, cells, centre, 1.0 / precision[j, j], kept)
                then = log_likelihood(moved, y[..., own])
                is_accepted = np.log(1.0 - rng.random(len(own))) < then - now[own]
                X[own[is_accepted], j] = moved[is_accepted, j]
                now[own[is_accepted]] = then[is_accepted]
        return InputState(X[gaps], mean, precision)


@dataclass(frozen=True, eq=False)
class InputLaws:
    """Laws of the inputs of S draws, by which gaps in new rows are filled."""

    means: Array  # (S, d)
    precisions: Array  # (S, d, d)
    normals: Array  # (S, d), the same for each row: predictions do not depend on those beside it

    @classmethod
    def of(cls, draws: Draws) -> InputLaws | None:
        """Take the laws, with normal values for each that are spread evenly over the draws.

        None where no inputs were drawn.
        """
        if OF_INPUTS[0] not in draws.variables:
            return None
        means, precisions = map(draws.flat, OF_INPUTS)
        ranks = np.argsort(stream(0, "missing").random(means.shape), axis=0)
        return cls(means, precisions, ndtri((ranks + 0.5) / len(means)))

    def at(self, which: NDArray[np.int64]) -> InputLaws:
        """Those of the draws at some positions."""
        return InputLaws(self.means[which], self.precisions[which], self.normals[which])

    def filled(self, i: int, X: Array) -> Array:
        """Fill gaps of standardised rows X (m, d), NaN, by draw i."""
        is_missing = np.isnan(X)
        if not is_missing.any():
            return X
        X = X.copy()
        normals = np.tile(self.normals[i], (len(X), 1))
        fill_gaps(X, is_missing, self.means[i], self.precisions[i], normals)
        return X
