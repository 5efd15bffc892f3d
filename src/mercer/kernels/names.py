"""Kernels by name: what an argument, the command line or a model file may call them."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from types import MappingProxyType

from mercer.errors import UsageError
from mercer.kernels.algebra import Isotropic, Product, Sum
from mercer.kernels.base import Kernel
from mercer.kernels.linear import Constant, Linear, Polynomial
from mercer.kernels.stationary import (
    MaternARD,
    Periodic,
    RationalQuadraticARD,
    SpectralComponent,
    SpectralMixture,
    SquaredExponentialARD,
)

__all__ = [
    "KERNELS",
    "LEAVES",
    "MAX_LENGTH",
    "as_kernel",
    "kernel_named",
    "name_of_kernel",
    "read_kernel",
    "write_kernel",
]


# Kernels in words: "rbf + matern32*periodic", read and written.

# Ten leaves such as isotropic(spectral_mixture(1)), signs and parentheses: about 350 characters.
MAX_LENGTH = 400

LEAVES: Mapping[str, Kernel] = MappingProxyType(
    {
        "rbf": SquaredExponentialARD(),
        "matern12": MaternARD(0.5),
        "matern32": MaternARD(1.5),
        "matern52": MaternARD(2.5),
        "linear": Linear(),
        "polynomial": Polynomial(),
        "rational_quadratic": RationalQuadraticARD(),
        "periodic": Periodic(),
        "constant": Constant(),
    }
)
_WITH_NUMBER: Mapping[str, Callable[[int], Kernel]] = MappingProxyType(
    {"polynomial": Polynomial, "spectral_mixture": SpectralMixture}
)
_WITH_KERNEL: Mapping[str, Callable[[Kernel], Kernel]] = MappingProxyType({"isotropic": Isotropic})
_ALLOWED = (
    f"there is: {', '.join(LEAVES)}, polynomial(degree), spectral_mixture(components), "
    'isotropic(kernel), and sums and products of them, such as "rbf + matern32*periodic"'
)


def read_kernel(text: str) -> Kernel:
    """Return the kernel that a text describes; a `UsageError` names the nearest to an unknown name.

    Names, ``+``, ``*``, parentheses, and calls with one integer or one kernel, in at most 400
    characters; nothing is evaluated.
    """
    if len(text) > MAX_LENGTH:
        raise UsageError(f"a kernel in more than {MAX_LENGTH} characters ({len(text)})")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise UsageError(f"no kernel {text!r}; {_ALLOWED}") from None
    return _kernel_of(tree.body)


def _kernel_of(node: ast.expr) -> Kernel:
    match node:
        case ast.Name(id=name) if name in LEAVES:
            return LEAVES[name]
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult() as sign, right=right):
            one, other = _kernel_of(left), _kernel_of(right)
            return one + other if isinstance(sign, ast.Add) else one * other
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]):
            if name in _WITH_NUMBER and _is_integer(argument):
                return _WITH_NUMBER[name](ast.literal_eval(argument))
            if name in _WITH_KERNEL and not isinstance(argument, ast.Constant):
                return _WITH_KERNEL[name](_kernel_of(argument))
    raise UsageError(f"no kernel {ast.unparse(node)!r}{_hint(node)}; {_ALLOWED}")


def _is_integer(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _hint(node: ast.expr) -> str:
    """Return "; did you mean 'x'?" for a misspelt name, or how a known one is called."""
    if isinstance(node, ast.Call):
        node = node.func
    if not isinstance(node, ast.Name):
        return ""
    if node.id in _WITH_NUMBER:
        return f": {node.id} is called with one integer"
    if node.id in _WITH_KERNEL:
        return f": {node.id} is called with one kernel"
    known = [*LEAVES, *_WITH_NUMBER, *_WITH_KERNEL]
    close = [] if node.id in known else difflib.get_close_matches(node.id.lower(), known, n=1)
    return f": did you mean {close[0]!r}?" if close else ""


def write_kernel(kernel: Kernel) -> str:
    """Return the text that `read_kernel` reads as an equal kernel; a `UsageError` without one."""
    for name, known in LEAVES.items():
        if known == kernel:
            return name
    match kernel:
        case Polynomial(degree=degree):
            return f"polynomial({degree})"
        case SpectralComponent():
            return "spectral_mixture(1)"
        case Isotropic(kernel=inner):
            return f"isotropic({write_kernel(inner)})"
        case Sum(kernels=terms):
            return " + ".join(_terms(terms))
        case Product(kernels=factors):
            return "*".join(_factor(factor) for factor in factors)
    raise UsageError(f"{kernel!r} has no name; {_ALLOWED}")


def _terms(terms: tuple[Kernel, ...]) -> Iterator[str]:
    """Neighbouring components are one mixture."""
    for is_component, group in groupby(terms, lambda term: isinstance(term, SpectralComponent)):
        run = list(group)
        if is_component:
            yield f"spectral_mixture({len(run)})"
        else:
            yield from (write_kernel(term) for term in run)


def _factor(factor: Kernel) -> str:
    text = write_kernel(factor)
    return f"({text})" if " + " in text else text


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

    Examples
    --------
    >>> name_of_kernel(kernel_named("(rbf+linear) * isotropic( matern32 )"))
    '(rbf + linear)*isotropic(matern32)'
    """
    return write_kernel(kernel)


def as_kernel(value: object, n_inputs: int) -> Kernel:
    """Return the kernel that an argument stands for.

    This is a name as in `kernel_named`, a kernel of mercer, or one of
    `sklearn.gaussian_process.kernels`, of which the structure is taken, without its values (see
    `mercer.kernels.translate`).

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
