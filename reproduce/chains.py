"""Single chains of the sphere samplers, for scenarios that look below the estimator."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from arviz_stats.base import array_stats
from numpy.typing import NDArray

from mercer.likelihoods.label_noise import LabelNoise
from mercer.sampling.sampler import Adaptation, Sampler
from mercer.sphere.sampler import (
    SphereAdaptation,
    SphereModel,
    SphereSampler,
    first_moves,
    make_start,
)

__all__ = ["chain_rate", "sphere_chain"]

Array = NDArray[np.float64]


def keep_nothing(f: Any, g: Any) -> dict[str, Array]:
    """Recorder of a chain that is looked at from outside."""
    return {}


def sphere_chain(
    L: Array, noise: LabelNoise, names: tuple[str, ...], n_warmup: int
) -> tuple[SphereSampler, Adaptation]:
    """Return the sampler of signed rows L with the moves named, and its warm-up."""
    model = SphereModel(L, noise)
    sampler = SphereSampler(model, first_moves(names, model), make_start(model), keep_nothing)
    return sampler, SphereAdaptation(n_warmup)


def chain_rate(
    sampler: Sampler[Any, Any],
    adaptation: Any,
    n_warmup: int,
    limit: float,
    enough: float,
    seed: int = 0,
) -> dict[str, Any]:
    """Smallest ESS a CPU second over 20 margins, and that of the errors, warm-up left out.

    The chain ends once it has ``enough`` effective draws, or after ``limit`` CPU seconds.
    """
    rng = np.random.default_rng(seed)
    state, learned = sampler.init(rng), adaptation.init(sampler)
    begin = time.process_time()
    for _ in range(n_warmup):
        state, info = sampler.step(rng, state)
        learned, sampler = adaptation.update(learned, sampler, state, info)
    sampler = adaptation.finish(learned, sampler)
    warmup = time.process_time() - begin
    r = len(_g(sampler, state))
    directions = np.random.default_rng(20).standard_normal((r, 20)) / np.sqrt(r)
    kept: list[Array] = []
    seconds, n_events, checked, sizes = 0.0, 0, 100, np.zeros(21)
    while seconds < limit:
        begin = time.process_time()
        for _ in range(checked):
            state, info = sampler.step(rng, state)
            g = _g(sampler, state)
            kept.append(np.append(g @ directions / np.linalg.norm(g), info.n_errors))
            n_events += info.n_events
            if time.process_time() - begin > limit:
                break
        seconds += time.process_time() - begin
        sizes = _sizes(np.array(kept))
        if sizes[:-1].min() >= enough:
            break
        checked = max(checked, len(kept) // 2)
    return {
        "ess_per_second": float(f"{sizes[:-1].min() / seconds:.3g}"),
        "min_ess": round(float(sizes[:-1].min()), 1),
        "ess_per_second_of_errors": float(f"{sizes[-1] / seconds:.3g}"),
        "n_steps": len(kept),
        "microseconds_a_step": round(1e6 * seconds / len(kept), 1),
        "events_a_step": round(n_events / len(kept), 1),
        "warmup_seconds": round(warmup, 2),
    }


def _g(sampler: Any, state: Any) -> Array:
    g: Array = state.g if hasattr(state, "g") else state.point[sampler.model.n_rows :]
    return g


def _sizes(kept: Array) -> Array:
    sizes = []
    for column in kept.T:
        constant = np.ptp(column) == 0.0
        sizes.append(np.inf if constant else float(array_stats.ess(column[np.newaxis])))
    return np.array(sizes)
