"""Kernels by name: what an argument, the command line or a model file may call them."""

from __future__ import annotations

import ast
import difflib
import json
import keyword
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from types import MappingProxyType

from mercer.errors import UsageError
from mercer.kernels.base import MAX_LEAVES, Isotropic, Kernel, Product, Sum
from mercer.kernels.columns import Categorical, Column, OnColumns, bind, on_columns
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


# Kernels in words: "rbf + matern32*periodic", "rbf[age, 3] + categorical[city]", read and written.

# Forty leaves such as isotropic(spectral_mixture(1)), signs and parentheses: 1400 characters; the
# others are for names of inputs.
MAX_LENGTH = 4000

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
        "categorical": Categorical(),
        "levels": Categorical(is_each_level=True),
    }
)
_WITH_NUMBER: Mapping[str, Callable[[int], Kernel]] = MappingProxyType(
    {"polynomial": Polynomial, "spectral_mixture": SpectralMixture}
)
_WITH_KERNEL: Mapping[str, Callable[[Kernel], Kernel]] = MappingProxyType({"isotropic": Isotropic})
_ALLOWED = (
    f"there is: {', '.join(LEAVES)}, polynomial(degree), spectral_mixture(components), "
    'isotropic(kernel), and sums and products of them, such as "rbf + matern32*periodic", of all '
    'inputs or of chosen ones, such as "rbf[age, 3] + categorical[city]"'
)


def read_kernel(text: str) -> Kernel:
    """Return the kernel that a text describes; a `UsageError` names the nearest to an unknown name.

    Names, ``+``, ``*``, parentheses, calls with one integer or one kernel, and inputs in brackets,
    in at most 4000 characters; nothing is evaluated. What is wrong is marked under the text.
    """
    text = text.strip() if len(text) <= MAX_LENGTH else text
    if len(text) > MAX_LENGTH:
        raise UsageError(f"a kernel in more than {MAX_LENGTH} characters ({len(text)})")
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        found = str(getattr(error, "msg", ""))  # such as: '[' was never closed
        why = f" ({found})" if "never closed" in found or "unmatched" in found else ""
        marked = ""
        if isinstance(error, SyntaxError) and text:
            begin, end = (error.offset or len(text) + 2) - 1, (error.end_offset or 0) - 1
            marked = _marked(text, begin, end)
        raise UsageError(f"no kernel {_shortened(text)}{why}; {_ALLOWED}{marked}") from None
    n_leaves = 1 + sum(isinstance(node, ast.BinOp) for node in ast.walk(tree))
    if n_leaves > MAX_LEAVES:
        raise UsageError(f"a kernel has at most {MAX_LEAVES} leaves; this one has {n_leaves}")
    try:
        return _kernel_of(tree.body)
    except RecursionError:
        raise UsageError(f"no kernel {_shortened(text)}; {_ALLOWED}") from None
    except _RefusedError as error:
        node, words = error.args
        bytes_of = text.encode()
        ends = (node.col_offset, node.end_col_offset)
        begin, end = (len(bytes_of[:n].decode()) for n in ends)
        raise UsageError(f"no kernel {words}; {_ALLOWED}{_marked(text, begin, end)}") from None


class _RefusedError(Exception):
    """A node of a text that is no kernel, and what is wrong with it."""


def _marked(text: str, begin: int, end: int) -> str:
    """Show a text with carets under a part of it; nothing where all of it is wrong, or too long."""
    is_whole = begin <= 0 and end >= len(text)
    if is_whole or len(text) > _LONGEST_SHOWN or not text.isprintable():
        return ""
    return f"\n    {text}\n    {' ' * begin}{'^' * max(1, end - begin)}"


def _shortened(text: str) -> str:
    return repr(text) if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]!r}.."


_LONGEST_SHOWN = 200


def _kernel_of(node: ast.expr) -> Kernel:
    match node:
        case ast.Name(id=name) if name in LEAVES:
            return LEAVES[name]
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult() as sign, right=right):
            one, other = _kernel_of(left), _kernel_of(right)
            return one + other if isinstance(sign, ast.Add) else one * other
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]):
            is_whole = isinstance(argument, ast.Constant) and type(argument.value) is int
            if name in _WITH_NUMBER and is_whole:
                return _WITH_NUMBER[name](ast.literal_eval(argument))
            if name in _WITH_KERNEL and not isinstance(argument, ast.Constant):
                inner = _kernel_of(argument)
                if isinstance(inner, OnColumns):
                    return on_columns(_WITH_KERNEL[name](inner.kernel), inner.columns)
                return _WITH_KERNEL[name](inner)
        case ast.Subscript(value=value, slice=chosen):
            items = chosen.elts if isinstance(chosen, ast.Tuple) else [chosen]
            columns = [_column_of(item, node) for item in items]
            return on_columns(_kernel_of(value), columns)
    raise _RefusedError(node, f"{ast.unparse(node)!r}{_hint(node)}")


