"""What a command says: aligned lines, tables, progress; with ``--json`` only the JSON."""

from __future__ import annotations

import errno
import json
import sys
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console
from rich.text import Text

from mercer.data.wording import printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress

__all__ = ["Session"]

_LABEL = 10  # width of the column of labels
_PIPED_WIDTH = 200


class Proposal(Protocol):
    """A command to run next, and the words before it."""

    @property
    def sentence(self) -> str: ...

    @property
    def command(self) -> str: ...


class _Output(Console):
    """Standard output; that nobody reads it any more is an error like any other."""

    def on_broken_pipe(self) -> None:
        """Let the caller see it, where rich would exit with 1."""
        raise BrokenPipeError(errno.EPIPE, "standard output is closed")


def _stdout() -> Console:
    console = _Output(highlight=False)
    if not console.is_terminal:
        console.width = _PIPED_WIDTH
    return console


@dataclass
class Session:
    """The two streams of a command; ``is_json`` keeps words off standard output."""

    is_json: bool = False
    out: Console = field(default_factory=_stdout)
    err: Console = field(default_factory=lambda: Console(stderr=True, highlight=False))

    def say(self, label: str, words: str) -> None:
        """Say one thing, behind its label; on a terminal wrapped under it."""
        if not self.is_json:
            self._say(self.out, label, words)

    def note(self, label: str, words: str) -> None:
        """Say one thing on standard error, so that standard output can be piped on."""
        self._say(self.err, label, words)

    def propose(self, step: Proposal | None) -> None:
        """Say what to run next: the command on a line of its own, which is not wrapped."""
        if step is not None and not self.is_json:
            self._say(self.out, "", step.sentence)
            self.out.print(Text(f"{'next':<{_LABEL}}{printable(step.command)}"), soft_wrap=True)

    def blank(self) -> None:
        """Leave a line empty."""
        if not self.is_json:
            self.out.print()

    def show(self, table: RenderableType) -> None:
        """Show a table."""
        if not self.is_json:
            self.out.print(table)

    def give(self, result: dict[str, Any]) -> None:
        """Print the result as JSON, if that was asked for."""
        if self.is_json:
            sys.stdout.write(json.dumps(result, indent=2, ensure_ascii=True) + "\n")

    def progress(self) -> Progress:
        """Make a progress bar on standard error; it shows nothing where that is no terminal."""
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeElapsedColumn as Elapsed

        return Progress(
            TextColumn("{task.description:<9}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            Elapsed(),
            TextColumn("[dim]{task.fields[detail]}"),
            console=self.err,
            transient=True,
            disable=not self.err.is_terminal,
        )

    @contextmanager
    def warnings_as_lines(self) -> Iterator[None]:
        """Print each warning of the package once, as a line; leave out those of others.

        What the diagnostics of a fit warn of is said with them, at the end (`words.diagnosed`).
        """
        from mercer.errors import ConvergenceWarning, MercerWarning

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        said = {
            str(entry.message)
            for entry in caught
            if issubclass(entry.category, MercerWarning)
            and not issubclass(entry.category, ConvergenceWarning)
        }
        for words in sorted(said):
            self.note("warning", words)

    def _say(self, console: Console, label: str, words: str) -> None:
        clean = printable(words.replace("\u00a0", " "))  # of "12.5 %"
        lines = [clean]
        if console.is_terminal:
            lines = textwrap.wrap(clean, max(40, console.width - _LABEL)) or [""]
        style = "yellow" if label == "warning" else "dim"
        for position, line in enumerate(lines):
            head = label if position == 0 else ""
            text = Text.assemble((f"{head:<{_LABEL}}", style), line)
            console.print(text, soft_wrap=True)
