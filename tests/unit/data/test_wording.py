from __future__ import annotations

import pytest

from mercer.data.files import nearest, place, printable, quoted


@pytest.mark.parametrize("bad", ["\x1b[31m", "a\nb", "a\rb", "\x00", "‮abc", "\udc80", "\x9b"])
def test_d16_control_characters_are_escaped(bad: str) -> None:
    shown = printable(bad)
    assert shown.isprintable()
    assert "\\" in shown


def test_letters_of_other_scripts_stay() -> None:
    assert printable("größe 身長") == "größe 身長"


def test_long_text_is_cut() -> None:
    assert len(quoted("x" * 10_000)) < 70


def test_place_without_line_and_column() -> None:
    assert place("a.parquet", 7) == "a.parquet, row 7"


def test_nearest_ignores_case_and_may_find_nothing() -> None:
    assert nearest("bmi", ["BMI", "glu"]) == "; did you mean 'BMI'?"
    assert nearest("zzz", ["BMI", "glu"]) == ""
