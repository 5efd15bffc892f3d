"""Long scenarios cell by cell: what is measured is kept in a file, so that a stopped run goes on.

The file is one line of JSON for each cell, ``SCENARIO.jsonl`` in the folder named by the
environment variable ``MERCER_BENCH_CACHE`` (``python -m reproduce SCENARIO --cache FOLDER``);
without it cells are kept in memory only. Delete the file when the code that is measured changes.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import is_classifier
from threadpoolctl import threadpool_limits

__all__ = [
    "PER_CENT",
    "SECONDS",
    "VARIABLE",
    "held_out",
    "less",
    "means",
    "measured",
    "measured_tables",
]

VARIABLE = "MERCER_BENCH_CACHE"
#: CPU seconds after which scenarios that can stop begin nothing more.
SECONDS = "MERCER_BENCH_SECONDS"

Cell = tuple[Any, ...]


def measured(
    scenario: str,
    cells: Iterable[Cell],
    measure: Callable[..., list[dict[str, Any]]],
    *,
    n_jobs: int = 1,
    seconds: float | None = None,
) -> list[dict[str, Any]]:
    """Rows of all cells, in their order; those that are in the file are not measured again.

    Parameters
    ----------
    scenario : str
        Name of the file.
    cells : iterable of tuple
        Of strings and numbers.
    measure : callable
        (*cell) -> rows, that is dictionaries of strings and numbers.
    n_jobs : int
        Cells measured at a time, in processes: where rows hold no times.
    seconds : float or None
        No cell is begun after so much CPU time of this process; rows of those that were never
        measured are left out. With one job only.
    """
    folder = os.environ.get(VARIABLE)
    path = Path(folder) / f"{scenario}.jsonl" if folder else None
    known = _read(path)
    cells = list(cells)
    new = [cell for cell in dict.fromkeys(cells) if json.dumps(cell) not in known]
    begin = time.process_time()
    in_time = itertools.takewhile(
        lambda _: seconds is None or time.process_time() - begin < seconds, new
    )
    results = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_timed)(measure, cell) for cell in in_time
    )
    for cell, rows, taken in results:
        known[json.dumps(cell)] = rows
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a") as file:
                file.write(json.dumps({"cell": cell, "seconds": taken, "rows": rows}) + "\n")
    return [row for cell in cells for row in known.get(json.dumps(cell), [])]


def measured_tables(
    scenario: str,
    data: Iterable[tuple[str, int]],
    n_seeds: int,
    measure: Callable[..., list[dict[str, Any]]],
) -> list[dict[str, Any]]:
    """Rows of all tables, (name, number of rows), each with so many seeds; one BLAS thread."""
    cells = [(*each, seed) for each in data for seed in range(n_seeds)]
    with threadpool_limits(limits=1):
        return measured(scenario, cells, measure)


def _timed(
    measure: Callable[..., list[dict[str, Any]]], cell: Cell
) -> tuple[Cell, list[dict[str, Any]], float]:
    begin = time.perf_counter()
    rows = measure(*cell)
    return cell, rows, round(time.perf_counter() - begin, 2)


def _read(path: Path | None) -> dict[str, list[dict[str, Any]]]:
    """Rows by cell; a last line that was cut short is left out, and cut off."""
    if path is None or not path.exists():
        return {}
    text = path.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole)
    lines = [json.loads(line) for line in whole.splitlines()]
    return {json.dumps(line["cell"]): line["rows"] for line in lines}


#: How `means` gives shares.
PER_CENT: dict[str, Any] = {"factor": 100.0, "n_digits": 1}


def held_out(model: Any, X: Any, y: Any) -> tuple[Any, float]:
    """Score rows that were held out: -log probability or density of each, and the error.

    Of a classifier that is the share of wrong labels, of a regressor the squared error over the
    variance of these targets.
    """
    if is_classifier(model):
        proba, place = model.predict_proba(X), np.searchsorted(model.classes_, y)
        logs = np.log(proba[np.arange(len(place)), place])
        return -logs, float((proba.argmax(axis=1) != place).mean())
    parts = [slice(begin, begin + 500) for begin in range(0, len(X), 500)]
    logs = np.concatenate([model.predictive(X[part]).log_density(y[part]) for part in parts])
    return -logs, float(np.mean((model.predict(X) - y) ** 2) / np.var(y))


def less(splits: Iterable[dict[str, Any]], name: str, other: str) -> tuple[float, float]:
    """Mean difference of two contenders' scores, and its standard error over splits.

    ``scores`` of each split hold those of its rows by contender. Errors over rows would leave out
    which rows were learned from.
    """
    gaps = [np.mean(np.subtract(each["scores"][name], each["scores"][other])) for each in splits]
    error = np.std(gaps, ddof=1) / np.sqrt(len(gaps))
    return round(float(np.mean(gaps)), 4), round(float(error), 4)


def means(
    rows: Iterable[dict[str, Any]],
    keys: tuple[str, ...],
    names: tuple[str, ...],
    *,
    factor: float = 1.0,
    n_digits: int = 3,
    count: str = "n_sets",
) -> list[dict[str, Any]]:
    """Means of ``names`` over rows of the same ``keys``, standard errors (_se) and how many."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    found = []
    for key, own in groups.items():
        mean: dict[str, Any] = {**dict(zip(keys, key, strict=True)), count: len(own)}
        for name in names:
            values = factor * np.array([row[name] for row in own])
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
            mean[name] = round(float(values.mean()), n_digits)
            mean[f"{name}_se"] = round(float(error), n_digits)
        found.append(mean)
    return found
