"""How far chains are: the board that processes write to, and the bar drawn from it.

A progress bar on the terminal or in a notebook, drawn from the board by a thread.
"""

from __future__ import annotations

import contextvars
import html
import math
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Where running chains write how far they are, and read whether they are to stop.
#
# One small array, in memory or, for chains in other processes, mapped from a temporary file. Each
# chain writes its own row only, so nothing has to be locked.

_DONE, _ACCEPTANCE, _DIVERGENT, _IN_WARMUP, _COLUMNS = 0, 1, 2, 3, 4


@dataclass(frozen=True)
class Board:
    """Progress of ``n_chains`` chains; the last row: the wish to stop, and where warm-up ends."""

    cells: NDArray[np.float64]

    @classmethod
    def in_memory(cls, n_chains: int) -> Board:
        """Make a board for chains of this process."""
        return cls(np.zeros((n_chains + 1, _COLUMNS)))

    @classmethod
    def shared(cls, n_chains: int, folder: Path) -> Board:
        """Make a board in a file that other processes map too when the board is sent to them."""
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".board", delete=False) as file:
            name = file.name
        shape = (n_chains + 1, _COLUMNS)
        return cls(np.memmap(name, dtype=np.float64, mode="w+", shape=shape))

    def __reduce__(self) -> Any:
        if isinstance(self.cells, np.memmap):
            return _map_board, (str(self.cells.filename), self.cells.shape)
        return Board, (self.cells,)

    def report(self, chain: int, n_done: int, info: Any) -> None:
        """Write the row of a chain after a step."""
        row = self.cells[chain]
        acceptance = getattr(info, "acceptance_rate", np.nan)
        before = row[_ACCEPTANCE]
        row[_ACCEPTANCE] = acceptance if n_done == 1 else 0.95 * before + 0.05 * acceptance
        is_warming = n_done <= self.cells[-1, 1]
        row[_IN_WARMUP if is_warming else _DIVERGENT] += bool(getattr(info, "is_divergent", False))
        row[_DONE] = n_done

    def begin(self, n_warmup: int) -> None:
        """Write how many steps of each chain are warm-up."""
        self.cells[-1, 1] = n_warmup

    def resume(self, chain: int, n_done: int) -> None:
        """Write the row of a chain that starts from a checkpoint."""
        self.cells[chain, _DONE] = n_done

    def take_over(self, chain: int, elsewhere: Board) -> None:
        """Add to the row of a chain what steps on another machine wrote there."""
        row, done = self.cells[chain], elsewhere.cells[chain]
        row[[_DONE, _ACCEPTANCE]] = done[[_DONE, _ACCEPTANCE]]
        row[[_IN_WARMUP, _DIVERGENT]] += done[[_IN_WARMUP, _DIVERGENT]]

    def request_stop(self) -> None:
        """Ask all chains to stop after the step in hand."""
        self.cells[-1, 0] = 1.0

    @property
    def is_stopping(self) -> bool:
        """Whether a stop was asked for."""
        return bool(self.cells[-1, 0])

    @property
    def n_done(self) -> NDArray[np.int64]:
        """Steps done, per chain."""
        return self.cells[:-1, _DONE].astype(np.int64)

    @property
    def n_divergent(self) -> int:
        """Divergences after warm-up so far, in all chains: those that diagnostics count."""
        return int(self.cells[:-1, _DIVERGENT].sum())

    @property
    def n_divergent_in_warmup(self) -> int:
        """Divergences in warm-up so far, in all chains: steps that were still too long."""
        return int(self.cells[:-1, _IN_WARMUP].sum())

    @property
    def acceptance_rate(self) -> float:
        """Moving average of the acceptance rate, mean of the chains that have begun; or nan."""
        begun = self.cells[:-1][self.cells[:-1, _DONE] > 0]
        return float(begun[:, _ACCEPTANCE].mean()) if len(begun) else float("nan")


def _map_board(filename: str, shape: tuple[int, int]) -> Board:
    return Board(np.memmap(filename, dtype=np.float64, mode="r+", shape=shape))


