"""Table 2 of Oliva et al. for the data that are at hand, all folds; needs ``MERCER_DATA``.

Hours: with ``--cache`` every cell, a method on a fold, is kept there, and processes may share them
(`reproduce.papers.spectral_class_cells`). Empty the folder when the code of a method has changed.
"""

from __future__ import annotations

from reproduce.reproductions import reproduced

SEED = 0
NEEDS_DATA = True


def run() -> dict[str, object]:
    """Claims with verdicts, tables, notes and what was measured."""
    return reproduced("spectral-table-2", "spectral-table-2-v1")
