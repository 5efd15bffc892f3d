from __future__ import annotations

import numpy as np

from mercer.sphere.results import mean_rates


def test_a_common_rate_is_a_number_and_rates_by_class_a_dict() -> None:
    assert mean_rates(np.array([[0.1], [0.3]]), np.array(["a", "b"])) == 0.2
    by_class = mean_rates(np.array([[0.1, 0.0], [0.3, 0.5]]), np.array([7, 9]))
    assert by_class == {7: 0.2, 9: 0.25}
    assert all(type(label) is int for label in by_class)
