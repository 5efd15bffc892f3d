"""One pass of BaNK over rows in a file: by this process, by one Dask worker, by two.

A million rows of 20 inputs in a .npy file whose contents are verified as they are read; products of
256 proposed frequencies with each other and with 256 current ones, as a sweep asks for them. Wall
clock, since workers are other processes; contenders take turns, medians of two rounds after one
that is not counted. One thread each. The bits must be the same.

Targets: two workers at least 1.7 times as fast as one, one worker within a tenth of no cluster.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import mercer.data
from mercer.data.dask import local_cluster
from mercer.estimation.standardize import fit_standardizer, scale_target
from mercer.features.products import Products
from mercer.spectral.rows import StoredRows
from reproduce.timing import interleaved
from reproduce.workloads import friedman_rows_v1

SEED = 0
TARGETS = {"two_workers_to_one": 1.7, "one_worker_to_none": 1.1}


def run() -> dict[str, object]:
    """Measure at the size of the targets."""
    return {"targets": TARGETS, **measured(1_000_000, 256, n_rounds=2)}


def measured(n: int, n_frequencies: int, n_rounds: int) -> dict[str, object]:
    """Time a pass by each, and compare what they return."""
    X, y, _ = friedman_rows_v1(n)
    names = tuple(f"x{k}" for k in range(X.shape[1]))
    standardizer, target = fit_standardizer(X[:10_000], "std", names), scale_target(y[:10_000])
    rng = np.random.default_rng(SEED)
    new, old = rng.normal(size=(2, n_frequencies, X.shape[1]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, np.column_stack([X, y]))
        del X, y
        plain = mercer.data.open(path).verified()
        clusters = {f"{k} workers": local_cluster(k) for k in (1, 2)}

        def one_pass(source: mercer.data.RowSource) -> Callable[[], Products]:
            rows = StoredRows(source, standardizer, target, has_linear_part=True)
            return lambda: rows.products(new, old)

        calls = {"no cluster": one_pass(plain)}
        for name, cluster in clusters.items():
            address = cluster.scheduler_address
            there = mercer.data.open(path, engine="dask", scheduler=address).verified()
            calls[name] = one_pass(there)
        with threadpool_limits(limits=1):
            digests = {name: _digest(call()) for name, call in calls.items()}
            seconds = interleaved(calls, n_rounds=n_rounds, repeat=1)
        for cluster in clusters.values():
            cluster.close()
    return {
        "n": n,
        "n_frequencies": n_frequencies,
        "seconds": {name: round(value, 3) for name, value in seconds.items()},
        "two_workers_to_one": round(seconds["1 workers"] / seconds["2 workers"], 3),
        "one_worker_to_none": round(seconds["1 workers"] / seconds["no cluster"], 3),
        "is_same_to_the_bit": len(set(digests.values())) == 1,
    }


def _digest(products: Products) -> str:
    return hashlib.sha256(products.among.tobytes() + products.across.tobytes()).hexdigest()
