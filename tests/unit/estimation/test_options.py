from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import UsageError
from mercer.estimation.run import check_choice, check_count, check_positive, nearest_hint


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_counts(value: object) -> None:
    seen = check_count("n", value, 1)
    assert (seen, type(seen)) == (3, int)


@pytest.mark.parametrize("value", [0, -1, 3.0, "3", None, True, np.bool_(True), [3]])
def test_bad_counts(value: object) -> None:
    with pytest.raises(UsageError, match="n must be a whole number of at least 1"):
        check_count("n", value, 1)


@pytest.mark.parametrize("value", [0.5, 1, np.float32(0.5), np.int8(2)])
def test_positive(value: object) -> None:
    assert check_positive("x", value) == float(value)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, "1", None, True, 1j])
def test_not_positive(value: object) -> None:
    with pytest.raises(UsageError, match="x must be a number above 0"):
        check_positive("x", value)


def test_choices() -> None:
    check_choice("c", "b", ("a", "b", False))
    check_choice("c", False, ("a", "b", False))
    check_choice("c", int("300"), range(301))  # no two objects of so large a number are one
    check_choice("c", np.int64(3), range(4))
    with pytest.raises(UsageError, match=r"c must be one of 'alpha', 'beta'; got 'alpa'; did you"):
        check_choice("c", "alpa", ("alpha", "beta"))


def test_a_number_is_not_a_false() -> None:
    with pytest.raises(UsageError):
        check_choice("c", 0, ("a", False))
    with pytest.raises(UsageError):
        check_choice("c", True, range(2))


def test_hint() -> None:
    assert nearest_hint("hcm", ["hmc", "nuts"]) == "; did you mean 'hmc'?"
    assert nearest_hint("zzz", ["hmc"]) == ""
