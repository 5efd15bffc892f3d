"""Table 1 of Barber & Williams for Pima and crabs, all repeats; needs ``MERCER_DATA``."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from reproduce.papers.names import reproduce
from reproduce.papers.reproduction import Settings

SEED = 0
NEEDS_DATA = True


def run() -> dict[str, object]:
    """Claims with verdicts, and means over repeats."""
    metrics: dict[str, object] = {}
    for name in ("gp-pima", "gp-crabs"):
        outcome = reproduce(name, Settings(n_jobs=-1))
        metrics[name] = {
            "claims": [asdict(claim) for claim in outcome.claims],
            "mean": {method: float(np.mean(v)) for method, v in outcome.measured.items()},
            "repeats": {method: v.tolist() for method, v in outcome.measured.items()},
            "notes": list(outcome.notes),
        }
    return metrics
