"""JSON from a stranger."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.posterior.container import MAX_DEPTH, json_fault, load_json

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab"), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), PLAIN))
def test_plain_values_come_back(value: dict[str, Any]) -> None:
    assert json_fault(value) is None
    assert load_json(json.dumps(value), "text") == value


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ('{"a": 1} x', "not JSON"),
        ('{"a": 1, "a": 2}', "not JSON"),
        (b'{"a": "\xff"}', "not JSON"),
        ('{"a": ' + "9" * 5000 + "}", "not JSON"),
        ('{"a": NaN}', "not finite"),
        ('{"a": [-Infinity]}', "not finite"),
        ('{"a": 1e999}', "not finite"),
        ('{"a": 9223372036854775808}', "too large"),
        ('{"a": "\\ud800"}', "Unicode"),
        ('{"\\ud800": 1}', "Unicode"),
        ("[1]", "not an object"),
        ("1", "not an object"),
        (nested(MAX_DEPTH + 1), "deep"),
        (nested(200_000), "nested too deeply"),
        ("[" * 200_000, "nested too deeply"),
        ('{"a": ' + "[" * 50 + "]" * 50 + "}", "deep"),
    ],
)
def test_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_json(text, "text")


def test_the_deepest_that_passes() -> None:
    load_json(nested(MAX_DEPTH), "text")


@pytest.mark.parametrize(
    "value",
    [{1: 2}, {"a": {None: 1}}, {"a": b"x"}, {"a": {1, 2}}, {"a": np.float64(1)}, {"a": 1j}],
)
def test_other_types_are_refused(value: Any) -> None:
    assert json_fault(value) is not None


def test_a_value_that_holds_itself_is_refused() -> None:
    value: dict[str, Any] = {}
    value["self"] = value
    assert "deep" in str(json_fault(value))
