"""Rows on a Dask cluster of real processes: DIST-1, 4, 5, 7, R7 to R9."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import signal
import threading
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import clone

import mercer
import mercer.data
import mercer.spectral.fitting as spectral_fitting
import mercer.spectral.settings as spectral_settings
from mercer.baselines import (
    AlaCarteRegressor,
    MKLClassifier,
    MKLRegressor,
    RFOClassifier,
    RFORegressor,
    RKSClassifier,
    RKSRegressor,
    paths,
)
from mercer.cli.main import main
from mercer.data import dask as cluster
from mercer.data.dask import SharedFiles
from mercer.data.dask_collections import open_collection
from mercer.data.encoding import Encoder
from mercer.data.files import first_bytes
from mercer.data.opening import Learner
from mercer.data.source import RowSource
from mercer.errors import ClusterError, DataError, UsageError
from mercer.estimation.table_encoder import frame_of
from mercer.numerics.sums import ROWS_PER_TERM
from mercer.random import stream
from mercer.sampling import driver
from support.quick_workers import quick_workers, spawned_workers
from support.row_cases import write_csv, write_npy, write_parquet
from support.statistics import few_first

__all__ = ["quick_workers", "spawned_workers"]

distributed = pytest.importorskip("distributed")
pytest.importorskip("pyarrow")
dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

N = 3 * ROWS_PER_TERM + 321
ROWS = np.random.default_rng(5).standard_normal((N, 3))
ROWS[:, 2] = np.sin(2.0 * ROWS[:, 0]) + 0.1 * ROWS[:, 2]
NAMES = ("x0", "x1", "x2")
SHORT = {
    "n_frequencies": 6, "n_draws": 2, "n_warmup": 2, "n_chains": 2, "random_state": 0,
    "standardize": "std", "progress": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def quick_start() -> None:
    """Workers have the start as it is."""


@pytest.fixture(scope="module")
def two_workers() -> Iterator[Any]:
    with cluster.local_cluster(2) as made, distributed.Client(made) as client:
        yield client


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three Parquet files with odd row groups."""
    path = tmp_path_factory.mktemp("rows")
    ends = (0, 30_000, 41_111, N)
    for k, (low, high) in enumerate(itertools.pairwise(ends)):
        write_parquet(path / f"{k}.parquet", ROWS[low:high], row_group_size=9000)
    return path


def _of_a_worker() -> tuple[bool, str, str | None]:
    import dask

    is_profiled = bool(dask.config.get("distributed.worker.profile.enabled"))
    looks = str(dask.config.get("distributed.worker.memory.monitor-interval"))
    return is_profiled, looks, os.environ.get("MALLOC_MMAP_THRESHOLD_")


def test_own_workers_do_nothing_beside(spawned_workers: None) -> None:
    """No profile for a dashboard that is off; memory of a block is kept for the next."""
    with cluster.local_cluster(1) as made, distributed.Client(made) as client:
        assert set(client.run(_of_a_worker).values()) == {(False, "500ms", str(2**25))}


class _Far:
    """What takes seconds to send."""

    def __reduce__(self) -> Any:
        time.sleep(3.0 * cluster._TICK)
        return str, ("here",)


def _make_far() -> list[_Far]:
    return [_Far()]


def test_what_takes_long_to_send_arrives(two_workers: Any) -> None:
    begun = time.monotonic()

    def check() -> None:
        assert time.monotonic() < begun + 60.0, "asked for again and again"

    assert cluster.results_of(two_workers, [two_workers.submit(_make_far)], check) == [["here"]]


def as_array(chunks: int = 17_001) -> Any:
    return da.from_array(ROWS, chunks=(chunks, 3))


def bits(model: Any) -> bytes:
    drawn = model._functions
    names = ("frequencies", "mean", "deviations")
    return b"".join(np.ascontiguousarray(getattr(drawn, name)).tobytes() for name in names)


def fitted(X: Any, y: Any, **given: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mercer.ConvergenceWarning)
        return mercer.BaNKRegressor(**{**SHORT, **given}).fit(X, y)


