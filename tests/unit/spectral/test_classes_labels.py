from __future__ import annotations

import numpy as np

from mercer.spectral.class_model import class_codes


def test_of_two_classes_the_second_is_told_apart() -> None:
    codes = class_codes(np.array([3.0, 7.0]), np.array([90, 10]))
    np.testing.assert_array_equal(codes.transform(np.array([3.0, 7.0, 3.0])), [1.0, 0.0, 1.0])


def test_of_several_the_most_frequent_comes_first() -> None:
    codes = class_codes(np.array([-1.0, 0.0, 2.5, 9.0]), np.array([5, 8, 5, 30]))
    np.testing.assert_array_equal(codes.order, [3, 1, 0, 2])
    given = np.array([9.0, 0.0, -1.0, 2.5, 9.0])
    np.testing.assert_array_equal(codes.transform(given), [0.0, 1.0, 2.0, 3.0, 0.0])
