"""Files that were changed at random."""

from __future__ import annotations

import hashlib

import numpy as np


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
