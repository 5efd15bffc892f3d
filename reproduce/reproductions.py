"""Tables and figures of the papers as metrics of a scenario."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import numpy as np

from reproduce.cells import VARIABLE
from reproduce.papers.names import reproduce
from reproduce.papers.reproduction import Settings

__all__ = ["reproduced"]


def reproduced(name: str, scenario: str) -> dict[str, object]:
    """Run a reproduction, all repeats: claims with verdicts, tables, notes, errors.

    Parameters
    ----------
    name : str
        As `mercer reproduce --list` has it.
    scenario : str
        Folder of the cache where its parts are kept, if there is a cache.
    """
    cache = os.environ.get(VARIABLE)
    folder = None if cache is None else Path(cache) / scenario
    outcome = reproduce(name, Settings(n_jobs=-1, folder=folder))
    return {
        "claims": [asdict(claim) for claim in outcome.claims],
        "tables": [text.splitlines() for text in outcome.tables],
        "notes": list(outcome.notes),
        "errors": {key: np.asarray(each).tolist() for key, each in outcome.measured.items()},
    }
