"""``python -m reproduce [SCENARIO...] [--cache FOLDER] [--seconds S]``: write records.

``python -m reproduce --stale`` lists the records that are older than the code they depend on.
Long scenarios keep what they have measured in the folder, and go on from there: `cells`.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import pkgutil
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from reproduce import scenarios
from reproduce.cells import SECONDS, VARIABLE
from reproduce.record import stale_records, write_record


def main(arguments: list[str]) -> int:
    """Run the scenarios named, or all; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m reproduce")
    parser.add_argument("names", nargs="*", metavar="SCENARIO")
    parser.add_argument("--cache", metavar="FOLDER")
    parser.add_argument("--seconds", type=float, help="of CPU time, for coverage-v1")
    parser.add_argument(
        "--stale", action="store_true", help="list records older than their code, and run nothing"
    )
    options = parser.parse_args(arguments)
    if options.stale:
        for name, why in stale_records():
            print(f"{name}: {why}")
        return 0
    if options.cache:
        os.environ[VARIABLE] = options.cache
    if options.seconds is not None:
        os.environ[SECONDS] = str(options.seconds)
    names = options.names
    known = [m.name for m in pkgutil.iter_modules(scenarios.__path__)]
    wanted = [name.replace("-", "_") for name in names] or known
    for name in wanted:
        if name not in known:
            print(f"no scenario {name}; there is: {', '.join(known)}", file=sys.stderr)
            return 2
        module = importlib.import_module(f"reproduce.scenarios.{name}")
        if getattr(module, "NEEDS_DATA", False) and not os.environ.get("MERCER_DATA"):
            print(f"{name}: skipped, MERCER_DATA is not set")
            continue
        peers = getattr(module, "NEEDS_PACKAGES", ())
        missing = [peer for peer in peers if not _is_installed(peer)]
        if missing:
            print(f"{name}: skipped, not installed: {', '.join(missing)} (extra bench)")
            continue
        if getattr(module, "NEEDS_CUDA", False) and not _has_cuda():
            print(f"{name}: skipped, there is no GPU that PyTorch can use")
            continue
        metrics = module.run()
        path = write_record(name.replace("_", "-"), module.SEED, metrics, peers)
        print(f"{path.name}\n{json.dumps(metrics, indent=1)}")
    return 0


def _has_cuda() -> bool:
    return bool(importlib.import_module("torch").cuda.is_available())


def _is_installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
