"""Jobs in worker processes that can really be ended: by Ctrl-C, SIGTERM or a limit of CPU time.

Time is that of the worker's processor, so that a machine that is busy with other things changes
nothing.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from mercer.sampling.signals import StopSignals

# A process that takes one job after the other, and can be ended at any time.
#
# It imports what its first job needs. Ctrl-C is blocked in it: the parent decides, and ends it by
# SIGTERM, so that a job that samples can save its checkpoint first. It ends when its parent does.

_PATIENCE = 1.0  # seconds that a worker has to save what it is doing
_TICK = 0.1  # seconds between looks at the clock


@dataclass
class Worker:
    """A process, the pipe to it, and its job, if it has one."""

    process: Any
    pipe: Connection
    position: int | None = None  # of its job
    seconds: float = 0.0  # of CPU time that its job has taken


def start_worker() -> Worker:
    """Start a process that takes jobs."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs,), daemon=True)
    with _interrupts_blocked():  # the worker inherits this, for good
        process.start()
    theirs.close()
    return Worker(process, ours)


def _work(pipe: Connection) -> None:
    """Take jobs until the parent hangs up."""
    threading.Thread(target=_follow_parent, daemon=True).start()
    meter = _Meter(pipe)
    threading.Thread(target=meter.run, daemon=True).start()
    # SIGTERM unwinds, so that temporary folders are removed.
    with suppress(EOFError, KeyboardInterrupt, BrokenPipeError), StopSignals(manner="raise"):
        while True:
            packed = pipe.recv_bytes()
            try:
                call = pickle.loads(packed)
                meter.begin()
                kind, content = "value", call()
            except Exception as error:
                kind, content = "error", _picklable(error)
            meter.end(kind, content)