@pytest.fixture
def far_fewer_rows_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standardisation is learned from 400 rows; all others stay where they are."""
    monkeypatch.setattr(spectral_fitting, "_ROWS_OF_SCALES", 400)


def test_dist_1_coefficients_from_all_rows_have_the_bits_of_one_process(
    two_workers: Any, folder: Path
) -> None:
    expected = bits(fitted(mercer.data.open(folder), "x2", kernel_rows=400))
    files = mercer.data.open(folder, engine="dask")
    assert bits(fitted(files, "x2", kernel_rows=400)) == expected
    X = as_array()
    from_array = fitted(X[:, :2], X[:, 2], kernel_rows=400)
    assert bits(from_array) == expected
    assert not hasattr(from_array, "feature_names_in_")
    from_frame = fitted(dd.read_parquet(folder), "x2", kernel_rows=400)
    assert bits(from_frame) == expected
    assert from_frame.feature_names_in_.tolist() == ["x0", "x1"]
    assert bits(fitted(ROWS[:, :2], ROWS[:, 2], kernel_rows=400)) == expected


@pytest.mark.parametrize(
    "baseline", [MKLRegressor, pytest.param(RKSRegressor, marks=pytest.mark.slow)]
)
def test_dist_1_ridge_on_random_features_has_the_bits_of_one_process(
    two_workers: Any, folder: Path, baseline: type
) -> None:
    def coefficients(X: Any, y: Any) -> bytes:
        model = baseline(n_features=24, selection_rows=2000, penalties=(1e-4, 1e-2), random_state=0)
        model.fit(X, y)
        assert model.n_features_in_ == 2
        return bytes(np.append(model.coef_, model.intercept_).tobytes())

    expected = coefficients(ROWS[:, :2], ROWS[:, 2])
    assert coefficients(mercer.data.open(folder), "x2") == expected
    assert coefficients(mercer.data.open(folder, engine="dask"), "x2") == expected
    X = as_array()
    assert coefficients(X[:, :2], X[:, 2]) == expected
    assert coefficients(dd.read_parquet(folder), "x2") == expected


@pytest.mark.parametrize(
    "baseline", [RKSClassifier, pytest.param(MKLClassifier, marks=pytest.mark.slow)]
)
def test_dist_1_classes_by_random_features_have_the_bits_of_one_process(
    two_workers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, baseline: type
) -> None:
    """True and false, or numbers; labels stay what they are."""
    monkeypatch.setattr(paths, "_STEPS", 3)
    n, cuts = ROWS_PER_TERM + 321, (-0.5, 0.5)

    def fit(X: Any, y: Any, labels: list[Any]) -> bytes:
        given = {"length_factors": (1.0,), "penalties": (1e-2, 1.0), "random_state": 0}
        model = baseline(n_features=24, selection_rows=200, **given).fit(X, y)
        assert repr(model.classes_.tolist()) == repr(labels)
        assert (model.n_features_in_, model.n_iter_) == (2, 3)
        return b"".join(bytes(a.tobytes()) for a in (model.coef_, model.intercept_))

    X = da.from_array(ROWS[:n], chunks=(7001, 3))
    expected = fit(ROWS[:n, :2], ROWS[:n, 2] > 0.0, [False, True])
    assert fit(X[:, :2], X[:, 2] > 0.0, [False, True]) == expected
    y = np.digitize(ROWS[:n, 2], cuts) + 3
    write_npy(tmp_path / "rows.npy", np.column_stack([ROWS[:n, :2], y]))
    expected = fit(ROWS[:n, :2], y, [3, 4, 5])
    assert fit(mercer.data.open(tmp_path / "rows.npy"), "x2", [3, 4, 5]) == expected
    assert fit(mercer.data.open(tmp_path / "rows.npy", engine="dask"), "x2", [3, 4, 5]) == expected
    frame = dd.from_dask_array(X, columns=list(NAMES))
    assert fit(frame.assign(x2=dd.from_array(y, 7001)), "x2", [3, 4, 5]) == expected


def test_words_as_classes_of_random_features(two_workers: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS[:900], columns=list(NAMES))
    frame["x2"] = np.where(frame["x2"] > 0.0, "up", "down")
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    given: Any = {"encode": "auto", "target": "x2", "cache": tmp_path / "cache", "engine": "dask"}
    model = RKSClassifier(n_features=24, length_factors=(1.0,), penalties=(1.0,), random_state=0)
    expected = clone(model).fit(frame[["x0", "x1"]], frame["x2"])
    found = model.fit(mercer.data.open(tmp_path / "a.parquet", **given), "x2")
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert found.classes_.tolist() == ["down", "up"]
    one = mercer.data.open(np.zeros((9, 2)))
    with pytest.raises(DataError, match="one class only"):
        model.fit(one, "x1")
    with pytest.raises(DataError, match="more than 100 classes"):
        model.fit(mercer.data.open(ROWS), "x2")


@pytest.mark.parametrize("baseline", [RFOClassifier, RFORegressor, AlaCarteRegressor])
def test_what_needs_its_rows_in_memory_does_not_read_them_silently(
    two_workers: Any, folder: Path, baseline: type
) -> None:
    X = as_array()
    for given in ((X[:, :2], X[:, 2] > 0), (mercer.data.open(folder), "x2")):
        with pytest.raises(UsageError, match=f"{baseline.__name__} learns from rows in memory"):
            baseline().fit(*given)


@pytest.mark.parametrize(
    ("n_jobs", "noise"),
    [
        pytest.param(1, "normal", marks=pytest.mark.slow),
        pytest.param(2, "normal", marks=pytest.mark.slow),  # three chains do so below
        pytest.param(1, "student_t", marks=pytest.mark.slow),
        pytest.param(1, "heteroscedastic", marks=pytest.mark.slow),
        pytest.param(1, "contaminated", marks=pytest.mark.slow),  # thirty seconds
    ],
)
def test_dist_5_sweeps_over_all_rows_have_the_bits_of_one_process(
    two_workers: Any, folder: Path, far_fewer_rows_in_memory: None, n_jobs: int, noise: str
) -> None:
    given = {"kernel_rows": None, "noise": noise}
    one = fitted(mercer.data.open(folder), "x2", **given)
    files = mercer.data.open(folder, engine="dask")
    several = fitted(files, "x2", n_jobs=n_jobs, **given)
    assert bits(several) == bits(one)
    if noise == "contaminated":
        np.testing.assert_array_equal(several.target_error_proba_, one.target_error_proba_)


@pytest.mark.parametrize(
    "noise", ["contaminated", pytest.param("heteroscedastic", marks=pytest.mark.slow)]
)
def test_no_row_comes_by_where_noise_is_learned(
    two_workers: Any, monkeypatch: pytest.MonkeyPatch, noise: str
) -> None:
    monkeypatch.setattr(spectral_fitting, "_ROWS_OF_SCALES", 200)
    monkeypatch.setattr(spectral_settings, "_FUNCTIONS", 8)  # which judge each of the rows
    given = {"noise": noise, "kernel_rows": 200 if noise == "contaminated" else None, "n_chains": 1}
    X = as_array()[:40_000]
    expected = fitted(mercer.data.open(ROWS[:40_000]), "x2", **given)
    monkeypatch.setattr(RowSource, "blocks", None)  # of this process
    found = fitted(X[:, :2], X[:, 2], **given)
    assert bits(found) == bits(expected)
    if noise == "contaminated":
        np.testing.assert_array_equal(found.target_error_proba_, expected.target_error_proba_)
    else:
        ends = [each.posterior_.flat("noise_range") for each in (found, expected)]
        np.testing.assert_array_equal(*ends)


def test_dist_5_chains_on_the_workers_that_hold_the_rows(
    two_workers: Any, folder: Path, far_fewer_rows_in_memory: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three chains wait for sums of two workers, which run both."""
    expected = bits(fitted(mercer.data.open(folder), "x2", kernel_rows=None, n_chains=3))
    monkeypatch.setattr(driver, "_SLICE", 0.1)
    files = mercer.data.open(folder, engine="dask")
    with parallel_config(backend="dask"):
        assert bits(fitted(files, "x2", kernel_rows=None, n_chains=3)) == expected


