"""Ctrl-C and SIGTERM while rows come: the row in hand is finished, and no wait goes on."""

from __future__ import annotations

import os
import signal
import threading

from mercer.sampling.board import Board
from mercer.sampling.signals import StopSignals

__all__ = ["Stopping", "StreamStoppedError"]


class StreamStoppedError(Exception):
    """A signal has ended a stream between two rows."""


class Stopping:
    """Context manager: while it is open, the two signals set ``received`` and end a wait.

    Attributes
    ----------
    wake : int
        Descriptor that can be read once a signal has come, for `select`.
    """

    def __init__(self) -> None:
        self._signals = StopSignals(Board.in_memory(1))
        self._is_main = threading.current_thread() is threading.main_thread()

    @property
    def received(self) -> int | None:
        """The first signal that came."""
        return self._signals.received

    def check(self) -> None:
        """Raise `StreamStoppedError` if a signal came."""
        if self.received is not None:
            raise StreamStoppedError

    def __enter__(self) -> Stopping:
        self.wake, self._end = os.pipe()
        os.set_blocking(self._end, False)
        self._signals.__enter__()
        if self._is_main:
            self._previous = signal.set_wakeup_fd(self._end, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_main:
            signal.set_wakeup_fd(self._previous)
        self._signals.__exit__()
        os.close(self.wake)
        os.close(self._end)
