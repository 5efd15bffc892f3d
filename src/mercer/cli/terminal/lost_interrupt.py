"""Ctrl-C that arrives where an exception cannot be raised: it comes again.

Inside a callback from C (Numba loading a compiled loop, a destructor) Python prints the exception
and goes on: the command would run to its end, though the user has asked it to stop.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading

__all__ = ["repeat_lost_interrupts"]

_AFTER_SECONDS = 0.05  # by then the callback has mostly returned; if not, once more


def repeat_lost_interrupts() -> None:
    """Send the signal of a KeyboardInterrupt again that Python had to ignore."""
    sys.unraisablehook = _repeat


def _repeat(unraisable: sys.UnraisableHookArgs) -> None:
    error = unraisable.exc_value
    if not isinstance(error, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    number = getattr(error, "signal_number", signal.SIGINT)
    timer = threading.Timer(_AFTER_SECONDS, _thread.interrupt_main, (number,))
    timer.daemon = True
    timer.start()
