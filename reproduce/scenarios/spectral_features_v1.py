"""One pass over the rows from inputs to normal equations, beside scikit-learn's random features.

200 000 rows of 20 inputs, 768 features, one target: `mercer.features.products.FeatureProducts`
with 384 frequencies, a cosine and a sine each, beside `RBFSampler(n_components=768)`, a cosine of
each of 768 random phases, whose features are multiplied chunk by chunk as one would by hand
(``Z.T @ Z``, which NumPy gives to dsyrk, half a product; ``Z.T @ y``). Chunks of several lengths
are tried, and the fastest counts. Both end with a Gram matrix of order 768 and a vector, in double
precision. Beside them the product alone: its 4 n M^2 flops at the rate of dgemm at the shapes used.
One thread, contenders in turn, medians of 5 rounds. Target: 3 times as fast as scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.kernel_approximation import RBFSampler
from threadpoolctl import threadpool_limits

from mercer.features.products import FeatureProducts
from reproduce.limits import DgemmLimit
from reproduce.spectral_chain import standardised
from reproduce.timing import interleaved
from reproduce.workloads import friedman_rows_v1

SEED = 0
TARGET = 3.0

_CHUNKS = (512, 2048, 8192, 32_768)
_LENGTH = 1024

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """Measure at the size of the target."""
    return {"target_ratio": TARGET, **measured(200_000, 384, n_rounds=5)}


def measured(n: int, n_frequencies: int, n_rounds: int) -> dict[str, Any]:
    """Time one pass of each."""
    inputs, y, _ = friedman_rows_v1(n)
    X, m2 = standardised(inputs), 2 * n_frequencies
    W = np.random.default_rng(SEED).standard_normal((n_frequencies, X.shape[1])) / np.sqrt(20.0)
    features = RBFSampler(gamma=0.5 / 20.0, n_components=m2, random_state=SEED).fit(X[:1])

    def ours() -> Any:
        sums = FeatureProducts(W, None, 1)
        sums.add(X, y[np.newaxis])
        return sums.total()

    peers = {f"chunks of {chunk}": _by_chunks(features, X, y, chunk) for chunk in _CHUNKS}
    limit = DgemmLimit(m2, _LENGTH, float(n) * m2**2)
    with threadpool_limits(limits=1):
        contenders = {"mercer": ours, "dgemm": limit, **peers}
        seconds = interleaved(contenders, n_rounds=n_rounds, repeat=1)
    seconds["dgemm"] *= limit.scale
    best = min(peers, key=lambda name: seconds[name])
    return {
        "n": n,
        "d": X.shape[1],
        "n_features": m2,
        "seconds": {name: float(f"{value:.4g}") for name, value in seconds.items()},
        "fastest_of_sklearn": best,
        "rows_per_second": round(n / seconds["mercer"]),
        "rows_per_second_of_sklearn": round(n / seconds[best]),
        "ratio": round(seconds[best] / seconds["mercer"], 2),
        "ratio_to_product": round(seconds["mercer"] / seconds["dgemm"], 2),
    }


def _by_chunks(
    features: RBFSampler, X: Array, y: Array, chunk: int
) -> Callable[[], tuple[Array, Array]]:
    def call() -> tuple[Array, Array]:
        m = features.n_components
        gram, moments = np.zeros((m, m)), np.zeros(m)
        for begin in range(0, len(X), chunk):
            Z = features.transform(X[begin : begin + chunk])
            gram += Z.T @ Z
            moments += Z.T @ y[begin : begin + chunk]
        return gram, moments

    return call
