"""A progress bar on the terminal or in a notebook, drawn from the board by a thread."""

from __future__ import annotations

import math
import sys
import threading
from typing import Any

from mercer.sampling.board import Board

__all__ = ["ProgressBar", "is_wanted", "tell"]


def is_wanted(progress: bool | str) -> bool:
    """Resolve "auto": a bar on a terminal or in a notebook, nothing in a pipe."""
    if isinstance(progress, bool):
        return progress
    if progress != "auto":
        raise ValueError(f"progress must be 'auto', True or False; got {progress!r}")
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def tell(message: str, progress: bool | str) -> None:
    """Say one line on standard error where a bar would be drawn."""
    if is_wanted(progress):
        print(message, file=sys.stderr, flush=True)  # noqa: T201


class ProgressBar:
    """Context manager that shows how far the chains are, ten times a second."""

    def __init__(self, board: Board, n_steps: int, n_warmup: int, *, is_shown: bool) -> None:
        self._board, self._n_steps, self._n_warmup = board, n_steps, n_warmup
        self._is_shown = is_shown
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> ProgressBar:
        if self._is_shown:
            self._thread = threading.Thread(target=self._draw, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()

    def _draw(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        n_chains = len(self._board.n_done)
        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TextColumn("[dim]{task.fields[detail]}"),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            console=Console(stderr=True),
        )
        with bar:
            task = bar.add_task("sampling", total=n_chains * self._n_steps, detail="")
            while True:
                is_over = self._is_over.wait(0.1)
                bar.update(task, **self._look())
                if is_over:
                    return

    def _look(self) -> dict[str, Any]:
        n_done = self._board.n_done
        begun = n_done[(n_done > 0) & (n_done < self._n_steps)]
        is_warming = len(begun) > 0 and bool((begun < self._n_warmup).any())
        acceptance = self._board.acceptance_rate  # not a number where steps have none
        detail = "" if math.isnan(acceptance) else f"acceptance {acceptance:.2f}"
        if self._board.n_divergent:
            detail += f", {self._board.n_divergent} divergent"
        elif is_warming and self._board.n_divergent_in_warmup:
            detail += f", {self._board.n_divergent_in_warmup} divergent in warm-up"
        return {
            "completed": int(n_done.sum()),
            "description": "warming up" if is_warming else "sampling  ",
            "detail": detail,
        }
