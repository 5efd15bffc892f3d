"""The compiled cosines and sines against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.features import products
from mercer.features.products import SAFE_PHASE, cosines_and_sines, fill_features, symmetric

TOLERANCE = 4e-16  # NumPy's own error is half of a unit in the last place of 1, 1.1e-16


def phases(kind: str) -> np.ndarray:
    rng = np.random.default_rng(17)
    if kind == "small":
        return rng.standard_normal((4, 20_000)) * np.logspace(-320, 0, 20_000)
    if kind == "ordinary":
        return 20.0 * rng.standard_normal((4, 20_000))
    if kind == "large":
        return rng.uniform(-SAFE_PHASE, SAFE_PHASE, (4, 50_000))
    # Next to multiples of a quarter of pi, where quarters change and where sines vanish.
    turns = rng.integers(-127_000, 127_000, (4, 20_000)) * (0.25 * np.pi)
    steps = np.array([0.0, 1e-16, -1e-16, 1e-10])[:, np.newaxis]
    return turns + np.spacing(turns) * rng.integers(-2, 3, turns.shape) + steps


@pytest.mark.parametrize("scale", [1.0, 160.0**-0.5])
@pytest.mark.parametrize("kind", ["small", "ordinary", "large", "quarters"])
def test_cosines_and_sines(kind: str, scale: float) -> None:
    phase = phases(kind)
    assert np.abs(phase).max() <= SAFE_PHASE
    out = np.empty((8, phase.shape[1]))
    cosines_and_sines(phase, scale, out)
    plain = np.stack([np.cos(phase), np.sin(phase)], axis=1).reshape(out.shape)
    np.testing.assert_allclose(out / scale, plain, rtol=0.0, atol=TOLERANCE)


def test_exact_values() -> None:
    out = np.empty((2, 3))
    cosines_and_sines(np.array([[0.0, -0.0, 1e-300]]), 1.0, out)
    np.testing.assert_array_equal(out, [[1.0, 1.0, 1.0], [0.0, -0.0, 1e-300]])


def test_symmetric() -> None:
    """cos(-x) = cos(x) and sin(-x) = -sin(x), to the bit."""
    phase = phases("ordinary")
    out, turned = np.empty((2, 8, phase.shape[1]))
    cosines_and_sines(phase, 1.0, out)
    cosines_and_sines(-phase, 1.0, turned)
    np.testing.assert_array_equal(turned[0::2], out[0::2])
    np.testing.assert_array_equal(turned[1::2], -out[1::2])


@pytest.mark.parametrize("largest", [1e5, 1.001e5, 1e12, 1e100])
def test_phases_of_any_size(largest: float) -> None:
    """Beyond what the loop can reduce, NumPy's functions take over."""
    W = np.array([[1.0], [0.3]])
    X = np.linspace(-1.0, 1.0, 1001)[:, np.newaxis] * largest
    out = np.empty((4, len(X)))
    fill_features(W, X, out)
    phase = W @ X.T
    plain = np.stack([np.cos(phase), np.sin(phase)], axis=1).reshape(4, -1) / np.sqrt(2.0)
    np.testing.assert_allclose(out, plain, rtol=0.0, atol=TOLERANCE)


def test_a_loop_that_reduces_too_little_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: the loop is trusted with any phase."""
    monkeypatch.setattr(products, "SAFE_PHASE", np.inf)
    with pytest.raises(AssertionError):
        test_phases_of_any_size(1e12)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_mirror(n: int) -> None:
    """Of the sum only the lower triangle counts."""
    given = np.random.default_rng(n).standard_normal((n, n))
    for lower in (np.asfortranarray(given), given):
        found = symmetric(lower)
        np.testing.assert_array_equal(found, np.tril(given) + np.tril(given, -1).T)
        assert found.flags.c_contiguous
