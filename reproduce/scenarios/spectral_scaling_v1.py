"""CPU seconds of BaNK's passes over rows, by one process and by one and two Dask workers.

Rows of a .npy file, as the default opens it; for each of `FITTED` and `HELD_OUT` the process
time of all processes: the one that calls, which holds Dask's scheduler too, and the workers.
Each cluster is alone while it is measured, and is warm; medians of rounds. Costs of a task and of
a second in which nothing happens are measured by themselves. What the engine adds to `LARGEST` is
measured once more, one process and workers in turn.

A sum of few terms, `reproduce.cost_model`, is fitted to the first sizes and checked on the others;
then it predicts 10^9 rows of 20 inputs, 384 frequencies, on 10, 100 and 1000 workers. How many
passes a fit makes is counted, not assumed.

Not measured: more than two workers, a network, a disk that is slower than memory, clock time (the
machine may do other things as well).

Targets: one worker within a tenth of no engine; what the engine adds to a sweep of 10^6 rows under
a twentieth.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import mercer.data
from mercer import BaNKClassifier, BaNKRegressor
from mercer.data.dask import local_cluster
from mercer.data.source import RowSource
from mercer.estimation.standardize import fit_standardizer, scale_target
from mercer.spectral.class_fitting import make_class_sampler
from mercer.spectral.class_model import class_codes
from mercer.spectral.fitting import compile_class_loops, compile_loops
from mercer.spectral.rows import StoredRows
from reproduce.cells import measured
from reproduce.cost_model import (
    Cluster,
    Size,
    chain_sweeps,
    engine_counts,
    fitted,
    predicted,
    runs_of,
    total,
    work_counts,
)
from reproduce.spectral_chain import spectral_chain

SEED = 0
TARGETS = {"one_worker_to_none": 1.1, "added_to_a_sweep": 0.05}
FITTED = (
    Size("sweep", 65_536, 64, 5),
    Size("sweep", 65_536, 64, 50),
    Size("sweep", 65_536, 256, 5),
    Size("sweep", 65_536, 256, 50),
    Size("sweep", 262_144, 64, 5),
    Size("sweep", 262_144, 64, 50),
    Size("sweep", 262_144, 128, 20),
    Size("sweep", 16_384, 384, 5),
    Size("completion", 131_072, 64, 20),
    Size("completion", 65_536, 256, 20),
    Size("classes", 65_536, 64, 5),
    Size("classes", 131_072, 128, 20),
    Size("classes", 32_768, 256, 20),
    Size("checksums", 524_288, 1, 20),
)
LARGEST = Size("sweep", 1_000_000, 256, 20)
HELD_OUT = (
    LARGEST,
    Size("sweep", 400_000, 96, 10),
    Size("sweep", 50_000, 448, 30),
    Size("completion", 200_000, 192, 10),
    Size("classes", 200_000, 96, 30),
)
N_ROUNDS = 2
ENGINES = (0, 1, 2)  # workers; 0 is one process without Dask
PREDICTED_ROWS, PREDICTED_WORKERS = 10**9, (10, 100, 1000)
PREDICTED_FREQUENCIES, PREDICTED_INPUTS = 384, 20
KERNEL_ROWS = (200_000, 50_000, 20_000)

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """Measure all, fit, check, predict."""
    rows, pairs = rows_of(FITTED, HELD_OUT, N_ROUNDS), pairs_of(LARGEST, N_ROUNDS)
    return metrics_of(rows, pairs, passes_of_fits(100_000))


def rows_of(
    sizes: tuple[Size, ...], held_out: tuple[Size, ...], n_rounds: int
) -> list[dict[str, Any]]:
    """Measure each size by each engine: one row a size, engine and round."""
    compile_loops(lambda line: None)
    compile_class_loops(lambda line: None)
    every = {**dict.fromkeys(sizes, False), **dict.fromkeys(held_out, True)}

    def cell(k: int, n_workers: int) -> list[dict[str, Any]]:
        with threadpool_limits(limits=1), _engine(n_workers) as engine:
            return _round(every, engine)

    cells = [(k, n_workers) for k in range(n_rounds) for n_workers in ENGINES]
    return measured("spectral-scaling-v1", cells, cell)


def pairs_of(size: Size, n_rounds: int) -> list[dict[str, Any]]:
    """Measure one size by one process and by workers in turn: one row a cluster and round."""

    def cell(kind: str, n_workers: int) -> list[dict[str, Any]]:
        with threadpool_limits(limits=1), _engine(n_workers) as engine:
            return _pairs(size, engine, n_rounds)

    cells = [("pairs", n_workers) for n_workers in ENGINES if n_workers]
    return measured("spectral-scaling-v1", cells, cell)


def _pairs(size: Size, engine: _Engine, n_rounds: int) -> list[dict[str, Any]]:
    _timed(Size(size.kind, 20_000, 8, 5), engine)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = _file(Path(folder), size)
        alone, shared = _call(size, mercer.data.open(path)), _call(size, engine.open(path))
        for _ in range(n_rounds):
            begin = time.thread_time()  # not of the scheduler, which waits meanwhile
            alone()
            seconds, before = time.thread_time() - begin, engine.cpu()
            shared()
            client, there = engine.cpu() - before
            found = {"none": seconds, "client": float(client), "on_workers": float(there)}
            rows.append({"workers": engine.n_workers, **_all_rounded(found)})
    return rows


@dataclass(frozen=True)
class _Engine:
    """One process, or a cluster that this process is the client of."""

    n_workers: int
    client: Any = None

    def open(self, path: Path) -> RowSource:
        """Open a file as a user does."""
        return mercer.data.open(path, engine="dask" if self.client else None)

    def cpu(self) -> Array:
        """Process times of this process and of all workers."""
        there = self.client.run(time.process_time).values() if self.client else ()
        return np.array([time.process_time(), sum(there)])


@contextmanager
def _engine(n_workers: int) -> Iterator[_Engine]:
    if n_workers == 0:
        yield _Engine(0)
        return
    import distributed

    with local_cluster(n_workers) as made, distributed.Client(made) as client:
        yield _Engine(n_workers, client)


def _round(every: dict[Size, bool], engine: _Engine) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for size in (Size("sweep", 20_000, 8, 5), Size("classes", 20_000, 8, 5)):
        _timed(size, engine)
    if engine.client:
        rows.append({"kind": "alone", "workers": engine.n_workers, **_alone(engine)})
    for size, is_held_out in every.items():
        row = {"workers": engine.n_workers, "is_held_out": is_held_out, **_timed(size, engine)}
        rows.append({**vars(size), **row})
    return rows


def _timed(size: Size, engine: _Engine) -> dict[str, float]:
    """CPU seconds of this process and of the workers, and seconds of the clock."""
    with tempfile.TemporaryDirectory() as folder:
        call = _call(size, engine.open(_file(Path(folder), size)))
        before, begin = engine.cpu(), time.perf_counter()
        call()
        clock = time.perf_counter() - begin
        client, there = engine.cpu() - before
    return {"client": _rounded(client), "on_workers": _rounded(there), "clock": _rounded(clock)}


def _alone(engine: _Engine, seconds: float = 5.0, n_tasks: int = 400) -> dict[str, float]:
    """CPU seconds of a second in which nothing happens, and of a task that does nothing."""
    time.sleep(1.0)
    before, begin = engine.cpu(), time.perf_counter()
    time.sleep(seconds)
    idle = (engine.cpu() - before) / (time.perf_counter() - begin)
    before, begin = engine.cpu(), time.perf_counter()
    engine.client.gather([engine.client.submit(abs, k, pure=False) for k in range(n_tasks)])
    waited = idle * (time.perf_counter() - begin)
    task = np.maximum(engine.cpu() - before - waited, 0.0) / n_tasks
    return {
        "client_second": _rounded(idle[0]),
        "worker_second": _rounded(idle[1] / engine.n_workers),
        "client_task": _rounded(task[0]),
        "worker_task": _rounded(task[1]),
    }


def _file(folder: Path, size: Size) -> Path:
    """Write rows of so many inputs; the target is 0 or 1 for classes."""
    rng = np.random.default_rng([SEED, size.n, size.d])
    X = rng.random((size.n, size.d))
    y = np.sin(6.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(size.n)
    if size.kind == "classes":
        y = (y > np.median(y)).astype(np.float64)
    path = folder / "rows.npy"
    np.save(path, np.column_stack([X, y]))
    return path


def _call(size: Size, source: RowSource) -> Callable[[], Any]:
    """Prepare what is measured."""
    if size.kind == "checksums":
        return source.verified
    some, rng = source.take(np.arange(5000)), np.random.default_rng(SEED)
    standardizer = fit_standardizer(some[:, :-1], "std", source.names[:-1])
    W = rng.normal(size=(size.n_sets, size.n_frequencies, size.d))
    if size.kind == "classes":
        codes = class_codes(*np.unique(some[:, -1], return_counts=True))
        rows = StoredRows(source, standardizer, codes, has_linear_part=True)
        model = BaNKClassifier(n_frequencies=size.n_frequencies, n_leapfrog=0)
        settings = model._class_settings(size.n, 2)
        found = settings.spectral.first_scales(size.d)
        chain: Any = make_class_sampler(rows, rows.take(np.arange(1000))[0], found, settings)
    else:
        target = scale_target(some[:, -1])
        rows = StoredRows(source, standardizer, target, has_linear_part=True)
        if size.kind == "completion":
            return lambda: rows.grams(list(W))
        chain = spectral_chain(rows, size.n_frequencies)
    state = chain.init(rng)
    return lambda: chain.step(rng, state)


def passes_of_fits(
    n: int, kernel_rows: int = 20_000, n_frequencies: int = 64, n_draws: int = 20
) -> dict[str, dict[str, int]]:
    """Count the passes over a file that fits make with more rows than learn the spectrum."""
    common: dict[str, Any] = {
        "kernel_rows": kernel_rows, "n_frequencies": n_frequencies, "n_draws": n_draws,
        "n_warmup": n_draws, "n_chains": 2, "random_state": SEED, "progress": False,
    }  # fmt: skip
    found = {}
    models: dict[str, Any] = {"numbers": BaNKRegressor, "classes": BaNKClassifier}
    for name, model in models.items():
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # so few draws have not converged
            kind = "classes" if name == "classes" else "sweep"
            source = mercer.data.open(_file(Path(folder), Size(kind, n, n_frequencies, 5)))
            with _counting() as passes:
                model(**common).fit(source, source.names[-1])
        found[name] = dict(sorted(passes.items()))
    return found


# What a pass is for, by what it makes of the blocks.
_WHAT = {"GramSum": "completion", "_WeightedSums": "newton", "_FunctionSums": "likelihood"}


@contextmanager
def _counting() -> Iterator[Counter[str]]:
    passes: Counter[str] = Counter()
    total_of, each_of = RowSource.total, RowSource.each

    def counting_total(self: RowSource, add: Any, *given: Any) -> Any:
        makers = add.args[0].args[0]  # see `mercer.spectral.rows.TrainingRows.sums`
        passes[_WHAT[makers[0].func.__name__]] += 1
        return total_of(self, add, *given)

    def counting_each(self: RowSource, work: Any, *given: Any) -> Any:
        passes["reading"] += 1
        return each_of(self, work, *given)

    with (
        mock.patch.object(RowSource, "total", counting_total),
        mock.patch.object(RowSource, "each", counting_each),
    ):
        yield passes


# From what was measured to what is said.


def metrics_of(
    rows: list[dict[str, Any]], pairs: list[dict[str, Any]], passes: dict[str, dict[str, int]]
) -> dict[str, object]:
    """Fit the model, check it on what was held out, predict."""
    alone = _medians([row for row in rows if row["kind"] == "alone"], ("workers",))
    sizes = _medians([row for row in rows if row["kind"] != "alone"], (*vars(LARGEST), "workers"))
    work = _fit_work([row for row in sizes if row["workers"] == 0 and not row["is_held_out"]])
    model = {"work": work, "engine": _fit_engine(sizes, alone)}
    return {
        "targets": TARGETS,
        "model": {
            name: {key: _rounded(x) for key, x in part.items()} for name, part in model.items()
        },
        "sizes": [_compared(model, row, sizes) for row in sizes],
        "pairs": [row | {"to_none": round(_seconds(row) / row["none"], 4)} for row in pairs],
        "passes": passes,
        "chains": [_chain(model, kind, n) for kind in ("sweep", "classes") for n in KERNEL_ROWS],
        "passes_of_million": {
            name: _rounded(sum(n * _million(model, kind) for kind, n in kinds.items()))
            for name, kinds in passes.items()
        },
        "predictions": _predictions(model, passes),
    }


def _medians(rows: list[dict[str, Any]], keys: tuple[str, ...]) -> list[dict[str, Any]]:
    """Medians over rounds of all numbers but the keys."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return [
        {
            key: float(np.median([row[key] for row in group]))
            if isinstance(value, float)
            else value
            for key, value in group[0].items()
        }
        for group in groups.values()
    ]


