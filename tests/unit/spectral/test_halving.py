"""What is no decision; decisions themselves: ``tests/exact/test_bnk_5_halving.py``."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import NumericalError
from mercer.spectral.sampler import decide


def joint_of(m: int, ridge: float) -> np.ndarray:
    """Products of equal cosines and sines: collinear but for the ridge."""
    C = np.ones((3, 4 * m + 1))
    joint = C.T @ C
    joint[-1, -1] += 1.0
    joint[np.arange(4 * m), np.arange(4 * m)] += ridge
    return np.asfortranarray(joint)


@pytest.mark.parametrize("m", [1, 2, 12, 13, 40])
def test_collinear_features_are_an_error(m: int) -> None:
    with pytest.raises(NumericalError):
        decide(joint_of(m, -1e-3), np.zeros(m), 3.0, 1.0)


@pytest.mark.parametrize("m", [1, 2, 12, 13, 40])
def test_a_little_ridge_is_enough(m: int) -> None:
    decisions = decide(joint_of(m, 1e-6), np.full(m, -1e-3), 3.0, 1.0)
    assert np.isfinite(decisions.log_ratio).all()
    np.testing.assert_allclose(decisions.log_ratio, 0.0, atol=1e-4)
    assert decisions.is_accepted.all()


def test_products_are_left_alone() -> None:
    joint = joint_of(20, 1.0)
    before = joint.copy()
    decide(joint, np.zeros(20), 3.0, 1.0)
    np.testing.assert_array_equal(joint, before)
