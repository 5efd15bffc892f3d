"""What every kernel promises; a new one joins by one line in ``KERNELS``."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

from mercer.kernels.base import Kernel
from mercer.kernels.names import kernel_named, name_of_kernel
from mercer.numerics.cholesky import Workspace
from support.kernel_cases import difference_gradient

KERNELS = [
    kernel_named(name)
    for name in (
        "rbf",
        "matern12",
        "matern32",
        "matern52",
        "linear",
        "polynomial",
        "polynomial(3)",
        "constant",
        "rational_quadratic",
        "periodic",
        "spectral_mixture(1)",
        "spectral_mixture(2)",
        "isotropic(rbf)",
        "isotropic(matern12)",
        "isotropic(rational_quadratic)",
        "isotropic(periodic)",
        "isotropic(spectral_mixture(1))",
        "constant + linear + rbf",
        "rbf*periodic",
        "linear*matern32 + constant",
        "(rbf + constant)*polynomial(3)*periodic",
        "linear*polynomial*linear",
        "constant*(linear + isotropic(matern52)*(constant + spectral_mixture(2)))",
        "categorical",
        "levels",
        "isotropic(categorical)",
        "categorical[0:2, 2]",
        "rbf[2, 0]",
        "isotropic(rational_quadratic)[0, 1]*periodic[2]",
        "rbf[0] + categorical[1, 2] + polynomial(3)[1]*levels[0]",
    )
]

pytestmark = pytest.mark.parametrize("kernel", KERNELS, ids=name_of_kernel)

_D = 3
_RNG = np.random.default_rng(17)
_X = _RNG.standard_normal((12, _D))
_X[5] = _X[2]  # rows that repeat
_Z = _RNG.standard_normal((7, _D)) * 3.0


def thetas(kernel: Kernel) -> np.ndarray:
    """Of order one; periods are long, so that differences of parameters are small in angles."""
    found = np.random.default_rng(18).uniform(-2.0, 2.0, (6, kernel.n_parameters(_D)))
    for parameter, place in zip(kernel.parameters(), kernel.slices(_D).values(), strict=True):
        found[:, place] += {"period": 3.0, "frequency": -3.0}.get(parameter.kind, 0.0)
    return found


def test_gram_is_symmetric_and_positive(kernel: Kernel) -> None:
    for theta in thetas(kernel):
        K = kernel.gram(theta, _X)
        assert K.shape == (12, 12)
        assert K.flags.c_contiguous
        np.testing.assert_allclose(K, K.T, rtol=1e-13)
        assert np.linalg.eigvalsh(K).min() > -1e-12 * K.diagonal().max()
        np.testing.assert_allclose(K[5], K[2], rtol=1e-13)


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
    for theta in thetas(kernel):
        K = kernel.gram(theta, _X)
        seen = kernel.gradient(theta, _X, K, A.copy())
        assert seen.shape == theta.shape
        expected = difference_gradient(kernel, theta, _X, A)
        atol = 1e-8 * np.abs(A * K).max()
        np.testing.assert_allclose(seen, expected, rtol=1e-7, atol=atol)


def test_nothing_but_the_adjoint_is_changed(kernel: Kernel) -> None:
    theta = thetas(kernel)[0]
    X, Z, K = _X.copy(), _Z.copy(), kernel.gram(theta, _X)
    for array in (theta, X, Z, K):
        array.flags.writeable = False
    kernel.gram(theta, X)
    kernel.cross_gram(theta, X, Z)
    kernel.diagonal(theta, X)
    kernel.gradient(theta, X, K, np.eye(12))


def test_gram_and_gradient_are_those_of_two_calls(kernel: Kernel) -> None:
    """Also the second time, with other numbers in the same memory."""
    A, memory, out = np.random.default_rng(19).standard_normal((12, 12)), Workspace(), _empty()
    A = A + A.T
    for theta in thetas(kernel):
        K, gradient_of = kernel.gram_and_gradient(theta, _X, out, memory.take)
        assert K is out
        np.testing.assert_array_equal(K, kernel.gram(theta, _X))
        expected = kernel.gradient(theta, _X, K, A.copy())
        np.testing.assert_array_equal(gradient_of(A.copy()), expected)


def _empty() -> np.ndarray:
    return np.full((12, 12), np.nan)


def test_out_is_overwritten_and_returned(kernel: Kernel) -> None:
    theta = thetas(kernel)[0]
    out = _empty()
    assert kernel.gram(theta, _X, out=out) is out
    np.testing.assert_array_equal(out, kernel.gram(theta, _X))


def test_parameters_are_in_their_places(kernel: Kernel) -> None:
    parameters, places = kernel.parameters(), kernel.slices(_D)
    assert list(places) == [parameter.name for parameter in parameters]
    assert len(places) == len(parameters)
    ends = [0, *(place.stop for place in places.values())]
    assert [place.start for place in places.values()] == ends[:-1]
    assert ends[-1] == kernel.n_parameters(_D)
    assert [b - a for a, b in pairwise(ends)] == [parameter.size(_D) for parameter in parameters]
    kinds = {parameter.kind for parameter in parameters}
    assert kinds <= {"variance", "weight", "shape", "period", "frequency"}


def test_variances_scale_all_covariances(kernel: Kernel) -> None:
    """No product here has two sums: twice all variances, twice the covariances."""
    theta = thetas(kernel)[0]
    louder = theta.copy()
    for parameter in kernel.parameters():
        if parameter.kind == "variance":
            louder[kernel.slices(_D)[parameter.name]] += np.log(2.0)
    np.testing.assert_allclose(kernel.gram(louder, _X), 2.0 * kernel.gram(theta, _X), rtol=1e-13)


def test_weights_are_inverse_squared_length_scales(kernel: Kernel) -> None:
    if kernel.has_lengthscale:
        theta = thetas(kernel)[0]
        shorter = theta.copy()
        shorter[1:] += 2.0 * np.log(3.0)
        if "linear" in name_of_kernel(kernel):
            return
        seen = kernel.gram(shorter, _X / 3.0)
        np.testing.assert_allclose(seen, kernel.gram(theta, _X), rtol=1e-12)


def test_rows_in_another_order(kernel: Kernel) -> None:
    theta, order = thetas(kernel)[1], np.random.default_rng(20).permutation(12)
    A = np.random.default_rng(21).standard_normal((12, 12))
    A = A + A.T
    K, moved = kernel.gram(theta, _X), kernel.gram(theta, _X[order])
    atol = 1e-13 * np.abs(K).max()
    np.testing.assert_allclose(moved, K[np.ix_(order, order)], rtol=1e-11, atol=atol)
    seen = kernel.gradient(theta, _X[order], moved, A[np.ix_(order, order)].copy())
    expected = kernel.gradient(theta, _X, K, A.copy())
    np.testing.assert_allclose(seen, expected, rtol=1e-9, atol=1e-11 * np.abs(A * K).sum())


def test_a_common_offset_costs_no_digits(kernel: Kernel) -> None:
    """Rows on a grid of 2^-10 and 2^20: their sums are exact, and so are differences."""
    if "linear" in (name := name_of_kernel(kernel)) or "polynomial" in name:
        pytest.skip("not stationary")
    theta = thetas(kernel)[2]
    grid = np.round(_X * 1024.0) / 1024.0
    far = grid + 2.0**20
    K = kernel.gram(theta, grid)
    np.testing.assert_array_equal(kernel.gram(theta, far), K)
    np.testing.assert_allclose(kernel.cross_gram(theta, far[:5], far), K[:5], rtol=1e-11)
    A = np.ones((12, 12))
    seen = kernel.gradient(theta, far, K, A.copy())
    np.testing.assert_array_equal(seen, kernel.gradient(theta, grid, K, A.copy()))


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
    for same in (
        pickle.loads(pickle.dumps(kernel)),
        copy.deepcopy(kernel),
        clone(kernel, safe=False),
    ):
        assert same == kernel
        assert hash(same) == hash(kernel)
    with pytest.raises(dataclasses.FrozenInstanceError):
        kernel.anything = 1
