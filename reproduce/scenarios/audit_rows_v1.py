"""What an audit of classes costs: by rows, and by whether inputs decide the class.

Two classes of six standard normal inputs, with a smooth boundary. Either 10 % of the labels are
flipped, or none is and inputs do not decide the class (its log odds are the function). Default fits
of the kernel Gibbs sampler, which is what `mercer audit` runs. "wrong" is the mean probability that
a label is wrong, "found" the share of flipped rows among as many that look most wrong. Seven
minutes.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from threadpoolctl import threadpool_limits

from mercer import KernelGibbsClassifier
from reproduce.cells import measured

SEED = 0
N_ROWS, N_INPUTS, FLIPPED = (1000, 3000), 6, 0.1
KINDS = ("10 % flipped", "inputs do not decide")


def run() -> dict[str, object]:
    """CPU seconds and what was found, by rows and kind."""
    cells = [(n, kind) for n in N_ROWS for kind in KINDS]
    with threadpool_limits(limits=1):
        return {"rows": measured("audit-rows-v1", cells, _cell)}


def _labels(
    rng: np.random.Generator, X: NDArray[np.float64], kind: str
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Labels (n,), and which of them are flipped."""
    f = np.sin(1.5 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3]
    if kind == KINDS[0]:
        is_flipped = rng.random(len(f)) < FLIPPED
        return (f > 0.0) != is_flipped, is_flipped
    return rng.random(len(f)) < expit(f), np.zeros(len(f), np.bool_)


def _cell(n: int, kind: str) -> list[dict[str, Any]]:
    rng = np.random.default_rng([SEED, n])
    X = rng.standard_normal((n, N_INPUTS))
    y, is_flipped = _labels(rng, X, kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        KernelGibbsClassifier(n_draws=20, random_state=0).fit(X[:60], y[:60])  # compiles
        begin = time.process_time()
        model = KernelGibbsClassifier(random_state=0, n_jobs=1, progress=False).fit(X, y)
        seconds = time.process_time() - begin
    p, n_flipped = model.label_error_proba_, int(is_flipped.sum())
    suspects = np.argsort(-p)[:n_flipped]
    return [{
        "n": n,
        "kind": kind,
        "seconds": float(f"{seconds:.3g}"),
        "wrong": round(float(p.mean()), 3),
        "found": round(float(is_flipped[suspects].mean()), 3) if n_flipped else None,
        "warns": not model.diagnostics_.is_converged,
    }]  # fmt: skip