@pytest.mark.parametrize("sampler", few_first(["kernel rows", "all rows"], "kernel rows"))
def test_dist_5_classes(
    two_workers: Any, folder: Path, sampler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = (ROWS[:, 2] > 0.0).astype(float)
    monkeypatch.setattr(spectral_fitting, "_ROWS_OF_SCALES", 400)
    model = mercer.BaNKClassifier(**SHORT, kernel_rows=400 if sampler == "kernel rows" else None)
    model.set_params(n_chains=1)  # its passes are long, and one chain makes all that there are
    if sampler == "all rows":
        model.set_params(sampler="polya-gamma")
    X = as_array()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mercer.ConvergenceWarning)
        there = model.fit(X[:, :2], X[:, 2] > 0.0)
        there_bits, classes = bits(there), there.classes_.tolist()
        rows = mercer.data.open(np.column_stack([ROWS[:, :2], labels]))
        assert bits(model.fit(rows, "x2")) == there_bits
    assert repr(classes) == "[False, True]"


@pytest.mark.slow  # two serve the tests above
@pytest.mark.parametrize("n_workers", [1, 3])
def test_dist_1_any_number_of_workers(folder: Path, n_workers: int) -> None:
    expected = bits(fitted(mercer.data.open(folder), "x2", kernel_rows=400))
    with cluster.local_cluster(n_workers) as made:
        files = mercer.data.open(folder, engine="dask", scheduler=made.scheduler_address)
        assert bits(fitted(files, "x2", kernel_rows=400)) == expected


def sources(folder: Path, two_workers: Any) -> list[RowSource]:
    return [
        mercer.data.open(folder, engine="dask").verified(),
        open_collection(as_array()).verified(),
        pickle.loads(pickle.dumps(mercer.data.open(folder, engine="dask"))),
    ]


def test_the_table_is_the_same_wherever_it_lies(two_workers: Any, folder: Path) -> None:
    plain = mercer.data.open(folder)
    chosen = np.array([0, 16_383, 16_384, 40_000, N - 1])
    for rows in sources(folder, two_workers):
        assert (rows.n_rows, rows.names) == (N, NAMES)
        assert rows.digest() == plain.digest()
        np.testing.assert_array_equal(rows.take(chosen), ROWS[chosen])
        np.testing.assert_array_equal(rows.take(chosen[:0]), ROWS[:0])
        np.testing.assert_array_equal(np.vstack(list(rows.blocks(30_000))), ROWS)
        picked = rows.select(["x2", "x0"])
        np.testing.assert_array_equal(picked.take(chosen), ROWS[chosen][:, [2, 0]])
        with pytest.raises(UsageError, match="ascending"):
            rows.take(np.array([3, 2]))
        if isinstance(rows, SharedFiles):
            less = rows.without_rows(chosen)
            assert less.digest() == plain.without_rows(chosen).digest()
            rest = np.delete(ROWS, chosen, axis=0)
            np.testing.assert_array_equal(less.take(chosen[:3] + 7), rest[chosen[:3] + 7])
            assert less.place(16_382, "x1") == plain.place(16_385, "x1")
        else:
            with pytest.raises(UsageError, match="out of the Dask collection"):
                rows.without_rows(chosen)


def test_values_are_counted_until_there_are_too_many(two_workers: Any) -> None:
    rows = open_collection(da.from_array(np.arange(40_000)[:, None] % 3, chunks=(9000, 1)))
    assert rows.count("x0", 5) == {0.0: 13334, 1.0: 13333, 2.0: 13333}
    assert len(open_collection(as_array()).count("x0", 5)) > 5


def test_a_checkpoint_of_one_machine_goes_on_on_a_cluster(
    two_workers: Any, folder: Path, tmp_path: Path, far_fewer_rows_in_memory: None
) -> None:
    """Begun here, ended there, to the same bits."""
    expected = bits(fitted(mercer.data.open(folder), "x2", kernel_rows=None))
    kept = {"kernel_rows": None, "checkpoint": tmp_path / "kept"}
    fitted(mercer.data.open(folder), "x2", **kept, max_seconds=0.2)
    there = fitted(mercer.data.open(folder, engine="dask"), "x2", **kept)
    assert any("resumed" in note or "loaded" in note for note in there.notes_)
    assert bits(there) == expected


@pytest.mark.slow
def test_dist_4_a_worker_that_is_killed_changes_no_bit(
    folder: Path, far_fewer_rows_in_memory: None
) -> None:
    expected = bits(fitted(mercer.data.open(folder), "x2", kernel_rows=None, n_draws=8))
    with cluster.local_cluster(2) as made:
        files = mercer.data.open(folder, engine="dask", scheduler=made.scheduler_address)
        pids = [worker.pid for worker in made.workers.values()]
        killer = threading.Timer(0.5, os.kill, (pids[0], signal.SIGKILL))
        killer.start()
        assert bits(fitted(files, "x2", kernel_rows=None, n_draws=8)) == expected
        killer.join()


