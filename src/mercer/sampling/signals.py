"""Ctrl-C and SIGTERM while sampling: stop soon, lose nothing.

The first signal stops a chain of this process in the middle of its step (steps change nothing, so
the state before it is whole), and asks chains of other processes to stop after theirs. A second
Ctrl-C is Python's own.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from mercer.sampling.board import Board

__all__ = ["StepInterruptedError", "StopSignals"]

# Chains in other processes have this long to finish their step and save, in seconds.
_PATIENCE = 1.2


class StepInterruptedError(Exception):
    """A signal arrived during a step or while waiting for other processes."""


class StopSignals:
    """Context manager: while it is open, SIGINT and SIGTERM set ``received``.

    Outside the main thread nothing is installed, and signals go where they went before.
    """

    def __init__(self, board: Board) -> None:
        self.board = board
        self.received: int | None = None
        self._is_interruptible = False
        self._is_waiting = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let a signal raise `StepInterruptedError` inside this block."""
        if self.received is not None:
            raise StepInterruptedError
        self._is_interruptible = True
        try:
            yield
        finally:
            self._is_interruptible = False

    def wait_for(self, call: Callable[[], Any]) -> Any:
        """Run ``call``, which waits for other processes; interrupt it if they do not stop."""
        if not self._previous or not hasattr(signal, "setitimer"):
            return call()
        handler = signal.signal(signal.SIGALRM, self._lose_patience)
        timer = signal.setitimer(signal.ITIMER_REAL, 0.0)
        self._is_waiting = True
        try:
            return call()
        finally:
            self._is_waiting = False
            signal.setitimer(signal.ITIMER_REAL, *timer)
            signal.signal(signal.SIGALRM, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        self.board.request_stop()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._is_interruptible:
            self._is_interruptible = False
            raise StepInterruptedError
        if self._is_waiting:
            signal.setitimer(signal.ITIMER_REAL, _PATIENCE)

    def _lose_patience(self, number: int, frame: FrameType | None) -> None:
        raise StepInterruptedError
