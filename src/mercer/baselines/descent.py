"""L-BFGS with a limit of time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from mercer.errors import NumericalError

__all__ = ["Deadline", "Minimum", "minimise"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Deadline:
    """A time, in seconds of `time.monotonic`, after which no further step begins."""

    at: float = float("inf")

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """So many seconds from now; None is never."""
        return cls() if seconds is None else cls(time.monotonic() + seconds)

    @property
    def is_over(self) -> bool:
        """Whether the time has come."""
        return time.monotonic() >= self.at


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where a descent ended.

    Attributes
    ----------
    theta : ndarray
        The best that was seen.
    value : float
    n_steps : int
    is_cut_short : bool
        By the deadline.
    """

    theta: Array
    value: float
    n_steps: int
    is_cut_short: bool


def minimise(
    objective: Callable[[Array], tuple[float, Array]],
    start: Array,
    max_iter: int,
    deadline: Deadline,
    bounds: Sequence[tuple[float | None, float | None]] | None = None,
) -> Minimum:
    """Go down from ``start``; a step into numerical trouble ends the descent at the best so far.

    Parameters
    ----------
    objective : callable
        theta -> value and gradient.
    start : ndarray
        Must be one where the objective can be computed.
    max_iter : int
    deadline : Deadline
        Looked at after each step: one is always made.
    bounds : sequence of (lowest, highest), optional

    Raises
    ------
    NumericalError
        If the objective cannot be computed at ``start``.
    """
    best, lowest = start, np.inf
    n_steps = 0
    is_cut_short = False

    def watched(theta: Array) -> tuple[float, Array]:
        nonlocal best, lowest
        value, gradient = objective(theta)
        if value < lowest:
            best, lowest = theta.copy(), value
        return value, gradient

    def after_step(intermediate_result: object) -> None:
        nonlocal n_steps, is_cut_short
        n_steps += 1
        if deadline.is_over:
            is_cut_short = True
            raise StopIteration

    options = {"maxiter": max_iter, "maxfun": 3 * max_iter}
    try:
        minimize(
            watched, start, jac=True, method="L-BFGS-B", bounds=bounds, callback=after_step,
            options=options,
        )  # fmt: skip
    except NumericalError:
        if not np.isfinite(lowest):
            raise
    return Minimum(best, lowest, n_steps, is_cut_short)
