"""Smallest effective sample size a CPU second on a cone of classifiers, beside hopsy and BoTorch.

Target: N(0, I_d) where y_i x_i.w > 0 for m standard normal rows x_i (noise rate 0). Monitored: 20
margins, directions @ w / |w|; bulk ESS of one chain by arviz_stats, the smallest of 20. All start
at the w that made the labels, a draw from the target, and nothing is dropped. A chain ends once it
has 400 effective draws and two seconds, or at its time limit; below 200 effective draws the figure
is an order of magnitude at best, and as a rule too high (the ESS of a chain that has hardly moved
is about 2). hopsy's coordinate hit-and-run has another law: uniform on the cone within a box.
Targets: 20, 50 and 50 times the best of hopsy, 1000 times BoTorch. One thread each.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from arviz_stats.base import array_stats
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from reproduce.workloads import ConeV1, cone_v1

SEED = 0
NEEDS_PACKAGES = ("hopsy", "botorch", "torch")

# (m, d) -> limit in CPU seconds for each sampler, times the best of hopsy.
SIZES = {(100, 100): (20.0, 20.0), (1000, 100): (60.0, 50.0), (1000, 1000): (120.0, 50.0)}
TARGET_BOTORCH = 1000.0
_ENOUGH, _USABLE = 400.0, 200.0
_SHORTEST = 2.0
_N_WARMUP = 100

Array = NDArray[np.float64]
# n -> the next n states of each chain: shape (n, n_chains, d).
Advance = Callable[[int], Array]


def run() -> dict[str, object]:
    """Each sampler in turn on each cone."""
    for _, start in SAMPLERS.values():
        start(cone_v1(5, 3))(2)  # imports, and compiles
    rows: list[dict[str, Any]] = []
    with threadpool_limits(limits=1):
        for (m, d), (limit, _) in SIZES.items():
            rows += _measured_cone(cone_v1(m, d), limit)
    return {
        "targets_over_hopsy": [target for _, target in SIZES.values()],
        "target_over_botorch": TARGET_BOTORCH,
        "ratios": [
            _ratios([row for row in rows if (row["m"], row["d"]) == size]) for size in SIZES
        ],
        "rows": rows,
    }


def _measured_cone(cone: ConeV1, limit: float) -> list[dict[str, Any]]:
    m, d = cone.rows.shape
    rows: list[dict[str, Any]] = []
    means: dict[str, tuple[Array, Array]] = {}
    for name, (law, start) in SAMPLERS.items():
        begin = time.process_time()
        advance = start(cone)
        preparation = time.process_time() - begin
        margins, seconds = _chain(advance, cone, limit)
        sizes = _sizes(margins)
        if law == "same" and sizes.min() >= _USABLE:
            pooled = margins.reshape(-1, margins.shape[-1])
            means[name] = pooled.mean(axis=0), pooled.std(axis=0) / np.sqrt(sizes)
        rows.append(
            {
                "m": m,
                "d": d,
                "sampler": name,
                "law": law,
                "ess_per_second": float(f"{sizes.min() / seconds:.3g}"),
                "min_ess": round(float(sizes.min()), 1),
                "has_200_effective": bool(sizes.min() >= _USABLE),
                "cpu_seconds": round(seconds, 2),
                "limit_seconds": limit,
                "preparation_seconds": round(preparation, 3),
                "n_stored": int(margins.shape[0] * margins.shape[1]),
                "largest_z_of_means": _largest_z(means, name),
            }
        )
        print(rows[-1], flush=True)
    return rows


def _chain(advance: Advance, cone: ConeV1, limit: float) -> tuple[Array, float]:
    """Margins of shape (n, n_chains, 20), and CPU seconds; blocks grow while they are short."""
    blocks: list[Array] = []
    seconds, next_look, n = 0.0, _SHORTEST, 1
    while seconds < limit:
        begin = time.process_time()
        states = advance(n)
        spent = time.process_time() - begin
        seconds += spent
        lengths = np.linalg.norm(states, axis=-1, keepdims=True)
        blocks.append((states / lengths) @ cone.directions.T)
        if spent < limit / 80.0:
            n = min(2 * n, 2000)
        if seconds >= next_look:
            next_look *= 1.5
            if _sizes(np.concatenate(blocks)).min() >= _ENOUGH:
                break
    return np.concatenate(blocks), seconds


def _sizes(margins: Array) -> Array:
    """Bulk effective sample sizes of the margins."""
    if len(margins) < 4:
        return np.ones(margins.shape[-1])
    sizes = [
        array_stats.ess(margins[:, :, k].T, method="bulk", chain_axis=0, draw_axis=1)
        for k in range(margins.shape[-1])
    ]
    return np.array(sizes, dtype=float)


def _largest_z(means: dict[str, tuple[Array, Array]], name: str) -> float | None:
    """Largest distance of a margin's mean from that of the first sampler, in standard errors."""
    first = next(iter(SAMPLERS))
    if name == first or name not in means or first not in means:
        return None
    (a, a_error), (b, b_error) = means[first], means[name]
    return round(float(np.max(np.abs(a - b) / np.hypot(a_error, b_error))), 2)


