from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from mercer.errors import UsageError
from mercer.kernels.base import Isotropic
from mercer.kernels.linear import Constant, Polynomial
from mercer.kernels.names import KERNELS, as_kernel, kernel_named, name_of_kernel
from mercer.kernels.stationary import SquaredExponentialARD


@dataclass(frozen=True)
class Foreign(Constant):
    """A kernel that the user has written."""


@pytest.mark.parametrize("name", KERNELS)
def test_names_lead_there_and_back(name: str) -> None:
    assert name_of_kernel(kernel_named(name)) == name


@pytest.mark.parametrize("name", KERNELS)
def test_the_table_has_a_variance_and_perhaps_weights(name: str) -> None:
    kernel = KERNELS[name]
    assert kernel.n_parameters(4) == (5 if kernel.has_lengthscale else 1)


@pytest.mark.parametrize("name", ["rbg", "", None, ["rbf"]])
def test_unknown_names_are_refused(name: object) -> None:
    with pytest.raises(UsageError, match="there is: rbf, matern12"):
        kernel_named(name)  # type: ignore[arg-type]


def test_a_kernel_without_a_name_is_refused() -> None:
    with pytest.raises(UsageError, match=r"Foreign\(\) has no name"):
        name_of_kernel(Foreign())


def test_the_table_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        KERNELS["rbf"] = Polynomial()  # type: ignore[index]


def test_one_door_for_all_that_stands_for_a_kernel() -> None:
    kernel = Isotropic(SquaredExponentialARD())
    assert as_kernel(kernel, 3) is kernel
    assert as_kernel("isotropic(rbf)", 3) == kernel
    assert as_kernel(np.str_("isotropic(rbf)"), 3) == kernel
    assert as_kernel(RBF(1.0), 3) == kernel


@pytest.mark.parametrize("value", [None, 3, ["rbf"], SquaredExponentialARD, RBF])
def test_the_door_is_closed_to_others(value: object) -> None:
    with pytest.raises(UsageError, match="a name, a kernel of mercer, or one of"):
        as_kernel(value, 3)
