"""Peak memory of a fit at n = 3000, less that before it, in n x n arrays. Target: at most 12."""

from __future__ import annotations

import json
import subprocess
import sys

SEED = 0
TARGET = 12.0

_PROGRAM = """
import json, resource, sys
import numpy as np
from mercer import GPClassifier

n = int(sys.argv[1])
rng = np.random.default_rng(0)
X = rng.standard_normal((n, 8))
y = (X[:, 0] + X[:, 1] ** 2 + rng.standard_normal(n) > 1).astype(int)
settings = dict(kernel='rbf', n_draws=2, n_warmup=1, n_chains=1, random_state=0, progress=False)
GPClassifier(**settings).fit(X[:50], y[:50])


def now():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


before = now()
model = GPClassifier(**settings).fit(X, y)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
fitted = (peak - before) / (8 * n * n)
model.predict_proba(X[:1000])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"fit": fitted, "fit_and_predict": (peak - before) / (8 * n * n)}))
"""


def run() -> dict[str, object]:
    """Fit in a fresh process and read its peak resident set."""
    n = 3000
    out = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(n)], capture_output=True, text=True, check=True
    )
    arrays = json.loads(out.stdout)
    return {
        "n": n,
        "target_arrays": TARGET,
        "peak_arrays_fit": round(arrays["fit"], 2),
        "peak_arrays_fit_and_predict": round(arrays["fit_and_predict"], 2),
    }
