"""Batches of rows to label: much information, and not twice the same."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.posterior import labels as module
from mercer.posterior.labels import (
    choose_batch,
    covariance_of_draws,
    short_list,
)

RNG = np.random.default_rng(1)


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """Every test draws the same, whatever ran before it."""
    RNG.bit_generator.state = np.random.default_rng(2).bit_generator.state


def pool(m: int = 30, k: int = 200, rank: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Information, values of draws, and a covariance besides."""
    A = RNG.standard_normal((m, rank))
    latent = RNG.standard_normal((k, rank)) @ A.T
    B = RNG.standard_normal((m, 40)) / 20.0
    return RNG.uniform(0.1, 0.9, m), latent, B @ B.T


def copied(values: np.ndarray, to: list[int], source: int) -> np.ndarray:
    """Rows and columns ``to`` become copies of one."""
    values = values.copy()
    values[..., to] = values[..., [source]]
    if values.shape[0] == values.shape[-1] and values.ndim == 2:
        values[to] = values[[source]]
    return values


def test_the_first_row_has_the_most_information() -> None:
    information, latent, outside = pool()
    assert (
        choose_batch(information, covariance_of_draws(latent) + outside, 1)[0]
        == information.argmax()
    )


def test_all_rows_once() -> None:
    information, latent, outside = pool(12)
    chosen = choose_batch(information, covariance_of_draws(latent) + outside, 12)
    assert chosen.dtype == np.int64
    assert sorted(chosen) == list(range(12))


@pytest.mark.parametrize("with_outside", [True, False])
def test_exact_duplicates_are_never_both_chosen(with_outside: bool) -> None:
    """As long as there is another row, with information or without."""
    information, latent, outside = pool(30)
    outside = outside * with_outside
    copies = [4, 9, 17, 23]
    information[copies] = 0.95  # the most
    information[12:16] = 0.0
    latent, outside = copied(latent, copies, 4), copied(outside, copies, 4)
    chosen = choose_batch(
        information, covariance_of_draws(latent) + outside, 27 if with_outside else 6
    )
    assert chosen[0] == 4
    assert len(set(chosen) & set(copies)) == 1
    everyone = choose_batch(information, covariance_of_draws(latent) + outside, 30)
    assert sorted(everyone) == list(range(30))


def test_a_batch_of_near_duplicates_is_avoided() -> None:
    """Ten rows that are nearly one, with the most information: the batch takes one of them."""
    information, latent, outside = pool(30)
    near = list(range(10))
    latent = copied(latent, near, 0) + 1e-3 * RNG.standard_normal(latent.shape)
    information[:10] = RNG.uniform(0.95, 1.0, 10)
    information[10:] = RNG.uniform(0.5, 0.9, 20)
    chosen = choose_batch(information, covariance_of_draws(latent) + 1e-9 * outside, 5)
    assert sum(row < 10 for row in chosen) == 1


def test_the_gain_is_what_is_left_of_the_variance() -> None:
    """Against inverses, step by step."""
    information, latent, outside = pool(15)
    covariance = np.cov(latent.T, bias=True) + outside
    chosen = choose_batch(information, covariance_of_draws(latent) + outside, 5)
    for t in range(1, 5):
        seen = chosen[:t]
        inverse = np.linalg.inv(covariance[np.ix_(seen, seen)])
        known = np.einsum("im,ij,jm->m", covariance[seen], inverse, covariance[seen])
        score = information * (1.0 - known / covariance.diagonal())
        score[seen] = -1.0
        assert score.argmax() == chosen[t]


def test_rows_that_never_vary() -> None:
    """All draws agree, and nothing lies outside: by information alone, and finite."""
    information = np.array([0.1, 0.4, 0.2])
    chosen = choose_batch(information, np.zeros((3, 3)), 3)
    np.testing.assert_array_equal(chosen, [1, 2, 0])


def test_the_input_is_left_alone() -> None:
    information, latent, outside = pool()
    arrays = information, covariance_of_draws(latent) + outside
    before = [array.copy() for array in arrays]
    choose_batch(*arrays, 4)
    for array, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, old)


def test_short_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """The most informative, ties in their order; at least three for one that is wanted."""
    monkeypatch.setattr(module, "_SHORT_LIST", 4)
    information = np.array([0.3, 0.9, 0.3, 0.1, 0.3, 0.8])
    np.testing.assert_array_equal(short_list(information, 1), [1, 5, 0, 2])
    np.testing.assert_array_equal(short_list(information, 2), [1, 5, 0, 2, 4, 3])


def test_a_short_list_is_not_filled_with_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal rows come after all others, whatever they would say."""
    monkeypatch.setattr(module, "_SHORT_LIST", 3)
    rows = np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0], [5.0, 1.0], [1.0, 2.0]])
    information = np.array([0.9, 0.1, 0.9, 0.3, 0.9])
    np.testing.assert_array_equal(short_list(information, 1), [0, 2, 4])
    np.testing.assert_array_equal(short_list(information, 1, rows), [0, 3, 1])
    np.testing.assert_array_equal(short_list(information, 2, rows), [0, 3, 1, 2, 4])
