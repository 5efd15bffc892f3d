from __future__ import annotations

import numpy as np
import pytest

from mercer.kernels import base as rows
from mercer.kernels.base import half_scatter, row_blocks, shortened_rows, turned_rows
from mercer.kernels.names import kernel_named

X = np.random.default_rng(1).standard_normal((9, 3))


def test_blocks_cover_all_rows_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_BLOCK_ENTRIES", 20)
    taken = [np.arange(9)[block] for block in row_blocks(9, 6)]
    assert [len(block) for block in taken] == [3, 3, 3]
    np.testing.assert_array_equal(np.concatenate(taken), np.arange(9))
    assert [len(np.arange(3)[block]) for block in row_blocks(3, 100)] == [1, 1, 1]


def test_half_scatter_is_a_sum_over_pairs() -> None:
    H = np.random.default_rng(2).standard_normal((9, 9))
    H = H + H.T
    expected = 0.5 * np.einsum("ij,ijl->l", H, (X[:, None] - X[None]) ** 2)
    np.testing.assert_allclose(half_scatter(H, H.sum(1), X), expected, rtol=1e-12)


def test_turns_keep_the_digits_of_an_angle() -> None:
    """Many whole turns, by a power of two so that they are exact, change no angle."""
    grid = np.round(X * 64.0) / 64.0
    far = grid.copy()
    far[1:] += 2.0**30
    turns, cosine, sine = turned_rows(np.zeros(3), far, grid)
    np.testing.assert_array_equal(turns[1:], grid[1:] - grid[0] + 2.0**30)
    for seen, plain in ((cosine, np.cos), (sine, np.sin)):
        np.testing.assert_allclose(seen, plain(2.0 * np.pi * (grid - grid[0])), atol=1e-14)


def test_only_long_rows_are_shortened() -> None:
    assert shortened_rows(X, 3) is X
    long = np.vstack([X, 1e100 * X[:1]])
    short = shortened_rows(long, 4)
    np.testing.assert_array_equal(short[:9], X)
    assert np.linalg.norm(short[9]) == pytest.approx(np.sqrt(3.0) * 1e25, rel=1e-12)


@pytest.mark.parametrize("name", ["rbf", "matern12", "matern32", "matern52", "spectral_mixture(2)"])
def test_far_covariances_are_zero_and_never_subnormal(name: str) -> None:
    """Subnormal numbers, or products that are, take several times as long."""
    kernel, X = kernel_named(name), np.linspace(0.0, 1000.0, 3000)[:, np.newaxis]
    theta = np.zeros(kernel.n_parameters(1))
    for K in (kernel.gram(theta, X), kernel.cross_gram(theta, X, X[::7])):
        sizes = np.abs(K)
        assert sizes[0, -1] == 0.0
        assert sizes[sizes > 0.0].min() > 1e-110
