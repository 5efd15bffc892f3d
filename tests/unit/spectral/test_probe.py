from __future__ import annotations

import numpy as np
import pytest

from mercer.spectral.model import Probe, design, feature_kernel
from support.spectral_cases import plain_design

RNG = np.random.default_rng(2)
W, X = RNG.standard_normal((5, 3)), RNG.standard_normal((8, 3))


@pytest.mark.parametrize("has_linear_part", [False, True])
def test_design(has_linear_part: bool) -> None:
    found = design(W, X, has_linear_part)
    np.testing.assert_allclose(found.T, plain_design(W, X, has_linear_part), atol=1e-15)


def test_kernel_at_a_lag() -> None:
    """(1 / M) sum cos(w't): 1 at lag 0, even, and at most 1."""
    lags = np.vstack([np.zeros(3), X])
    found = feature_kernel(W, lags)
    assert found[0] == 1.0
    np.testing.assert_allclose(found, [np.cos(W @ t).mean() for t in lags], rtol=1e-12)
    np.testing.assert_array_equal(feature_kernel(W, -lags), found)
    np.testing.assert_allclose(feature_kernel(-W, lags), found, rtol=1e-14)


@pytest.mark.parametrize("has_linear_part", [False, True])
def test_probe(has_linear_part: bool) -> None:
    probe = Probe(X[:4], X, has_linear_part)
    coef = RNG.standard_normal(10 + (4 if has_linear_part else 0))
    np.testing.assert_array_equal(probe.kernel(W), feature_kernel(W, X[:4]))
    expected = plain_design(W, X, has_linear_part) @ coef
    np.testing.assert_allclose(probe.function(W, coef), expected, rtol=1e-12)
