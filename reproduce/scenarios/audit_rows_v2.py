"""What an audit of classes costs and finds: by rows, labels, and how labels are judged.

Two classes of six standard normal inputs, with a smooth boundary. Either inputs decide the class
and 10 % of the labels are flipped, or they do not (its log odds are three times the function), with
no label flipped or 10 %. "chains" are default fits of the kernel Gibbs sampler, which is what
`mercer audit` runs up to 5000 rows; "propagation" has sampler="propagation", above 5000 rows with
512 features, which is what it runs there. "wrong" is the mean probability that a label is wrong,
"found" the share of flipped rows among as many that look most wrong; "listed" are rows at a false
discovery rate of 10 %, and "right" is what share of these is not flipped. Twenty-five minutes.
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
from mercer.posterior.labels import longest_list
from reproduce.cells import measured

SEED = 0
N_ROWS, N_INPUTS, FLIPPED, FDR = (1000, 3000, 20_000), 6, 0.1, 0.1
DECIDE, OVERLAP, BOTH = "10 % flipped", "inputs do not decide", "inputs do not decide, 10 % flipped"
SAMPLERS = {"chains": "auto", "propagation": "propagation"}
LARGEST_EXACT, RANK = 5000, 512


def run() -> dict[str, object]:
    """CPU seconds and what was found, by rows, kind and how."""
    cells = [
        (n, kind, how)
        for n in N_ROWS
        for kind in (DECIDE, OVERLAP, BOTH)
        for how in SAMPLERS
        if n <= LARGEST_EXACT or how != "chains"  # of more rows they take up to an hour
    ]
    with threadpool_limits(limits=1):
        return {"rows": measured("audit-rows-v2", cells, _cell)}


def _labels(
    rng: np.random.Generator, X: NDArray[np.float64], kind: str
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Labels (n,), and which of them are flipped."""
    f = np.sin(1.5 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3]
    is_flipped = rng.random(len(f)) < (0.0 if kind == OVERLAP else FLIPPED)
    y = f > 0.0 if kind == DECIDE else rng.random(len(f)) < expit(3.0 * f)
    return y != is_flipped, is_flipped


def _cell(n: int, kind: str, how: str) -> list[dict[str, Any]]:
    rng = np.random.default_rng([SEED, n])
    X = rng.standard_normal((n, N_INPUTS))
    y, is_flipped = _labels(rng, X, kind)
    return [{"n": n, "kind": kind, "how": how, **audited(X, y, is_flipped, how, RANK)}]


def audited(
    X: NDArray[np.float64], y: NDArray[Any], is_flipped: NDArray[np.bool_], how: str, rank: int
) -> dict[str, Any]:
    """CPU seconds of a fit, with features above 5000 rows, and what its probabilities find."""
    settings: dict[str, Any] = {"sampler": SAMPLERS[how], "random_state": 0, "progress": False}
    if len(y) > LARGEST_EXACT:
        settings["rank"] = rank
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        KernelGibbsClassifier(**{**settings, "n_draws": 20}).fit(X[:60], y[:60])  # compiles
        begin = time.process_time()
        model = KernelGibbsClassifier(**settings, n_jobs=1).fit(X, y)
        seconds = time.process_time() - begin
    p, n_flipped = model.label_error_proba_, int(is_flipped.sum())
    suspects = np.argsort(-p)[:n_flipped]
    listed = np.argsort(-p)[: longest_list(np.sort(p)[::-1], FDR)]
    return {
        "seconds": float(f"{seconds:.3g}"),
        "wrong": round(float(p.mean()), 3),
        "found": round(float(is_flipped[suspects].mean()), 3) if n_flipped else None,
        "listed": len(listed),
        "right": round(float(1.0 - is_flipped[listed].mean()), 3) if len(listed) else None,
        "warns": not model.diagnostics_.is_converged,
    }
