from mercer.basis.model import Schedule

SCHEDULE = Schedule(n_eager=16, block=8, later_fraction=0.25)


def test_blocks() -> None:
    begins = [t for t in range(48) if SCHEDULE.begins_block(t)]
    assert begins == [*range(16), 16, 24, 32, 40]
    assert sum(SCHEDULE.rows_in_block(t) for t in begins) == 48


def test_who_is_moved_depends_on_the_number_of_rows_alone() -> None:
    fractions = [SCHEDULE.fraction(n) for n in range(1, 33)]
    assert fractions[:16] == [1.0] * 16
    assert [n + 1 for n, f in enumerate(fractions) if f == 0.25] == [24, 32]
    assert set(fractions[16:]) == {0.0, 0.25}
