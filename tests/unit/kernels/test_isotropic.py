from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from mercer.errors import UsageError
from mercer.kernels.base import Isotropic
from mercer.kernels.linear import Constant, Linear, Polynomial
from mercer.kernels.stationary import Periodic, SquaredExponentialARD
from support.kernel_cases import gradient_error

RBF_ISO = Isotropic(SquaredExponentialARD())
X = np.random.default_rng(1).standard_normal((15, 3))


def test_against_scikit_learn() -> None:
    plain = np.exp(0.7) * RBF(np.exp(-0.1))(X)
    np.testing.assert_allclose(RBF_ISO.gram(np.array([0.7, 0.2]), X), plain, rtol=1e-12)


@pytest.mark.parametrize("d", [1, 3, 7])
def test_one_weight_for_any_number_of_inputs(d: int) -> None:
    assert RBF_ISO.n_parameters(d) == 2
    assert RBF_ISO.has_lengthscale
    assert Isotropic(Periodic()).n_parameters(d) == 2 + d


def test_gradient_sees_one_input_in_place_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    A = np.random.default_rng(3).standard_normal((15, 15))
    theta = np.array([0.7, 0.2])
    assert gradient_error(RBF_ISO, theta, X, A + A.T) < 1e-9
    of_all = SquaredExponentialARD.gradient

    def of_one(*arguments: object) -> np.ndarray:
        return of_all(*arguments) * [1.0, 1.0, 0.0, 0.0]  # type: ignore[arg-type]

    monkeypatch.setattr(SquaredExponentialARD, "gradient", of_one)
    assert gradient_error(RBF_ISO, theta, X, A + A.T) > 1e-3


@pytest.mark.parametrize(
    "kernel",
    [Linear(), Constant(), Polynomial(), RBF_ISO, SquaredExponentialARD() + Periodic(),
     SquaredExponentialARD() * Constant(), "rbf"],
    ids=repr,
)  # fmt: skip
def test_kernels_without_a_weight_per_input_are_refused(kernel: object) -> None:
    with pytest.raises(UsageError, match="isotropic needs"):
        Isotropic(kernel)  # type: ignore[arg-type]
