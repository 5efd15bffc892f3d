"""Saying so when compiled loops are about to be compiled: once on a machine, then cached."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

__all__ = ["COMPILING", "compile_first"]

COMPILING = "compiling the inner loops, once on this machine: about ten seconds"


def compile_first(
    loops: Iterable[Any], run: Callable[[], Any], tell: Callable[[str], None]
) -> None:
    """Run ``run``, which uses all the loops, if one of them is neither compiled nor cached.

    Parameters
    ----------
    loops : iterable of Numba dispatchers
    run : callable
        A tiny problem that makes Numba compile them all.
    tell : callable
        Told `COMPILING` before that.
    """
    if all(loop.signatures or _is_cached(loop) for loop in loops):
        return
    tell(COMPILING)
    run()


def _is_cached(loop: Any) -> bool:
    folder = loop.stats.cache_path
    return folder is not None and any(Path(folder).glob(f"*.{loop.__name__}-*.nbi"))
