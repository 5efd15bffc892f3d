"""The command line: one file per command; and its first line, before anything else is imported."""

from __future__ import annotations

import gc
import os
import signal

__all__ = ["run"]


def run() -> None:
    """Entry point of the script ``mercer``: what it imports takes time in which Ctrl-C may come."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)
    gc.disable()  # until all is imported that a command needs: none of it is garbage
    from mercer.cli.main import run as run_command

    run_command()


def _leave(number: int, frame: object) -> None:
    """End at once: nothing has begun."""
    try:
        os.write(2, f"mercer: stopped by {signal.Signals(number).name}\n".encode())
    finally:  # also where standard error is closed
        os._exit(128 + number)