def is_wanted(progress: bool | str) -> bool:
    """Resolve "auto": a bar on a terminal or in a notebook, nothing in a pipe."""
    if isinstance(progress, bool):
        return progress
    if progress != "auto":
        raise ValueError(f"progress must be 'auto', True or False; got {progress!r}")
    return sys.stderr.isatty() or _in_notebook()


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules


def tell(message: str, progress: bool | str) -> None:
    """Say one line on standard error where a bar would be drawn."""
    if is_wanted(progress):
        print(message, file=sys.stderr, flush=True)  # noqa: T201


class _NotebookLine:
    """A line below a cell of a notebook, with a bar where a share is known; each replaces it.

    Needs no widgets, and what stands there in the end stays in the file of the notebook.
    """

    def __init__(self) -> None:
        from IPython.display import display

        self._shown = display({"text/plain": ""}, raw=True, display_id=True)

    def show(self, words: str, share: float | None = None) -> None:
        bar = "" if share is None else f'<progress value="{share:.3f}" max="1"></progress> '
        found = {"text/plain": words, "text/html": f"{bar}<small>{html.escape(words)}</small>"}
        self._shown.update(found, raw=True)


# What this process is doing, the innermost last: for those who draw no bar.
_IN_HAND: list[Callable[[], str]] = []


def in_hand() -> str:
    """Say what is being done just now, and how far it is; nothing where nobody knows."""
    return next((words() for words in _IN_HAND[-1:]), "")


@contextmanager
def _known_as(words: Callable[[], str]) -> Iterator[None]:
    _IN_HAND.append(words)
    try:
        yield
    finally:
        _IN_HAND.remove(words)


@contextmanager
def waiting(words: str, progress: bool | str) -> Iterator[None]:
    """Show what is being done and for how long, where a bar would be, until it is done."""
    with _known_as(lambda: words), _waiting(words, progress):
        yield


@contextmanager
def _waiting(words: str, progress: bool | str) -> Iterator[None]:
    if not is_wanted(progress):
        yield
        return
    if _in_notebook():
        line, began = _NotebookLine(), time.monotonic()
        line.show(f"{words} ...")
        yield
        line.show(f"{words}: {time.monotonic() - began:.0f} s")
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as spinner:
        spinner.add_task(words, total=None)
        yield


class ProgressBar:
    """Context manager that shows how far the chains are, ten times a second.

    ``part`` says which of several runs this is, such as "2/4"; empty for the only one.
    """

    def __init__(
        self, board: Board, n_steps: int, n_warmup: int, *, is_shown: bool, part: str = ""
    ) -> None:
        self._board, self._n_steps, self._n_warmup = board, n_steps, n_warmup
        self._total = len(board.n_done) * n_steps
        self._is_shown, self._part = is_shown, f" {part}" if part else ""
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None
        self._known = _known_as(self._words)

    def __enter__(self) -> ProgressBar:
        self._known.__enter__()
        if self._is_shown:
            draw = self._draw_in_notebook if _in_notebook() else self._draw
            # A notebook knows by the context below which cell something belongs.
            run = contextvars.copy_context().run
            self._thread = threading.Thread(target=run, args=(draw,), daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._known.__exit__(None, None, None)
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()

    def _draw(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TextColumn("[dim]{task.fields[detail]}"),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            console=Console(stderr=True),
        )
        with bar:
            task = bar.add_task("sampling", total=self._total, detail="")
            while True:
                is_over = self._is_over.wait(0.1)
                bar.update(task, **self._look())
                if is_over:
                    return

    def _draw_in_notebook(self) -> None:
        line, began, is_over = _NotebookLine(), time.monotonic(), False
        while not is_over:
            is_over = self._is_over.wait(0.5)
            seen = self._look()
            what = " ".join(seen["description"].split())
            parts = [f"{what} {seen['completed']}/{self._total}", seen["detail"]]
            parts.append(f"{time.monotonic() - began:.0f} s")
            line.show(", ".join(filter(None, parts)), seen["completed"] / max(self._total, 1))

    def _words(self) -> str:
        seen = self._look()
        what = " ".join(seen["description"].split())
        return f"{what}, {seen['completed'] / max(self._total, 1):.0%} of the steps"

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
            "description": ("warming up" if is_warming else "sampling  ") + self._part,
            "detail": detail,
        }
