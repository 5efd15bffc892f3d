"""Rows that the workers of a Dask cluster read and sum: the one door to Dask.

A pass over the rows is cut into aligned runs of 2^k blocks, a task each; what tasks return is added
on the workers in the order of `mercer.numerics.sums.PairwiseSum`. So a sum has the same bits for
any number of workers and any k, and as in one process. Nothing as long as there are rows comes
back from a pass; who asks a source for its blocks, as ordered classes and counts that are learned
from all rows do, has them come by.
"""

from __future__ import annotations

import functools
import logging
import os
import platform
import time
import uuid
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer.data.encoding import Encoder
from mercer.data.files import Stamp, place, printable
from mercer.data.frame import Frame, null_words, refuse_twins
from mercer.data.opening import Learner, Read, encode_piece
from mercer.data.source import ArrayRows, FileRows, Part, RowSource, Work, check_array
from mercer.errors import INSTALL, ClusterError, DataError, MercerError, StorageError, UsageError
from mercer.numerics.cholesky import one_blas_thread
from mercer.numerics.sums import ROWS_PER_TERM, PairwiseSum, Plus, aligned_runs, plus

Array = NDArray[np.float64]

_TICK = 0.5  # seconds between two looks at whether to stop, and whether anyone is still there
#: Seconds that a scheduler has to answer.
SECONDS_TO_ANSWER = 10.0
#: Seconds without any worker after which a pass is given up.
PATIENCE = 30.0
# Runs for each thread of the workers: enough to be shared out evenly.
_RUNS_PER_THREAD = 4
# The most bytes of rows that one task is given, where rows lie in the memory of workers.
_BYTES_PER_RUN = 2**26
# Of clusters that are started here. By default each process looks at its own threads 100 times a
# second, for a dashboard that nobody sees, which takes 3 % of a core, and at the memory of workers
# 10 times, half of what is left while nothing happens; and workers give each block of rows back to
# the system and ask for it anew, at up to a quarter of a pass with few frequencies.
_OWN_CLUSTER = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "500ms",
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**25,
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**27,
}
_SEE = (
    "give all workers the same files under the same paths, and a cache that all see (cache=..., "
    "XDG_CACHE_HOME)"
)
_REMEDY = "what a checkpoint holds goes on by the same call, on one machine too"


# The cluster.

# Of this process (a fork has none of its parent's): a client for each scheduler, and the address
# of the cluster that was started here.
_clients: dict[tuple[int, str], Any] = {}
_started: dict[int, str] = {}


def connect(scheduler: str | None = None, n_workers: int | None = None) -> str:
    """Find or start a cluster and return the address of its scheduler.

    Parameters
    ----------
    scheduler : str, optional
        Address of a scheduler, such as "tcp://10.0.0.1:8786". By default that of the client that
        this process has (`distributed.Client`), else a cluster of this machine is started, bound
        to 127.0.0.1 and without a dashboard, which ends with the process.
    n_workers : int, optional
        Processes of a cluster that is started; one a core by default.

    Raises
    ------
    ClusterError
        Nobody answers there, or workers have other versions of what decides the bits.
    ImportError
        Dask is not installed.
    """
    distributed = _distributed()
    own = _clients.get((os.getpid(), _started.get(os.getpid(), "")))
    if scheduler is not None:
        client = _client(scheduler)
    else:
        try:
            client = distributed.get_client()
        except ValueError:
            if own is None or own.status != "running" or not _has(own, n_workers):
                own = distributed.Client(local_cluster(n_workers), set_as_default=False)
                _started[os.getpid()] = str(own.scheduler.address)
            client = own
    address = str(client.scheduler.address)
    _clients[os.getpid(), address] = client
    _check_versions(client)
    return address


def _has(client: Any, n_workers: int | None) -> bool:
    """Whether a cluster has the workers asked for."""
    return n_workers is None or len(client.nthreads()) == n_workers


def local_cluster(n_workers: int | None = None) -> Any:
    """Start workers on this machine, a thread each, which nobody from outside can reach."""
    distributed = _distributed()
    from dask import config

    try:
        with config.set(_OWN_CLUSTER):
            return distributed.LocalCluster(
                n_workers=n_workers or os.cpu_count(),
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                worker_dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
                silence_logs=logging.CRITICAL,  # what a task raises is raised here too
            )
    except RuntimeError as error:
        raise ClusterError(
            f"workers on this machine did not start: {error} They import the script that starts "
            'them, which must be a file with its work under `if __name__ == "__main__":`'
        ) from error


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise ImportError(f"rows on a cluster need Dask; {INSTALL.format('dask')}") from None
    return distributed


