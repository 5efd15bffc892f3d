"""Table 2 of Barber & Williams, forensic glass, all shuffles; needs ``MERCER_DATA``.

A quarter of an hour or so on two quiet cores, most of it HMC; with ``--cache`` it goes on where it
was stopped. Empty the folder when the code of a method has changed.
"""

from __future__ import annotations

from reproduce.reproductions import reproduced

SEED = 0
NEEDS_DATA = True


def run() -> dict[str, object]:
    """Claims with verdicts, the table of the page, and errors shuffle by shuffle."""
    return reproduced("gp-table-2", "gp-table-2-v1")
