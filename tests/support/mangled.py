"""Model files that were changed: at random, or in one field with the sum mended."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import mercer
from mercer.errors import ModelFileError
from mercer.posterior.container import read_container, write_container

Change = Callable[[dict, dict], None]  # of the manifest and the arrays


def mutate(data: bytes, rng: np.random.Generator) -> bytes:
    """Flip, cut, repeat or insert bytes; every other time mend the sum, so that parsing is met."""
    changed = bytearray(data)
    kind = rng.integers(4)
    at = int(rng.integers(len(changed)))
    if kind == 0:
        changed[at] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        del changed[at : at + int(rng.integers(1, 50))]
    elif kind == 2:
        changed[at:at] = changed[at : at + int(rng.integers(1, 50))]
    else:
        changed[at : at + 4] = rng.bytes(4)
    if rng.random() < 0.5 and len(changed) > 40:
        changed[8:40] = hashlib.sha256(changed[40:]).digest()
    return bytes(changed)


def set_array(name: str, change: Callable[[np.ndarray], Any]) -> Change:
    """Put a function of an array in its place."""
    return lambda manifest, arrays: arrays.__setitem__(name, np.asarray(change(arrays[name])))


def set_field(path: str, value: Any) -> Change:
    """Set an entry of the manifest: ``fields/models/0/kind``."""

    def change(manifest: Any, arrays: dict) -> None:
        *parents, last = path.split("/")
        for key in parents:
            manifest = manifest[int(key) if key.isdigit() else key]
        manifest[last] = value

    return change


def taken(path: Path, folder: Path, changes: Mapping[str, Change]) -> list[str]:
    """Names of the changes, each made by itself, after which the file is still read."""
    found = []
    for name, change in changes.items():
        manifest, arrays = read_container(path)
        change(manifest, arrays)
        write_container(folder / "changed.mercer", manifest, arrays)
        try:
            mercer.load(folder / "changed.mercer")
        except ModelFileError:
            continue
        found.append(name)
    return found