def _client(address: str) -> Any:
    """Return the client of this process for a scheduler."""
    key = os.getpid(), address
    if key not in _clients or _clients[key].status == "closed":
        try:
            _clients[key] = _distributed().Client(
                address, timeout=SECONDS_TO_ANSWER, set_as_default=False
            )
        except (OSError, ValueError) as error:
            words = (
                f"no Dask scheduler answers at {address}: {error}; start one by `dask scheduler`"
            )
            if key in _clients:
                words = f"the Dask scheduler at {address} is gone; {_REMEDY}"
            raise ClusterError(words) from None
    return _clients[key]


def _versions() -> dict[str, str]:
    """Tell the versions that decide what a sum is to the last bit."""
    known = {name: version(name) for name in ("mercer", "numpy", "scipy", "numba")}
    return {"Python": platform.python_version(), **known}


def _check_versions(client: Any) -> None:
    """Refuse workers that would sum otherwise than this process."""
    here = _versions()
    try:
        told = client.run(_versions)
    except Exception as error:
        raise ClusterError(f"a worker cannot run mercer: {error}; install it there too") from error
    for worker, versions in told.items():
        for name, there in versions.items():
            if there != here[name]:
                raise ClusterError(
                    f"worker {worker} has {name} {there}, and here is {here[name]}: sums could "
                    "differ in their last bits; install the same versions"
                )


# Rows that a cluster shares out.


