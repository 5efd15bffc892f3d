"""Effective draws a CPU second under label noise: trajectories beside our own line moves.

Standard normal rows, r = 100, labels of a random direction, a share q of them flipped; n = 100,
1000, 10^4. There is no peer. At 10^4 trajectories meet the rows near the boundary only
(`mercer.sphere.screened`). Below 200 effective draws a figure is an order of magnitude at best.
Targets: 30 times the line moves at n = 100, 10 times at n = 1000; an event of a trajectory costs at
most 3 times its memory traffic, two passes over n + r numbers, timed as copies of so many numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer.likelihoods.label_noise import fixed_rate
from mercer.sphere.loops import count_errors, reflect_and_refract
from mercer.sphere.sampler import SphereModel
from mercer.sphere.screened import ScreenedAdaptation, ScreenedSampler, first_screening
from reproduce.chains import chain_rate, sphere_chain
from reproduce.timing import interleaved
from reproduce.workloads import noisy_rows_v1

SEED = 0
RATES = (0.05, 0.2)
TARGETS = {100: 30.0, 1000: 10.0}
TARGET_EVENT = 3.0
_ENOUGH, _N_WARMUP = 400.0, 300
_LIMITS = {100: 10.0, 1000: 40.0, 10_000: 30.0}

Array = NDArray[np.float64]


def run() -> dict[str, object]:
    """Both samplers on every problem, and one event against a copy."""
    with threadpool_limits(limits=1):
        rows = [_compared(n, q) for n in _LIMITS for q in RATES]
        events = [_event(n) for n in (100, 1000)]
    return {"targets": TARGETS, "target_event": TARGET_EVENT, "rows": rows, "events": events}


def _compared(n: int, q: float) -> dict[str, Any]:
    L, w = noisy_rows_v1(n, 100, q)
    noise, limit = fixed_rate(q, n), _LIMITS[n]
    lines = chain_rate(*sphere_chain(L, noise, ("lines",), _N_WARMUP), _N_WARMUP, limit, _ENOUGH)
    if n > 5000:
        single = L.astype(np.float32)
        sampler = ScreenedSampler(
            single, noise, first_screening(single, w), 16, lambda rng: w.copy(),
            lambda errors, g: {},
        )  # fmt: skip
        hmc = chain_rate(sampler, ScreenedAdaptation(60), 60, limit, _ENOUGH)
    else:
        chain = sphere_chain(L, noise, ("hmc",), _N_WARMUP)
        hmc = chain_rate(*chain, _N_WARMUP, limit, _ENOUGH)
    ratio = hmc["ess_per_second"] / lines["ess_per_second"]
    return {"n": n, "r": 100, "q": q, "ratio": round(ratio, 1), "hmc": hmc, "lines": lines}


def _event(n: int, r: int = 100) -> dict[str, Any]:
    """Microseconds of one event, and of copying 2 (n + r) numbers there and back."""
    L, w = noisy_rows_v1(n, r, 0.05)
    model = SphereModel(L, fixed_rate(0.05, n))
    noise, rng = model.noise, np.random.default_rng(0)
    point, velocity = model.point(w), model.extended(rng.standard_normal((1, r)))[0]
    errors = np.empty(1, np.int64)
    n_events = 0

    def trajectory() -> None:
        nonlocal n_events
        end = point.copy()
        count_errors(end[:n], noise.jumps, errors)
        n_events = reflect_and_refract(
            model.table, end, velocity.copy(), noise.jumps, errors, noise.total, noise.row_cost,
            0.5 * np.pi, 10**6,
        )[0]  # fmt: skip

    source, target, nothing = np.zeros((2, n + r)), np.zeros((2, n + r)), np.zeros(0)

    def copies() -> None:  # two passes: f and v are read and written once each
        for _ in range(1000):
            np.copyto(target, source)

    def calls() -> None:
        for _ in range(1000):
            np.copyto(nothing, nothing)

    contenders = {"trajectory": trajectory, "copies": copies, "calls": calls}
    seconds = interleaved(contenders, n_rounds=9, repeat=5)
    event = seconds["trajectory"] / n_events
    traffic = (seconds["copies"] - seconds["calls"]) / 1000
    return {
        "n": n,
        "r": r,
        "event_us": round(1e6 * event, 3),
        "traffic_us": round(1e6 * traffic, 3),
        "ratio": round(event / traffic, 1),
    }
