from __future__ import annotations

import pytest

from mercer import GPClassifier
from mercer.cli.fitting import make_estimator, parse_settings, parse_value
from mercer.errors import UsageError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-2", -2),
        ("0.5", 0.5),
        ("1e3", 1000.0),
        ("True", True),
        ("none", None),
        ("x y", "x y"),
        ("1,9", (1.0, 9.0)),
        ("1,a", "1,a"),
        ("learn per class", "learn per class"),
    ],
)
def test_values_keep_their_type(text: str, value: object) -> None:
    found = parse_value(text)
    assert found == value
    assert type(found) is type(value)


def test_the_last_of_a_name_counts() -> None:
    assert parse_settings(["a=1", "a=2", "b=c=d"]) == {"a": 2, "b": "c=d"}


def test_settings_go_before_what_is_common() -> None:
    made = make_estimator(GPClassifier, {"n_chains": 2}, {"n_chains": 3, "random_state": 5})
    assert (made.n_chains, made.random_state) == (2, 5)
    with pytest.raises(UsageError, match="--checkpoint"):
        make_estimator(GPClassifier, {"checkpoint": "x"}, {})
    with pytest.raises(UsageError, match="standardize must be one of"):
        make_estimator(GPClassifier, {"standardize": "maybe"}, {})
