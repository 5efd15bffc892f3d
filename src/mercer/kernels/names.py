"""Kernels by name: what an argument, the command line or a model file may call them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mercer.errors import UsageError
from mercer.kernels.base import Kernel
from mercer.kernels.linear import Linear
from mercer.kernels.matern import MaternARD
from mercer.kernels.polynomial import Polynomial
from mercer.kernels.squared_exponential import SquaredExponentialARD

__all__ = ["KERNELS", "kernel_named", "name_of_kernel"]

KERNELS: Mapping[str, Kernel] = MappingProxyType(
    {
        "rbf": SquaredExponentialARD(),
        "matern12": MaternARD(0.5),
        "matern32": MaternARD(1.5),
        "matern52": MaternARD(2.5),
        "linear": Linear(),
        "polynomial": Polynomial(),
    }
)


def kernel_named(name: str) -> Kernel:
    """Return the kernel of that name.

    Raises
    ------
    UsageError
        If there is none.

    Examples
    --------
    >>> kernel_named("matern32")
    MaternARD(smoothness=1.5)
    """
    kernel = KERNELS.get(name) if isinstance(name, str) else None
    if kernel is None:
        raise UsageError(f"no kernel {name!r}; there is: {', '.join(KERNELS)}")
    return kernel


def name_of_kernel(kernel: Kernel) -> str:
    """Return the name under which a kernel can be stored; the inverse of `kernel_named`.

    Raises
    ------
    UsageError
        If it has no name.

    Examples
    --------
    >>> name_of_kernel(SquaredExponentialARD())
    'rbf'
    """
    for name, known in KERNELS.items():
        if known == kernel:
            return name
    raise UsageError(f"{kernel!r} has no name; those with one: {', '.join(KERNELS)}")
