"""When particles are moved."""

from __future__ import annotations

from mercer.basis.class_filter import ClassSchedule


def test_so_many_moves_in_each_doubling() -> None:
    schedule = ClassSchedule(per_doubling=4, n_buffered=1 << 20)
    assert all(schedule.moves_at(n) for n in range(1, 9))
    for power in (8, 64, 1024):
        assert sum(schedule.moves_at(n) for n in range(power, 2 * power)) == 4


def test_moves_are_evenly_spaced_once_the_buffer_is_full() -> None:
    schedule = ClassSchedule(per_doubling=4, n_buffered=32)
    assert [n for n in range(100, 140) if schedule.moves_at(n)] == [104, 112, 120, 128, 136]


def test_a_round_moves_each_particle_once() -> None:
    schedule = ClassSchedule(per_doubling=4, n_buffered=1 << 20)
    for first in (70, 1024):
        period = schedule.period(1024) if first == 1024 else schedule.period(70)
        start = -(-first // period) * period
        shares = [schedule.share(t, 250) for t in range(start, start + period)]
        assert [i for a, b in shares for i in range(a, b)] == list(range(250))
