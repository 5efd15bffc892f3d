from __future__ import annotations

from mercer.cli.stream_plan import MOST, Remembered


def test_the_oldest_is_forgotten() -> None:
    rows: Remembered[int] = Remembered()
    for k in range(MOST + 2):
        rows.add(k, k)
    assert len(rows) == MOST
    assert [rows.take(k) for k in (0, 1, 2)] == [None, None, 2]


def test_a_name_that_comes_again_is_the_latest() -> None:
    rows: Remembered[str] = Remembered()
    for name, row in (("a", "1"), ("b", "2"), ("a", "3"), (None, "4")):
        rows.add(name, row)
    assert list(rows.items()) == [("b", "2"), ("a", "3")]
