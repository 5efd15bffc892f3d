"""Coefficients from all rows, where the spectrum was learned on some of them.

For a few kept draws the coefficients' posterior given frequencies and precisions is maximised over
all rows by Newton's method, from where the subset had them: a few passes over the data each. There
are far more rows than coefficients, so their law is taken as the normal one around the maximum.

Some rows outside the subset are left out at first, so that both sets of coefficients can be scored
on rows that neither has seen; then they are added, by one more Newton step.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import expit
from threadpoolctl import threadpool_limits

from mercer.posterior.draws import Draws
from mercer.random import stream
from mercer.spectral.classes.model import (
    LogisticCoefficients,
    LogisticModel,
    logistic_coefficients,
)
from mercer.spectral.classes.predict import ClassDraws, class_draws
from mercer.spectral.classes.products import log_likelihood, weighted_products
from mercer.spectral.classes.settings import ClassSettings
from mercer.spectral.completion import N_DEVIATIONS, check_rows, spread
from mercer.spectral.rows import MemoryRows, RowsWithout, TrainingRows

__all__ = ["complete_classes"]

Array = NDArray[np.float64]
Positions = NDArray[np.int64]

_MOST_STEPS = 12
_MOST_HALVINGS = 8
# A Newton step this short, in squared standard deviations of the posterior, ends the search.
_SHORT = 1e-2
_LEAST_WEIGHT = 1e-12
_SMALLEST_PROBA = 1e-12


@dataclass(frozen=True, eq=False)
class _Task:
    """One draw to complete, its precisions on the diagonal (K, 2 M + p), and its random stream."""

    frequencies: Array
    coef: Array
    prior_precisions: Array
    index: int


@dataclass(frozen=True, eq=False)
class _Completed:
    """Coefficients from all rows but those left out, then from all; deviations around the last."""

    before: Array
    mean: Array
    deviations: Array


def complete_classes(
    rows: TrainingRows,
    subset: Positions,
    draws: Draws,
    settings: ClassSettings,
    *,
    full_draws: int,
    entropy: int,
    n_jobs: int | None,
) -> tuple[ClassDraws, str]:
    """Learn the coefficients of a few draws from all rows.

    Parameters
    ----------
    rows : TrainingRows
        All of them.
    subset : ndarray of int
        Positions of the rows that the draws come from, ascending.
    draws : Draws
    settings : ClassSettings
    full_draws : int
        How many draws, evenly over all chains.
    entropy : int
    n_jobs : int or None
        Processes; each reads the rows for its draws.

    Returns
    -------
    functions : ClassDraws
        With coefficients from all rows.
    note : str
        What that changed.
    """
    model = settings.model(rows.n_inputs)
    tasks = [_task(model, draws, int(i)) for i in spread(draws.n_total, full_draws)]
    check = check_rows(rows.n_rows, subset, entropy)
    X, codes = rows.take(check)
    others = RowsWithout(rows, check)
    added = MemoryRows(X, codes, rows.has_linear_part)
    run = functools.partial(_complete, others, added, entropy)
    found = Parallel(n_jobs=n_jobs)(delayed(run)(task) for task in tasks)
    frequencies = np.stack([task.frequencies for task in tasks])
    after = ClassDraws(
        frequencies,
        np.stack([each.mean for each in found]),
        np.stack([each.deviations for each in found]),
    )
    unseen = replace(after, mean=np.stack([each.before for each in found]))
    note = _words(class_draws(draws), unseen, X, codes, len(subset), rows.n_rows)
    return after, note


def _task(model: LogisticModel, draws: Draws, i: int) -> _Task:
    W = draws.flat("frequencies")[i]
    ridges, linear = draws.flat("ridge_precision")[i], draws.flat("linear_precision")[i]
    precisions = model.precisions_of_all(2 * len(W), ridges, linear)
    return _Task(W, draws.flat("coef_mean")[i], precisions, i)


def _complete(others: TrainingRows, added: MemoryRows, entropy: int, task: _Task) -> _Completed:
    with threadpool_limits(limits=1, user_api="blas"):
        coef = _maximise(others, task)
        laws = _newton(task, coef, others, added)
    rng = stream(entropy, "coefficients", task.index)
    deviations = [law.draw(rng, N_DEVIATIONS) for law in laws]
    return _Completed(coef, np.stack([law.mean for law in laws]), np.stack(deviations))


def _maximise(rows: TrainingRows, task: _Task) -> Array:
    """Coefficients of the highest posterior density: Newton steps, halved where they overshoot."""
    coef, density = task.coef, _log_posterior(rows, task, task.coef)
    for _ in range(_MOST_STEPS):
        laws = _newton(task, coef, rows)
        step = np.stack([law.mean for law in laws]) - coef
        size = sum(
            float(np.square(np.tril(law.factor).T @ s).sum())
            for law, s in zip(laws, step, strict=True)
        )
        for _ in range(_MOST_HALVINGS):
            new_density = _log_posterior(rows, task, coef + step)
            if new_density >= density:
                coef, density = coef + step, new_density
                break
            step = 0.5 * step
        if size < _SHORT:
            break
    return coef


def _newton(task: _Task, coef: Array, *rows: TrainingRows) -> list[LogisticCoefficients]:
    """Normal laws whose means are one Newton step from these coefficients; rows in parts."""
    none = np.empty((0, task.frequencies.shape[1]))
    parts = [weighted_products(each, none, task.frequencies, coef, _curvature) for each in rows]
    return [
        logistic_coefficients(np.sum([each.gram for each in of_stick], axis=0), diagonal)
        for of_stick, diagonal in zip(zip(*parts, strict=True), task.prior_precisions, strict=True)
    ]


def _curvature(f: Array, kappa: Array) -> tuple[Array, Array]:
    """Weights p (1 - p) and weighted targets: those of Newton's method as least squares."""
    weights = np.maximum(expit(f) * expit(-f), _LEAST_WEIGHT)
    return weights, weights * f + (kappa + 0.5 - expit(f))


def _log_posterior(rows: TrainingRows, task: _Task, coef: Array) -> float:
    prior = 0.5 * float((task.prior_precisions * np.square(coef)).sum())
    return log_likelihood(rows, task.frequencies, coef) - prior


def _words(
    subset: ClassDraws, whole: ClassDraws, X: Array, codes: Array, n_subset: int, n_rows: int
) -> str:
    at = np.arange(len(X)), codes.astype(np.int64)
    before, after = (
        -float(np.log(np.maximum(f.probabilities(X)[at], _SMALLEST_PROBA)).mean())
        for f in (subset, whole)
    )
    return (
        f"the spectrum was learned on {n_subset} of {n_rows} rows, the coefficients of "
        f"{len(whole.mean)} draws on all: log loss {before:.4g} became {after:.4g} "
        f"({len(X)} rows held out for this)"
    )