def _size(row: dict[str, Any]) -> Size:
    return Size(**{key: row[key] for key in vars(LARGEST)})


def _seconds(row: dict[str, Any]) -> float:
    return float(row["client"] + row["on_workers"])


def _fit_work(rows: list[dict[str, Any]]) -> dict[str, float]:
    seconds = [_seconds(row) for row in rows]
    return fitted([work_counts(_size(row)) for row in rows], seconds, seconds)


def _fit_engine(sizes: list[dict[str, Any]], alone: list[dict[str, Any]]) -> dict[str, float]:
    """Fit what is left of the difference to one process, once tasks and idle time are known."""
    known = {
        key: float(np.median([row[key] for row in alone]))
        for key in ("client_task", "worker_task", "client_second", "worker_second")
    }
    counts, left, scale = [], [], []
    for row in sizes:
        if row["workers"] == 0 or row["is_held_out"]:
            continue
        each = engine_counts(_size(row), row["workers"], row["clock"])
        added = _seconds(row) - _seconds(_alike(sizes, row, 0))
        left.append(added - sum(known[key] * each.pop(key) for key in known))
        counts.append(each)
        scale.append(_seconds(row))
    return known | fitted(counts, left, scale)


def _alike(sizes: list[dict[str, Any]], row: dict[str, Any], n_workers: int) -> dict[str, Any]:
    return next(o for o in sizes if o["workers"] == n_workers and _size(o) == _size(row))


