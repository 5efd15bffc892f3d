"""A process that takes one job after the other, and can be ended at any time.

It imports what its first job needs. Ctrl-C is blocked in it: the parent decides, and ends it by
SIGTERM, so that a job that samples can save its checkpoint first. It ends when its parent does.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from mercer.sampling.signals import StopSignals

__all__ = ["Worker", "end_processes", "start_worker"]

_PATIENCE = 1.0  # seconds that a worker has to save what it is doing


@dataclass
class Worker:
    """A process, the pipe to it, and its job, if it has one."""

    process: Any
    pipe: Connection
    position: int | None = None  # of its job
    begun: float | None = None  # time.monotonic


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
    # SIGTERM unwinds, so that temporary folders are removed.
    with suppress(EOFError, KeyboardInterrupt, BrokenPipeError), StopSignals(manner="raise"):
        while True:
            packed = pipe.recv_bytes()
            try:
                call = pickle.loads(packed)
                pipe.send(("begun", None))
                kind, content = "value", call()
            except Exception as error:
                kind, content = "error", _picklable(error)
            pipe.send((kind, content))


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
