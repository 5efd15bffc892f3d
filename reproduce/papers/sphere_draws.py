"""Classifiers from the low-level sampler, for reproductions that need thousands of short chains."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mercer.likelihoods.label_noise import fixed_rate
from mercer.sphere.great_circle import great_circle_moves
from mercer.sphere.sampler import (
    SphereModel,
    SphereSampler,
    default_moves,
    first_moves,
    make_start,
    signed_rows,
)

__all__ = ["draw_by_great_circles", "draw_classifiers", "mean_disagreement", "model_of", "unit"]

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]

_N_WARMUP = 50


def model_of(L: Array, labels: IntArray, rate: float) -> SphereModel:
    """Posterior of rows L (n, r) with labels 0 or 1 that are wrong at a known rate."""
    return SphereModel(signed_rows(L, labels), fixed_rate(rate, len(L)))


def draw_classifiers(
    rng: np.random.Generator,
    model: SphereModel,
    n_draws: int,
    *,
    names: tuple[str, ...] | None = None,
    n_warmup: int = _N_WARMUP,
    thin: int = 1,
) -> Array:
    """Draw g by a chain of mercer's moves, those of "auto" unless named: shape (n_draws, r)."""
    moves = first_moves(names or default_moves(model.rank), model)
    sampler = SphereSampler(model, moves, make_start(model), _nothing)
    state, kept = sampler.init(rng), []
    for k in range(n_warmup + n_draws * thin):
        state, _ = sampler.step(rng, state)
        if k >= n_warmup and (k - n_warmup) % thin == thin - 1:
            kept.append(state.point[model.n_rows :])
    return np.array(kept)


def draw_by_great_circles(
    rng: np.random.Generator, model: SphereModel, n_draws: int, thin: int
) -> Array:
    """Draw g by the paper's step alone, one draw in ``thin`` steps: shape (n_draws, r)."""
    n, noise = model.n_rows, model.noise
    point, kept = model.point(make_start(model)(rng)), []
    for _ in range(_N_WARMUP // thin + 1 + n_draws):
        directions = model.extended(rng.standard_normal((thin, model.rank)))
        moved, _, _ = great_circle_moves(rng, point, directions, n, noise)
        point = model.point(moved[n:])
        kept.append(point[n:])
    return np.array(kept[-n_draws:])


def unit(g: Array) -> Array:
    """Directions of classifiers g of shape (k, r)."""
    return np.asarray(g / np.linalg.norm(g, axis=-1, keepdims=True))


def mean_disagreement(f: Array) -> float:
    """Share of pairs of draws and rows where two of the classifiers f (k, n) differ in class."""
    n_draws = len(f)
    n_positive = np.count_nonzero(f > 0.0, axis=0)
    pairs = n_positive * (n_draws - n_positive) / (0.5 * n_draws * (n_draws - 1))
    return float(pairs.mean())


def _nothing(f: Array, g: Array) -> Mapping[str, Array]:
    return {}
