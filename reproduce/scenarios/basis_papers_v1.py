"""Both tables, Figure 1 and the claims of Vermaak, Godsill & Doucet; needs ``MERCER_DATA``.

Half an hour or so on a quiet core; with ``--cache`` it goes on where it was stopped. The relevance
vector machine needs the extra ``bench``. Empty the folder when the code of a method has changed.
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
NAMES = ("basis-table-1", "basis-figure-1", "basis-table-2", "basis-claims")


def run() -> dict[str, object]:
    """Of each page: claims with verdicts, tables, notes, and the errors set by set."""
    cache = os.environ.get(VARIABLE)
    folder = None if cache is None else Path(cache) / "basis-papers-v1"
    metrics: dict[str, object] = {}
    for name in NAMES:
        outcome = reproduce(name, Settings(n_jobs=1, folder=folder))
        metrics[name] = {
            "claims": [asdict(claim) for claim in outcome.claims],
            "tables": [text.splitlines() for text in outcome.tables],
            "notes": list(outcome.notes),
            "errors": {key: np.asarray(each).tolist() for key, each in outcome.measured.items()},
        }
    return metrics
