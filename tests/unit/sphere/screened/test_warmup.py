"""Warm-up of the screened sampler: active rows that grow, shrink and settle."""

from __future__ import annotations

import dataclasses

import numpy as np

from mercer.likelihoods.label_noise import fixed_rate
from mercer.sphere.screened import (
    ScreenedAdaptation,
    ScreenedSampler,
    _nearest_rows,
    first_screening,
)

N, R = 3000, 4


def make() -> ScreenedSampler:
    rng = np.random.default_rng(2)
    X, w = rng.standard_normal((N, R)), rng.standard_normal(R)
    y = np.sign(X @ w) * np.where(rng.random(N) < 0.05, -1.0, 1.0)
    L = (X * y[:, np.newaxis]).astype(np.float32)
    start = 2.0 * w / np.linalg.norm(w)
    return ScreenedSampler(
        L, fixed_rate(0.05, N), first_screening(L, start), 4, lambda rng: start,
        lambda errors, g: {},
    )  # fmt: skip


def test_the_first_active_rows_are_the_nearest_to_the_boundary() -> None:
    chain = make()
    g = chain.start(np.random.default_rng(0))
    distance = np.abs(chain.L @ g) / np.linalg.norm(chain.L, axis=1)
    active = chain.screening.active
    assert len(active) == 20 * R
    assert distance[active].max() <= np.delete(distance, active).min() + 1e-6
    assert chain.screening.n_far_errors == np.count_nonzero(np.delete(chain.L @ g, active) <= 0.0)


def test_warm_up_settles_where_everything_is_accepted() -> None:
    chain, n_warmup = make(), 60
    adaptation = ScreenedAdaptation(n_warmup)
    rng = np.random.default_rng(3)
    state, learned = chain.init(rng), adaptation.init(chain)
    for _ in range(n_warmup):
        state, info = chain.step(rng, state)
        learned, chain = adaptation.update(learned, chain, state, info)
    chain = adaptation.finish(learned, chain)
    rates = []
    for _ in range(50):
        state, info = chain.step(rng, state)
        rates.append(info.acceptance_rate)
    assert np.mean(rates) > 0.95
    assert R <= len(chain.screening.active) < N // 3


def test_tuning_goes_out_and_back() -> None:
    chain = make()
    adaptation = ScreenedAdaptation(60)
    other = dataclasses.replace(chain.screening, duration=0.25)
    assert adaptation.tuning(adaptation.with_tuning(chain, other)).duration == 0.25


def test_a_round_of_rejections_widens_the_rows_and_shortens_the_way() -> None:
    chain = make()
    adaptation = ScreenedAdaptation(20)
    learned = adaptation.init(chain)
    rng = np.random.default_rng(4)
    state, info = chain.step(rng, chain.init(rng))
    info = dataclasses.replace(info, acceptance_rate=0.0)
    new = chain
    for _ in range(2):
        learned, new = adaptation.update(learned, new, state, info)
    assert len(new.screening.active) == 2 * len(chain.screening.active)
    assert new.screening.duration == 0.25 * chain.screening.duration


def test_nearest_rows_keep_their_order() -> None:
    assert _nearest_rows(np.array([3.0, 0.1, 2.0, 0.5]), 2).tolist() == [1, 3]
    assert _nearest_rows(np.array([3.0, 0.1]), 5).tolist() == [0, 1]
