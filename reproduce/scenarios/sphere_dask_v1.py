"""Ten million rows of 256 columns on Dask, 4 GiB a worker: which labels are wrong?

Standard normal rows in single precision in Parquet files of a million, labels of a random
direction, 5 % flipped. Two workers of one thread each, told to keep to 4 GiB; with labels
multiplied in the rows are 10 GB, so that workers have a part of them on their disks.
`KernelGibbsClassifier(kernel="linear")` fits `mercer.data.open(folder, engine="dask")` as they are
(no intercept, not standardised): two chains, one after the other. Error on 100 000 other rows is
against the true class; average precision is that of finding the flipped labels.

Some forty minutes and 22 GB of disk, all of it removed in the end. Targets: 4 GiB a worker; R-hat
below 1.05 on the margins of 20 rows.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mercer.data
from mercer import KernelGibbsClassifier
from reproduce.fresh import largest_gib

SEED = 0
NEEDS_PACKAGES = ("pyarrow", "distributed", "pandas")
TARGETS = {"gib_a_worker": 4.0, "rhat": 1.05}
_MEMORY = "4GiB"
_FILE_ROWS, _TEST_ROWS, _FLIPPED = 1_000_000, 100_000, 0.05

Rows = tuple[NDArray[np.float32], NDArray[np.bool_]]


def run() -> dict[str, object]:
    """One fit, of the size of the targets."""
    return {"targets": TARGETS, **measured(10_000_000, 256, n_draws=60, n_warmup=40)}


def measured(n: int, r: int, n_draws: int, n_warmup: int) -> dict[str, Any]:
    """Fit n rows of r columns on two workers."""
    import pandas as pd
    from distributed import LocalCluster
    from sklearn.metrics import average_precision_score

    with tempfile.TemporaryDirectory() as folder:
        is_flipped = _write(Path(folder), n, r)
        with LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=_MEMORY, host="127.0.0.1",
            dashboard_address=None, local_directory=folder,
        ) as cluster, cluster.get_client() as client:  # fmt: skip
            begin = time.perf_counter()
            rows = mercer.data.open(folder, engine="dask", scheduler=cluster.scheduler_address)
            model = KernelGibbsClassifier(
                kernel="linear", fit_intercept=False, standardize=False, n_draws=n_draws,
                n_warmup=n_warmup, n_chains=2, random_state=SEED, progress=False,
            ).fit(rows, "y")  # fmt: skip
            minutes = (time.perf_counter() - begin) / 60.0
            peaks = client.run(largest_gib)
    X, is_second = _rows(n, _TEST_ROWS, r)
    proba = model.predict_proba(pd.DataFrame(X, columns=[f"x{k}" for k in range(r)]))
    table = model.diagnostics_.table
    is_margin = ["margin" in name for name in table.column("name")]
    figures = {
        "minutes": minutes,
        "gib_a_worker": max(peaks.values()),
        "gib_of_the_command": largest_gib(),
        "max_rhat_of_margins": np.max(np.array(table.column("rhat"))[is_margin]),
        "min_ess_of_margins": np.min(np.array(table.column("ess_bulk"))[is_margin]),
        "acceptance_rate": model.diagnostics_.acceptance_rate,
        "noise_rate": model.noise_rate_,
        "error": np.mean((proba[:, 1] > 0.5) != is_second),
        "average_precision": average_precision_score(is_flipped, model.label_error_proba_),
    }
    sizes = {"n": n, "r": r, "n_draws": n_draws, "n_warmup": n_warmup}
    return {**sizes, **{name: float(f"{value:.4g}") for name, value in figures.items()}}


def _write(folder: Path, n: int, r: int) -> NDArray[np.bool_]:
    """Write the rows; returns which labels are flipped."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    is_flipped = np.random.default_rng([SEED, n, r]).random(n) < _FLIPPED
    for begin in range(0, n, _FILE_ROWS):
        own = is_flipped[begin : begin + _FILE_ROWS]
        X, is_second = _rows(begin, len(own), r)
        columns = {f"x{k}": X[:, k] for k in range(r)} | {"y": (is_second ^ own).astype(np.int64)}
        path = folder / f"{begin // _FILE_ROWS:05d}.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=2**17, use_dictionary=False)
    return is_flipped


def _rows(begin: int, count: int, r: int) -> Rows:
    """Rows from one position on, and whether each is of the second class."""
    X = np.random.default_rng([SEED, begin, r]).standard_normal((count, r), dtype=np.float32)
    return X, X @ np.random.default_rng([SEED, r]).standard_normal(r, dtype=np.float32) > 0.0
