"""Medians of interleaved rounds: a drift of the machine hits all contenders alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

__all__ = ["interleaved"]


def interleaved(
    calls: Mapping[str, Callable[[], Any]], *, n_rounds: int, repeat: int
) -> dict[str, float]:
    """Median seconds of one call of each, over rounds in which every contender runs in turn.

    Parameters
    ----------
    calls : mapping of name to function
    n_rounds : int
    repeat : int
        Calls of each contender in a row within a round, of which the fastest counts.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(n_rounds):
        for name, call in calls.items():
            best = np.inf
            for _ in range(repeat):
                begin = time.perf_counter()
                call()
                best = min(best, time.perf_counter() - begin)
            times[name].append(best)
    return {name: float(np.median(values)) for name, values in times.items()}
