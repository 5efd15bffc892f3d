"""Rows that the workers of a Dask cluster read and sum: the one door to Dask.

A pass over the rows is cut into aligned runs of 2^k blocks, a task each; what tasks return is added
on the workers in the order of `mercer.numerics.sums.PairwiseSum`. So a sum has the same bits for
any number of workers and any k, and as in one process. Nothing as long as there are rows comes
back from a pass; who asks a source for its blocks, as ordered classes and counts that are learned
from all rows do, has them come by.
"""

from __future__ import annotations

import functools
import itertools
import logging
import os
import platform
import time
import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from mercer.data.files import Stamp, printable
from mercer.data.source import FileRows, LessRows, Make, RowSource, Work
from mercer.errors import INSTALL, ClusterError, MercerError, StorageError, UsageError
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
# The most bytes of rows that one task is given, where rows lie in the memory of workers.
_BYTES_PER_RUN = 2**26
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
    distributed = distributed_package()
    own = _clients.get((os.getpid(), _started.get(os.getpid(), "")))
    if scheduler is not None:
        client = client_of(scheduler)
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
    distributed = distributed_package()
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


def distributed_package() -> Any:
    """Load the scheduler and workers of Dask, an extra."""
    try:
        import distributed
    except ImportError:
        raise ImportError(f"rows on a cluster need Dask; {INSTALL.format('dask')}") from None
    return distributed


