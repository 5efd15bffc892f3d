from __future__ import annotations

from typing import Any

import pytest

from mercer.cli.stream_model import Undecided
from mercer.errors import DataError


def decide(*cells: str, is_auto: bool = True) -> tuple[str, list[Any]]:
    """The task, and the targets that are of its kind."""
    undecided = Undecided("y", is_auto=is_auto, make=lambda target: target)
    target = undecided.decide(cells, "rows", has_decimal_comma=False)
    return target.task, target.values.tolist()


@pytest.mark.parametrize(
    ("cells", "task", "targets"),
    [
        ("ab", "classification", ["a", "b"]),
        (["true", "False", " true"], "classification", [True, False, True]),
        ("0110", "classification", [0, 1, 1, 0]),
        (["01", "x"], "classification", ["01", "x"]),
        (["0", "1", "x"], "classification", ["0", "1", "x"]),
        (["0", "0.5"], "regression", [0.0, 0.5]),
        ([str(k) for k in range(11)], "regression", [float(k) for k in range(11)]),
        (["1.5"], "regression", [1.5]),
    ],
)
def test_the_first_rows_say_what_targets_are(cells, task: str, targets: list) -> None:
    assert decide(*cells) == (task, targets)


def test_a_text_among_numbers_is_a_mistake() -> None:
    assert decide("0.5", "1", "x", "inf", "2") == ("regression", [0.5, 1.0, 2.0])


def test_asked_for_classes_all_are() -> None:
    assert decide(*map(str, range(20)), is_auto=False) == ("classification", list(range(20)))
    assert decide("1.5", "x", "2", is_auto=False)[1] == ["1.5", "x", "2"]
    with pytest.raises(DataError, match="not a whole number"):
        decide("1.5", "2", is_auto=False)


@pytest.mark.parametrize("cells", ["aaa", "11", ["true"]])
def test_one_class_is_none(cells) -> None:
    with pytest.raises(DataError, match=r"one class only, .* longer --warmup"):
        decide(*cells)


@pytest.mark.parametrize(
    ("cell", "shown"), [(" 7 ", 7), ("0.5", 0.5), ("1e3", 1000), ("x ", "x"), ("inf", "inf")]
)
def test_what_is_shown_meanwhile(cell: str, shown: object) -> None:
    undecided = Undecided("y", is_auto=True, make=lambda target: target)
    seen = undecided.target(cell, has_decimal_comma=False)
    assert (seen, type(seen)) == (shown, type(shown))
