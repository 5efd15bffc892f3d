"""Loops compiled by Numba: the mark that they carry, and compiling them before they are needed.

They are compiled by a process of their own, once on a machine, and this one then takes them from
the cache: code fresh from the compiler may differ in its last bits from the same code read back,
and the first run on a machine must give what all later ones give.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding

from mercer.errors import MercerWarning

COMPILING = "compiling the inner loops of this model, once on this machine: ten seconds or more"
_STAMP = "mercer-loops.sha256"  # in a folder of the cache: from which sources
_LOOPS: list[Any] = []  # every marked loop of the modules that are loaded
_METHODS = {"gp", "sphere", "basis", "spectral"}  # whose loops call none of another method


def compiled(*, allocates: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Mark a loop over arrays and scalars: compiled on first use, kept in Numba's cache.

    Options are those of ``numba.njit``, such as ``nogil`` and ``error_model``. It counts no
    references to arrays, an atomic addition each, which can be most of its time, unless it makes
    or returns arrays: such a loop says ``allocates=True``, or does not compile. Slices are assigned
    number by number: Numba compiles two seconds for the words of its error where shapes differ.

    Where neither the folder of the source nor that of the user can be written, the cache lies in a
    private temporary folder that goes with the process, and a `MercerWarning` says so.
    """
    options["_nrt"] = allocates

    def mark(function: Callable[..., Any]) -> Any:
        # A process has one copy of a function that is called: that of the caller loaded first. What
        # regroups sums rounds differently in each, and is inlined: no bit hangs on earlier fits.
        called = (function.__globals__.get(name) for name in function.__code__.co_names)
        regroups = (getattr(each, "targetoptions", {}).get("forceinline") for each in called)
        options["forceinline"] = "fastmath" in options or any(regroups)
        try:
            loop = numba.njit(cache=True, **options)(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):  # no folder that it may write
                raise
            _cache_in_a_temporary_folder()
            loop = numba.njit(cache=True, **options)(function)
        _LOOPS.append(loop)
        return loop

    return mark


def compile_first(tell: Callable[[str], None], *warm_ups: Callable[[], None]) -> None:
    """Compile loops into Numba's cache, unless that is done; before that ``tell`` gets `COMPILING`.

    ``warm_ups`` are functions of a module, without arguments, that use every loop once.
    """
    _drop_stale()
    due = []
    for warm_up in warm_ups:
        stamp, digest = _stamp(warm_up), _digest(_folder(warm_up))
        if stamp is not None and not _holds(stamp, digest):
            due.append((f"import {warm_up.__module__} as m; m.{warm_up.__name__}()", stamp, digest))
    if not due:
        return
    tell(COMPILING)
    program = "\n".join(["import gc; gc.disable()", *(each for each, *_ in due)])  # all is kept
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    for _, stamp, digest in due if done.returncode == 0 else ():
        with contextlib.suppress(OSError):
            stamp.write_text(digest)


@dataclass(frozen=True)
class LoopCache:
    """Where the loops of the modules that are loaded are kept, and how many of them are there."""

    folders: tuple[Path, ...]
    n_loops: int
    n_compiled: int  # from the present sources; others are compiled anew
    n_bytes: int


def look_at_cache() -> LoopCache:
    """Look at Numba's cache, without changing it."""
    digests = _digests()
    files = [path for folder in digests for path in folder.glob("*.nb[ic]")]
    fresh = [folder for folder in digests if _holds(folder / _STAMP, digests[folder])]
    n_compiled = sum(path.suffix == ".nbi" and path.parent in fresh for path in files)
    return LoopCache(tuple(digests), len(_LOOPS), n_compiled, sum(f.stat().st_size for f in files))


def _folder(function: Any) -> str:
    """Folder of the package that a loop or a warm-up is of."""
    return str(function.__module__).partition(".")[2].partition(".")[0]


def _digests() -> dict[Path, str]:
    """Folders of the cache, in order, with the digest of the sources of what they hold."""
    found = {loop.stats.cache_path: _folder(loop) for loop in _LOOPS}
    return {Path(path): _digest(found[path]) for path in sorted(filter(None, found))}


def _stamp(warm_up: Callable[[], None]) -> Path | None:
    """File that says from which sources a warm-up was run, beside the cached loops."""
    own = [loop for loop in _LOOPS if _folder(loop) == _folder(warm_up)]
    folder = (own or _LOOPS)[0].stats.cache_path
    name = f"{warm_up.__module__}.{warm_up.__name__}.compiled"
    return None if folder is None else Path(folder) / name


def _holds(path: Path, text: str) -> bool:
    with contextlib.suppress(OSError):
        return path.read_text() == text
    return False


def _drop_stale() -> None:
    """Remove what was cached from other sources of any loop that it may call.

    Numba looks at the file that defines a loop alone, not at those whose loops it has inlined.
    """
    for folder, digest in _digests().items():
        stamp = folder / _STAMP
        if not folder.is_dir() or _holds(stamp, digest):
            continue
        with contextlib.suppress(OSError):  # a cache that cannot be written
            for cached in [*folder.glob("*.nb[ic]"), *folder.glob("*.compiled")]:
                cached.unlink()
            stamp.write_text(digest)


@functools.cache
def _digest(folder: str) -> str:
    """SHA-256 of the sources of all loops but other methods', the compiler, and the processor."""
    package = Path(__file__).parents[1]
    versions = (numba.__version__, platform.python_version(), binding.get_host_cpu_name())
    sha = hashlib.sha256(repr(versions).encode())
    for source in sorted(package.rglob("*.py")):
        name, text = source.relative_to(package), source.read_bytes()
        if b"@compiled(" in text and name.parts[0] not in _METHODS - {folder}:
            sha.update(name.as_posix().encode() + text)
    return sha.hexdigest()


def _cache_in_a_temporary_folder() -> None:
    """Let Numba cache where this process and its children can write, and say so once."""
    if "mercer-loops-" in numba.config.CACHE_DIR:
        return
    folder = tempfile.mkdtemp(prefix="mercer-loops-")  # readable by this user alone
    os.environ["NUMBA_CACHE_DIR"] = numba.config.CACHE_DIR = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    warnings.warn(
        "no folder for compiled loops can be written: they are compiled anew by every run; "
        "NUMBA_CACHE_DIR may name one",
        MercerWarning,
        stacklevel=4,
    )
