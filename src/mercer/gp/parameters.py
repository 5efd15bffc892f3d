"""Log parameters of a kernel by name: from theta to the arrays that a draw keeps, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.base import Kernel, Parameter

__all__ = [
    "each_parameter",
    "input_weights",
    "named_parameters",
    "shapes_of_parameters",
    "stacked_parameters",
]

Array = NDArray[np.float64]


def each_parameter(kernel: Kernel, n_inputs: int) -> Iterator[tuple[Parameter, slice]]:
    """Yield the parameters of a kernel with their places in theta."""
    places = kernel.slices(n_inputs)
    for parameter in kernel.parameters():
        yield parameter, places[parameter.name]


def named_parameters(kernel: Kernel, n_inputs: int, theta: Array) -> dict[str, Array]:
    """Split theta (.., p): a number has shape (..), one per input (.., d)."""
    return {
        parameter.name: theta[..., place] if parameter.per_input else theta[..., place.start]
        for parameter, place in each_parameter(kernel, n_inputs)
    }


def stacked_parameters(kernel: Kernel, values: Mapping[str, Array]) -> Array:
    """Put theta (.., p) together again: the inverse of `named_parameters`."""
    parts = [
        values[parameter.name] if parameter.per_input else values[parameter.name][..., np.newaxis]
        for parameter in kernel.parameters()
    ]
    return np.concatenate(parts, axis=-1)


def input_weights(kernel: Kernel) -> str | None:
    """Return the name of the weights of the inputs, if the kernel has one such vector."""
    names = [
        parameter.name
        for parameter in kernel.parameters()
        if parameter.kind == "weight" and parameter.per_input
    ]
    return names[0] if len(names) == 1 else None


def shapes_of_parameters(kernel: Kernel, n_inputs: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of each parameter of one draw."""
    return {
        parameter.name: (n_inputs,) if parameter.per_input else ()
        for parameter in kernel.parameters()
    }
