"""Figure 5 of Oliva et al., times of all methods; needs ``MERCER_DATA``.

About ten minutes on a quiet core; with ``--cache`` it goes on where it was stopped.
"""

from __future__ import annotations

from reproduce.reproductions import reproduced

SEED = 0
NEEDS_DATA = True


def run() -> dict[str, object]:
    """Claims with verdicts, tables, notes and what was measured."""
    return reproduced("spectral-figure-5", "spectral-figure-5-v1")
