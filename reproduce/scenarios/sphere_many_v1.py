"""A million rows of 512 features: convergence, memory and time, beside logistic regression.

Standard normal rows, labels of a random direction, 5 % flipped; another 100 000 rows to test on.
Two chains in two processes. Targets: 12 GiB over all processes, 60 minutes, R-hat below 1.05 on
the margins of 20 rows. Error is against the true class; average precision is that of finding the
flipped labels (for logistic regression one less the probability of the recorded label).
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

SEED = 0
TARGETS = {"gib": 12.0, "minutes": 60.0, "rhat": 1.05}

_PROGRAM = """
import json, os, sys, threading, time
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from reproduce.workloads import many_rows_v1
from mercer import KernelGibbsClassifier

n, r = int(sys.argv[1]), int(sys.argv[2])
X, y, flipped, test, test_class = many_rows_v1(n, r, 0.05)
peak = 0.0


def share(pid):
    # resident memory in GiB; what several processes share is split between them
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return next(int(line.split()[1]) for line in file if line[:4] == "Pss:") / 2**20
    except (OSError, StopIteration):
        return 0.0


def watch():
    global peak
    while True:
        own = os.getpid()
        pids = [own, *os.popen(f"ps -o pid= --ppid {own}").read().split()]
        peak = max(peak, sum(map(share, pids)))
        time.sleep(2.0)


threading.Thread(target=watch, daemon=True).start()
begin = time.time()
model = KernelGibbsClassifier(
    kernel="linear", fit_intercept=False, standardize=False, n_draws=int(sys.argv[3]), n_warmup=80,
    n_chains=2, n_jobs=2, random_state=0, progress=False,
)
model.fit(X, y)
minutes = (time.time() - begin) / 60
table = model.diagnostics_.table
rhat = [v for name, v in zip(table.column("name"), table.column("rhat")) if "margin" in name]
size = [v for name, v in zip(table.column("name"), table.column("ess_bulk")) if "margin" in name]
result = {
    "n": n, "r": r, "minutes": minutes, "peak_gib": peak, "max_rhat_of_margins": max(rhat),
    "min_ess_of_margins": min(size), "acceptance_rate": model.diagnostics_.acceptance_rate,
    "noise_rate": model.noise_rate_, "error": float(np.mean(model.predict(test) != test_class)),
    "average_precision": average_precision_score(flipped, model.label_error_proba_),
}
begin = time.time()
logistic = LogisticRegression(C=1.0, fit_intercept=False).fit(X, y)
p = logistic.predict_proba(X)[np.arange(n), y]
result["logistic"] = {
    "minutes": (time.time() - begin) / 60,
    "error": float(np.mean(logistic.predict(test) != test_class)),
    "average_precision": average_precision_score(flipped, 1.0 - p),
}
print(json.dumps(result))
"""


def run() -> dict[str, object]:
    """One fit in a process of its own."""
    return {"targets": TARGETS, **measured(1_000_000, 512, 400)}


def measured(n: int, r: int, n_draws: int) -> dict[str, Any]:
    """Fit n rows of r features, with so many draws a chain."""
    arguments = [sys.executable, "-c", _PROGRAM, str(n), str(r), str(n_draws)]
    out = subprocess.run(arguments, capture_output=True, text=True, check=True)
    return _rounded(json.loads(out.stdout.splitlines()[-1]))


def _rounded(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _rounded(value)
        if isinstance(value, dict)
        else float(f"{value:.4g}")
        if isinstance(value, float)
        else value
        for name, value in values.items()
    }
