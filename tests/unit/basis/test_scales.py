import numpy as np
import pytest

from mercer.basis.settings import GivenScales, leaving_columns
from mercer.errors import MercerWarning, UsageError
from mercer.estimation.standardize import TargetScale

RNG = np.random.default_rng(2)
X = RNG.standard_normal((50, 2)) * [1.0, 30.0] + [0.0, 5.0]
Y = RNG.standard_normal(50) + 4.0
NAMES = ("a", "b")


def test_learned_from_a_table_and_from_the_first_rows_alike() -> None:
    given = GivenScales("std", None, None)
    table, stream = given.of_table(X, Y, NAMES), given.of_first_rows(X, Y, NAMES)
    assert table.target == stream.target
    np.testing.assert_array_equal(table.standardizer.transform(X), stream.standardizer.transform(X))
    np.testing.assert_allclose(table.standardizer.transform(X).std(axis=0), 1.0)
    assert not given.is_complete


def test_given_ones_are_kept() -> None:
    given = GivenScales("auto", np.array([2.0, 3.0]), TargetScale(1.0, 5.0))
    assert given.is_complete
    for scales in (given.of_table(X, Y, NAMES), given.of_first_rows(X[:0], Y[:0], NAMES)):
        np.testing.assert_allclose(scales.standardizer.transform(X), X / [2.0, 3.0])
        assert scales.target == TargetScale(1.0, 5.0)


@pytest.mark.parametrize(
    ("method", "scale", "target", "is_complete"),
    [
        ("auto", None, TargetScale(0.0, 1.0), False),
        (False, None, TargetScale(0.0, 1.0), True),
        ("auto", np.array(2.0), None, False),
        ("auto", np.array(2.0), TargetScale(0.0, 1.0), True),
    ],
)
def test_whether_a_row_is_needed(method, scale, target, is_complete: bool) -> None:
    assert GivenScales(method, scale, target).is_complete == is_complete


def test_what_is_constant_so_far_may_change() -> None:
    """Without a warning, and with a scale of 1: of a table it is ignored, with one."""
    X_first, given = np.column_stack([X[:, 0], np.full(50, 7.0)]), GivenScales("auto", None, None)
    scales = given.of_first_rows(X_first, np.full(50, 2.0), NAMES)
    np.testing.assert_allclose(scales.standardizer.transform([[0.0, 9.0]])[0, 1], 2.0)
    assert scales.target == TargetScale(2.0, 1.0)
    with pytest.warns(MercerWarning, match="'b'"):
        assert given.of_table(X_first, Y, NAMES).standardizer.scale[1] == 0.0


def test_without_rows_nothing_is_scaled() -> None:
    scales = GivenScales("auto", None, None).of_first_rows(X[:0], Y[:0], NAMES)
    np.testing.assert_array_equal(scales.standardizer.transform(X), X)
    assert scales.target == TargetScale(0.0, 1.0)


def test_another_number_of_inputs_is_refused() -> None:
    GivenScales(False, np.array(2.0), None).check_width(7)
    GivenScales(False, None, None).check_width(7)
    with pytest.raises(UsageError, match=r"one for each of 3 inputs; got shape \(2,\)"):
        GivenScales(False, np.ones(2), None).check_width(3)


def test_leaving() -> None:
    Z, z = np.zeros((4, 2)), np.zeros(4)
    assert leaving_columns(Z, z, NAMES) == []
    Z[3, 1], z[2] = -10.5, 11.0
    assert leaving_columns(Z, z, NAMES) == ["b", "the target"]
    assert leaving_columns(Z[:0], z[:0], NAMES) == []
