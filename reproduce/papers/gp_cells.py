"""One method of the tables of Barber & Williams on one repeat: what was seen, kept in a file each.

A repeat is a split of the rows, or the folds of a cross-validation whose test rows are put
together. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from mercer.errors import MercerWarning
from mercer.posterior.scores import error_rate, log_score
from reproduce.papers.kept import kept, parts_folder
from reproduce.papers.reproduction import Settings

__all__ = ["Figures", "Method", "Repeat", "Split", "column", "run_method"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test rows of whole-number labels."""

    X: Array
    y: NDArray[np.int64]
    X_test: Array
    y_test: NDArray[np.int64]


@dataclass(frozen=True)
class Method:
    """A row of a table.

    Attributes
    ----------
    key : str
        In names of files.
    name : str
        In tables.
    make : callable
        (seed, is_quick) -> a classifier of scikit-learn's interface.
    is_random : bool
        Whether it is worth repeating on the same split.
    is_in_quick : bool
        Whether a quick run has it.
    needs_r : bool
        Whether R runs it: left out where there is none.
    """

    key: str
    name: str
    make: Callable[[int, bool], Any]
    is_random: bool = False
    is_in_quick: bool = True
    needs_r: bool = False


@dataclass(frozen=True)
class Repeat:
    """Some splits, one or the folds of a cross-validation, and the seed of the methods."""

    splits: Sequence[Split]
    seed: int


@dataclass(frozen=True)
class Figures:
    """What was seen of one method on one repeat.

    Attributes
    ----------
    error_rate, log_score : float
        Means over all test rows of the repeat.
    rejected : float
        Share of the steps that left the chain where it was; nan without a chain.
    cpu_seconds : float
        To fit and to predict, all splits together; of chains in other processes not counted.
    seconds : float
        From begin to end, ``n_at_a_time`` splits at a time.
    n_at_a_time : int
    """

    error_rate: float
    log_score: float
    rejected: float
    cpu_seconds: float
    seconds: float
    n_at_a_time: int


def run_method(
    table: str, data: str, method: Method, repeat: Repeat, settings: Settings
) -> Figures:
    """Run a method on a repeat, or read what this version of mercer found before.

    Splits are run ``settings.n_jobs`` at a time; where there is one, so are its chains.

    Parameters
    ----------
    table : str
        In the name of the folder.
    data : str
        Name of the data set, in names of files.

    Raises
    ------
    StorageError
        If the figures cannot be written.
    """

    def run() -> dict[str, float]:
        settings.tell(f"{data}, {method.name}, repeat {repeat.seed + 1}")
        return asdict(_run(method, repeat, settings))

    stamp = {"data": data, "method": method.key, "repeat": repeat.seed}
    part = f"{data}-{method.key}-{repeat.seed}"
    return Figures(**kept(parts_folder(settings, table), part, stamp, run))


def column(rows: Sequence[Figures], name: str) -> Array:
    """One figure of all repeats."""
    return np.array([getattr(row, name) for row in rows], dtype=np.float64)


def _run(method: Method, repeat: Repeat, settings: Settings) -> Figures:
    n_splits = len(repeat.splits)
    n_at_a_time = min(effective_n_jobs(settings.n_jobs), n_splits)
    chains = settings.n_jobs if n_splits == 1 else 1
    begin = time.perf_counter()
    seen = Parallel(n_jobs=n_at_a_time)(
        delayed(_on_split)(method, split, repeat.seed, settings.is_quick, chains)
        for split in repeat.splits
    )
    seconds = time.perf_counter() - begin
    weights = np.array([len(split.y_test) for split in repeat.splits], dtype=np.float64)
    errors, scores, rejected, cpu = np.array(seen).T
    return Figures(
        float(np.average(errors, weights=weights)),
        float(np.average(scores, weights=weights)),
        float(rejected.mean()),
        float(cpu.sum()),
        seconds,
        n_at_a_time,
    )


def _on_split(
    method: Method, split: Split, seed: int, is_quick: bool, n_jobs: int | None
) -> tuple[float, float, float, float]:
    """Error rate, log score, share of rejected steps, CPU seconds."""
    model = method.make(seed, is_quick)
    if "n_chains" in model.get_params(deep=False):
        model.set_params(n_jobs=n_jobs)
    begin = time.process_time()
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        # Chains as short as the paper's; networks that have not settled.
        warnings.simplefilter("ignore", MercerWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        proba = model.fit(split.X, split.y).predict_proba(split.X_test)
    seconds = time.process_time() - begin
    y = split.y_test
    return error_rate(y, proba), log_score(y, proba), _rejected(model), seconds


def _rejected(model: Any) -> float:
    posterior = getattr(model, "posterior_", None)
    if posterior is None or "is_accepted" not in posterior.stats:
        return math.nan
    return 1.0 - float(posterior.stats["is_accepted"].mean())
