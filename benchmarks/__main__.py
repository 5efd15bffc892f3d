"""``python -m benchmarks [SCENARIO...]``: run scenarios and write their records."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks import scenarios
from benchmarks.record import write_record


def main(names: list[str]) -> int:
    """Run the scenarios named, or all; return the exit code."""
    known = [m.name for m in pkgutil.iter_modules(scenarios.__path__)]
    wanted = [name.replace("-", "_") for name in names] or known
    for name in wanted:
        if name not in known:
            print(f"no scenario {name}; there is: {', '.join(known)}", file=sys.stderr)
            return 2
        module = importlib.import_module(f"benchmarks.scenarios.{name}")
        if getattr(module, "NEEDS_DATA", False) and not os.environ.get("MERCER_DATA"):
            print(f"{name}: skipped, MERCER_DATA is not set")
            continue
        metrics = module.run()
        path = write_record(name.replace("_", "-"), module.SEED, metrics)
        print(f"{path.name}\n{json.dumps(metrics, indent=1)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
