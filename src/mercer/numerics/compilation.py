"""Compiling loops before they are needed, once on a machine, and saying so.

They are compiled by a process of their own, and this one then takes them from the cache: code
fresh from the compiler may differ in its last bits from the same code read back, and the first run
on a machine must give what all later ones give.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
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
    loops = tuple(loops)
    _drop_stale(loops)
    if all(loop.signatures or _is_cached(loop) for loop in loops):
        return
    tell(COMPILING)
    program = f"import {module}; {module}.{function}()"
    subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)


def _is_cached(loop: Any) -> bool:
    folder = loop.stats.cache_path
    return folder is not None and any(Path(folder).glob(f"*.{loop.__name__}-*.nbi"))


def _drop_stale(loops: Iterable[Any]) -> None:
    """Remove what was cached from other sources of any loop of the package.

    Numba looks at the file that defines a loop alone, not at those whose loops it has inlined.
    """
    for folder in {loop.stats.cache_path for loop in loops if not loop.signatures}:
        if folder is None or not Path(folder).is_dir():
            continue
        stamp = Path(folder) / "mercer-loops.sha256"
        with contextlib.suppress(OSError):  # a cache that cannot be written
            if stamp.exists() and stamp.read_text() == _digest():
                continue
            for cached in Path(folder).glob("compiled.*.nb[ic]"):
                cached.unlink()
            stamp.write_text(_digest())


@functools.cache
def _digest() -> str:
    """SHA-256 of the sources of all compiled loops."""
    package = Path(__file__).parents[1]
    sha = hashlib.sha256()
    for source in sorted(package.rglob("compiled.py")):
        sha.update(source.relative_to(package).as_posix().encode() + source.read_bytes())
    return sha.hexdigest()