def _ratios(rows: list[dict[str, Any]]) -> dict[str, Any]:
    ours = rows[0]["ess_per_second"]

    def best(family: str) -> dict[str, Any]:
        return max(
            (row for row in rows if row["sampler"].startswith(family)),
            key=lambda row: row["ess_per_second"],
        )

    hopsy, botorch = best("hopsy"), best("BoTorch")
    hopsy_usable = [
        row["ess_per_second"]
        for row in rows
        if row["sampler"].startswith("hopsy") and row["has_200_effective"]
    ]
    return {
        "m": rows[0]["m"],
        "d": rows[0]["d"],
        "over_hopsy": float(f"{ours / hopsy['ess_per_second']:.3g}"),
        "best_of_hopsy": hopsy["sampler"],
        "over_hopsy_with_200_effective": (
            float(f"{ours / max(hopsy_usable):.3g}") if hopsy_usable else None
        ),
        "over_botorch": float(f"{ours / botorch['ess_per_second']:.3g}"),
        "best_of_botorch": botorch["sampler"],
    }


# ------------------------------------------------------------------------------------- mercer


def _mercer(cone: ConeV1) -> Advance:
    """Reflecting HMC, its length tuned over 100 passes (counted as preparation)."""
    from mercer.likelihoods.label_noise import fixed_rate
    from mercer.sphere.sampler import SphereAdaptation, SphereModel, SphereSampler, first_moves

    rng = np.random.default_rng(SEED)
    model = SphereModel(cone.rows, fixed_rate(0.0, len(cone.rows)))
    sampler: Any = SphereSampler(
        model, first_moves(("hmc",), model), lambda _: cone.w, lambda f, g: {"g": g}
    )
    adaptation = SphereAdaptation(_N_WARMUP)
    state, learned = sampler.init(rng), adaptation.init(sampler)
    for _ in range(_N_WARMUP):
        state, info = sampler.step(rng, state)
        learned, sampler = adaptation.update(learned, sampler, state, info)
    sampler = adaptation.finish(learned, sampler)

    def advance(n: int) -> Array:
        nonlocal state
        states = np.empty((n, 1, len(cone.w)))
        for k in range(n):
            state, _ = sampler.step(rng, state)
            states[k, 0] = sampler.record(state)["g"]
        return states

    return advance


# ------------------------------------------------------------------------------------- rivals


def _hopsy(proposal: str, thin: float, step_size: float | None = None) -> Callable[..., Advance]:
    """Chain of hopsy on the law itself; ``thin`` moves for each state, in units of d."""

    def start(cone: ConeV1) -> Advance:
        import hopsy

        m, d = cone.rows.shape
        target = hopsy.Gaussian(np.zeros(d), np.eye(d))
        problem = hopsy.Problem(-cone.rows, np.zeros(m), target)
        return _hopsy_chain(problem, proposal, cone.w, max(1, int(thin * d)), step_size)

    return start


def _hopsy_box(cone: ConeV1) -> Advance:
    """Coordinate hit-and-run of the uniform law on the cone within [-1, 1]^d.

    Not rounded: ``hopsy.round`` took 14 s at (50, 50) and had not ended after 15 minutes at
    (100, 100).
    """
    import hopsy

    m, d = cone.rows.shape
    A = np.vstack([-cone.rows, np.eye(d), -np.eye(d)])
    problem = hopsy.Problem(A, np.concatenate([np.zeros(m), np.ones(2 * d)]))
    start = 0.9 * cone.w / np.abs(cone.w).max()
    return _hopsy_chain(problem, "UniformCoordinateHitAndRunProposal", start, d, None)


def _hopsy_chain(
    problem: Any, proposal: str, start: Array, thin: int, step_size: float | None
) -> Advance:
    import hopsy

    chain = hopsy.MarkovChain(problem, getattr(hopsy, proposal), starting_point=start)
    if step_size is not None:
        chain.proposal.stepsize = step_size
    generator = hopsy.RandomNumberGenerator(seed=SEED)

    def advance(n: int) -> Array:
        _, states = hopsy.sample(chain, generator, n_samples=n, thinning=thin)
        return np.asarray(states).transpose(1, 0, 2)

    return advance


def _botorch(n_chains: int) -> Callable[[ConeV1], Advance]:
    """BoTorch's linear elliptical slice sampler; its chains advance together."""

    def start(cone: ConeV1) -> Advance:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import torch
            from botorch.utils.probability.lin_ess import LinearEllipticalSliceSampler

        torch.set_num_threads(1)
        torch.manual_seed(SEED)
        bound = torch.zeros(len(cone.rows), 1, dtype=torch.float64)
        sampler = LinearEllipticalSliceSampler(
            inequality_constraints=(torch.from_numpy(-cone.rows), bound),
            interior_point=torch.from_numpy(cone.w[:, np.newaxis].copy()),
            num_chains=n_chains,
        )

        def advance(n: int) -> Array:
            with torch.no_grad():
                return np.stack([sampler.step().numpy().T for _ in range(n)])

        return advance

    return start


# Name -> law and start. The first is the one that the ratios are of. Steps of 10: the best of 0.1,
# 0.3, 1, 3 and 10 in a pilot at (100, 100); from 1 on they differ by less than chance.
SAMPLERS: dict[str, tuple[str, Callable[[ConeV1], Advance]]] = {
    "mercer, reflecting HMC": ("same", _mercer),
    "hopsy, coordinate hit-and-run": ("uniform in a box", _hopsy_box),
    "hopsy, truncated Gaussian": ("same", _hopsy("TruncatedGaussianProposal", 0.0)),
    "hopsy, Gaussian coordinate hit-and-run": (
        "same",
        _hopsy("GaussianCoordinateHitAndRunProposal", 1.0, 10.0),
    ),
    "hopsy, Gaussian hit-and-run": ("same", _hopsy("GaussianHitAndRunProposal", 0.1, 10.0)),
    "BoTorch, linear elliptical slice": ("same", _botorch(1)),
    "BoTorch, linear elliptical slice, 16 chains at once": ("same", _botorch(16)),
}
