"""What every kernel promises; a new one joins by one line in ``KERNELS``."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest

from mercer.kernels.base import Kernel
from mercer.kernels.linear import Linear
from mercer.kernels.matern import MaternARD
from mercer.kernels.polynomial import Polynomial
from mercer.kernels.squared_exponential import SquaredExponentialARD

KERNELS = [
    SquaredExponentialARD(),
    MaternARD(0.5),
    MaternARD(1.5),
    MaternARD(2.5),
    Linear(),
    Polynomial(2),
    Polynomial(3),
]

pytestmark = pytest.mark.parametrize("kernel", KERNELS, ids=repr)

_D = 3
_RNG = np.random.default_rng(17)
_X = _RNG.standard_normal((12, _D))
_X[5] = _X[2]  # rows that repeat
_Z = _RNG.standard_normal((7, _D)) * 3.0


def thetas(kernel: Kernel) -> np.ndarray:
    return np.random.default_rng(18).uniform(-2.0, 2.0, (6, kernel.n_parameters(_D)))


def test_gram_is_symmetric_and_positive(kernel: Kernel) -> None:
    for theta in thetas(kernel):
        K = kernel.gram(theta, _X)
        assert K.shape == (12, 12)
        assert K.flags.c_contiguous
        np.testing.assert_allclose(K, K.T, rtol=1e-14)
        assert np.linalg.eigvalsh(K).min() > -1e-12 * K.diagonal().max()
        np.testing.assert_allclose(K[5], K[2], rtol=1e-14)


def test_cross_gram_agrees_with_gram(kernel: Kernel) -> None:
    for theta in thetas(kernel):
        both = kernel.gram(theta, np.vstack([_X, _Z]))
        np.testing.assert_allclose(kernel.cross_gram(theta, _X, _Z), both[:12, 12:], rtol=1e-11)
        np.testing.assert_allclose(kernel.cross_gram(theta, _Z, _X), both[12:, :12], rtol=1e-11)


def test_diagonal_agrees_with_gram(kernel: Kernel) -> None:
    for theta in thetas(kernel):
        expected = kernel.gram(theta, _X).diagonal()
        np.testing.assert_allclose(kernel.diagonal(theta, _X), expected, rtol=1e-13)


def test_gradient_against_differences(kernel: Kernel) -> None:
    A = np.random.default_rng(19).standard_normal((12, 12))
    A = A + A.T
    h = 1e-3
    for theta in thetas(kernel):
        K = kernel.gram(theta, _X)
        seen = kernel.gradient(theta, _X, K, A.copy())
        assert seen.shape == theta.shape
        for k in range(len(theta)):
            shift = h * (np.arange(len(theta)) == k)
            g = [np.sum(A * kernel.gram(theta + m * shift, _X)) for m in (-2, -1, 1, 2)]
            expected = (g[0] - 8.0 * g[1] + 8.0 * g[2] - g[3]) / (12.0 * h)
            assert seen[k] == pytest.approx(expected, rel=1e-8, abs=1e-8 * np.abs(A).sum())


def test_nothing_but_the_adjoint_is_changed(kernel: Kernel) -> None:
    theta = thetas(kernel)[0]
    X, Z, K = _X.copy(), _Z.copy(), kernel.gram(theta, _X)
    for array in (theta, X, Z, K):
        array.flags.writeable = False
    kernel.gram(theta, X)
    kernel.cross_gram(theta, X, Z)
    kernel.diagonal(theta, X)
    kernel.gradient(theta, X, K, np.eye(12))


def test_out_is_overwritten_and_returned(kernel: Kernel) -> None:
    theta = thetas(kernel)[0]
    out = np.full((12, 12), np.nan)
    assert kernel.gram(theta, _X, out=out) is out
    np.testing.assert_array_equal(out, kernel.gram(theta, _X))


def test_parameters_are_a_variance_and_perhaps_weights(kernel: Kernel) -> None:
    """The first parameter scales all covariances; the others are weights, one per input."""
    assert kernel.n_parameters(_D) == (1 + _D if kernel.has_lengthscale else 1)
    theta = thetas(kernel)[0]
    louder = theta + np.log(2.0) * (np.arange(len(theta)) == 0)
    np.testing.assert_allclose(kernel.gram(louder, _X), 2.0 * kernel.gram(theta, _X), rtol=1e-13)


def test_huge_inputs_have_finite_covariances(kernel: Kernel) -> None:
    """Standardised inputs are kept within 1e100."""
    theta = thetas(kernel)[0] + 5.0
    X = _X.copy()
    X[:4] = 1e100 * np.sign(X[:4])
    K = kernel.gram(theta, X)
    gradient = kernel.gradient(theta, X, K, np.ones((12, 12)))
    for values in (K, kernel.cross_gram(theta, X, _Z), kernel.diagonal(theta, X), gradient):
        assert np.isfinite(values).all()
    assert np.linalg.eigvalsh(K / K.max()).min() > -1e-12


def test_empty_and_single_rows(kernel: Kernel) -> None:
    theta = thetas(kernel)[0]
    assert kernel.gram(theta, _X[:1]).shape == (1, 1)
    assert kernel.cross_gram(theta, _X[:0], _X).shape == (0, 12)


def test_frozen_without_data_and_pickles(kernel: Kernel) -> None:
    assert dataclasses.is_dataclass(kernel)
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    with pytest.raises(dataclasses.FrozenInstanceError):
        kernel.anything = 1
