"""Lines of a pipe or a file, as they come: what is there is given at once."""

from __future__ import annotations

import os
import select
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mercer.data.files import reading

__all__ = ["MAX_LINE", "Line", "LineSource"]

#: Longest line, in bytes.
MAX_LINE = 2**20
_READ = 2**16  # bytes at once: what a pipe holds


class Line(NamedTuple):
    """One line without its end; ``problem`` says why it cannot be read, where it cannot."""

    number: int
    text: str
    problem: str = ""


class LineSource:
    """Cut what a file descriptor gives into lines.

    Parameters
    ----------
    descriptor : int
        Of a pipe, a file, a terminal.
    name : str
        Of it, for messages.
    wake : int, optional
        Another descriptor: `wait` ends when that can be read.
    """

    def __init__(self, descriptor: int, name: str, wake: int | None = None) -> None:
        self.name = name
        self.start = b""  # of the first read: says what the file is
        self.is_over = False
        self._descriptor = descriptor
        self._watched = [descriptor] if wake is None else [descriptor, wake]
        self._rest = bytearray()
        self._is_skipping = False
        self._n_lines = 0

    def wait(self, seconds: float | None) -> bool:
        """Wait, at most so long, until there is something to read; False if there is not."""
        ready, _, _ = select.select(self._watched, [], [], seconds)
        return self._descriptor in ready

    def read(self) -> list[Line]:
        """Return the lines that one read completes; the last one of a file needs no end.

        Raises
        ------
        StorageError
            It cannot be read.
        """
        with reading(Path(self.name)):
            data = os.read(self._descriptor, _READ)
        self.start = self.start or data
        self.is_over = not data
        if self._is_skipping:
            _, newline, data = data.partition(b"\n")
            self._is_skipping = not newline and not self.is_over
        if self.is_over:
            data = b"\n" if self._rest else b""
        body, newline, tail = data.rpartition(b"\n")
        lines = []
        if newline:
            lines = self._cut(bytes(self._rest) + body)
            self._rest.clear()
        self._rest += tail
        if len(self._rest) > MAX_LINE:
            lines.append(self._line("", f"the line is longer than {MAX_LINE} bytes"))
            self._rest.clear()
            self._is_skipping = True
        return lines

    def _cut(self, body: bytes) -> list[Line]:
        """Cut whole lines; text that is none is found line by line."""
        try:
            text = body.decode()
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text or len(body) > MAX_LINE:
            return [self._decoded(part) for part in body.split(b"\n")]
        return self._lines(text.split("\n"))

    def _lines(self, texts: Sequence[str]) -> list[Line]:
        first = self._n_lines + 1
        self._n_lines += len(texts)
        return [Line(first + k, text.removesuffix("\r")) for k, text in enumerate(texts)]

    def _decoded(self, part: bytes) -> Line:
        if len(part) > MAX_LINE:
            return self._line("", f"the line is longer than {MAX_LINE} bytes")
        if b"\0" in part:
            return self._line("", "the line holds a NUL byte, so it is no text")
        try:
            return self._line(part.decode().removesuffix("\r"))
        except UnicodeDecodeError:
            return self._line("", "the line is not UTF-8 text")

    def _line(self, text: str, problem: str = "") -> Line:
        self._n_lines += 1
        return Line(self._n_lines, text, problem)