def _compared(
    model: dict[str, dict[str, float]], row: dict[str, Any], sizes: list[dict[str, Any]]
) -> dict[str, Any]:
    """What was measured of a size by an engine, beside the model and beside one process."""
    size, seconds = _size(row), _seconds(row)
    expected = total(model["work"], work_counts(size))
    if row["workers"]:
        expected += total(model["engine"], engine_counts(size, row["workers"], row["clock"]))
    return row | {
        "seconds": _rounded(seconds),
        "expected": _rounded(expected),
        "error": round(expected / seconds - 1.0, 4),
        "to_none": round(seconds / _seconds(_alike(sizes, row, 0)), 4),
    }


def _chain(model: dict[str, dict[str, float]], kind: str, n: int) -> dict[str, Any]:
    """CPU seconds of one chain of the defaults that learns the spectrum from n rows in memory."""
    estimator = BaNKRegressor() if kind == "sweep" else BaNKClassifier()
    n_warmup, n_draws = estimator.n_warmup, estimator.n_draws
    sweeps = chain_sweeps(n, n_warmup, n_draws) if kind == "sweep" else {n: n_warmup + n_draws}
    seconds = 0.0
    for n_rows, n_sweeps in sweeps.items():
        counts = work_counts(Size(kind, n_rows, PREDICTED_FREQUENCIES, PREDICTED_INPUTS))
        seconds += n_sweeps * total(model["work"], counts | {"numbers": 0.0})
    return {"kind": kind, "n": n, "sweeps": sum(sweeps.values()), "seconds": _rounded(seconds)}


