"""When particles are moved."""

from __future__ import annotations

from mercer.basis.class_filter import ClassSchedule


def test_candidates_change_hands_so_often_in_each_doubling() -> None:
    schedule = ClassSchedule(per_doubling=16, n_buffered=1 << 20, is_rare=True)
    assert all(schedule.renews_at(n) for n in range(1, 33))
    for power, times in ((32, 16), (64, 16), (128, 8), (256, 8), (512, 4), (4096, 4)):
        assert sum(schedule.renews_at(n) for n in range(power, 2 * power)) == times


def test_they_do_evenly_once_the_buffer_is_full() -> None:
    schedule = ClassSchedule(per_doubling=4, n_buffered=32)
    assert [n for n in range(100, 140) if schedule.renews_at(n)] == [104, 112, 120, 128, 136]
    rare = ClassSchedule(per_doubling=4, n_buffered=32, is_rare=True)
    assert [n for n in range(100, 140) if rare.renews_at(n)] == [112, 128]


def test_a_round_moves_each_particle_once() -> None:
    schedule = ClassSchedule(per_doubling=4, n_buffered=1 << 20)
    for first in (70, 1024):
        period = schedule.period(1024) if first == 1024 else schedule.period(70)
        start = -(-first // period) * period
        shares = [schedule.share(t, 250) for t in range(start, start + period)]
        assert [i for a, b in shares for i in range(a, b)] == list(range(250))