def client_of(address: str) -> Any:
    """Return the client of this process for a scheduler."""
    key = os.getpid(), address
    if key not in _clients or _clients[key].status == "closed":
        try:
            _clients[key] = distributed_package().Client(
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
        client = client_of(self.scheduler)
        total = PairwiseSum(lambda a, b: client.submit(plus, a, b, pure=False))
        with telling(self.scheduler, self.name):
            for level, future in self._submitted(client, add, ROWS_PER_TERM):
                total.add(future, level)
            return results_of(client, [total.total()], check)[0]

    def keep(self, make: Make, width: int, folder: Path) -> HeldArrays:
        """Have the workers keep what a function makes of the blocks: see `RowSource`."""
        client = client_of(self.scheduler)
        work = functools.partial(_made, make)
        with telling(self.scheduler, self.name):
            level = level_of_bytes(4 * width)
            runs = self._submitted(client, work, ROWS_PER_TERM, largest=level)
            futures = tuple(future for _, future in runs)
            n_rows = results_of(client, client.map(len, futures, pure=False))
        keys = tuple(future.key for future in futures)
        return HeldArrays(self.scheduler, self.name, tuple(n_rows), width, keys, futures)

    def each(
        self, work: Work, rows_per_block: int, rows: NDArray[np.int64] | None = None
    ) -> list[Any]:
        """Have the workers look at all runs, or at those that hold some of the rows."""
        client = client_of(self.scheduler)
        with telling(self.scheduler, self.name):
            futures = [future for _, future in self._submitted(client, work, rows_per_block, rows)]
            return results_of(client, futures)

    def add_up(self, function: Callable[..., Any], plus: Plus, *lists: Iterable[Any]) -> Any:
        """Add what a function returns on the workers: see `RowSource`."""
        return add_up_on(self.scheduler, self.name, function, plus, *lists)

    def _submitted(
        self,
        client: Any,
        work: Work,
        rows_per_block: int,
        rows: NDArray[np.int64] | None = None,
        largest: int = 62,
    ) -> Iterator[tuple[int, Any]]:
        """Hand out the runs, or those that hold some of the rows: (level, future) of each."""
        self._refuse_columns()
        n_terms = self.n_blocks(ROWS_PER_TERM)
        n_threads = max(1, sum(client.nthreads().values()))
        level = level_of_runs(n_terms, n_threads)
        sent = client.submit(_same, work, pure=False)  # a task: made again where it was lost
        given = self._given(client)
        token = uuid.uuid4().hex
        for first, own_level in aligned_runs(n_terms, min(level, largest, self._largest_level)):
            last = first + (1 << own_level)
            start, stop = first * ROWS_PER_TERM, min(last * ROWS_PER_TERM, self.n_rows)
            if rows is not None and np.searchsorted(rows, start) == np.searchsorted(rows, stop):
                continue
            yield own_level, client.submit(
                _work_on, sent, given(start, stop), start, stop, rows_per_block,
                key=f"rows {start} to {stop}-{token}", pure=False,
            )  # fmt: skip


def results_of(client: Any, futures: Any, check: Callable[[], None] = lambda: None) -> list[Any]:
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
def telling(scheduler: str, name: str) -> Iterator[None]:
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


def add_up_on(
    scheduler: str, name: str, function: Callable[..., Any], plus: Plus, *lists: Iterable[Any]
) -> Any:
    """Add in pairs, on the workers, what a function returns for the elements of lists."""
    client = client_of(scheduler)
    sent = client.submit(_same, function, pure=False)
    total = PairwiseSum(lambda a, b: client.submit(plus, a, b, pure=False))
    with telling(scheduler, name):
        ends = []  # the first that fails, in their order, is what is said
        for given in zip(*lists, strict=True):
            term = client.submit(_named, sent, *given, pure=False)
            ends.append(client.submit(bool, term, pure=False))
            total.add(term)
        return results_of(client, [*ends, total.total()])[-1]


def level_of_runs(n_terms: int, n_threads: int) -> int:
    """Return k for so many threads: they share runs of 2^k terms, four to eight for each."""
    return max(0, (n_terms // (_RUNS_PER_THREAD * n_threads)).bit_length() - 1)


def level_of_bytes(bytes_per_row: int) -> int:
    """Return k for rows that lie in the memory of workers: runs of 2^k terms are small there."""
    return max(0, (_BYTES_PER_RUN // (bytes_per_row * ROWS_PER_TERM)).bit_length() - 1)


def _make_room() -> None:
    """Let a worker that waits here, for a chain that it runs, take other tasks meanwhile."""
    with suppress(ValueError, KeyError):  # this is no worker, or it has done so before
        distributed_package().secede()


def _named(function: Callable[..., Any], *given: Any) -> Any:
    """Call a function on a worker, which is named where it cannot read or write a file."""
    try:
        return function(*given)
    except StorageError as error:
        raise ClusterError(
            f"worker {distributed_package().get_worker().address}: {error}; {_SEE}"
        ) from None


def _work_on(work: Work, source: Any, start: int, stop: int, rows_per_block: int) -> Any:
    """Do one task, on a source of all rows, or on what `HeldRows` gives."""
    with one_blas_thread():
        if isinstance(source, tuple):
            array, rows, slice_ = source
            return work(start, replace(slice_, array=array[rows]).blocks(rows_per_block))
        first, last = start // rows_per_block, -(-stop // rows_per_block)
        return work(start, source.blocks(rows_per_block, first=first, last=last))


def _made(make: Make, first: int, blocks: Iterator[Array]) -> NDArray[np.float32]:
    return np.concatenate(list(make(first, blocks)))


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, eq=False, kw_only=True)
class SharedFiles(ClusterRows):
    """Rows of files that each worker opens by the same path."""

    held: RowSource

    def without_rows(self, rows: NDArray[np.integer[Any]]) -> SharedFiles:
        """Leave out some rows: see `RowSource`."""
        held = self.held.without_rows(rows)
        return replace(self, parts=held.parts, held=held, checksums=())

    def located(
        self, rows: NDArray[np.integer[Any]]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Find rows in their files: see `RowSource`."""
        return self.held.located(rows)

    def _chunks(self, start: int, stop: int) -> Iterator[Array]:
        return self.held._chunks(start, stop)

    def _pick(self, positions: tuple[int, ...]) -> Self:
        held = self.held._pick(positions)
        return replace(self, names=held.names, held=held)

    def _given(self, client: Any) -> Callable[[int, int], Any]:
        held = replace(self.held, checksums=self.checksums, has_gaps=self.has_gaps)
        sent = client.submit(_same, held, pure=False)
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
    held = source
    while isinstance(held, LessRows):
        held = held.held
    if isinstance(held, FileRows) and held.path not in stamps:  # of text: its parsed cache
        stamps[held.path] = Stamp.of(held.path)
    address = connect(scheduler, n_workers)
    for worker, words in client_of(address).run(_amiss, tuple(stamps.values())).items():
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


# Rows of numbers that workers keep.


_passes = itertools.count()  # over arrays that are kept, of this process


@dataclass(frozen=True, eq=False)
class HeldArrays:
    """Arrays in single precision, one after another as many rows, which workers keep.

    What has no room in the memory of a worker lies on its disk; what is lost with a worker is made
    again by another.
    """

    scheduler: str
    name: str  # of the table that they are made of
    n_rows: tuple[int, ...]  # of each
    width: int
    keys: tuple[str, ...]
    # Workers keep the arrays as long as these live; another process knows the keys only.
    futures: tuple[Any, ...] = field(default=(), repr=False)
    dtype: ClassVar[np.dtype[np.float32]] = np.dtype(np.float32)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "futures": ()}

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def shape(self) -> tuple[int, int]:
        """Of all of them, as of one array."""
        return sum(self.n_rows), self.width

    def each(self, work: Callable[[int, Iterator[Any]], Any]) -> list[Any]:
        """Have the workers look at each array, in blocks, as `RowSource.each` does.

        Every other time from the last to the first: what has room in memory is what was seen last.
        """
        client = client_of(self.scheduler)
        held = self.futures or [distributed_package().Future(key, client) for key in self.keys]
        starts = np.cumsum([0, *self.n_rows]).tolist()
        sent = client.submit(_same, work, pure=False)
        way = -1 if next(_passes) % 2 else 1
        with telling(self.scheduler, self.name):
            futures = [
                client.submit(_look_at, sent, array, start, pure=False)
                for array, start in list(zip(held, starts, strict=False))[::way]
            ]
            return results_of(client, futures[::way])


def _look_at(work: Callable[..., Any], array: NDArray[np.float32], first: int) -> Any:
    begins = range(0, len(array), ROWS_PER_TERM)
    with one_blas_thread():
        return work(first, (array[begin : begin + ROWS_PER_TERM] for begin in begins))
