"""Which rows are candidates; that this does not bias the evidence: SMC-14."""

import numpy as np

from mercer.basis.model import Reservoir


def held(reservoir: Reservoir, n_rows: int) -> list[int]:
    """Row numbers in the slots after so many rows."""
    slots: dict[int, int] = {}
    for t in range(n_rows):
        slot = reservoir.slot(t)
        if slot is not None:
            slots[slot] = t
    return sorted(slots.values())


def test_the_first_rows_fill_it() -> None:
    assert held(Reservoir(5, 1, False), 5) == [0, 1, 2, 3, 4]
    assert len(held(Reservoir(5, 1, False), 500)) == 5


def test_it_depends_on_key_and_row_alone() -> None:
    assert held(Reservoir(5, 1, False), 99) == held(Reservoir(5, 1, False), 99)
    assert held(Reservoir(5, 1, False), 99) != held(Reservoir(5, 2, False), 99)


def test_every_row_is_held_with_the_same_probability() -> None:
    """400 keys, 4 of 20 rows: counts of 80 +- 8. False alarm 1e-6 (4.9 sd of one of 20)."""
    counts = np.zeros(20)
    for key in range(400):
        counts[held(Reservoir(4, key, False), 20)] += 1
    assert np.abs(counts - 80.0).max() < 5.5 * np.sqrt(400 * 0.2 * 0.8)


def test_where_rows_are_forgotten_recent_ones_are_preferred() -> None:
    """With 3 slots a row is admitted with probability 1 / 20, however long the stream."""
    old, recent = (np.mean(held(Reservoir(3, 7, f), 3000)) for f in (False, True))
    assert recent > 2700.0 > old
    n_admitted = sum(Reservoir(3, 7, True).slot(t) is not None for t in range(2000, 4000))
    assert 60 < n_admitted < 145
