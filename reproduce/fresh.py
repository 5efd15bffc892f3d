"""A function in a process of its own: how long it takes, and how much memory all of it holds.

``python -m reproduce.fresh MODULE FUNCTION ARGUMENTS`` calls it with the arguments, a list as
JSON, and prints what it returns, a dictionary.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["in_fresh_process", "largest_gib", "resident_gib"]

_ROOT = Path(__file__).parent.parent
_SECONDS_BETWEEN_LOOKS = 0.5


def in_fresh_process(
    module: str,
    function: str,
    *arguments: Any,
    n_threads: int = 1,
    watch: Callable[[float], None] = lambda gib: None,
) -> dict[str, Any]:
    """Call a function in a new process.

    Parameters
    ----------
    module, function : str
        Where it is, and its name; it returns a dictionary that JSON can hold.
    *arguments
        That JSON can hold.
    n_threads : int
        Of BLAS and OpenMP.
    watch : callable
        Told the largest memory so far, in GiB, twice a second.

    Returns
    -------
    dict
        What the function returned, and "peak_gib": resident memory of the process and of those it
        started, each as large as its share of what they hold together (Linux only).
    """
    command = [sys.executable, "-m", "reproduce.fresh", module, function, json.dumps(arguments)]
    threads = {name: str(n_threads) for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")}
    environment = {**os.environ, **threads}
    peak = 0.0
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=_ROOT, env=environment
    )
    try:
        while process.poll() is None:
            peak = max(peak, sum(map(_share, _family(process.pid))))
            watch(peak)
            try:
                process.wait(_SECONDS_BETWEEN_LOOKS)
            except subprocess.TimeoutExpired:
                continue
    finally:
        if process.poll() is None:
            process.terminate()
        out, _ = process.communicate()
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    result: dict[str, Any] = json.loads(out.splitlines()[-1])
    return {**result, "peak_gib": float(f"{max(peak, result['peak_gib']):.4g}")}


def resident_gib() -> float:
    """Resident memory of this process now (Linux only)."""
    return _gib("/proc/self/status", "VmRSS:")


def largest_gib() -> float:
    """Largest resident memory of this process until now (Linux only)."""
    return _gib("/proc/self/status", "VmHWM:")


def _family(pid: int) -> list[int]:
    """Number of the process, and of all that it started, directly or not."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int(
                (folder / "stat").read_text().rpartition(")")[2].split()[1]
            )
        except (OSError, IndexError):
            continue
    family = [pid]
    for member in family:
        family += [child for child, parent in parents.items() if parent == member]
    return family


def _share(pid: int) -> float:
    """Resident memory in GiB; what several processes hold together is split between them."""
    return _gib(f"/proc/{pid}/smaps_rollup", "Pss:")


def _gib(path: str, name: str) -> float:
    try:
        with open(path) as file:
            return next(int(line.split()[1]) for line in file if line.startswith(name)) / 2**20
    except (OSError, StopIteration):
        return 0.0


def _main(module: str, function: str, arguments: str) -> None:
    result = getattr(importlib.import_module(module), function)(*json.loads(arguments))
    # Looks from outside miss a peak between them: what the kernel noted of this process does not.
    print(json.dumps({**result, "peak_gib": largest_gib()}))


if __name__ == "__main__":
    _main(*sys.argv[1:])
