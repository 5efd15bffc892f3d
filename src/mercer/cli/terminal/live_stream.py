"""The panel of `stream`: one row of numbers that changes while rows come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.table import Table

from mercer.cli.terminal.score_table import plain_table

__all__ = ["LivePanel"]

_EVERY = 0.25  # seconds between two pictures


class LivePanel:
    """Draw numbers by name, at most four times a second.

    Parameters
    ----------
    console : Console
    is_shown : bool
        False: nothing is drawn.
    clock : callable
        Returns seconds.
    """

    def __init__(
        self, console: Console, *, is_shown: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._is_shown = is_shown
        self._clock = clock
        self._live: Live | None = None
        self._next = clock()

    @property
    def seconds_left(self) -> float | None:
        """Seconds to the next picture; None: there is none."""
        return None if self._live is None else max(0.0, self._next - self._clock())

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Draw while the block runs."""
        if not self._is_shown:
            yield
            return
        live = Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        with live:
            self._live = live
            yield
        self._live = None

    def tick(self, facts: Callable[[], Mapping[str, str]]) -> None:
        """Draw anew if it is time."""
        if self._live is not None and self._clock() >= self._next:
            self._live.update(_table(facts()), refresh=True)
            self._next = self._clock() + _EVERY


def _table(facts: Mapping[str, str]) -> Table:
    table = plain_table(*facts, n_text=0)
    table.add_row(*facts.values())
    return table
