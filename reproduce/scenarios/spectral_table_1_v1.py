"""Table 1 of Oliva et al. for the data that are at hand, all folds; needs ``MERCER_DATA``.

Hours: with ``--cache`` every cell, a method on a fold, is kept there, and processes may share them
(`reproduce.papers.spectral_cells`). Empty the folder when the code of a method has changed.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import numpy as np

from reproduce.cells import VARIABLE
from reproduce.papers.names import reproduce
from reproduce.papers.reproduction import Settings

SEED = 0
NEEDS_DATA = True


def run() -> dict[str, object]:
    """Claims with verdicts, the tables of the page, and errors fold by fold."""
    cache = os.environ.get(VARIABLE)
    folder = None if cache is None else Path(cache) / "spectral-table-1-v1"
    outcome = reproduce("spectral-table-1", Settings(n_jobs=-1, folder=folder))
    return {
        "claims": [asdict(claim) for claim in outcome.claims],
        "tables": [text.splitlines() for text in outcome.tables],
        "folds": {name: np.asarray(values).tolist() for name, values in outcome.measured.items()},
        "notes": list(outcome.notes),
    }
