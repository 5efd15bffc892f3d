"""Where running chains write how far they are, and read whether they are to stop.

One small array, in memory or, for chains in other processes, mapped from a temporary file. Each
chain writes its own row only, so nothing has to be locked.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Board"]

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
