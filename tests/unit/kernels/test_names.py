from __future__ import annotations

import pytest

from mercer.errors import UsageError
from mercer.kernels.names import KERNELS, kernel_named, name_of_kernel
from mercer.kernels.polynomial import Polynomial


@pytest.mark.parametrize("name", KERNELS)
def test_names_lead_there_and_back(name: str) -> None:
    assert name_of_kernel(kernel_named(name)) == name


@pytest.mark.parametrize("name", ["rbg", "", None, ["rbf"]])
def test_unknown_names_are_refused(name: object) -> None:
    with pytest.raises(UsageError, match="there is: rbf, matern12"):
        kernel_named(name)  # type: ignore[arg-type]


def test_a_kernel_without_a_name_is_refused() -> None:
    with pytest.raises(UsageError, match=r"Polynomial\(degree=7\) has no name"):
        name_of_kernel(Polynomial(7))


def test_the_table_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        KERNELS["rbf"] = Polynomial()  # type: ignore[index]
