"""What is refused: ``tests/contracts/test_regressor_refusals.py``."""

import numpy as np
import pytest

from mercer.basis.settings import checked_forgetting, checked_given, checked_lengthscale
from mercer.errors import UsageError
from mercer.estimation.standardize import TargetScale


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("learn", "learn"), ("median", "median"), (2, (2.0,)), (np.float32(0.5), (0.5,)),
        ([1.0, 2], (1.0, 2.0)), (np.array([1.0, 0.25]), (1.0, 0.25)), (np.array(3.0), (3.0,)),
    ],
)  # fmt: skip
def test_lengthscale(value, expected) -> None:
    assert checked_lengthscale(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(1, (1.0,)), (0.5, (0.5,)), ([1.0, 0.9], (1.0, 0.9))]
)
def test_forgetting(value, expected) -> None:
    assert checked_forgetting(value) == expected


def test_scales() -> None:
    given = checked_given("auto", 2.0, 3.0)
    assert given.input_scale.shape == ()
    assert given.target == TargetScale(0.0, 3.0)
    assert checked_given("auto", (2.0, 1.0), (1.0, 3.0)).target == TargetScale(1.0, 3.0)
    assert checked_given("auto", [2.0], None).input_scale.shape == (1,)
    assert checked_given("auto", None, None).target is None


@pytest.mark.parametrize("value", [[[1.0], [1.0, 2.0]], {"a": 1.0}, {1.0, 2.0}, object(), 1j])
def test_things_of_other_kinds(value) -> None:
    with pytest.raises(UsageError, match="lengthscale"):
        checked_lengthscale(value)
    with pytest.raises(UsageError, match="forgetting"):
        checked_forgetting(value)
    with pytest.raises(UsageError, match="input_scale"):
        checked_given("auto", value, None)
    with pytest.raises(UsageError, match="target_scale"):
        checked_given("auto", None, value)
