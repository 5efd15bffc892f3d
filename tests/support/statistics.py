"""Statistical checks with a stated false-alarm rate, shared by tests and their mutants."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest
from scipy import stats

FALSE_ALARM = 1e-6  # per family of statistics


def largest_z(values: np.ndarray, truth: np.ndarray, n_batches: int) -> float:
    """Largest |t| over columns of one chain's values (N, K): batch means against the truth.

    A column that never moves has no standard error: infinite, unless it sits on the truth.
    """
    n = len(values) // n_batches * n_batches
    means = values[:n].reshape(n_batches, -1, values.shape[1]).mean(axis=1)
    error = np.abs(means.mean(axis=0) - truth)
    standard_error = means.std(axis=0, ddof=1) / math.sqrt(n_batches)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(error == 0.0, 0.0, error / standard_error)
    return float(z.max())


def z_limit(n_batches: int, n_columns: int) -> float:
    """Student-t limit with false alarm 1e-6 over all columns (50 batches, 5 columns: 6.04)."""
    return float(stats.t.isf(FALSE_ALARM / (2.0 * n_columns), n_batches - 1))


def dkw_distance(draws: np.ndarray, cdf) -> float:
    """sup |F_n - F| for iid draws and a continuous distribution function."""
    x = np.sort(draws)
    u = cdf(x)
    n = len(x)
    rank = np.arange(n + 1) / n
    return float(max(np.abs(rank[1:] - u).max(), np.abs(rank[:-1] - u).max()))


def dkw_limit(n: int, n_statistics: int) -> float:
    """Dvoretzky-Kiefer-Wolfowitz limit with false alarm 1e-6 over all statistics."""
    return math.sqrt(math.log(2.0 * n_statistics / FALSE_ALARM) / (2.0 * n))


def tiers(first: int, *longer: int) -> list:
    """How many draws a test takes: few in the first tier, also more in the second."""
    return [first, *(pytest.param(n, marks=pytest.mark.slow) for n in longer)]


def few_first(cases: Iterable[Any], *first: Any) -> list:
    """All cases, those of the first tier as they are and the others slow; limits count them all."""
    names = list(cases)
    assert set(first) <= set(names)
    slow = [pytest.mark.slow]
    return [pytest.param(name, marks=[] if name in first else slow, id=str(name)) for name in names]


def pairs_first(rows: Mapping[str, Any], columns: Mapping[str, Any]) -> list:
    """All pairs; in the first tier as few as hold each row and each column, the others slow."""
    n, found = min(len(rows), len(columns)), []
    for i, (row, one) in enumerate(rows.items()):
        for j, (column, other) in enumerate(columns.items()):
            marks = [] if i % n == j % n and (i < n or j < n) else [pytest.mark.slow]
            found.append(pytest.param(one, other, marks=marks, id=f"{row}-{column}"))
    return found
