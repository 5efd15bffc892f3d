"""States as named arrays and back, directed by a template of the same type: no pickle."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import ModelFileError

__all__ = ["pack", "unpack"]


def pack(value: Any, name: str) -> dict[str, NDArray[Any]]:
    """Flatten dataclass, named tuple, mapping, array or number into arrays ``name/field/...``."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        items = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    elif isinstance(value, Mapping):
        items = dict(value)
    elif isinstance(value, tuple) and hasattr(value, "_asdict"):
        items = value._asdict()
    elif isinstance(value, (np.ndarray, np.generic, float, int)):
        return {name: np.asarray(value)}
    else:
        raise TypeError(f"a state cannot hold a {type(value).__name__} (at {name})")
    arrays: dict[str, NDArray[Any]] = {}
    for key, item in items.items():
        arrays.update(pack(item, f"{name}/{key}"))
    return arrays


def unpack(template: Any, arrays: Mapping[str, NDArray[Any]], name: str) -> Any:
    """Rebuild what ``pack`` flattened; types and keys come from ``template``, never the file.

    Raises
    ------
    ModelFileError
        If an array is missing or is not of the template's type.
    """
    if dataclasses.is_dataclass(template) and not isinstance(template, type):
        fields = {
            f.name: unpack(getattr(template, f.name), arrays, f"{name}/{f.name}")
            for f in dataclasses.fields(template)
        }
        return dataclasses.replace(template, **fields)
    if isinstance(template, tuple) and hasattr(template, "_asdict"):
        items = template._asdict().items()
        return type(template)(*(unpack(item, arrays, f"{name}/{key}") for key, item in items))
    if isinstance(template, Mapping):
        return {key: unpack(item, arrays, f"{name}/{key}") for key, item in template.items()}
    if name not in arrays:
        raise ModelFileError(f"inconsistent checkpoint: {name} is missing")
    array = arrays[name]
    if isinstance(template, np.ndarray):
        if array.dtype != template.dtype or array.ndim != template.ndim:
            raise ModelFileError(f"inconsistent checkpoint: {name} is not of the expected kind")
        return array
    if array.ndim != 0:
        raise ModelFileError(f"inconsistent checkpoint: {name} is not a number")
    return type(template)(array.item())
