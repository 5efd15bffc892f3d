"""Rows that Dask workers share: the draws of the same rows in memory, to the last bit."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer.data
from mercer import KernelGibbsClassifier
from mercer.cli.main import main
from mercer.data import dask as cluster
from mercer.errors import ClusterError, UsageError
from mercer.sphere.screened import ScreenedSampler
from support.quick_workers import quick_workers
from support.row_cases import write_parquet
from unit.sphere.test_stored_rows import assert_same

__all__ = ["quick_workers"]

distributed = pytest.importorskip("distributed")
pytest.importorskip("pyarrow")
da = pytest.importorskip("dask.array")

pytestmark = [
    pytest.mark.filterwarnings("ignore::mercer.errors.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:X does not have valid feature names"),
]

N = 40_000  # three blocks, the last not whole
NAMES = ["x0", "x1", "x2", "y"]
SHORT = {"n_draws": 2, "n_warmup": 4, "n_chains": 2, "rank": 4}
HOW = {**SHORT, "lengthscale": "median", "random_state": 3, "progress": False}


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    """A tenth of the labels is wrong."""
    rng = np.random.default_rng(11)
    X = rng.standard_normal((N, 3)) * [1.0, 20.0, 0.1]
    y = (np.sin(2.0 * X[:, 0]) + X[:, 1] / 20.0 > 0.0) ^ (rng.random(N) < 0.1)
    return np.column_stack([X, y])


@pytest.fixture(scope="module")
def folder(rows: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two Parquet files, whose row groups end within blocks."""
    path = tmp_path_factory.mktemp("rows")
    for k, part in enumerate((rows[:21_111], rows[21_111:])):
        write_parquet(path / f"{k}.parquet", part, NAMES, row_group_size=9000)
    return path


@pytest.fixture(scope="module")
def in_memory(rows: np.ndarray) -> KernelGibbsClassifier:
    return KernelGibbsClassifier(**HOW).fit(rows[:, :-1], rows[:, -1].astype(int))


@pytest.fixture(scope="module")
def two_workers() -> Iterator[Any]:
    with cluster.local_cluster(2) as made, distributed.Client(made) as client:
        yield client


@pytest.mark.slow  # what is lost with a worker, and an audit, show the same
def test_files_that_workers_read(
    folder: Path, in_memory: KernelGibbsClassifier, two_workers: Any
) -> None:
    shared = mercer.data.open(folder, engine="dask")
    assert_same(in_memory, KernelGibbsClassifier(**HOW).fit(shared, "y"))


def test_a_collection_and_chains_in_other_processes(
    rows: np.ndarray, in_memory: KernelGibbsClassifier, two_workers: Any
) -> None:
    X = da.from_array(rows[:, :-1], chunks=(17_000, 3))
    y = da.from_array(rows[:, -1].astype(int), chunks=30_000)
    assert_same(in_memory, KernelGibbsClassifier(**HOW, n_jobs=2).fit(X, y))


def test_features_that_are_lost_with_a_worker_are_made_again(
    folder: Path, in_memory: KernelGibbsClassifier, two_workers: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    step, n_steps, made = ScreenedSampler.step, [], two_workers.cluster

    def killing(*given: Any) -> Any:
        n_steps.append(0)
        if len(n_steps) == 3:
            os.kill(next(iter(made.workers.values())).pid, signal.SIGKILL)
        return step(*given)

    monkeypatch.setattr(ScreenedSampler, "step", killing)
    shared = mercer.data.open(folder, engine="dask", scheduler=made.scheduler_address)
    assert_same(in_memory, KernelGibbsClassifier(**HOW).fit(shared, "y"))
    assert len(n_steps) == 2 * 6  # of two chains: none was made again


@pytest.mark.slow
def test_a_lost_cluster_leaves_a_checkpoint_from_which_memory_goes_on(
    rows: np.ndarray, folder: Path, in_memory: KernelGibbsClassifier, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    step, n_steps = ScreenedSampler.step, []
    with cluster.local_cluster(1) as made:

        def closing(*given: Any) -> Any:
            n_steps.append(0)
            if len(n_steps) == 3:
                made.close()
            return step(*given)

        shared = mercer.data.open(folder, engine="dask", scheduler=made.scheduler_address)
        model = KernelGibbsClassifier(**HOW, checkpoint=tmp_path / "c")
        monkeypatch.setattr(ScreenedSampler, "step", closing)
        with pytest.raises(ClusterError, match="gone"):
            model.fit(shared, "y")
    model.fit(mercer.data.open(folder), "y")
    assert len(n_steps) == 1 + 2 * 6  # of two chains: no step but the one that failed twice
    model.notes_ = in_memory.notes_  # which say what it went on from
    assert_same(in_memory, model)


def test_three_classes_of_many_rows_are_refused(rows: np.ndarray, two_workers: Any) -> None:
    X = da.from_array(np.column_stack([rows[:, :-1], np.arange(N) % 3]), chunks=(30_000, 4))
    with pytest.raises(UsageError, match="in memory only: there are 3 classes"):
        KernelGibbsClassifier(**HOW).fit(X[:, :-1], X[:, -1])


def test_the_list_of_an_audit_is_that_of_the_table_in_memory(
    folder: Path, two_workers: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lists = []
    for engine in ("disk", "dask"):
        out = tmp_path / f"{engine}.csv"
        words = ["audit", str(folder), "--target", "y", "--engine", engine, "--out", str(out)]
        words += [f"--set={name}={value}" for name, value in SHORT.items()]
        words += ["--set=lengthscale=median"] + ["--workers=2"] * (engine == "dask")
        assert main(words) == 0
        lists.append(out.read_text())
    assert lists[0] == lists[1]
    assert "--engine dask --workers 2 --out model.mercer" in capsys.readouterr().out
