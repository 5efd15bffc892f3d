"""Ctrl-C while a state is changed in place: heeded between two steps."""

from __future__ import annotations

import signal
import threading
from types import FrameType

__all__ = ["HeldInterrupt"]


class HeldInterrupt:
    """Context manager: while it is open, Ctrl-C is held back until `check`.

    Only where Python's own handler would raise: a handler that somebody else installed stays.
    """

    def __init__(self) -> None:
        self._is_received = False
        self._is_installed = False

    def __enter__(self) -> HeldInterrupt:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._hold)
            self._is_installed = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self._is_received:
            raise KeyboardInterrupt

    def _hold(self, number: int, frame: FrameType | None) -> None:
        self._is_received = True