def _column_of(item: ast.expr, node: ast.expr) -> Column:
    """Read an input: a name, a text in quotes, a position, or positions from one to another."""
    match item:
        case ast.Name(id=name) | ast.Constant(value=str(name)):
            return name
        case ast.Constant(value=int(position)) if not isinstance(position, bool):
            return position
        case ast.Slice(lower=ast.Constant(value=int(begin)), upper=ast.Constant(value=int(end)),
                       step=None):  # fmt: skip
            return range(begin, end)
    raise _RefusedError(
        item,
        f"{_shortened(ast.unparse(node))}: inputs in brackets are names such as age, "
        '"mean radius" in quotes, positions such as 3, or 5:8 for 5, 6 and 7',
    )


def _hint(node: ast.expr) -> str:
    """Return " (did you mean 'x'?)" for a misspelt name, or how a known one is called."""
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
    return f" (did you mean {close[0]!r}?)" if close else ""


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
        case OnColumns(kernel=inner, columns=columns):
            return f"{_write_chosen(inner)}[{', '.join(_written(columns, inner))}]"
        case Sum(kernels=terms):
            return " + ".join(_terms(terms))
        case Product(kernels=factors):
            return "*".join(_factor(factor) for factor in factors)
    raise UsageError(f"{kernel!r} has no name; {_ALLOWED}")


def _write_chosen(kernel: Kernel) -> str:
    """Write a kernel without its inputs; how many columns each has is said by these."""
    if isinstance(kernel, Isotropic):
        return f"isotropic({_write_chosen(kernel.kernel)})"
    if isinstance(kernel, Categorical):
        kernel = replace(kernel, sizes=None)
    return write_kernel(kernel)


def _written(columns: Sequence[Column], kernel: Kernel) -> Iterator[str]:
    """Write inputs; a run of positions as a range where that means the same."""
    inner = kernel.kernel if isinstance(kernel, Isotropic) else kernel
    waiting = list(columns)
    while waiting:
        first, n = waiting[0], 1
        while (
            isinstance(first, int) and n < len(waiting) and waiting[n] == first + n
            and not isinstance(inner, Categorical)
        ):  # fmt: skip
            n += 1
        if isinstance(first, int) and n > 2:
            yield f"{first}:{first + n}"
        else:
            n = 1
            yield _write_column(first)
        del waiting[:n]


def _write_column(column: Column) -> str:
    """Write one input: a name as it is where it can be read so, else in quotes."""
    if isinstance(column, range):
        return f"{column.start}:{column.stop}"
    if isinstance(column, int):
        return str(column)
    is_plain = column.isidentifier() and not keyword.iskeyword(column)
    if is_plain and unicodedata.normalize("NFKC", column) == column:
        return column
    return json.dumps(column, ensure_ascii=False)  # which Python reads as the same text


def _terms(terms: tuple[Kernel, ...]) -> Iterator[str]:
    """Neighbouring components of the same inputs are one mixture."""
    for (is_component, columns), group in groupby(terms, _kind_of_term):
        run = list(group)
        if is_component:
            shown = "" if columns is None else f"[{', '.join(_written(columns, run[0]))}]"
            yield f"spectral_mixture({len(run)}){shown}"
        else:
            yield from (write_kernel(term) for term in run)


def _kind_of_term(term: Kernel) -> tuple[bool, tuple[Column, ...] | None]:
    if isinstance(term, OnColumns) and isinstance(term.kernel, SpectralComponent):
        return True, term.columns
    return isinstance(term, SpectralComponent), None


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
        Names joined by ``+`` and ``*``, with parentheses, at most 4000 characters:

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
        categorical                 `Categorical`: inputs that are equal or not
        levels                      the same, with a weight for each level
        rbf + linear, rbf*linear    `Sum`, `Product`
        rbf[age, 3, 5:8]            `OnColumns`: of chosen inputs, by name or position
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


def as_kernel(
    value: object, n_inputs: int, labels: Sequence[str] = (), sources: Sequence[str] = ()
) -> Kernel:
    """Return the kernel that an argument stands for, with positions where it names inputs.

    This is a name as in `kernel_named`, a kernel of mercer, or one of
    `sklearn.gaussian_process.kernels`, of which the structure is taken, without its values (see
    `mercer.kernels.translate`).

    Parameters
    ----------
    value : str or kernel
    n_inputs : int
    labels : sequence of str, length n_inputs, optional
        Names of the inputs; x0, x1, .. where none are given.
    sources : sequence of str, length n_inputs, optional
        Names of the columns of a table that they come from: see `mercer.kernels.columns.bind`.

    Examples
    --------
    >>> as_kernel("rbf", n_inputs=2)
    SquaredExponentialARD()
    >>> name_of_kernel(as_kernel("rbf[age]", 2, ["height", "age"]))
    'rbf[1]'
    """
    labels = labels or tuple(f"x{j}" for j in range(n_inputs))
    if isinstance(value, Kernel):
        return bind(value, labels, sources)
    if isinstance(value, str):
        return bind(kernel_named(value), labels, sources)
    from mercer.kernels.translate import from_scikit_learn  # which needs scikit-learn

    return from_scikit_learn(value, n_inputs)
