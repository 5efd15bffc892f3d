"""A record: what was measured, on which machine, by which versions, from which commit."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["RESULTS", "machine", "read_record", "write_record"]

RESULTS = Path(__file__).parent / "results"
_PACKAGES = ("mercer", "numpy", "scipy", "scikit-learn", "numba", "joblib", "arviz-stats")


def machine() -> dict[str, Any]:
    """Describe where a record is made."""
    from threadpoolctl import threadpool_info

    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = lines[0].partition(":")[2].strip() if lines else cpu
    blas = [
        f"{i['internal_api']} {i['version']}" for i in threadpool_info() if i["user_api"] == "blas"
    ]
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "blas": sorted(set(blas)),
        "blas_threads": 1,
        "load_average": round(os.getloadavg()[0], 2),
    }


def write_record(
    scenario: str, seed: int, metrics: dict[str, Any], peers: Sequence[str] = ()
) -> Path:
    """Write ``results/SCENARIO.json``, in place of the last record of that scenario.

    Parameters
    ----------
    peers : sequence of str
        Packages that mercer was measured beside, by the name that is installed.
    """
    record = {
        "scenario": scenario,
        "seed": seed,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": _commit(),
        "machine": machine(),
        "versions": {name: importlib.metadata.version(name) for name in (*_PACKAGES, *peers)},
        "metrics": metrics,
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{scenario}.json"
    path.write_text(json.dumps(record, indent=2) + "\n")
    return path


def read_record(scenario: str) -> dict[str, Any] | None:
    """Read the committed record of a scenario, if there is one."""
    path = RESULTS / f"{scenario}.json"
    return json.loads(path.read_text()) if path.exists() else None


def _commit() -> str:
    run = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    status = subprocess.run(["git", "status", "--porcelain", "src"], capture_output=True, text=True)
    return run.stdout.strip() + ("+changes" if status.stdout.strip() else "")
