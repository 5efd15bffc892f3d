"""Compiling loops before they are needed, once on a machine, and saying so.

They are compiled by a process of their own, and this one then takes them from the cache: code
fresh from the compiler may differ in its last bits from the same code read back, and the first run
on a machine must give what all later ones give.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

__all__ = ["COMPILING", "compile_first"]

COMPILING = "compiling the inner loops, once on this machine: about ten seconds"


def compile_first(
    loops: Iterable[Any], module: str, tell: Callable[[str], None], function: str = "compile_now"
) -> None:
    """Compile loops into Numba's cache, unless they are compiled or cached already.

    Parameters
    ----------
    loops : iterable of Numba dispatchers
    module, function : str
        Module and its function without arguments that makes Numba compile them all.
    tell : callable
        Told `COMPILING` before that.

    Notes
    -----
    Where no cache can be written, the loops are compiled again in each process, on first use.
    """
    if all(loop.signatures or _is_cached(loop) for loop in loops):
        return
    tell(COMPILING)
    program = f"import {module}; {module}.{function}()"
    subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)


def _is_cached(loop: Any) -> bool:
    folder = loop.stats.cache_path
    return folder is not None and any(Path(folder).glob(f"*.{loop.__name__}-*.nbi"))
