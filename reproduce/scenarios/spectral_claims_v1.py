"""Oliva et al., Proposition 2.2: errors of the approximated kernel. Under a minute."""

from __future__ import annotations

from reproduce.reproductions import reproduced

SEED = 0


def run() -> dict[str, object]:
    """Claims with verdicts, tables, notes and what was measured."""
    return reproduced("spectral-claims", "spectral-claims-v1")