def _million(model: dict[str, dict[str, float]], kind: str) -> float:
    """CPU seconds of a pass over 10^6 rows by one process."""
    n_sets = 4 if kind == "completion" else 1
    size = Size(kind, 10**6, PREDICTED_FREQUENCIES, PREDICTED_INPUTS, n_sets)
    return total(model["work"], work_counts(size))


def _predictions(
    model: dict[str, dict[str, float]], passes: dict[str, dict[str, int]]
) -> list[dict[str, Any]]:
    """Seconds by the clock of passes, sweeps and of the passes of the default fits."""
    d, m = PREDICTED_INPUTS, PREDICTED_FREQUENCIES
    found = []
    for n_workers in PREDICTED_WORKERS:
        cluster = Cluster(n_workers)

        def seconds(kind: str, n_sets: int, cluster: Cluster = cluster) -> dict[str, float]:
            return predicted(model, Size(kind, PREDICTED_ROWS, m, d, n_sets), cluster)

        for what, kinds in {
            "a pass of reading": {"reading": 1},
            "all passes of the default, numbers": passes["numbers"],
            "all passes of the default, classes": passes["classes"],
            "a sweep over all rows, numbers": {"sweep": 1},
            "a sweep over all rows, classes": {"classes": 1},
        }.items():
            parts: Counter[str] = Counter()
            for kind, n in kinds.items():
                for part, value in seconds(kind, 4 if kind == "completion" else 1).items():
                    parts[part] += n * value  # type: ignore[assignment]
            row = {"workers": n_workers, "what": what, "n_runs": runs_of(PREDICTED_ROWS, n_workers)}
            found.append(row | _all_rounded(parts))
    return found


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _all_rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: _rounded(value) for name, value in values.items()}
