"""Figures 3 and 4 of Oliva et al.: a kernel recovered, and error and time against N and M.

Figure 4 needs ``MERCER_DATA``. About an hour on a quiet core; with ``--cache`` it goes on where it
was stopped.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

from reproduce.cells import VARIABLE
from reproduce.papers.names import reproduce
from reproduce.papers.reproduction import Settings

SEED = 0
NEEDS_DATA = True


def run() -> dict[str, object]:
    """Claims with verdicts, tables and notes of both."""
    cache = os.environ.get(VARIABLE)
    metrics: dict[str, object] = {}
    for name in ("spectral-figure-3", "spectral-figure-4"):
        folder = None if cache is None else Path(cache) / "spectral-figures-v1"
        outcome = reproduce(name, Settings(n_jobs=1, folder=folder))
        metrics[name] = {
            "claims": [asdict(claim) for claim in outcome.claims],
            "tables": [text.splitlines() for text in outcome.tables],
            "notes": list(outcome.notes),
        }
    return metrics
