"""The paper's great-circle step at n = r = 1000 against the matrix product that it contains.

Directions are drawn ahead in blocks of 64: L Z is one product. A whole step is its share of that
product, and everything else: projection, crossings, sort, walk, draw and rotation. Target: at least
half the speed of the product alone.
"""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from mercer.likelihoods.label_noise import fixed_rate
from mercer.sphere.great_circle import great_circle_moves
from mercer.sphere.sampler import SphereModel
from reproduce.timing import interleaved
from reproduce.workloads import noisy_rows_v1

SEED = 0
TARGET = 0.5
_BLOCK = 64


def run() -> dict[str, object]:
    """Medians of interleaved rounds."""
    n = 1000
    L, w = noisy_rows_v1(n, n, 0.05)
    model = SphereModel(L, fixed_rate(0.05, n))
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((_BLOCK, n))
    point, out = model.point(w), np.empty((_BLOCK, n))

    def product() -> None:
        np.matmul(Z, L.T, out=out)

    def steps() -> None:
        directions = model.extended(rng.standard_normal((_BLOCK, n)))
        great_circle_moves(rng, point, directions, n, model.noise)

    with threadpool_limits(limits=1):
        seconds = interleaved({"product": product, "steps": steps}, n_rounds=15, repeat=3)
    return {
        "n": n,
        "r": n,
        "target": TARGET,
        "product_us_a_direction": round(1e6 * seconds["product"] / _BLOCK, 1),
        "step_us": round(1e6 * seconds["steps"] / _BLOCK, 1),
        "speed_of_the_product": round(seconds["product"] / seconds["steps"], 2),
    }
