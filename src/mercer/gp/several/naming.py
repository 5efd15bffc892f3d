"""Log parameters of the kernels of several classes by name: one flat vector of each."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mercer.gp.parameters import named_parameters, stacked_parameters
from mercer.kernels.base import Kernel

__all__ = ["class_labels", "class_parameters", "class_shapes", "class_thetas"]

Array = NDArray[np.float64]


def class_parameters(kernel: Kernel, n_inputs: int, theta: Array) -> dict[str, Array]:
    """Split theta (C, p) of one draw: a number a class has shape (C,), one per input (C d,).

    A shared kernel, theta of shape (1, p), has the names and shapes that it has for two classes.
    """
    if len(theta) == 1:
        return named_parameters(kernel, n_inputs, theta[0])
    return {
        name: values.reshape(-1)
        for name, values in named_parameters(kernel, n_inputs, theta).items()
    }


def class_thetas(
    kernel: Kernel, n_classes: int, values: Mapping[str, Array], *, is_shared: bool
) -> Array:
    """Put theta (S, C or 1, p) of S draws together again: the inverse for arrays (S, ..)."""
    if is_shared:
        return stacked_parameters(kernel, values)[:, np.newaxis]
    split = {}
    for parameter in kernel.parameters():
        array = values[parameter.name]
        shape = (len(array), n_classes, -1) if parameter.per_input else (len(array), n_classes)
        split[parameter.name] = array.reshape(shape)
    return stacked_parameters(kernel, split)


def class_shapes(
    kernel: Kernel, n_inputs: int, n_classes: int, *, is_shared: bool
) -> dict[str, tuple[int, ...]]:
    """Return the shape of each parameter of one draw."""
    return {
        parameter.name: () if is_shared and not parameter.per_input else (size,)
        for parameter in kernel.parameters()
        for size in [(n_inputs if parameter.per_input else 1) * (1 if is_shared else n_classes)]
    }


def class_labels(
    kernel: Kernel, names: tuple[str, ...], classes: tuple[str, ...], *, is_shared: bool
) -> dict[str, tuple[str, ...]]:
    """Name the entries of each parameter: "setosa" or "setosa: petal_length"."""
    labels = {}
    for parameter in kernel.parameters():
        if is_shared and parameter.per_input:
            labels[parameter.name] = names
        elif not is_shared:
            labels[parameter.name] = (
                tuple(f"{label}: {name}" for label in classes for name in names)
                if parameter.per_input
                else classes
            )
    return labels
