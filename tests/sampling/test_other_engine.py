"""Chains and evaluations on a cluster that `joblib.parallel_config` names: P1, R7, R8.

Real processes of a Dask cluster; slices are so short that a run is many of them.
"""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
from joblib import parallel_config

import mercer
import mercer.data.dask as cluster
from mercer.errors import ClusterError, MercerWarning
from mercer.sampling import driver
from mercer.sampling.driver import Sampled, SamplingStoppedError, count_workers, sample
from support.quick_workers import quick_workers
from support.runs import digest, open_folder, options
from support.statistics import few_first
from support.toy_sampler import Pause, ToyAdaptation, ToySampler

__all__ = ["quick_workers"]

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")

RNG = np.random.default_rng(3)
X = RNG.standard_normal((60, 2))
Y = X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.1 * RNG.standard_normal(60)


@pytest.fixture(scope="module")
def two_workers() -> Iterator[Any]:
    with cluster.local_cluster(2) as made, distributed.Client(made) as client:
        yield client


@pytest.fixture(autouse=True)
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_SLICE", 0.02)


@pytest.fixture
def under_way(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once a slice of each of three chains was taken there, and saved."""
    taken, is_set, take = [], threading.Event(), driver._Away.take

    def count(self: Any, *given: Any) -> None:
        take(self, *given)
        taken.append(self)
        if len(taken) == 3:
            is_set.set()

    monkeypatch.setattr(driver._Away, "take", count)
    return is_set


def run(folder: Path | None = None, seconds_a_step: float = 0.001, **rest: Any) -> Sampled:
    saved = None if folder is None else open_folder(folder)
    sampler = ToySampler(before_step=Pause(seconds_a_step))
    given = {"n_jobs": None, "n_chains": 3, "thin": 3, **rest}
    return sample(sampler, options(run=saved, **given), adaptation=ToyAdaptation())


@pytest.fixture(scope="module")
def undisturbed() -> str:
    return digest(run(seconds_a_step=0.0).draws)


@pytest.fixture
def on_dask(two_workers: Any) -> Iterator[Any]:
    with parallel_config(backend="dask"):
        yield two_workers


def test_chains_go_on_there(on_dask: Any) -> None:
    given = options(5, n_chains=3, n_jobs=None)
    runs = driver.sample_longer(ToySampler(), given, (5, 30), adaptation=ToyAdaptation())
    alone = [
        sample(ToySampler(), options(n, n_chains=3), adaptation=ToyAdaptation()) for n in (5, 30)
    ]
    assert [digest(each.draws) for each in runs] == [digest(each.draws) for each in alone]


def test_chains_have_the_same_bits(
    on_dask: Any, undisturbed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slices = []
    take = driver._Away.take
    monkeypatch.setattr(
        driver._Away, "take", lambda self, *given: slices.append(take(self, *given))
    )
    assert digest(run().draws) == undisturbed
    assert len(slices) > 9  # each of three chains went there and back several times
    assert digest(run(tmp_path).draws) == undisturbed
    assert driver.load_finished(options(n_chains=3, thin=3, run=open_folder(tmp_path))) is not None


@pytest.mark.parametrize(
    "model",
    few_first(
        ["gp", "gp chains", "gp numbers", "sphere", "bank", "bank classes"],
        *("gp chains", "bank"),
    ),
)
def test_models_have_the_same_bits(on_dask: Any, model: str) -> None:
    chains = {"n_draws": 6, "n_warmup": 6, "n_chains": 2}
    given: dict[str, Any] = {"random_state": 0, "progress": False, "n_jobs": None}
    make, target = {
        "gp": (mercer.GPClassifier, Y > 0),
        "gp chains": (mercer.GPClassifier, Y > 0),
        "gp numbers": (mercer.GPRegressor, Y),
        "sphere": (mercer.KernelGibbsClassifier, Y > 0),
        "bank": (mercer.BaNKRegressor, Y),
        "bank classes": (mercer.BaNKClassifier, Y > 0),
    }[model]
    if model.startswith("gp"):
        given |= {"kernel": "rbf"}
    if model == "gp chains":
        given |= {"inference": "hmc", **chains}
    if model.startswith(("bank", "sphere")):
        given |= chains
    if model.startswith("bank"):
        given |= {"n_frequencies": 5}

    def probabilities() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mercer.ConvergenceWarning)
            fitted = make(**given).fit(X, target)
        return fitted.predict(X) if target is Y else fitted.predict_proba(X)

    there = probabilities()
    with parallel_config(backend="loky", n_jobs=1):
        here = probabilities()
    np.testing.assert_array_equal(there, here)


def test_what_follows_the_chains_is_made_there(
    on_dask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the door that knows of a cluster that is lost: passes over all rows, fits of members."""
    asked = list[str]()
    make = driver.on_engine

    def on_engine(n_jobs: int, calls: list[Any]) -> list[Any]:
        asked.append(getattr(calls[0][0], "func", calls[0][0]).__name__)
        return make(n_jobs, calls)

    monkeypatch.setattr(driver, "on_engine", on_engine)
    given = {"n_frequencies": 5, "n_draws": 4, "n_warmup": 4, "n_chains": 2, "kernel_rows": 30}
    members = [mercer.GPRegressor(inference="map"), mercer.BaNKRegressor(**given)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        mercer.BaNKRegressor(**given, progress=False).fit(X, Y)
        mercer.BaNKClassifier(**given, progress=False).fit(X, Y > 0)
        mercer.MercerRegressor(models=members, n_jobs=2, n_draws=9, progress=False).fit(X, Y)
    assert {"_one_pass", "_complete", "learn"} <= set(asked)


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_no_bit(
    on_dask: Any, undisturbed: str, under_way: threading.Event
) -> None:
    def kill() -> None:
        under_way.wait()
        os.kill(next(iter(on_dask.run(os.getpid).values())), signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    found = run(seconds_a_step=0.005)
    killer.join()
    assert digest(found.draws) == undisturbed
    on_dask.wait_for_workers(2)


def test_a_signal_stops_and_one_machine_goes_on(
    on_dask: Any, undisturbed: str, tmp_path: Path, under_way: threading.Event
) -> None:
    def stop() -> None:
        under_way.wait()
        signal.raise_signal(signal.SIGINT)

    stopper = threading.Thread(target=stop, daemon=True)
    stopper.start()
    with pytest.raises(SamplingStoppedError):
        run(tmp_path, 0.01)
    stopper.join()
    with parallel_config(backend="loky", n_jobs=1):
        resumed = run(tmp_path)
    assert "resumed" in resumed.notes[0]
    assert digest(resumed.draws) == undisturbed


def test_a_deadline_in_warmup_leaves_a_draw_of_each_chain(on_dask: Any) -> None:
    found = run(seconds_a_step=0.02, seconds=0.2)
    assert found.draws.variables["x"].shape == (3, 1)
    assert "during warm-up" in found.notes[0]


def test_r8_a_client_that_has_closed_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """joblib goes on waiting where a client closes while work is handed to it."""
    closed = SimpleNamespace(client=SimpleNamespace(status="closed"))
    monkeypatch.setattr(driver, "get_active_backend", lambda: (closed, 1))
    monkeypatch.setattr(driver, "Parallel", lambda **_: lambda calls: threading.Event().wait())
    monkeypatch.setattr(driver, "_LAST_WORDS", 0.1)
    with pytest.raises(ClusterError, match="has lost its work"):
        driver.on_engine(1, [])


def test_r8_a_lost_scheduler_leaves_what_one_machine_goes_on_from(
    undisturbed: str, tmp_path: Path, under_way: threading.Event
) -> None:
    quick = dask.config.set({"distributed.comm.timeouts.connect": "1s"})
    with quick, cluster.local_cluster(2) as made, distributed.Client(made) as client:
        workers = [psutil.Process(pid) for pid in client.run(os.getpid).values()]

        def lose() -> None:
            under_way.wait()
            made.sync(made.scheduler.close)

        loser = threading.Thread(target=lose, daemon=True)
        loser.start()
        with (
            parallel_config(backend="dask"),
            pytest.raises(ClusterError, match="has lost its work"),
        ):
            run(tmp_path, 0.02)
        loser.join()
    psutil.wait_procs(workers, timeout=60)
    resumed = run(tmp_path, n_jobs=1)
    assert "resumed" in resumed.notes[0]
    assert digest(resumed.draws) == undisturbed


def test_an_engine_that_cannot_be_asked_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many workers there are is a question, too."""

    def gone(_: int | None) -> int:
        raise OSError("Timed out trying to connect")

    monkeypatch.setattr("mercer.sampling.driver.effective_n_jobs", gone)
    with pytest.raises(ClusterError, match="Timed out"):
        count_workers(2)