def test_r7_r8_without_workers_and_without_a_scheduler_a_pass_ends_with_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 1.0)
    monkeypatch.setattr(cluster, "SECONDS_TO_ANSWER", 3.0)
    with cluster.local_cluster(1) as made:
        files = mercer.data.open(folder, engine="dask", scheduler=made.scheduler_address)
        made.scale(0)
        deadline = time.monotonic() + 30.0
        while made.scheduler.workers:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        with pytest.raises(ClusterError, match="no worker"):
            files.digest()
    with pytest.raises(ClusterError, match="is gone"):
        files.digest()


@pytest.mark.slow
def test_r7_a_task_that_always_ends_its_worker(two_workers: Any, folder: Path) -> None:
    files = mercer.data.open(folder, engine="dask")
    with pytest.raises(ClusterError, match=r"rows \d+ to \d+: the task ended its worker"):
        files.each(_end_the_worker, ROWS_PER_TERM)


def _end_the_worker(position: int, blocks: Any) -> None:
    os._exit(1)


def test_r9_nobody_from_outside_reaches_workers_that_are_started(two_workers: Any) -> None:
    psutil = pytest.importorskip("psutil")
    made = two_workers.cluster
    assert made.scheduler_address.startswith("tcp://127.0.0.1:")
    with pytest.raises(urllib.error.HTTPError, match="404") as refused:
        urllib.request.urlopen(f"http://127.0.0.1:{made.scheduler.http_server.port}/status")
    refused.value.close()
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    listening = {
        each.laddr.ip
        for process in processes
        for each in process.net_connections(kind="inet")
        if each.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


def test_a_cluster_that_was_started_serves_what_is_opened_later(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody() -> None:
        raise ValueError("no client")

    monkeypatch.setattr(distributed, "get_client", nobody)
    first = mercer.data.open(folder, engine="dask", n_workers=1)
    client = cluster.client_of(first.scheduler)
    try:
        again = mercer.data.open(folder, engine="dask")
        named = mercer.data.open(folder, engine="dask", scheduler=first.scheduler)
        assert again.scheduler == named.scheduler == first.scheduler
        assert cluster.client_of(first.scheduler) is client
    finally:
        client.shutdown()
    after = mercer.data.open(folder, engine="dask", n_workers=1)
    assert np.array_equal(after.take(np.arange(3)), ROWS[:3])
    cluster.client_of(after.scheduler).shutdown()


def test_r8_no_scheduler_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "SECONDS_TO_ANSWER", 0.5)
    with pytest.raises(ClusterError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        mercer.data.open(folder, engine="dask", scheduler="tcp://127.0.0.1:9")


def test_workers_with_other_versions(
    two_workers: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = cluster.version
    monkeypatch.setattr(
        cluster, "version", lambda name: "0.1" if name == "numpy" else version(name)
    )
    with pytest.raises(ClusterError, match=r"numpy .* and here is 0\.1"):
        mercer.data.open(folder, engine="dask")


def test_workers_that_do_not_see_the_files_are_refused(
    two_workers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine that has no shared disk, or another file under that path."""
    path = tmp_path / "rows.npy"
    write_npy(path, ROWS[:9])
    rows = mercer.data.open(path)
    os.utime(path, ns=(0, 0))
    with pytest.raises(ClusterError, match=r"worker tcp:.* has another .*rows\.npy than this"):
        cluster.share(rows)
    with pytest.raises(ClusterError, match=r"worker tcp:.*: no: cannot be read .* cache that all"):
        mercer.data.open(path, engine="dask").add_up(first_bytes, max, [Path("no")])
    path.unlink()
    with pytest.raises(ClusterError, match=r"worker tcp:.* has no .*rows\.npy"):
        cluster.share(rows)
    write_csv(tmp_path / "rows.csv", ROWS[:9])
    rows = mercer.data.open(tmp_path / "rows.csv", cache=tmp_path / "here")
    numbers = next((tmp_path / "here").rglob("rows-*.npy"))
    seen = cluster.Stamp.of(numbers)
    numbers.unlink()
    monkeypatch.setattr(cluster.Stamp, "of", lambda path: seen)  # this machine has it still
    with pytest.raises(ClusterError, match=r"has no .*here.*rows-.*\.npy; .* cache that all see"):
        cluster.share(rows)


def test_a_gap_in_the_last_partition_names_its_place(two_workers: Any, tmp_path: Path) -> None:
    rows = ROWS.copy()
    rows[N - 7, 1] = np.nan
    X = da.from_array(rows, chunks=(17_001, 3))
    with pytest.raises(DataError, match=r"X, partition 2.*row 15465, column 'x1': missing value"):
        fitted(X[:, :2], X[:, 2], kernel_rows=400)
    masked = da.ma.masked_array(as_array(), da.isnan(X))
    with pytest.raises(DataError, match=r"X, partition 2.*row 15465, column 'x1': missing value"):
        fitted(masked[:, :2], X[:, 2], kernel_rows=400)
    with pytest.raises(DataError, match=r"X, partition 2.*row 15465, column 'y': missing value"):
        fitted(X[:, ::2], np.ma.masked_invalid(rows[:, 1]), kernel_rows=400)
    write_npy(tmp_path / "rows.npy", rows)
    with pytest.raises(DataError, match=r"rows\.npy.*row 49467.*x1"):
        fitted(mercer.data.open(tmp_path / "rows.npy", engine="dask"), "x2", kernel_rows=400)


def test_what_cannot_be_used_is_said_before_any_pass(two_workers: Any) -> None:
    X = as_array()
    with pytest.raises(DataError, match="compute_chunk_sizes"):
        fitted(X[X[:, 0] > 0.0][:, :2], X[:, 2])
    with pytest.raises(DataError, match=r"y has 100 values, X 49473 rows"):
        fitted(X[:, :2], X[:100, 2])
    pandas = pytest.importorskip("pandas")
    words = dd.from_pandas(pandas.DataFrame({"a": ["x", "y"] * 9, "b": range(18)}), npartitions=2)
    with pytest.raises(DataError, match="column 'a'"):
        RKSRegressor().fit(words, "b")
    with pytest.raises(DataError, match="y: holds object, not real numbers"):
        RKSRegressor().fit(words[["b"]], np.array(["x", "y"] * 9, dtype=object))
    with pytest.raises(DataError, match="no column 'c'"):
        fitted(words, "c")
    with pytest.raises(DataError, match="fit requires y"):
        fitted(words, None)
    with pytest.raises(DataError, match=r"X has 1 dimension\(s\)"):
        fitted(X[:, 0], X[:, 2])
    with pytest.raises(DataError, match="no column 3"):
        fitted(words, 3)
    twice = dd.concat([words[["b"]], words[["b"]]], axis=1)
    with pytest.raises(DataError, match=r"column 'b' is there twice \(columns 1 and 2\)"):
        fitted(twice, X[:18, 0])
    with pytest.raises(UsageError, match="engine must be"):
        mercer.data.open(ROWS, engine="spark")
    with pytest.raises(UsageError, match="in the memory of this process"):
        mercer.data.open(ROWS, engine="dask")


@pytest.mark.parametrize(("rows", "columns"), [(slice(None), slice(1)), (slice(1), slice(None))])
def test_a_chunk_of_another_shape_than_it_says_is_named(
    two_workers: Any, rows: slice, columns: slice
) -> None:
    def cut(chunk: np.ndarray, block_info: Any = None) -> np.ndarray:
        return chunk[rows, columns] if block_info[None]["chunk-location"][0] == 1 else chunk

    X = as_array()[:40_000]
    with pytest.raises(DataError, match=r"X, partition 1: has the shape .*, and was to have"):
        open_collection(X.map_blocks(cut, dtype=float))
    with pytest.raises(DataError, match=r"y, partition \d: has the shape \(9, 1\)"):
        open_collection(X, X[:, 2].map_blocks(lambda chunk: chunk[:9], dtype=float))


def test_a_target_may_be_named_by_a_number(two_workers: Any) -> None:
    frame = dd.from_pandas(pd.DataFrame(ROWS[:600]), npartitions=2)
    rows = open_collection(frame, 1)
    assert rows.names == ("0", "2", "1")
    np.testing.assert_array_equal(rows.take(np.array([599])), ROWS[[599]][:, [0, 2, 1]])


def test_an_empty_partition_is_no_row(two_workers: Any) -> None:
    X = da.concatenate([as_array()[:100], as_array()[:0], as_array()[100:20_000]])
    rows = open_collection(X)
    assert rows.n_rows == 20_000
    np.testing.assert_array_equal(rows.take(np.array([99, 100, 19_999])), ROWS[[99, 100, 19_999]])


def test_dist_7_files_that_change_meanwhile_are_refused(two_workers: Any, tmp_path: Path) -> None:
    write_csv(tmp_path / "rows.csv", ROWS[:20_000])
    write_npy(tmp_path / "rows.npy", ROWS[:20_000])
    rows = mercer.data.open(tmp_path / "rows.npy", engine="dask").verified()
    before = os.stat(tmp_path / "rows.npy")
    write_npy(tmp_path / "rows.npy", ROWS[1:20_001])
    os.utime(tmp_path / "rows.npy", ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(DataError, match="changed"):
        rows.total(_first_cells)


def _first_cells(position: int, blocks: Iterator[np.ndarray]) -> np.ndarray:
    return np.sum([block[0] for block in blocks], axis=0)


@pytest.mark.parametrize(
    "name",
    ["GPRegressor", "GPClassifier", "SequentialKernelRegressor"],
)
def test_others_do_not_read_a_collection_into_memory(name: str) -> None:
    X = as_array()
    with pytest.raises(UsageError, match="BaNKRegressor"):
        getattr(mercer, name)().fit(X[:, :2], X[:, 2])


def test_predictions_of_a_collection_are_lazy(two_workers: Any, folder: Path) -> None:
    """Arrays and frames, a partition without rows among them, by workers; to the last digits."""
    model = fitted(ROWS[:500, :2], ROWS[:500, 2])
    X, near = as_array()[:, :2], {"rtol": 1e-12, "atol": 1e-12}
    expected = model.predict(ROWS[:, :2])
    found = model.predict(X)
    assert (type(found), found.shape, found.dtype) == (da.Array, (N,), np.float64)
    np.testing.assert_allclose(two_workers.compute(found, sync=True), expected, **near)
    frame = dd.read_parquet(folder)[["x0", "x1"]]
    some = frame[frame["x0"] < -3.0]
    some = dd.concat([some, frame.partitions[[0]].query("x0 > 99")])
    mean, std = model.predict(some, return_std=True)
    assert np.isnan(mean.shape[0])
    expected = model.predict(ROWS[ROWS[:, 0] < -3.0, :2], return_std=True)
    np.testing.assert_allclose(mean.compute(), expected[0], **near)
    np.testing.assert_allclose(std.compute(), expected[1], **near)


@pytest.mark.parametrize(
    "model",
    [
        mercer.GPClassifier(inference="map", kernel="rbf"),
        RKSClassifier(n_features=20),
        *(
            pytest.param(model, marks=pytest.mark.slow)
            for model in (
                mercer.KernelGibbsClassifier(n_draws=20, n_chains=1),
                mercer.SequentialKernelClassifier(n_particles=20),
                mercer.MercerClassifier(models="gp,boosting", n_folds=2, n_draws=20, n_chains=1),
            )
        ),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_model_predicts_a_collection(model: Any) -> None:
    labels = np.where(ROWS[:60, 0] > 0.0, "up", "down")
    X = da.from_array(ROWS[:90, :2], chunks=(25, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mercer.ConvergenceWarning)
        model.set_params(random_state=0).fit(ROWS[:60, :2], labels)
    for method in (model.predict, model.predict_proba):
        found = method(X)
        assert isinstance(found, da.Array)
        expected = method(ROWS[:90, :2])
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        if found.dtype == np.float64:
            np.testing.assert_allclose(found.compute(scheduler="sync"), expected, atol=1e-12)
        else:
            assert found.compute(scheduler="sync").tolist() == expected.tolist()
    if hasattr(model, "explain"):
        with pytest.raises(UsageError, match="predict, predict_proba"):
            model.explain(X)


def test_a_model_of_words_predicts_frames_in_parts() -> None:
    """Text of each partition is encoded as that of the training rows."""
    rows = pd.DataFrame({"a": ROWS[:80, 0], "city": np.where(ROWS[:80, 1] > 0, "Rome", "Oslo")})
    model = mercer.GPRegressor(inference="map", kernel="rbf", random_state=0)
    model.fit(rows, ROWS[:80, 0] + (rows["city"] == "Rome"))
    found = model.predict(dd.from_pandas(rows, npartitions=3)).compute(scheduler="sync")
    np.testing.assert_allclose(found, model.predict(rows), atol=1e-9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda part: part.assign(x1="word"), r"X, partition 1, column 'x1': holds .* 'word'"),
        (lambda part: part.drop(columns="x1"), r"X, partition 1: cannot be read as the others.*x1"),
        (lambda part: part.assign(x1=np.datetime64("2020-01-01")), r"partition 1, column 'x1'"),
    ],
    ids=["text", "missing", "dates"],
)
def test_a_file_of_other_columns_is_named(
    two_workers: Any, tmp_path: Path, change: Any, words: str
) -> None:
    """Types and columns are those of all files, whatever the first ones promise."""
    rows = pd.DataFrame(ROWS[:900], columns=list(NAMES))
    for k, part in enumerate((rows[:500], change(rows[500:]))):
        part.to_parquet(tmp_path / f"{k}.parquet", index=False)
    with pytest.raises(DataError, match=words):
        fitted(dd.read_parquet(tmp_path), "x2", kernel_rows=200)
    with pytest.raises(DataError, match=r"1\.parquet: column 'x1'"):
        fitted(mercer.data.open(tmp_path, engine="dask"), "x2", kernel_rows=200)


def test_the_command_line_leaves_rows_in_their_files(
    two_workers: Any, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its model has the bits of the estimator's, and predicts without a warning."""
    out, test = tmp_path / "m.mercer", tmp_path / "test.csv"
    words = ["fit", folder, "--target", "x2", "--engine", "dask", "--out", out]
    settings = {**SHORT, "kernel_rows": 400}
    for name in ("random_state", "progress"):
        settings.pop(name)
    for name, value in settings.items():
        words += ["--set", f"{name}={value}"]
    assert main(list(map(str, words))) == 0
    said = capsys.readouterr().out
    assert f"{N} rows, 2 inputs, in place" in said
    assert "numbers with a fraction, so regression" in said
    here = fitted(mercer.data.open(folder), "x2", kernel_rows=400)
    assert bits(mercer.load(out)) == bits(here)
    write_csv(test, ROWS[:200], NAMES)
    assert main(["predict", str(out), str(test), "--out", str(tmp_path / "p.csv")]) == 0
    assert "scores    200 rows: RMSE" in capsys.readouterr().err


def test_the_command_line_scores_on_rows_that_are_held_out(
    two_workers: Any, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model is that of the other rows, and the scores are those of the rows held out."""
    out = tmp_path / "m.mercer"
    words = ["fit", folder, "--target", "x2", "--engine", "dask", "--out", out, "--json"]
    settings = {**SHORT, "kernel_rows": 400}
    words += [f"--set={k}={settings[k]}" for k in settings.keys() - {"random_state", "progress"}]
    assert main(list(map(str, [*words, "--test-size", 0.001]))) == 0
    found = json.loads(capsys.readouterr().out)
    n_test = round(0.001 * N)
    chosen = stream(0, "folds").choice(N, n_test + 20_000, replace=False)
    test = np.sort(chosen[:n_test])
    here = fitted(mercer.data.open(folder).without_rows(test), "x2", kernel_rows=400)
    assert bits(mercer.load(out)) == bits(here)
    assert found["n_rows"] == N - n_test
    X_test = pd.DataFrame(ROWS[test, :2], columns=list(NAMES[:2]))
    rmse = np.sqrt(np.mean((here.predict(X_test) - ROWS[test, 2]) ** 2))
    own, *others = found["evaluation"]["entries"]
    assert own["scores"]["rmse"] == pytest.approx(rmse, rel=1e-9)
    assert [each["is_baseline"] for each in others] == [True] * 3


def test_text_and_gaps_by_the_command_line(
    two_workers: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Levels are learned over all files, and the model predicts a table as it stands."""
    rng = np.random.default_rng(4)
    city = np.repeat(["Oslo", "Rome", "Lima"], [300, 200, 400])
    table = tmp_path / "rows"
    table.mkdir()
    frame = pd.DataFrame(
        {"x": rng.normal(size=900), "city": city, "late": np.where(city > "P", "01", "2")}
    )
    frame.loc[7, "x"] = np.nan
    for k, part in enumerate((frame[:350], frame[350:])):
        part.to_csv(table / f"{k}.csv", index=False)
    out = tmp_path / "m.mercer"
    words = ["fit", str(table), "--target", "late", "--engine", "dask", "--out", str(out)]
    words += [f"--set={name}" for name in ("n_frequencies=4", "n_draws=4", "n_warmup=4")]
    assert main([*words, "--missing", "posterior"]) == 2
    assert "use impute, indicator or drop" in capsys.readouterr().err
    assert main([*words, "--missing", "drop"]) == 0
    said, told = capsys.readouterr()
    assert "1 of 900 rows have no target, or a missing value, and were dropped" in told
    assert "899 rows, 2 inputs, encoded once, into the cache" in said
    assert main([*words, "--missing", "indicator"]) == 0
    said = capsys.readouterr().out
    assert "900 rows, 2 inputs, encoded once, into the cache" in said
    assert "'late': text with 2 classes, so classification; target 'late': codes with" in said
    assert main(["predict", str(out), str(table), "--out", str(tmp_path / "p.csv")]) == 0
    predicted = pd.read_csv(tmp_path / "p.csv", dtype=str)["prediction"]
    assert (predicted.to_numpy() == frame["late"]).mean() > 0.9


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_text_of_files_is_learned_and_encoded_by_the_workers(
    two_workers: Any, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here and there the same bits and notes, and the process that calls encodes nothing."""
    given: Any = {"encode": mercer.TableEncoder("indicator"), "target": "code"}
    frame = words()
    frame.loc[[3, 577], "a"] = np.nan
    (tmp_path / "rows").mkdir()
    for k, part in enumerate((frame[:250], frame[250:])):
        path = tmp_path / "rows" / f"{k}.{kind}"
        part.to_csv(path, index=False) if kind == "csv" else part.to_parquet(path)
    here = mercer.data.open(tmp_path / "rows", cache=tmp_path / "here", **given)
    monkeypatch.setattr(Encoder, "transform", None)
    monkeypatch.setattr(Learner, "add", None)
    given |= {"engine": "dask", "cache": tmp_path / "there"}
    there = mercer.data.open(tmp_path / "rows", **given)
    assert there.digest() == here.digest()
    assert (there.encoding, there.labels) == (here.encoding, here.labels)
    monkeypatch.setattr(Learner, "learn", None)
    assert mercer.data.open(tmp_path / "rows", **given).digest() == here.digest()


def words(n: int = 600) -> pd.DataFrame:
    """Text, categories, dates, numerals as text and true or false, in the order of nothing."""
    rng = np.random.default_rng(8)
    city = rng.choice(["Rome", "Oslo", "Lima", "007"], n)
    city[: n // 2][city[: n // 2] == "Lima"] = "Oslo"  # a level of the last partitions only
    frame = pd.DataFrame({"a": rng.normal(size=n), "city": city})
    frame["size"] = pd.Categorical(rng.choice(["S", "M"], n), categories=["S", "M", "L"])
    frame["day"] = pd.Timestamp("2026-01-30") + pd.to_timedelta(rng.integers(0, 90, n), "D")
    frame["numerals"] = rng.integers(8, 12, n).astype(str)
    frame["flag"] = (rng.random(n) < 0.5).astype(object)
    frame["code"] = rng.choice(["01", "1", "2"], n)
    return frame


def test_text_of_a_dask_frame_is_encoded_as_in_memory(two_workers: Any) -> None:
    """Levels of all partitions; the same encoder, the same inputs and so the same bits."""
    frame = words()
    inputs = frame.drop(columns="code")
    X = dd.from_pandas(frame, npartitions=4)
    for encode in (mercer.TableEncoder(), mercer.TableEncoder("indicator")):
        rows = open_collection(X, "code", read=frame_of, encode=encode)
        here = clone(encode).fit(inputs)
        assert rows.encoding == here.encoding_
        found = np.vstack(list(rows.blocks(1000)))
        np.testing.assert_array_equal(found[:, :-1], here.transform(inputs))
        assert rows.labels == {"code": ("01", "1", "2")}
        np.testing.assert_array_equal(np.array(rows.labels["code"])[found[:, -1].astype(int)],
                                      frame["code"])  # fmt: skip
        inputs.loc[[3, 577], "a"] = np.nan
        inputs.loc[[5, 590], "city"] = None
        inputs.loc[400:, "flag"] = None
        X = dd.from_pandas(inputs.assign(code=frame["code"]), npartitions=4)
    with pytest.raises(DataError, match=r"X, partition 0, row 4, column 'a': missing value"):
        open_collection(X, "code", read=frame_of, encode=mercer.TableEncoder())


def test_categories_of_a_dask_frame_are_those_in_memory(two_workers: Any) -> None:
    frame = words().assign(shop=np.arange(600) % 60, sold=np.arange(600) % 7 == 0)
    encode = mercer.TableEncoder(categories=["shop", "numerals", "sold"])
    X = dd.from_pandas(frame, npartitions=4)
    rows = open_collection(X, "code", read=frame_of, encode=encode)
    here = clone(encode).fit(frame.drop(columns="code"))
    assert rows.encoding == here.encoding_
    assert sum(name.startswith("shop=") for name in rows.names) == 60
    expected = here.transform(frame.drop(columns="code"))
    np.testing.assert_array_equal(np.vstack(list(rows.blocks(1000)))[:, :-1], expected)
    encode.set_params(categories=["shops"])
    with pytest.raises(DataError, match="no column 'shops'; did you mean 'shop'"):
        open_collection(X, "code", read=frame_of, encode=encode)


def test_a_classifier_learns_words_where_they_are(two_workers: Any) -> None:
    frame = words(300)
    inputs = frame[["a", "city", "size"]]
    model = mercer.BaNKClassifier(**SHORT, n_leapfrog=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mercer.ConvergenceWarning)
        here = clone(model).fit(inputs, frame["code"])
        X = dd.from_pandas(frame, npartitions=3)[["a", "city", "size", "code"]]
        there = clone(model).fit(X, "code")
        assert bits(there) == bits(here)
        order = pd.CategoricalDtype(["2", "01", "1"], ordered=True)
        series = clone(model).fit(X.drop(columns="code"), X["code"].astype(order))
    assert bits(series) == bits(here)
    X["code"] = X["code"].astype(order)
    rows = open_collection(X, "code", read=frame_of, encode=mercer.TableEncoder())
    assert rows.order == ("2", "01", "1")
    assert there.classes_.tolist() == here.classes_.tolist() == ["01", "1", "2"]
    assert there.encoder_.encoding_ == here.encoder_.encoding_
    assert there.feature_names_in_.tolist() == ["a", "city", "size"]
    assert (there.predict(inputs) == here.predict(inputs)).all()
    with pytest.raises(DataError, match="it needs a classifier"):
        fitted(X, "code")
    with pytest.raises(DataError, match=r"column 'city': holds .*, not numbers"):
        RKSClassifier().fit(X, "code")
    with pytest.raises(DataError, match=r"column 'city': holds .*, not numbers"):
        clone(model).set_params(encode=None).fit(X, "code")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda part: part.assign(city=1.5), "X, partition 1, column 'city': holds number, and"
         " text in X, partition 0"),
        (lambda part: part.assign(a="word"), "X, partition 1, column 'a': holds "),
        (lambda part: part.drop(columns="city"), r"X, partition 1: .*'city'"),
    ],
    ids=["number", "text", "missing"],
)  # fmt: skip
def test_a_partition_of_other_types_is_named_where_there_is_text(
    two_workers: Any, change: Any, said: str
) -> None:
    frame = words(60)[["a", "city", "code"]].astype({"city": object, "code": object})
    parts = [frame[:30], change(frame[30:])]
    with dask.config.set({"dataframe.convert-string": False}):
        X = dd.from_map(lambda k: parts[k], [0, 1], meta=frame[:0], enforce_metadata=False)
        with pytest.raises(DataError, match=said):
            open_collection(X, "code", read=frame_of, encode=mercer.TableEncoder())


@pytest.mark.parametrize(
    ("column", "cells", "said"),
    [
        ("a", pd.to_timedelta(np.arange(60), "h"), "column 'a' is of type timedelta"),
        ("a", np.where(np.arange(60) == 30, np.inf, 1.0), r"partition 1, row 1, .*'a': infinite"),
        ("code", pd.to_timedelta(np.arange(60), "h"), "Input y holds timedelta64.*turn it into"),
        ("code", pd.Timestamp("2026-01-01") + pd.to_timedelta(8 * np.arange(60), "h"),
         "Input y holds datetime64.*turn it into"),
        ("code", pd.Series([[k] for k in range(60)]), "column 'code': the target is neither"),
    ],
)  # fmt: skip
def test_cells_of_a_frame_that_cannot_be_used_are_named(
    two_workers: Any, column: str, cells: Any, said: str
) -> None:
    frame = words(60)[["a", "city", "code"]].assign(**{column: cells})
    with dask.config.set({"dataframe.convert-string": False}):
        X = dd.from_map(lambda k: frame[30 * k : 30 * k + 30], [0, 1], meta=frame[:0])
        with pytest.raises(DataError, match=said):
            mercer.BaNKClassifier(**SHORT).fit(X, "code")


def test_r6_a_checkpoint_of_another_command_is_refused(
    two_workers: Any, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["fit", "--target", "x2", "--engine", "dask", "--checkpoint", str(tmp_path / "run")]
    words += [f"--set={name}" for name in ("n_frequencies=4", "n_warmup=4", "kernel_rows=500")]
    first, more = str(folder / "2.parquet"), ["--seed", "1", "--set", "n_draws=4"]
    assert main([*words, first, *more]) == 0
    assert f"the state is kept in {tmp_path / 'run'}" in capsys.readouterr().out
    assert main([*words, first, *more, "--workers", "2"]) == 0
    assert "loaded the finished run" in capsys.readouterr().out
    for other, difference in (
        ([first, "--seed", "2", "--set", "n_draws=4"], "seed 1, and this is 2"),
        ([first, "--seed", "1", "--set", "n_draws=5"], "'n_draws': 5"),
        ([str(folder / "1.parquet"), *more], "begun with other data"),
    ):
        assert main([*words, *other]) == 4
        assert difference in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["--cv", "3"], "--cv: not with --engine"),
        (["--model", "gp"], "needs all rows in memory"),
        (["--drop", "x9"], "x9"),
        (["--drop", "x0, x2"], "the target 'x2' is among the columns to drop"),
    ],
)
def test_the_command_line_refuses_what_needs_all_rows(
    two_workers: Any, folder: Path, words: list[str], refusal: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    given = ["fit", str(folder), "--target", "x2", "--engine", "dask", *words]
    assert main(given) in (2, 3)
    assert refusal in capsys.readouterr().err
