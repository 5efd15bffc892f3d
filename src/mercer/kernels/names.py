"""Kernels by name: what an argument, the command line or a model file may call them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mercer.errors import UsageError
from mercer.kernels.base import Kernel
from mercer.kernels.expressions import LEAVES, read_kernel, write_kernel

__all__ = ["KERNELS", "as_kernel", "kernel_named", "name_of_kernel"]

_PLAIN = ("rbf", "matern12", "matern32", "matern52", "linear", "polynomial")

# Those whose theta is a variance, perhaps followed by weights: what any method can make use of.
KERNELS: Mapping[str, Kernel] = MappingProxyType({name: LEAVES[name] for name in _PLAIN})


def kernel_named(name: str) -> Kernel:
    """Return the kernel of that name, or that a text describes.

    Parameters
    ----------
    name : str
        Names joined by ``+`` and ``*``, with parentheses, at most 400 characters:

        ==========================  =====================================================
        text                        kernel
        ==========================  =====================================================
        rbf                         `SquaredExponentialARD`
        matern12, -32, -52          `MaternARD` of smoothness 1/2, 3/2, 5/2
        rational_quadratic          `RationalQuadraticARD`
        periodic                    `Periodic`
        constant, linear            `Constant`, `Linear`
        polynomial, polynomial(3)   `Polynomial` of degree 2, 3
        spectral_mixture(4)         `SpectralMixture` of 4 components
        isotropic(rbf)              `Isotropic`: one weight for all inputs
        rbf + linear, rbf*linear    `Sum`, `Product`
        ==========================  =====================================================

    Raises
    ------
    UsageError
        If there is none; with the nearest name.

    Examples
    --------
    >>> kernel_named("matern32")
    MaternARD(smoothness=1.5)
    >>> kernel_named("constant + rbf*linear").n_parameters(n_inputs=3)
    5
    """
    if not isinstance(name, str):
        raise UsageError(f"no kernel {name!r}; there is: {', '.join(LEAVES)}")
    return read_kernel(name)


def name_of_kernel(kernel: Kernel) -> str:
    """Return the name under which a kernel can be stored; the inverse of `kernel_named`.

    Raises
    ------
    UsageError
        If it has no name.

    Examples
    --------
    >>> name_of_kernel(kernel_named("(rbf+linear) * isotropic( matern32 )"))
    '(rbf + linear)*isotropic(matern32)'
    """
    return write_kernel(kernel)


def as_kernel(value: object, n_inputs: int) -> Kernel:
    """Return the kernel that an argument stands for.

    Parameters
    ----------
    value : str, Kernel, or a kernel of scikit-learn
        A name as in `kernel_named`, a kernel of mercer, or one of
        `sklearn.gaussian_process.kernels`, of which the structure is taken, without its values
        (see `mercer.kernels.translate`).
    n_inputs : int
        Columns of the inputs.

    Raises
    ------
    UsageError
        If it is none of these, or has no counterpart.

    Examples
    --------
    >>> as_kernel("rbf", n_inputs=2)
    SquaredExponentialARD()
    """
    if isinstance(value, Kernel):
        return value
    if isinstance(value, str):
        return kernel_named(value)
    from mercer.kernels.translate import from_scikit_learn  # which needs scikit-learn

    return from_scikit_learn(value, n_inputs)
