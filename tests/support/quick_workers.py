"""Workers of a Dask cluster that are forked from a process which has imported what they need.

Each worker that is spawned, as a user's are, imports it all anew, for seconds. A test of how
workers are started asks for these.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

_IMPORTED = (
    "distributed.nanny", "mercer.data.dask_collections", "mercer.estimation.table_encoder",
    "mercer.gp.estimator", "mercer.gp.regressor", "mercer.spectral.classifier",
    "mercer.sphere.estimator", "pandas", "pyarrow.parquet", "support.toy_sampler",
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def quick_workers() -> Iterator[None]:
    """Before a cluster that a module starts once."""
    dask = pytest.importorskip("dask")
    get_mp_context = pytest.importorskip("distributed.utils").get_mp_context
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        context = get_mp_context()  # names modules of its own, once
        context.set_forkserver_preload(list(_IMPORTED))
        yield


@pytest.fixture
def spawned_workers() -> Iterator[None]:
    """For one test, as they are by default."""
    dask = pytest.importorskip("dask")
    with dask.config.set({"distributed.worker.multiprocessing-method": "spawn"}):
        yield