@dataclass(frozen=True, eq=False, kw_only=True)
class ClusterRows(RowSource):
    """A source whose passes are made by the workers of a cluster.

    Parameters
    ----------
    scheduler : str
        Its address. Another process that this is sent to connects to it.
    """

    scheduler: str

    @abstractmethod
    def _given(self, client: Any) -> Callable[[int, int], Any]:
        """Prepare a pass: (first row, row after the last) of a run -> what its task reads from."""

    @property
    def _largest_level(self) -> int:
        """Runs are of at most 2 to this power of blocks."""
        return 62

    def total(self, add: Work, check: Callable[[], None] = lambda: None, plus: Plus = plus) -> Any:
        """Make one pass on the workers, which also add what its runs return: see `RowSource`."""
        client = _client(self.scheduler)
        total = PairwiseSum(lambda a, b: client.submit(plus, a, b, pure=False))
        with _telling(self.scheduler, self.name):
            for level, future in self._submitted(client, add, ROWS_PER_TERM):
                total.add(future, level)
            return _results(client, [total.total()], check)[0]

    def each(
        self, work: Work, rows_per_block: int, rows: NDArray[np.int64] | None = None
    ) -> list[Any]:
        """Have the workers look at all runs, or at those that hold some of the rows."""
        client = _client(self.scheduler)
        with _telling(self.scheduler, self.name):
            futures = [future for _, future in self._submitted(client, work, rows_per_block, rows)]
            return _results(client, futures)

    def add_up(self, function: Callable[..., Any], plus: Plus, *lists: Iterable[Any]) -> Any:
        """Add what a function returns on the workers: see `RowSource`."""
        return _add_up(self.scheduler, self.name, function, plus, *lists)

    def _submitted(
        self, client: Any, work: Work, rows_per_block: int, rows: NDArray[np.int64] | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Hand out the runs, or those that hold some of the rows: (level, future) of each."""
        self._refuse_columns()
        n_terms = self.n_blocks(ROWS_PER_TERM)
        n_threads = max(1, sum(client.nthreads().values()))
        level = level_of_runs(n_terms, n_threads)
        sent = client.submit(_same, work, pure=False)  # a task: made again where it was lost
        given = self._given(client)
        token = uuid.uuid4().hex
        for first, own_level in aligned_runs(n_terms, min(level, self._largest_level)):
            last = first + (1 << own_level)
            start, stop = first * ROWS_PER_TERM, min(last * ROWS_PER_TERM, self.n_rows)
            if rows is not None and np.searchsorted(rows, start) == np.searchsorted(rows, stop):
                continue
            yield own_level, client.submit(
                _work_on, sent, given(start, stop), start, stop, rows_per_block,
                key=f"rows {start} to {stop}-{token}", pure=False,
            )  # fmt: skip


def _results(client: Any, futures: Any, check: Callable[[], None] = lambda: None) -> list[Any]:
    """Wait for tasks; what `check` raises cancels them."""
    alone_since, looked = None, time.monotonic()
    results = []
    try:
        _make_room()
        for future in futures:
            while True:
                check()
                try:
                    future.exception(timeout=_TICK)  # waits, and leaves what it made there
                    results.append(future.result(timeout=PATIENCE))
                    break
                except TimeoutError:
                    if time.monotonic() - looked > PATIENCE / 6.0:  # it asks the scheduler
                        alone_since, looked = _look(client, alone_since), time.monotonic()
    except BaseException:
        with suppress(Exception):
            client.cancel(futures)
        raise
    return results


def _look(client: Any, alone_since: float | None) -> float | None:
    """Look whether anybody works; returns since when nobody does."""
    if client.nthreads():
        return None
    alone_since = alone_since or time.monotonic()
    if time.monotonic() - alone_since > PATIENCE:
        raise ClusterError(
            f"the scheduler at {client.scheduler.address} has had no worker for {PATIENCE:.0f} s; "
            f"{_REMEDY}"
        )
    return alone_since


@contextmanager
def _telling(scheduler: str, name: str) -> Iterator[None]:
    """Turn what Dask raises into an error that names what was lost of a table."""
    from distributed import KilledWorker

    try:
        yield
    except MercerError:
        raise
    except KilledWorker as error:
        which = str(error.task).partition("-")[0]
        raise ClusterError(
            f"{name}, {which}: the task ended its worker again and again, last "
            f"{error.last_worker}; too little memory a worker is the usual reason (give fewer "
            f"workers more of it); {_REMEDY}"
        ) from error
    except (CancelledError, OSError) as error:
        raise ClusterError(
            f"the Dask scheduler at {scheduler}, or what it knew of the rows, is gone "
            f"({type(error).__name__}); {_REMEDY}"
        ) from error


def _add_up(
    scheduler: str, name: str, function: Callable[..., Any], plus: Plus, *lists: Iterable[Any]
) -> Any:
    """Add in pairs, on the workers, what a function returns for the elements of lists."""
    client = _client(scheduler)
    sent = client.submit(_same, function, pure=False)
    total = PairwiseSum(lambda a, b: client.submit(plus, a, b, pure=False))
    with _telling(scheduler, name):
        ends = []  # the first that fails, in their order, is what is said
        for given in zip(*lists, strict=True):
            term = client.submit(_named, sent, *given, pure=False)
            ends.append(client.submit(bool, term, pure=False))
            total.add(term)
        return _results(client, [*ends, total.total()])[-1]


def level_of_runs(n_terms: int, n_threads: int) -> int:
    """Return k for so many threads: they share runs of 2^k terms, four to eight for each."""
    return max(0, (n_terms // (_RUNS_PER_THREAD * n_threads)).bit_length() - 1)


def _make_room() -> None:
    """Let a worker that waits here, for a chain that it runs, take other tasks meanwhile."""
    with suppress(ValueError, KeyError):  # this is no worker, or it has done so before
        _distributed().secede()


def _named(function: Callable[..., Any], *given: Any) -> Any:
    """Call a function on a worker, which is named where it cannot read or write a file."""
    try:
        return function(*given)
    except StorageError as error:
        raise ClusterError(
            f"worker {_distributed().get_worker().address}: {error}; {_SEE}"
        ) from None


def _work_on(work: Work, source: Any, start: int, stop: int, rows_per_block: int) -> Any:
    """Do one task, on a source of all rows, or on what `HeldRows` gives."""
    with one_blas_thread():
        if isinstance(source, tuple):
            array, rows, slice_ = source
            return work(start, replace(slice_, array=array[rows]).blocks(rows_per_block))
        first, last = start // rows_per_block, -(-stop // rows_per_block)
        return work(start, source.blocks(rows_per_block, first=first, last=last))


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, eq=False, kw_only=True)
class SharedFiles(ClusterRows):
    """Rows of files that each worker opens by the same path."""

    held: RowSource

    def _chunks(self, start: int, stop: int) -> Iterator[Array]:
        return self.held._chunks(start, stop)

    def _pick(self, positions: tuple[int, ...]) -> Self:
        held = self.held._pick(positions)
        return replace(self, names=held.names, held=held)

    def _given(self, client: Any) -> Callable[[int, int], Any]:
        sent = client.submit(_same, replace(self.held, checksums=self.checksums), pure=False)
        return lambda start, stop: sent


def share(
    source: RowSource, scheduler: str | None = None, n_workers: int | None = None
) -> ClusterRows:
    """Let the workers of a cluster read the files of a source: see `connect`.

    Raises
    ------
    UsageError
        Its rows are in the memory of this process.
    """
    if isinstance(source, ClusterRows):
        return source
    if not source.stamps:
        raise UsageError(
            f"{source.name}: is in the memory of this process, so workers cannot read it; save it "
            "as files, or give a Dask array"
        )
    stamps = {stamp.path: stamp for stamp in source.stamps}
    if isinstance(source, FileRows) and source.path not in stamps:  # of text: its parsed cache
        stamps[source.path] = Stamp.of(source.path)
    address = connect(scheduler, n_workers)
    for worker, words in _client(address).run(_amiss, tuple(stamps.values())).items():
        if words:
            raise ClusterError(f"worker {worker} {words}; {_SEE}")
    return SharedFiles(
        name=source.name, names=source.names, parts=source.parts, stamps=source.stamps,
        refusals=source.refusals, encoding=source.encoding, labels=source.labels,
        kinds=source.kinds, order=source.order, held=source, scheduler=address,
    )  # fmt: skip


def _amiss(stamps: tuple[Stamp, ...]) -> str:
    """Say what is amiss with files here, as they were seen elsewhere."""
    for stamp in stamps:
        try:
            now = Stamp.of(stamp.path)
        except MercerError:
            return f"has no {printable(stamp.path)}"
        if (now.size, now.mtime) != (stamp.size, stamp.mtime):
            return f"has another {printable(stamp.path)} than this machine, by size or time"
    return ""


@dataclass(frozen=True, eq=False, kw_only=True)
class HeldRows(ClusterRows):
    """Rows of a Dask collection, which lie in the memory of the workers."""

    keys: tuple[str, ...]  # of arrays of 2^level blocks each, the last of what is left
    level: int
    columns: tuple[int, ...]  # which of their columns, in order
    # Workers hold the arrays as long as these live; another process knows the keys only.
    futures: tuple[Any, ...] = field(default=(), repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "futures": ()}

    @property
    def _largest_level(self) -> int:
        return self.level

    def _given(self, client: Any) -> Callable[[int, int], Any]:
        futures = self.futures or tuple(_distributed().Future(key, client) for key in self.keys)
        ends = np.cumsum([part.n_rows for part in self.parts])

        def given(start: int, stop: int) -> tuple[Any, slice, _Slice]:
            at, low = divmod(start, ROWS_PER_TERM << self.level)
            first = int(np.searchsorted(ends, start, side="right"))
            last = int(np.searchsorted(ends, stop))
            slice_ = _Slice(
                name=self.name, names=self.names, columns=self.columns,
                parts=(Part(self.name, stop - start),), array=_NO_ARRAY,
                checksums=self.checksums[start // self._check_rows : -(-stop // self._check_rows)],
                owners=self.parts[first : last + 1],
                skipped=start - (int(ends[first - 1]) if first else 0),
            )  # fmt: skip
            return futures[at], slice(low, low + stop - start), slice_

        return given

    def _chunks(self, start: int, stop: int) -> Iterator[Array]:
        client = _client(self.scheduler)
        given = self._given(client)
        for first in range(start // ROWS_PER_TERM, -(-stop // ROWS_PER_TERM)):
            low, high = first * ROWS_PER_TERM, min((first + 1) * ROWS_PER_TERM, self.n_rows)
            future, rows, _ = given(low, high)
            with _telling(self.scheduler, self.name):
                block = _results(client, [client.submit(_cut, future, rows, self.columns)])[0]
            yield block[max(start - low, 0) : stop - low]

    def _pick(self, positions: tuple[int, ...]) -> Self:
        return replace(
            self,
            names=tuple(self.names[k] for k in positions),
            columns=tuple(self.columns[k] for k in positions),
        )


def _cut(array: Array, rows: slice, columns: tuple[int, ...]) -> Array:
    return np.ascontiguousarray(array[rows][:, columns])


_NO_ARRAY = np.empty((0, 0))  # until the worker has the rows


@dataclass(frozen=True, eq=False, kw_only=True)
class _Slice(ArrayRows):
    """Some rows of `HeldRows`, for a worker; the first is row ``skipped`` of the first owner."""

    owners: tuple[Part, ...]
    skipped: int

    def place(self, row: int, column: str | None = None) -> str:
        """Name the partition of a row, and its number there."""
        row += self.skipped
        for owner in self.owners:
            if row < owner.n_rows:
                return place(owner.name, row + 1, 0, column)
            row -= owner.n_rows
        raise IndexError(row)


def open_collection(
    X: Any,
    y: Any = None,
    name: str = "X",
    *,
    read: Callable[..., Frame] | None = None,
    encode: Any = None,
) -> HeldRows:
    """Keep a Dask array or frame, and possibly a further column of targets, on the workers.

    Parameters
    ----------
    X : dask.array.Array of shape (n, d), or dask.dataframe.DataFrame
    y : dask.array.Array of shape (n,), dask.dataframe.Series or scalar, optional
        The last column, called "y"; a str, or number, is the name of a column of the frame.
    read : callable, optional
        (partition, its name, columns whose strings stay what they are) -> Frame. Without it, text
        is refused.
    encode : TableEncoder, optional
        How inputs of text become numbers; without it they are refused.

    Raises
    ------
    DataError
        A column is not numbers, the lengths of chunks are not known, or not those of `y`.
    """
    import dask.array as da

    scheduler = connect()
    client = _client(scheduler)
    called = "y"
    if y is not None and np.ndim(y) == 0:
        if y not in getattr(X, "columns", ()):
            raise DataError(f"{name}: there is no column {y!r} to be the target")
        X, y, called = X.drop(columns=[y]), X[y], str(y)
    encoding: Encoder | None = None
    labels = order = tuple[str, ...]()
    if read is not None and encode is not None and _has_words(X, encode.missing):
        array, encoding, _, _ = _encoded(X, name, client, read, encode)
        names = encoding.feature_names
    else:
        names, array = _as_array(X, name, client)
    if y is not None:
        if not hasattr(y, "dask"):
            y = da.from_array(np.asanyarray(y), chunks=-1)  # type: ignore[no-untyped-call]
        if y.ndim == 1:
            y = y.to_frame() if hasattr(y, "to_frame") else y[:, np.newaxis]
        called = called if called not in names else "target"
        if read is not None and _has_words(y):
            target, _, labels, order = _encoded(y, "y", client, read)
        else:
            target = _as_array(y, "y", client)[1]
        if target.shape != (len(array), 1):
            n = len(target) if target.shape[1] == 1 else target.shape
            raise DataError(f"y has {n} values, {name} {len(array)} rows; give one for each row")
        names = (*names, called)
    n_columns = len(names)
    level = max(0, (_BYTES_PER_RUN // (8 * n_columns * ROWS_PER_TERM)).bit_length() - 1)
    sizes = array.chunks[0]
    if y is not None:
        array = da.concatenate([array, target], axis=1)  # type: ignore[no-untyped-call]
    array = array.rechunk({0: ROWS_PER_TERM << level, 1: -1})
    futures = tuple(client.compute(array.to_delayed().ravel().tolist()))
    rows = HeldRows(
        name=name, names=names, scheduler=scheduler,
        parts=tuple(Part(f"{name}, partition {k}", int(n)) for k, n in enumerate(sizes)),
        keys=tuple(future.key for future in futures), futures=futures,
        level=level, columns=tuple(range(n_columns)), encoding=encoding,
        labels={called: labels} if labels else {}, order=order,
    )  # fmt: skip
    with _telling(scheduler, name):  # what fails in making them fails here
        _results(client, [client.submit(len, future) for future in futures])
    return rows


def _chunk(values: Any, called: str, block_info: Any) -> Array:
    """Return a chunk as numbers, NaN where it is masked; refuse another shape than declared."""
    whole = block_info[None]
    if np.shape(values) != whole["chunk-shape"]:
        raise DataError(
            f"{called}, partition {whole['chunk-location'][0]}: has the shape {np.shape(values)}, "
            f"and was to have {whole['chunk-shape']}"
        )
    return np.asarray(np.ma.filled(values.astype(np.float64), np.nan))


def _as_array(data: Any, name: str, client: Any) -> tuple[tuple[str, ...], Any]:
    """Turn a Dask array or frame into names of columns and an array (n, d) of known chunks."""
    if data.ndim != 2:
        raise DataError(f"{name} has {data.ndim} dimension(s); a table has rows and columns")
    if hasattr(data, "to_dask_array"):
        columns = tuple(map(str, data.columns))
        refuse_twins(name, columns)
        for column, dtype in data.dtypes.items():
            if not _is_number(dtype):
                raise DataError(
                    f"{name}, column {column!r}: holds {dtype}, not numbers; leave it out, or "
                    "encode it before"
                )
        return columns, _numbers_of(data, name, client)
    names = check_array(name, data.dtype, data.shape)
    if np.isnan(data.shape[0]):
        raise DataError(
            f"{name}: the lengths of its chunks are not known; call {name}.compute_chunk_sizes() "
            "before"
        )
    return names, data.map_blocks(_chunk, called=name, dtype=np.float64)


def _numbers_of(frame: Any, name: str, client: Any) -> Any:
    """Have the workers make an array of each partition of a frame, where each holds numbers."""
    held, called = _held(frame, name, client)
    columns = tuple(frame.columns)
    futures = client.map(_numbers, held, [columns] * len(held), called, pure=False)
    return _joined(futures, called, len(columns), client)


def _held(frame: Any, name: str, client: Any) -> tuple[list[Any], list[str]]:
    """Keep the partitions of a frame, as they are, on the workers; name each."""
    called = [f"{name}, partition {k}" for k in range(frame.npartitions)]
    return client.compute(frame.simplify().to_delayed(optimize_graph=False)), called


def _gathered(futures: list[Any], called: list[str]) -> list[Any]:
    """Wait for what is made of each partition; the first that fails is named."""
    found = []
    for future, name in zip(futures, called, strict=True):
        try:
            found.append(future.result())
        except (MercerError, CancelledError, OSError):
            raise
        except Exception as error:  # whatever reads a partition raises what it likes
            words = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            raise DataError(f"{name}: cannot be read as the others are; {words}") from error
    return found


def _joined(futures: list[Any], called: list[str], n_columns: int, client: Any) -> Any:
    """Join arrays on the workers, one a partition."""
    import dask.array as da

    sizes = _gathered(client.map(len, futures, pure=False), called)
    arrays = [
        da.from_delayed(future, (size, n_columns), np.float64)  # type: ignore[no-untyped-call]
        for future, size in zip(futures, sizes, strict=True)
    ]
    return da.concatenate(arrays)  # type: ignore[no-untyped-call]


def _is_number(dtype: Any) -> bool:
    return getattr(dtype, "kind", "O") in "biuf"


def _refuse_lack(part: Any, columns: tuple[Any, ...], name: str) -> None:
    missing = [column for column in columns if column not in part.columns]
    if missing:
        raise DataError(f"{name}: there is no column {missing[0]!r}, which other partitions have")


def _numbers(part: Any, columns: tuple[Any, ...], name: str) -> Array:
    """Turn a partition into numbers; a column that is missing or holds something else is named."""
    _refuse_lack(part, columns, name)
    numbers = np.empty((len(part), len(columns)))
    for j, column in enumerate(columns):
        values = part[column]
        if not _is_number(values.dtype) and len(part):
            raise DataError(
                f"{name}, column {column!r}: holds {values.dtype}, not numbers as in other "
                f"partitions, such as {values.iloc[0]!r}"
            )
        numbers[:, j] = values.to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers


# Frames with text: each partition tells what it holds, then all are encoded alike.


def _has_words(data: Any, missing: str = "error") -> bool:
    """Whether a frame has columns that are not numbers, or gaps that are to be filled."""
    if not hasattr(data, "to_dask_array") or data.ndim != 2:
        return False
    return missing != "error" or not all(map(_is_number, data.dtypes))


def _encoded(
    frame: Any, name: str, client: Any, read: Callable[..., Frame], encode: Any = None
) -> tuple[Any, Encoder, tuple[str, ...], tuple[str, ...]]:
    """Encode a frame on the workers: inputs, or, without ``encode``, a target.

    Returns an array, the encoder, and the classes and their order.
    """
    columns, names = tuple(frame.columns), [str(column) for column in frame.columns]
    refuse_twins(name, names)
    texts = {str(c): c for c in columns if not _is_number(frame[c].dtype)}
    is_guessed = {c: not hasattr(frame[key].dtype, "categories") for c, key in texts.items()}
    held, called = _held(frame, name, client)
    sizes = _gathered(client.map(len, held, pure=False), called)
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    inputs, targets = ([], names) if encode is None else (names, [])
    missing: Any = getattr(encode, "missing", "error")
    dates: Any = getattr(encode, "dates", "auto")
    null_values = null_words(getattr(encode, "null_values", None))
    learner = Learner(inputs, targets, is_guessed, missing, dates, sum(sizes), null_values)
    read_part = functools.partial(_read_part, read, columns, texts, not inputs)
    reader = functools.partial(read_part, tuple(texts))
    add_up = functools.partial(_add_up, str(client.scheduler.address), name)
    encoder, labels, order = learner.learn(reader, add_up, name, held, called, starts)
    reader = functools.partial(read_part, encoder.texts() if inputs else targets if labels else ())
    encode_part = functools.partial(_encode_part, reader, encoder, targets, labels)
    arrays = client.map(encode_part, held, called, starts, pure=False)
    array = _joined(arrays, called, len(encoder.feature_names) + len(targets), client)
    return array, encoder, tuple(labels), order


def _read_part(
    read: Callable[..., Frame],
    columns: tuple[Any, ...],
    texts: Mapping[str, Any],
    is_target: bool,
    as_text: Collection[str],
    part: Any,
    name: str,
    start: int,
    names: Sequence[str],
) -> Iterator[tuple[int, Frame]]:
    """Read a partition, if it has rows, which count from 1, and its position among all."""
    if not len(part):
        return
    _refuse_lack(part, columns, name)
    _numbers(part, tuple(column for column in columns if str(column) not in texts), name)
    categories = getattr(part.dtypes.iloc[0], "categories", None) if is_target else None
    if categories is not None and _is_number(categories.dtype):  # labels
        part = part.astype(object)
    frame = read(part[list(columns)], name, as_text)
    yield start, replace(frame, origin=replace(frame.origin, row=frame.origin.row + 1))


def _encode_part(
    read: Read, encoder: Encoder, targets: list[str], labels: list[str], *part: Any
) -> Array:
    """Encode a partition: its inputs, or the target."""
    blocks = [block for block, _ in encode_piece(read, encoder, targets, labels, *part)]
    return np.vstack([np.empty((0, len(encoder.feature_names) + len(targets))), *blocks])


# Predictions.


def each_partition(call: Callable[[Any, Any], Any], model: Any, X: Any, one: Any) -> Any:
    """Let a model answer each partition of a collection: lazy arrays of what it says of the rows.

    Parameters
    ----------
    call : callable
        (model, rows) -> an array, or a tuple of arrays, of an entry a row each.
    model : object
        Sent once to each worker that computes.
    X : dask.array.Array of shape (n, d), or dask.dataframe.DataFrame
    one : ndarray, or tuple of such
        What is said of one row.
    """
    import dask.array as da
    from dask.delayed import delayed

    if X.ndim != 2:
        raise DataError(f"X has {X.ndim} dimension(s); a table of rows and columns is needed")
    is_frame = hasattr(X, "to_dask_array")
    parts = X.to_delayed() if is_frame else X.rechunk({1: -1}).to_delayed().ravel()
    sizes = [np.nan] * len(parts) if is_frame else X.chunks[0]
    held = delayed(model, name=f"model-{uuid.uuid4().hex}", traverse=False)
    answer = delayed(_answer, pure=False)
    answers = [answer(call, held, part, one) for part in parts]

    def joined(k: int | None, like: NDArray[Any]) -> Any:
        arrays = [
            da.from_delayed(  # type: ignore[no-untyped-call]
                each if k is None else each[k], (size, *like.shape[1:]), like.dtype
            )
            for each, size in zip(answers, sizes, strict=True)
        ]
        return da.concatenate(arrays)  # type: ignore[no-untyped-call]

    if isinstance(one, tuple):
        return tuple(joined(k, like) for k, like in enumerate(one))
    return joined(None, one)


def _answer(call: Callable[[Any, Any], Any], model: Any, part: Any, one: Any) -> Any:
    """Answer one partition; of one without rows, what is said of no row."""
    if len(part) == 0:
        return tuple(each[:0] for each in one) if isinstance(one, tuple) else one[:0]
    with one_blas_thread():
        return call(model, part)
