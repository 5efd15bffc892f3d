"""Answers as JSON lines on standard output, each written at once."""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Sequence
from typing import Any

from mercer.cli.work.live.stopping import Stopping, StreamStoppedError
from mercer.errors import StorageError

__all__ = ["Output"]

_PIECE = 4096  # bytes that a pipe takes whole once it can be written to
_PATIENCE = 1.0  # seconds that a reader has for what is left, once a signal came


class Output:
    """Write to standard output; a reader that takes its time makes this wait, and loses nothing.

    Parameters
    ----------
    stopping : Stopping
        Once a signal came, a reader that takes nothing is not waited for.
    """

    def __init__(self, stopping: Stopping) -> None:
        self._stopping = stopping
        try:
            sys.stdout.flush()
            self._descriptor: int | None = sys.stdout.fileno()
        except (OSError, ValueError):  # replaced by something that is no file
            self._descriptor = None

    def write(self, answers: Sequence[dict[str, Any]]) -> None:
        """Write a line for each answer.

        Raises
        ------
        BrokenPipeError
            Nobody reads any more.
        StorageError
            They cannot be written: a disk is full, for instance.
        StreamStoppedError
            A signal came, and the reader took nothing for a second.
        """
        rows = [answer["row"] for answer in answers]
        text = "".join(json.dumps(answer, allow_nan=False) + "\n" for answer in answers)
        if self._descriptor is None:
            sys.stdout.write(text)
            return
        data = memoryview(text.encode())
        while data:
            self._wait(self._descriptor)
            try:
                data = data[os.write(self._descriptor, data[:_PIECE]) :]
            except BrokenPipeError:
                raise
            except OSError as error:
                first = rows[-bytes(data).count(b"\n")]
                raise StorageError(
                    f"cannot write to standard output: {error.strerror}; the answers of rows "
                    f"{first} to {rows[-1]} are lost"
                ) from error

    def _wait(self, descriptor: int) -> None:
        """Wait until something can be written."""
        if self._stopping.received is None:
            _, ready, _ = select.select([self._stopping.wake], [descriptor], [])
            if ready:
                return
        started = time.monotonic()
        while time.monotonic() < started + _PATIENCE:
            _, ready, _ = select.select([], [descriptor], [], _PATIENCE)
            if ready:
                return
        raise StreamStoppedError
