"""Coefficients from all rows, where the spectrum was learned on some of them.

For a few kept draws the products of their features with each other and with the targets are summed
over all rows, in one pass over the data; given frequencies and precisions of a draw, the law of its
coefficients and noise is then exact. Some rows outside the subset are left out of the sums at
first, so that both sets of coefficients can be scored on rows that neither has seen; then they are
added.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer.posterior.draws import Draws
from mercer.random import stream
from mercer.spectral.model import RegressionModel, coefficients
from mercer.spectral.predict import FunctionDraws, function_draws
from mercer.spectral.rows import GramSum, RowsWithout, TrainingRows
from mercer.spectral.settings import SpectralSettings

__all__ = ["N_DEVIATIONS", "check_rows", "complete", "spread"]

Array = NDArray[np.float64]
Positions = NDArray[np.int64]

_CHECK_ROWS = 5000
N_DEVIATIONS = 64  # draws of the coefficients for each of the few completed draws


@dataclass(frozen=True, eq=False)
class _Task:
    """One draw to complete: its frequencies, precisions and random stream."""

    frequencies: Array
    ridge: float
    linear_precision: float
    index: int


def complete(
    rows: TrainingRows,
    subset: Positions,
    draws: Draws,
    settings: SpectralSettings,
    *,
    full_draws: int,
    entropy: int,
    n_jobs: int | None,
) -> tuple[FunctionDraws, str]:
    """Learn the coefficients of a few draws from all rows.

    Parameters
    ----------
    rows : TrainingRows
        All of them.
    subset : ndarray of int
        Positions of the rows that the draws come from, ascending.
    draws : Draws
    settings : SpectralSettings
    full_draws : int
        How many draws, evenly over all chains.
    entropy : int
    n_jobs : int or None
        Processes; each reads the rows for its share of the draws.

    Returns
    -------
    functions : FunctionDraws
        With coefficients from all rows.
    note : str
        What that changed.
    """
    chosen = spread(draws.n_total, full_draws)
    check = check_rows(rows.n_rows, subset, entropy)
    tasks = [
        _Task(
            draws.flat("frequencies")[i],
            float(draws.flat("ridge_precision")[i]),
            float(draws.flat("linear_precision")[i]),
            int(i),
        )
        for i in chosen
    ]
    grams = _grams(rows, tasks, check, n_jobs)
    model = settings.model(rows.n_rows, rows.n_inputs)
    X, y = rows.take(check)
    before = _functions(replace(model, n_rows=rows.n_rows - len(check)), tasks, grams, entropy)
    whole = [gram + _gram_of(rows, task, X, y) for gram, task in zip(grams, tasks, strict=True)]
    after = _functions(model, tasks, whole, entropy)
    note = _words(function_draws(draws), before, X, y, len(subset), rows.n_rows)
    return after, note


def spread(n_total: int, n: int) -> Positions:
    """Positions of n draws, each in the middle of its share of all."""
    n = min(n, n_total)
    return ((np.arange(n) + 0.5) * n_total / n).astype(np.int64)


def check_rows(n_rows: int, subset: Positions, entropy: int) -> Positions:
    """Rows outside the subset, at most a tenth of all, ascending.

    Drawn by rejection: no array as long as there are rows.
    """
    n = min(_CHECK_ROWS, n_rows - len(subset), -(-n_rows // 10))
    rng = stream(entropy, "rows", 2)
    found = np.empty(0, dtype=np.int64)
    while len(found) < n:
        drawn = rng.integers(n_rows, size=4 * n)
        at = np.minimum(np.searchsorted(subset, drawn), len(subset) - 1)
        found = np.unique(np.concatenate([found, drawn[subset[at] != drawn]]))
    return np.sort(rng.permutation(found)[:n])


def _grams(
    rows: TrainingRows, tasks: list[_Task], check: Positions, n_jobs: int | None
) -> list[Array]:
    """Sum the products of each draw over all rows but some."""
    n_workers = min(effective_n_jobs(n_jobs), len(tasks))
    shares = [tasks[i::n_workers] for i in range(n_workers)]
    run = functools.partial(_one_pass, RowsWithout(rows, check))
    if n_workers == 1:
        parts = [run(shares[0])]
    else:
        parts = Parallel(n_jobs=n_workers)(delayed(run)(share) for share in shares)
    by_draw = {
        task.index: gram
        for share, grams in zip(shares, parts, strict=True)
        for task, gram in zip(share, grams, strict=True)
    }
    return [by_draw[task.index] for task in tasks]


def _one_pass(rows: TrainingRows, tasks: list[_Task]) -> list[Array]:
    """Read the rows once for several draws; the order of the sums does not depend on the others."""
    sums = [GramSum(task.frequencies, rows.n_linear + 1) for task in tasks]
    with threadpool_limits(limits=1, user_api="blas"):
        for X, y in rows.blocks():
            columns = rows.columns(X, y)
            for each in sums:
                each.add(X, columns)
    return [each.total() for each in sums]


def _gram_of(rows: TrainingRows, task: _Task, X: Array, y: Array) -> Array:
    sums = GramSum(task.frequencies, rows.n_linear + 1)
    sums.add(X, rows.columns(X, y))
    return sums.total()


def _functions(
    model: RegressionModel, tasks: list[_Task], grams: list[Array], entropy: int
) -> FunctionDraws:
    """Draw noise and coefficients of each draw."""
    means, deviations, noise = [], [], []
    for task, gram in zip(tasks, grams, strict=True):
        rng = stream(entropy, "coefficients", task.index)
        n_features = 2 * len(task.frequencies)
        prior = model.prior_precisions(n_features, task.ridge, task.linear_precision)
        law = coefficients(model, gram, prior)
        variance, drawn = law.draw(rng, model.posterior_shape, N_DEVIATIONS)
        means.append(law.mean)
        deviations.append(drawn)
        noise.append(math.sqrt(variance))
    frequencies = np.stack([task.frequencies for task in tasks])
    return FunctionDraws(frequencies, np.stack(means), np.stack(deviations), np.array(noise))


def _words(
    subset: FunctionDraws, whole: FunctionDraws, X: Array, y: Array, n_subset: int, n_rows: int
) -> str:
    before, after = (float(np.mean((f.expected(X) - y) ** 2)) for f in (subset, whole))
    return (
        f"the spectrum was learned on {n_subset} of {n_rows} rows, the coefficients of "
        f"{len(whole.mean)} draws on all: mean squared error {before:.4g} became {after:.4g} "
        f"(standardised target, {len(y)} rows held out for this)"
    )
