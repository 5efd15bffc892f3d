"""Random streams: one child of the seed for each chain and purpose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mercer.errors import UsageError

# A new purpose is appended; the numbers are part of what "the same seed" means.
_PURPOSES = (
    "start",
    "chain",
    "rows",
    "folds",
    "evidence",
    "rates",
    "scales",
    "coefficients",
    "by class",
    "scalings",
    "importance",
    "inspection",
    "stacking",
    "query",
    "models",
    "missing",
)


def entropy_of(random_state: object) -> int:
    """Turn ``random_state`` (None, int, RandomState or Generator) into the entropy of all streams.

    None draws fresh entropy from the operating system; an integer gives the same bits each time.
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(4, np.uint64)[0])
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    is_whole = isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool)
    if is_whole and int(random_state) >= 0:  # type: ignore[call-overload]
        return int(random_state)  # type: ignore[call-overload, no-any-return]
    raise UsageError(
        f"random_state must be None, a non-negative integer, a Generator or a RandomState; "
        f"got {random_state!r}"
    )


def stream(entropy: int, purpose: str, index: int = 0) -> np.random.Generator:
    """Return the generator of one (purpose, index), for instance ("chain", 2)."""
    key = (_PURPOSES.index(purpose), index)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy, spawn_key=key)))


def generator_to_json(rng: np.random.Generator) -> dict[str, Any]:
    """Return where a generator of `stream` stands, as JSON can hold it."""
    state = rng.bit_generator.state
    return {
        "state": str(state["state"]["state"]),
        "inc": str(state["state"]["inc"]),
        "has_uint32": int(state["has_uint32"]),
        "uinteger": int(state["uinteger"]),
    }


def generator_from_json(values: Mapping[str, Any]) -> np.random.Generator:
    """Return the generator that `generator_to_json` described.

    Raises
    ------
    KeyError, TypeError, ValueError
        If that is no description of one.
    """
    rng = np.random.Generator(np.random.PCG64(0))
    rng.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": int(values["state"]), "inc": int(values["inc"])},
        "has_uint32": int(values["has_uint32"]),
        "uinteger": int(values["uinteger"]),
    }
    return rng
