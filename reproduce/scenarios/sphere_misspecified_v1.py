"""Rows that no classifier of the model explains: random Fourier features of a smooth boundary.

Five inputs, r = 64 features, a boundary that is not in their span, 5 % of the labels flipped. The
posterior is long and thin (its widths differ by a factor of a hundred) and rough. What to expect
of each sampler in a given time, in effective draws a CPU second: the smallest over 20 margins and
the number of errors. Below 200 effective draws a figure is an order of magnitude at best.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from mercer.likelihoods.label_noise import fixed_rate
from mercer.sphere.fitting import LinearStart
from mercer.sphere.screened import ScreenedAdaptation, ScreenedSampler, first_screening
from reproduce.chains import chain_rate, keep_nothing, sphere_chain
from reproduce.workloads import smooth_boundary_v1

SEED = 0
_LIMIT, _ENOUGH, _N_WARMUP = 30.0, 400.0, 300
_Q = 0.05


def run() -> dict[str, object]:
    """Trajectories, with lines, and screened ones, at three sizes."""
    rows: list[dict[str, Any]] = []
    with threadpool_limits(limits=1):
        for n in (2000, 10_000, 100_000):
            L = smooth_boundary_v1(n, 64, _Q)
            for name, chain, n_warmup in _samplers(L):
                rate = chain_rate(*chain, n_warmup, _LIMIT, _ENOUGH)
                rows.append({"n": n, "r": 64, "sampler": name, **rate})
    return {"seconds": _LIMIT, "rows": rows}


def _samplers(L: np.ndarray) -> list[tuple[str, Any, int]]:
    noise, n_warmup = fixed_rate(_Q, len(L)), _N_WARMUP
    if len(L) > 5000:
        single = L.astype(np.float32)
        start = LinearStart(single)
        sampler = ScreenedSampler(
            single, noise, first_screening(single, start(np.random.default_rng(0))), 16, start,
            keep_nothing,
        )  # fmt: skip
        return [("trajectories, screened", (sampler, ScreenedAdaptation(60)), 60)]
    names = {"trajectories": ("hmc",), "trajectories and lines": ("hmc", "lines")}
    return [(name, sphere_chain(L, noise, moves, n_warmup), n_warmup)
            for name, moves in names.items()]  # fmt: skip
