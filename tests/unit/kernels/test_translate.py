from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

from mercer.errors import UsageError
from mercer.kernels.names import name_of_kernel
from mercer.kernels.translate import from_scikit_learn

_RNG = np.random.default_rng(1)
X, Z = _RNG.standard_normal((15, 2)), _RNG.standard_normal((4, 2)) * 2.0
LOG = np.log

# scikit-learn's kernel, mercer's name of it, and theta for the same hyperparameters
SAME = [
    (sk.RBF(0.8), "isotropic(rbf)", [0.0, -2 * LOG(0.8)]),
    (sk.RBF([0.8, 2.0]), "rbf", [0.0, -2 * LOG(0.8), -2 * LOG(2.0)]),
    (sk.Matern(0.8, nu=0.5), "isotropic(matern12)", [0.0, -2 * LOG(0.8)]),
    (sk.Matern([0.8, 2.0], nu=1.5), "matern32", [0.0, -2 * LOG(0.8), -2 * LOG(2.0)]),
    (sk.Matern([0.8, 2.0], nu=2.5), "matern52", [0.0, -2 * LOG(0.8), -2 * LOG(2.0)]),
    (sk.Matern(0.8, nu=np.inf), "isotropic(rbf)", [0.0, -2 * LOG(0.8)]),
    (sk.RationalQuadratic(0.8, 1.7), "isotropic(rational_quadratic)",
     [0.0, -2 * LOG(0.8), LOG(1.7)]),
    (sk.DotProduct(0.7), "constant + linear", [2 * LOG(0.7), 0.0]),
    (sk.DotProduct(0.0, "fixed"), "linear", [0.0]),
    (sk.ConstantKernel(3.0), "constant", [LOG(3.0)]),
    (sk.ConstantKernel(3.0, "fixed") * sk.RBF(0.8), "isotropic(rbf)", [LOG(3.0), -2 * LOG(0.8)]),
    (sk.RBF(0.8) * sk.ConstantKernel(3.0), "isotropic(rbf)", [LOG(3.0), -2 * LOG(0.8)]),
    (sk.ConstantKernel(3.0) * sk.ConstantKernel(2.0), "constant", [LOG(6.0)]),
    (4.0 * sk.RBF(0.8) + 0.5, "isotropic(rbf) + constant",
     [LOG(4.0), -2 * LOG(0.8), LOG(0.5)]),
    (sk.ConstantKernel(3.0) * (sk.RBF(0.8) + 2.0 * sk.Matern(0.5, nu=1.5)),
     "isotropic(rbf) + isotropic(matern32)",
     [LOG(3.0), -2 * LOG(0.8), LOG(6.0), -2 * LOG(0.5)]),
    (3.0 * sk.RBF([0.8, 2.0]) * sk.RationalQuadratic(0.9, 1.7),
     "rbf*isotropic(rational_quadratic)",
     [LOG(3.0), -2 * LOG(0.8), -2 * LOG(2.0), -2 * LOG(0.9), LOG(1.7)]),
    (sk.RBF(0.8) * sk.DotProduct(0.7), "isotropic(rbf)*(constant + linear)",
     [-2 * LOG(0.8), 2 * LOG(0.7), 0.0]),
    (sk.DotProduct(np.sqrt(2.0), "fixed") ** 3, "polynomial(3)", [3 * LOG(2.0)]),
    (5.0 * sk.DotProduct(np.sqrt(2.0), "fixed") ** 2, "polynomial", [LOG(5.0) + 2 * LOG(2.0)]),
]  # fmt: skip


@pytest.mark.parametrize(("theirs", "name", "theta"), SAME, ids=[case[1] for case in SAME])
def test_the_same_covariances(theirs: sk.Kernel, name: str, theta: list[float]) -> None:
    kernel = from_scikit_learn(theirs, 2)
    assert name_of_kernel(kernel) == name
    K, cross = kernel.gram(np.array(theta), X), kernel.cross_gram(np.array(theta), X, Z)
    np.testing.assert_allclose(K, theirs(X), rtol=1e-12, atol=1e-13 * K.max())
    np.testing.assert_allclose(cross, theirs(X, Z), rtol=1e-12, atol=1e-13 * np.abs(cross).max())


def test_one_input() -> None:
    theirs = sk.ExpSineSquared(0.8, 1.9) * sk.RBF(0.7)
    kernel = from_scikit_learn(theirs, 1)
    assert name_of_kernel(kernel) == "periodic*isotropic(rbf)"
    theta = np.array([0.0, -2 * LOG(0.8), LOG(1.9), -2 * LOG(0.7)])
    np.testing.assert_allclose(kernel.gram(theta, X[:, :1]), theirs(X[:, :1]), rtol=1e-12)


def test_sees_another_variance() -> None:
    """A constant factor that is dropped and not folded in would leave this behind."""
    theirs, _, theta = SAME[10]
    seen = from_scikit_learn(theirs, 2).gram(np.array([0.0, theta[1]]), X)
    assert np.abs(seen - theirs(X)).max() > 1.0


class Own(sk.RBF):
    """What a user has derived may be another function."""


@pytest.mark.parametrize(
    ("theirs", "reason"),
    [
        (sk.RBF() + sk.WhiteKernel(), "the noise is part of the regressor, and a classifier has"),
        (sk.CompoundKernel([sk.RBF(), sk.RBF()]), "several kernels in one"),
        (sk.PairwiseKernel(), "no covariances"),
        (Own(), "does not know it"),
        (sk.Matern(nu=2.0), "nu must be 0.5, 1.5, 2.5 or infinite"),
        (sk.RBF([1.0, 1.0, 1.0]), "3 length scales for 2 inputs"),
        (sk.RBF(1.0, "fixed"), "length_scale is fixed"),
        (sk.Matern([1.0, 2.0], "fixed", nu=1.5), "length_scale is fixed"),
        (sk.RationalQuadratic(alpha_bounds="fixed"), "alpha is fixed"),
        (sk.DotProduct(1.0, "fixed"), "sigma_0 is fixed"),
        (sk.ExpSineSquared(), "of 2 inputs it is no covariance"),
        (sk.RBF() ** 2, "the only powers"),
        (sk.DotProduct(1.0) ** 2, "the only powers"),
        (sk.DotProduct(1.0, "fixed") ** 2, "the only powers"),
        (sk.DotProduct(np.sqrt(2.0), "fixed") ** 1.5, "whole number"),
        (sk.DotProduct(np.sqrt(2.0), "fixed") ** 30, "degree must be"),
        (sk.ConstantKernel() ** 2, "the only powers"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_has_no_counterpart_is_refused(theirs: sk.Kernel, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        from_scikit_learn(theirs, 2)
