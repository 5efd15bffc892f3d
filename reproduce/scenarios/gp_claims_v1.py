"""Barber & Williams: conjugate gradients against Cholesky factors. A minute on one thread."""

from __future__ import annotations

from reproduce.reproductions import reproduced

SEED = 0


def run() -> dict[str, object]:
    """Claims with verdicts, tables, notes and what was measured."""
    return reproduced("gp-claims", "gp-claims-v1")
