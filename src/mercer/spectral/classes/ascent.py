"""Where chains of many rows start: steps up the posterior of frequencies and coefficients.

Sweeps accept a frequency at a time and take hundreds of passes to where the posterior of ten
thousand rows concentrates; L-BFGS moves all frequencies and coefficients together, at a cost of
O(n M d) a step. It climbs

    log p(y | W, beta) - 1/2 sum_jl (W_jl / s_jl)^2 - 1/2 sum_k beta_k' Lambda_0 beta_k

on nine tenths of some rows, s_jl the scales that the frequencies were drawn with, and stops where
the likelihood of the last tenth is past its peak by more than one standard error: of noisy labels
the top of the posterior is no place from which a chain finds back to where its mass is. Each chain
climbs from frequencies of its own, so that chains that agree say something. Only the start depends
on this, not the law of the draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize

from mercer.spectral.classes.gradient import likelihood_gradient
from mercer.spectral.classes.products import log_probabilities
from mercer.spectral.rows import MemoryRows, TrainingRows, some_positions

__all__ = ["FEWEST_ROWS", "Ascent", "prepare_ascent"]

Array = NDArray[np.float64]

#: With fewer rows the sweeps find the way to where the posterior is by themselves.
FEWEST_ROWS = 3000
_MOST_ROWS = 50_000
_HELD_OUT = 10  # one row of so many
_MOST_STEPS, _STEPS_A_LOOK, _PATIENCE = 400, 5, 50
_MEMORY = 20  # steps that L-BFGS remembers


@dataclass(frozen=True, eq=False)
class Ascent:
    """Rows to climb on, rows that say when to stop, and the precisions of the coefficients.

    Attributes
    ----------
    fitted, held_out : MemoryRows
    precisions : ndarray of shape (2 M + p,)
        Diagonal of Lambda_0, the same for all functions.
    """

    fitted: MemoryRows
    held_out: MemoryRows
    precisions: Array

    def climb(self, frequencies: Array, scales: Array, n_functions: int) -> tuple[Array, Array]:
        """Return frequencies (M, d) and coefficients (K, 2 M + p) from frequencies and zeros.

        Parameters
        ----------
        frequencies : ndarray of shape (M, d)
        scales : ndarray of shape (M, d)
            Standard deviations that the frequencies were drawn with.
        n_functions : int
            K.
        """
        size, roots = frequencies.size, np.sqrt(self.precisions)

        def split(theta: Array) -> tuple[Array, Array]:
            W = theta[:size].reshape(frequencies.shape) * scales
            return W, theta[size:].reshape(n_functions, -1) / roots

        def loss(theta: Array) -> tuple[float, Array]:
            found = likelihood_gradient(self.fitted, *split(theta))
            parts = (found.frequencies * scales).ravel(), (found.coef / roots).ravel()
            return 0.5 * float(theta @ theta) - found.value, theta - np.concatenate(parts)

        def judge(theta: Array) -> Array:
            return log_probabilities(self.held_out, *split(theta))

        start = np.concatenate([(frequencies / scales).ravel(), np.zeros(n_functions * len(roots))])
        peak = _Peak(start, judge(start))

        def step(intermediate_result: OptimizeResult) -> None:
            peak.step(intermediate_result.x, judge)

        options = {"maxiter": _MOST_STEPS, "maxcor": _MEMORY}
        minimize(loss, start, jac=True, method="L-BFGS-B", callback=step, options=options)
        return split(peak.position)


def prepare_ascent(
    rng: np.random.Generator, rows: TrainingRows, precisions: Array
) -> Ascent | None:
    """Choose the rows to climb on; None where they are too few."""
    if rows.n_rows < FEWEST_ROWS:
        return None
    X, codes = rows.take(some_positions(rng, rows.n_rows, _MOST_ROWS))
    is_held_out = np.zeros(len(X), dtype=bool)
    is_held_out[rng.choice(len(X), len(X) // _HELD_OUT, replace=False)] = True
    fitted, held_out = (
        MemoryRows(X[chosen], codes[chosen], rows.has_linear_part)
        for chosen in (~is_held_out, is_held_out)
    )
    return Ascent(fitted, held_out, precisions)


@dataclass(eq=False)
class _Peak:
    """The last position that is about as good as the best, as what is held out judges them.

    Attributes
    ----------
    position : ndarray
        At first the start.
    best : ndarray of shape (n,)
        Log probabilities of what is held out, at the best position.
    """

    position: Array
    best: Array
    n_steps: int = 0
    step_of_position: int = 0

    def step(self, position: Array, judge: Callable[[Array], Array]) -> None:
        """Take note of a position; raises StopIteration where it is time to stop."""
        self.n_steps += 1
        if self.n_steps % _STEPS_A_LOOK == 0:
            self._look(position, judge(position))
        if self.n_steps - self.step_of_position >= _PATIENCE:
            raise StopIteration

    def _look(self, position: Array, logs: Array) -> None:
        if logs.sum() > self.best.sum():
            self.best = logs
        lost = self.best - logs
        if lost.sum() <= math.sqrt(len(lost)) * lost.std():
            self.position, self.step_of_position = position.copy(), self.n_steps
