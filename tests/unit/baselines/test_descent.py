from __future__ import annotations

import numpy as np
import pytest

from mercer.baselines.paths import Deadline, minimise
from mercer.errors import NumericalError


def bowl(theta: np.ndarray) -> tuple[float, np.ndarray]:
    scales = np.array([1.0, 30.0])
    return float(scales @ (theta - 1.0) ** 2), 2.0 * scales * (theta - 1.0)


def test_finds_the_minimum() -> None:
    found = minimise(bowl, np.zeros(2), 100, Deadline())
    np.testing.assert_allclose(found.theta, 1.0, atol=1e-5)
    assert not found.is_cut_short


def test_bounds_are_kept() -> None:
    found = minimise(bowl, np.zeros(2), 100, Deadline(), [(None, 0.5), (None, None)])
    np.testing.assert_allclose(found.theta, [0.5, 1.0], atol=1e-5)


def test_a_deadline_leaves_one_step() -> None:
    found = minimise(bowl, np.zeros(2), 100, Deadline.after(1e-9))
    assert (found.n_steps, found.is_cut_short) == (1, True)
    assert found.value < bowl(np.zeros(2))[0]


def test_trouble_ends_at_the_best_so_far() -> None:
    n_calls = 0

    def fragile(theta: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal n_calls
        n_calls += 1
        if n_calls > 3:
            raise NumericalError("not positive definite")
        return bowl(theta)

    found = minimise(fragile, np.zeros(2), 100, Deadline())
    assert np.isfinite(found.value)
    assert bowl(found.theta)[0] == found.value
    with pytest.raises(NumericalError):
        minimise(fragile, np.zeros(2), 100, Deadline())
