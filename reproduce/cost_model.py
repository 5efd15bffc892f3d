"""What a pass of BaNK over rows costs: counts of what is done, seconds of each, predictions.

CPU seconds are a sum over few terms, each a count that follows from the algorithm times a number
of seconds that is fitted to measurements, none below 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.optimize import nnls

from mercer.data.dask import level_of_runs
from mercer.numerics.sums import ROWS_PER_TERM, aligned_runs
from mercer.spectral.fitting import few_rows
from mercer.spectral.rows import MemoryRows

__all__ = [
    "ENGINE_TERMS", "TERMS", "Cluster", "Size", "chain_sweeps", "engine_counts", "fitted",
    "predicted", "runs_of",
    "total", "work_counts",
]  # fmt: skip

#: What is done in one process, and in which unit it is counted.
TERMS = {
    "products": "floating point operation of the products of features",
    "phases": "floating point operation of the products of frequencies and inputs",
    "waves": "cosine and sine",
    "numbers": "number read and standardised",
    "hashes": "number under a checksum",
    "latent": "row whose function is evaluated and whose latent variable is drawn (classes)",
    "decisions": "M^3, of decisions and factors, and for each function",
    "passes": "pass",
}
#: What Dask adds: the first four are measured by themselves, the others fitted.
ENGINE_TERMS = {
    "client_task": "task, in the process of client and scheduler",
    "worker_task": "task, on a worker",
    "client_second": "second of clock time, client and scheduler",
    "worker_second": "second of clock time, each worker",
    "passes": "pass",
    "numbers": "number that a worker reads",
    "bytes": "byte of partial sums that a task hands on",
}


@dataclass(frozen=True)
class Size:
    """What is done to how many rows: see `work_counts` for the kinds."""

    kind: str
    n: int
    n_frequencies: int
    d: int
    n_sets: int = 4  # of frequencies that one pass completes


def work_counts(size: Size) -> dict[str, float]:
    """Count what one process does, by the names of `TERMS`.

    A ``kind`` is "sweep" (of numbers), "classes" (a sweep of two classes: a pass for the products
    and one for the likelihood), "completion" (coefficients of several sets of frequencies, in one
    pass), "likelihood" (a pass of two classes), "newton" (of two classes, one set), "reading" or
    "checksums".
    """
    n, m, d = float(size.n), float(size.n_frequencies), size.d
    columns, numbers = d + 2, n * (d + 1)
    counts = dict.fromkeys(TERMS, 0.0) | {"passes": 1.0, "numbers": numbers}

    def features(sets: float) -> dict[str, float]:
        return {"phases": 2 * n * m * d * sets, "waves": n * m * sets}

    if size.kind == "sweep":
        products = n * ((2 * m) ** 2 + 4 * m * (2 * m + columns))
        return counts | features(2) | {"products": products, "decisions": m**3}
    if size.kind == "completion":
        products = n * ((2 * m) ** 2 + 4 * m * columns) * size.n_sets
        return counts | features(size.n_sets) | {"products": products}
    if size.kind == "classes":
        products = n * (4 * m + columns) ** 2
        both = {"passes": 2.0, "numbers": 2 * numbers, "latent": n, "decisions": m**3}
        return counts | features(3) | both | {"products": products}
    if size.kind == "newton":
        products = n * (2 * m + columns) ** 2
        return counts | features(1) | {"products": products, "latent": n}
    if size.kind == "likelihood":
        return counts | features(1)
    return counts | ({"hashes": numbers} if size.kind == "checksums" else {})


def bytes_of_sum(size: Size) -> float:
    """Size of what a task of rows returns."""
    m, columns = size.n_frequencies, size.d + 2
    numbers = {
        "sweep": 2 * m * (4 * m + columns),
        "completion": size.n_sets * 2 * m * (2 * m + columns),
        "classes": (4 * m + columns) ** 2,
        "newton": (2 * m + columns) ** 2,
    }
    return 8.0 * numbers.get(size.kind, 1)


def runs_of(n: int, n_workers: int) -> int:
    """Count the tasks of rows that a pass is cut into."""
    n_terms = -(-n // ROWS_PER_TERM)
    return sum(1 for _ in aligned_runs(n_terms, level_of_runs(n_terms, n_workers)))


def tasks_of(size: Size, n_workers: int) -> float:
    """Count the tasks: of rows, of additions where there is a sum, and what is sent to all."""
    a_run = 1 if size.kind in ("reading", "checksums") else 2
    return work_counts(size)["passes"] * (a_run * runs_of(size.n, n_workers) + 1)


def engine_counts(size: Size, n_workers: int, seconds: float) -> dict[str, float]:
    """Count what Dask adds, by the names of `ENGINE_TERMS`; ``seconds`` are of the clock."""
    work, n_tasks = work_counts(size), tasks_of(size, n_workers)
    return {
        "client_task": n_tasks,
        "worker_task": n_tasks,
        "client_second": seconds,
        "worker_second": seconds * n_workers,
        "passes": work["passes"],
        "numbers": work["numbers"],
        "bytes": bytes_of_sum(size) * n_tasks,
    }


def fitted(
    counts: Sequence[Mapping[str, float]], seconds: Sequence[float], scale: Sequence[float]
) -> dict[str, float]:
    """Fit seconds a unit by least squares, none below 0.

    Parameters
    ----------
    counts : sequence of mapping
        Of each measurement, all with the same names.
    seconds : sequence of float
        What was measured.
    scale : sequence of float
        Errors are counted relative to these.
    """
    names = list(counts[0])
    A = np.array([[each[name] for name in names] for each in counts]) / np.asarray(scale)[:, None]
    size = np.maximum(np.abs(A).max(axis=0), 1e-300)
    x, _ = nnls(A / size, np.asarray(seconds) / np.asarray(scale))
    return dict(zip(names, (x / size).tolist(), strict=True))


def total(each: Mapping[str, float], counts: Mapping[str, float]) -> float:
    """Add up the seconds of counts."""
    return sum(each[name] * count for name, count in counts.items())


def chain_sweeps(n: int, n_warmup: int, n_draws: int) -> dict[int, int]:
    """Sweeps of one chain of numbers from n rows in memory, by how many rows they look at."""
    rows = MemoryRows(np.zeros((n, 1)), np.zeros(n), has_linear_part=True)
    options: Any = SimpleNamespace(entropy=0, n_warmup=n_warmup)
    few, ends = few_rows(rows, "pcn", options)
    lengths = np.diff([0, *ends])
    found = {each.n_rows: int(k) for each, k in zip(few, lengths, strict=True)}
    return found | {n: n_warmup - sum(found.values()) + n_draws}


# What a cluster makes of it.


@dataclass(frozen=True)
class Cluster:
    """What is assumed of machines that were not measured."""

    n_workers: int  # of one thread each, as fast as the core measured
    network: float = 1.25e8  # bytes a second between two workers: 1 Gbit/s
    reading: float = 1e8  # bytes a second that each worker reads from its storage
    bytes_of_number: int = 8  # where it is stored


def predicted(
    model: Mapping[str, Mapping[str, float]], size: Size, cluster: Cluster
) -> dict[str, float]:
    """Predict the seconds by the clock of one pass or sweep, part by part.

    Parameters
    ----------
    model : mapping
        "work" and "engine": seconds a unit of `TERMS` and `ENGINE_TERMS`.

    Returns
    -------
    dict
        "work" (of all rows, shared out evenly: the largest share counts), "reading" from storage,
        "client" (what one process does while nobody else works: decisions, and handing out of
        tasks), "reduction" (partial sums that travel along the longest path), and their "total":
        nothing is taken to overlap.
    """
    counts = work_counts(size)
    decisions = counts["decisions"] * model["work"]["decisions"]
    n_runs = runs_of(size.n, cluster.n_workers)
    shares = math.ceil(n_runs / cluster.n_workers) / (n_runs / cluster.n_workers)
    engine = model["engine"]["numbers"] * counts["numbers"]
    work = (total(model["work"], counts) - decisions + engine) / cluster.n_workers * shares
    tasks = tasks_of(size, cluster.n_workers) * model["engine"]["client_task"]
    hops = math.ceil(math.log2(max(n_runs, 2)))
    parts: dict[str, Any] = {
        "work": work,
        "reading": cluster.bytes_of_number
        * counts["numbers"]
        / cluster.n_workers
        / cluster.reading,
        "client": decisions + tasks,
        "reduction": hops * bytes_of_sum(size) / cluster.network,
    }
    return parts | {"total": sum(parts.values())}
