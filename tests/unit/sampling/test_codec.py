from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from mercer.errors import ModelFileError
from mercer.posterior.container import read_container, write_container
from mercer.sampling.checkpoint import pack, unpack


@dataclass(frozen=True)
class Inner:
    x: np.ndarray
    count: int


@dataclass(frozen=True)
class Outer:
    inner: Inner
    named: Mapping[str, np.ndarray]
    value: float
    is_on: bool
    small: np.float32 = field(default_factory=lambda: np.float32(0.25))
    empty: np.ndarray = field(default_factory=lambda: np.empty((0, 3)))


VALUE = Outer(
    Inner(np.arange(6, dtype=np.int32).reshape(2, 3), 7),
    {"a": np.array([np.nan, np.inf]), "b": np.array(True)},
    -0.1,
    True,
)
TEMPLATE = Outer(
    Inner(np.zeros((1, 1), dtype=np.int32), 0), {"a": np.zeros(1), "b": np.array(False)}, 0.0, False
)


def test_names() -> None:
    assert list(pack(VALUE, "s")) == [
        "s/inner/x", "s/inner/count", "s/named/a", "s/named/b",
        "s/value", "s/is_on", "s/small", "s/empty",
    ]  # fmt: skip


def check_round_trip(arrays: dict[str, np.ndarray]) -> None:
    back = unpack(TEMPLATE, arrays, "s")
    assert isinstance(back, Outer)
    assert isinstance(back.inner, Inner)
    np.testing.assert_array_equal(back.inner.x, VALUE.inner.x)
    np.testing.assert_array_equal(back.named["a"], VALUE.named["a"])
    assert back.empty.shape == (0, 3)
    for name in ("value", "is_on", "small"):
        seen, expected = getattr(back, name), getattr(VALUE, name)
        assert (seen, type(seen)) == (expected, type(expected))
    assert type(back.inner.count) is int
    again = pack(back, "s")
    for name, array in pack(VALUE, "s").items():
        assert again[name].dtype == array.dtype
        assert again[name].tobytes() == array.tobytes()


def test_round_trip() -> None:
    check_round_trip(pack(VALUE, "s"))


def test_round_trip_through_a_file(tmp_path: Path) -> None:
    write_container(tmp_path / "s", {}, pack(VALUE, "s"))
    check_round_trip(read_container(tmp_path / "s")[1])


def test_what_a_state_cannot_hold() -> None:
    for bad in (None, "text", [1.0], object, Inner):
        with pytest.raises(TypeError, match="a state cannot hold"):
            pack({"x": bad}, "s")


@pytest.mark.parametrize("name", list(pack(VALUE, "s")))
def test_a_missing_array_is_refused(name: str) -> None:
    arrays = pack(VALUE, "s")
    del arrays[name]
    with pytest.raises(ModelFileError, match=f"{name} is missing"):
        unpack(TEMPLATE, arrays, "s")


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("s/inner/x", np.zeros((2, 3))),
        ("s/inner/x", np.zeros(6, dtype=np.int32)),
        ("s/inner/count", np.zeros(2, dtype=np.int64)),
        ("s/value", np.zeros((1, 1))),
    ],
)
def test_an_array_of_another_kind_is_refused(name: str, array: np.ndarray) -> None:
    with pytest.raises(ModelFileError, match=name):
        unpack(TEMPLATE, {**pack(VALUE, "s"), name: array}, "s")


class Pair(NamedTuple):
    values: np.ndarray
    count: int


def test_named_tuples() -> None:
    value = {"a": Pair(np.arange(3.0), 2)}
    arrays = pack(value, "s")
    assert list(arrays) == ["s/a/values", "s/a/count"]
    back = unpack({"a": Pair(np.zeros(1), 0)}, arrays, "s")["a"]
    assert type(back) is Pair
    assert (back.values.tolist(), back.count) == ([0.0, 1.0, 2.0], 2)
    with pytest.raises(ModelFileError, match="s/a/count is missing"):
        unpack({"a": Pair(np.zeros(1), 0)}, {"s/a/values": np.zeros(1)}, "s")
    with pytest.raises(TypeError, match="a state cannot hold a tuple"):
        pack((1, 2), "s")
