from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import UsageError
from mercer.kernels.base import Kernel, Product, Sum
from mercer.kernels.linear import Constant, Linear, Polynomial
from mercer.kernels.stationary import MaternARD, Periodic, SquaredExponentialARD
from support.kernel_cases import gradient_error

RBF, MATERN, PERIODIC = SquaredExponentialARD(), MaternARD(1.5), Periodic()
LINEAR, CONSTANT = Linear(), Constant()
X = np.random.default_rng(1).standard_normal((15, 2))
Grams = list[np.ndarray]


def names(kernel: Kernel) -> list[str]:
    return [parameter.name for parameter in kernel.parameters()]


def adjoint() -> np.ndarray:
    A = np.random.default_rng(3).standard_normal((15, 15))
    return A + A.T


def test_a_sum_adds() -> None:
    theta = np.array([0.7, 0.2, -1.0, -0.3, 0.5])
    expected = RBF.gram(theta[:3], X) + LINEAR.gram(theta[3:4], X) + CONSTANT.gram(theta[4:], X)
    np.testing.assert_allclose((RBF + LINEAR + CONSTANT).gram(theta, X), expected, rtol=1e-14)


def test_a_product_multiplies() -> None:
    theta = np.array([0.7, 0.2, -1.0, 0.1, -0.2, 1.0, 0.9])
    periodic = PERIODIC.gram(np.concatenate(([0.0], theta[3:])), X)
    expected = RBF.gram(theta[:3], X) * periodic * LINEAR.gram(np.zeros(1), X)
    np.testing.assert_allclose((RBF * PERIODIC * LINEAR).gram(theta, X), expected, rtol=1e-14)


def test_variances_stay_in_a_sum_within_a_product() -> None:
    theta = np.array([0.7, 0.2, -1.0, 0.5, -0.4, 0.3])
    inner = RBF.gram(theta[:3], X) + CONSTANT.gram(theta[3:4], X)
    expected = inner * MATERN.gram(np.concatenate(([0.0], theta[4:])), X)
    np.testing.assert_allclose(((RBF + CONSTANT) * MATERN).gram(theta, X), expected, rtol=1e-14)
    swapped = np.concatenate((theta[4:], theta[:4]))
    np.testing.assert_allclose((MATERN * (RBF + CONSTANT)).gram(swapped, X), expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (RBF * LINEAR * Polynomial(3), ["log_signal_variance", "log_weight"]),
        (RBF + LINEAR, ["log_signal_variance_1", "log_weight", "log_signal_variance_2"]),
        (
            RBF + LINEAR * MATERN,
            ["log_signal_variance_1", "log_weight_1", "log_signal_variance_2", "log_weight_3"],
        ),
        (
            (CONSTANT + LINEAR) * PERIODIC,
            ["log_signal_variance_1", "log_signal_variance_2", "log_weight", "log_period"],
        ),
        (
            CONSTANT * (LINEAR + RBF),
            ["log_signal_variance_2", "log_signal_variance_3", "log_weight"],
        ),
    ],
)  # fmt: skip
def test_names_bear_the_number_of_their_leaf(kernel: Kernel, expected: list[str]) -> None:
    assert names(kernel) == expected


def test_a_product_with_a_constant_is_the_kernel_itself() -> None:
    theta = np.array([0.7, 0.2, -1.0])
    assert (CONSTANT * RBF).has_lengthscale
    np.testing.assert_allclose((CONSTANT * RBF).gram(theta, X), RBF.gram(theta, X), rtol=1e-13)


def test_like_in_like_is_dissolved() -> None:
    assert (RBF + LINEAR) + CONSTANT == RBF + (LINEAR + CONSTANT) == Sum((RBF, LINEAR, CONSTANT))
    assert (RBF * LINEAR) * MATERN == RBF * (LINEAR * MATERN) == Product((RBF, LINEAR, MATERN))
    assert RBF + LINEAR != LINEAR + RBF
    assert Sum([RBF, LINEAR]) == RBF + LINEAR  # type: ignore[arg-type]


def gradient_errors() -> list[float]:
    two, three = np.array([0.7, 0.2, -1.0, -0.3, 0.5]), np.array([0.7, 0.2, -1.0, 0.1, -0.2, 1.0])
    return [
        gradient_error(RBF * MATERN, two, X, adjoint()),
        gradient_error((RBF + CONSTANT) * MATERN, three, X, adjoint()),
    ]


def test_gradient_of_a_product() -> None:
    assert max(gradient_errors()) < 1e-9


def test_gradient_sees_the_other_factor_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Product, "_adjoint", Sum._adjoint)
    assert min(gradient_errors()) > 1e-3


def test_gradient_sees_the_own_factor_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_of_them(self: Product, A: np.ndarray, grams: Grams, i: int, out: np.ndarray) -> None:
        np.multiply(A, np.prod(grams, axis=0), out=out)

    monkeypatch.setattr(Product, "_adjoint", all_of_them)
    assert min(gradient_errors()) > 1e-3


def test_terms_of_a_sum_each_get_their_own_adjoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels overwrite the adjoint."""
    theta = np.array([0.7, 0.2, -1.0, 0.1, -0.2, 1.0])
    assert gradient_error(RBF + MATERN, theta, X, adjoint()) < 1e-9
    monkeypatch.setattr(RBF.__class__, "gradient", lambda self, theta, X, K, A: _zeroed(A))
    seen = (RBF + MATERN).gradient(theta, X, (RBF + MATERN).gram(theta, X), adjoint())
    expected = MATERN.gradient(theta[3:], X, MATERN.gram(theta[3:], X), adjoint())
    np.testing.assert_array_equal(seen[3:], expected)


def _zeroed(A: np.ndarray) -> np.ndarray:
    A[:] = 0.0
    return np.zeros(3)


def test_growing_factors_are_finite_for_long_rows() -> None:
    kernel = LINEAR * Polynomial(3) * (LINEAR + RBF)
    theta, far = np.array([1.0, 2.0, 0.3, 0.4]), X * 1e80
    K = kernel.gram(theta, far)
    assert np.isfinite(K).all()
    assert np.isfinite(kernel.gradient(theta, far, K, np.ones((15, 15)))).all()
    assert np.linalg.eigvalsh(K / K.max()).min() > -1e-12


def test_what_is_no_kernel_is_refused() -> None:
    with pytest.raises(UsageError, match="at least two kernels"):
        Sum((RBF,))
    with pytest.raises(UsageError, match="made of kernels; got 'rbf'"):
        Product((RBF, "rbf"))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        RBF + 1.0  # type: ignore[operator]
    with pytest.raises(TypeError):
        RBF * "rbf"  # type: ignore[operator]


def test_forty_leaves_at_most() -> None:
    forty = Sum((RBF,) * 39 + (LINEAR,))
    assert len(forty.leaves()) == 40
    with pytest.raises(UsageError, match="at most 40 leaves; this one has 42"):
        (LINEAR + CONSTANT) * forty
