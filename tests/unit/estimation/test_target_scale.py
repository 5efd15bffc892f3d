"""Centre and scale of targets."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import DataError, MercerWarning
from mercer.estimation.standardize import scale_target

VALUES = np.random.default_rng(8).standard_normal(300)


@pytest.mark.parametrize("unit", [1.0, 1e-100, 1e100])
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_target(unit: float, offset: float) -> None:
    y = unit * (VALUES + offset)
    target = scale_target(y)
    z = target.transform(y)
    assert abs(z.mean()) < 1e-6
    assert z.std() == pytest.approx(1.0, rel=1e-6)
    assert target.centre == pytest.approx(unit * (VALUES.mean() + offset), rel=1e-12)
    assert target.scale == pytest.approx(unit * VALUES.std(), rel=1e-6)


def test_a_constant_target() -> None:
    with pytest.warns(MercerWarning, match="the target is constant"):
        target = scale_target(np.full(10, 3.3))
    np.testing.assert_array_equal(target.transform(np.full(10, 3.3)), 0.0)


@pytest.mark.parametrize("unit", [1e-300, 1e-160, 1e160, 1e300])
def test_targets_that_cannot_be_computed_with(unit: float) -> None:
    with pytest.raises(DataError, match="target"):
        scale_target(unit * VALUES)
