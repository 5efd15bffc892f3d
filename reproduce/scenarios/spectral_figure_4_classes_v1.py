"""Panels of classification of Figure 4 of Oliva et al.; needs ``MERCER_DATA``.

Error and time against N and against M, as `mercer reproduce spectral-figure-4` has them beside
those of regression. A quarter of an hour; with ``--cache`` it goes on where it was stopped.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

from reproduce.cells import VARIABLE
from reproduce.papers.reproduction import Settings
from reproduce.papers.spectral_figure_4_classes import class_claims, class_curves

SEED = 0
NEEDS_DATA = True


def run() -> dict[str, object]:
    """Claims with verdicts, errors and seconds of each fit."""
    cache = os.environ.get(VARIABLE)
    folder = None if cache is None else Path(cache) / "spectral-figure-4-classes-v1"
    settings = Settings(n_jobs=1, folder=folder)
    curves = class_curves(settings)
    errors, seconds = curves.flat()
    return {
        "claims": [asdict(claim) for claim in class_claims(curves, settings)],
        "tables": [],
        "notes": [],
        "errors": {name: each.tolist() for name, each in errors.items()},
        "seconds": {name: each.tolist() for name, each in seconds.items()},
    }