class _Meter:
    """Tells the parent through the pipe how much CPU time a job has taken, ten times a second.

    Compiled loops let other threads run, so that it is heard while they do.
    """

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()  # of the pipe, which takes one message at a time
        self._begun: float | None = None

    def begin(self) -> None:
        with self._lock:
            self._begun = time.process_time()
            self._pipe.send(("begun", None, 0.0))

    def end(self, kind: str, content: Any) -> None:
        with self._lock:
            seconds = 0.0 if self._begun is None else time.process_time() - self._begun
            self._begun = None
            self._pipe.send((kind, content, seconds))

    def run(self) -> None:
        with suppress(OSError):  # the parent is gone
            while True:
                time.sleep(_TICK)
                with self._lock:
                    if self._begun is not None:
                        self._pipe.send(("spent", None, time.process_time() - self._begun))


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _picklable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def end_processes(processes: Sequence[Any]) -> None:
    """End processes: by request, then by force."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + _PATIENCE
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
        if process.is_alive():
            process.kill()
            process.join()


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass(frozen=True)
class Job:
    """A call that can be pickled; jobs of one group share a limit of time."""

    group: str
    call: Callable[[], Any]
    stage: int = 0  # of use only where all its jobs end; a later one takes longer
    is_due: bool = False  # runs to its end, however long that takes


@dataclass(frozen=True)
class Outcome:
    """What became of a job: a value, an error, or neither when its group ran out of time."""

    job: Job
    value: Any = None
    error: Exception | None = None
    is_out_of_time: bool = False
    seconds: float = 0.0  # of CPU time


def run_jobs(
    jobs: Sequence[Job],
    n_workers: int,
    *,
    seconds_per_group: float | None = None,
    on_begin: Callable[[Job], None] | None = None,
    on_outcome: Callable[[Outcome], None] | None = None,
) -> list[Outcome]:
    """Run jobs, in their order, and return what became of them, in the same order.

    With one worker, and no limit of time, the jobs run in this process. The jobs of a group, but
    for those that are due, may take ``seconds_per_group`` of CPU time, summed: where a stage would
    take it above that, by its jobs that have ended, or by those of the stage before where none has,
    its running jobs are ended and the others are not begun. ``on_begin`` and ``on_outcome`` are
    called before and after each job. A KeyboardInterrupt is raised once all workers have ended.
    """
    begin = on_begin or (lambda job: None)
    tell = on_outcome or (lambda outcome: None)
    if n_workers == 1 and seconds_per_group is None:
        outcomes = []
        for job in jobs:
            begin(job)
            outcomes.append(_run_here(job))
            tell(outcomes[-1])
        return outcomes
    pool = _Pool(list(jobs), seconds_per_group, begin, tell)
    try:
        return pool.run(min(n_workers, len(jobs)))
    finally:
        end_processes([worker.process for worker in pool.workers])


@dataclass
class _Pool:
    jobs: list[Job]
    limit: float | None
    begin: Callable[[Job], None]
    tell: Callable[[Outcome], None]
    workers: list[Worker] = field(default_factory=list)
    outcomes: dict[int, Outcome] = field(default_factory=dict)

    def run(self, n_workers: int) -> list[Outcome]:
        """Keep ``n_workers`` busy until each job has an outcome."""
        while len(self.outcomes) < len(self.jobs):
            self._begin(n_workers)
            busy = {worker.pipe: worker for worker in self.workers if worker.position is not None}
            for pipe in wait(list(busy), timeout=_TICK):
                self._hear(busy[pipe])  # type: ignore[index]
            self._enforce_limit()
        return [self.outcomes[position] for position in range(len(self.jobs))]

    def _begin(self, n_workers: int) -> None:
        """Hand jobs to idle workers, and start workers while there are too few."""
        taken = {worker.position for worker in self.workers}
        for position in range(len(self.jobs)):
            if position in taken or position in self.outcomes:
                continue
            idle = next((worker for worker in self.workers if worker.position is None), None)
            if idle is None:
                if len(self.workers) >= n_workers:
                    return
                idle = start_worker()
                self.workers.append(idle)
            idle.position, idle.seconds = position, 0.0
            try:
                idle.pipe.send(self.jobs[position].call)
            except OSError:
                self._lose(idle)

    def _hear(self, worker: Worker) -> None:
        """Take in one message of a worker; if it is gone, its job has failed."""
        if worker.position is None:
            return
        try:
            kind, content, worker.seconds = worker.pipe.recv()
        except (EOFError, OSError):
            self._lose(worker)
            return
        job = self.jobs[worker.position]
        if kind == "begun":
            self.begin(job)
        elif kind != "spent":
            position, worker.position = worker.position, None
            self._settle(position, Outcome(job, **{kind: content}, seconds=worker.seconds))

    def _lose(self, worker: Worker) -> None:
        position = worker.position
        self._remove(worker)
        if position is not None:
            error = RuntimeError("its process ended unexpectedly (out of memory?)")
            self._settle(position, Outcome(self.jobs[position], error=error))

    def _enforce_limit(self) -> None:
        if self.limit is None:
            return
        for group in {job.group for job in self.jobs}:
            own = [k for k, job in enumerate(self.jobs) if job.group == group]
            left = [k for k in own if k not in self.outcomes and not self.jobs[k].is_due]
            if not left or self._expected(own, self.jobs[left[0]].stage) <= self.limit:
                continue
            for worker in [worker for worker in self.workers if worker.position in left]:
                self._remove(worker)
            for position in left:
                self._settle(position, Outcome(self.jobs[position], is_out_of_time=True))

    def _expected(self, positions: list[int], stage: int) -> float:
        """CPU seconds of the jobs of a group up to the end of a stage, as far as can be told."""
        spent = {k: self.outcomes[k].seconds for k in positions if k in self.outcomes}
        spent |= {w.position: w.seconds for w in self.workers if w.position in positions}
        total = sum(spent.values())
        left = [k for k in positions if k not in self.outcomes and self.jobs[k].stage <= stage]
        ended = [spent[k] for k in self.outcomes if k in spent and self.jobs[k].stage == stage]
        if not ended and all(self.jobs[k].stage == stage for k in left):
            ended = [spent[k] for k in spent if self.jobs[k].stage == stage - 1]
        if ended:
            each = sum(ended) / len(ended)
            total += sum(max(each - spent.get(k, 0.0), 0.0) for k in left)
        return total

    def _settle(self, position: int, outcome: Outcome) -> None:
        self.outcomes[position] = outcome
        self.tell(outcome)

    def _remove(self, worker: Worker) -> None:
        self.workers.remove(worker)
        end_processes([worker.process])
        worker.pipe.close()


def _run_here(job: Job) -> Outcome:
    try:
        return Outcome(job, value=job.call())
    except Exception as error:
        return Outcome(job, error=error)
