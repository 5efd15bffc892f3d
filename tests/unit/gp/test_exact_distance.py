from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from mercer.gp.exact import _batches, predictive_distance


@dataclass
class Fixed:
    """Draws whose function is known at every row: logits (S, m), no variance."""

    logits: np.ndarray

    def moments(self, X):
        """Yield the logits of one draw after the other."""
        for row in self.logits:
            yield slice(0, len(X)), row, np.zeros(len(X))


_X = np.zeros((3, 1))


def test_the_same_predictions_are_at_no_distance() -> None:
    draws = Fixed(np.random.default_rng(0).standard_normal((200, 3)))
    found = predictive_distance(draws, draws, np.zeros(200), _X, n_chains=2)
    assert found.mean == found.largest == found.mean_noise == 0.0
    assert found.laplace_size == 200.0
    assert (found.n_rows, found.n_draws) == (3, 200)


def test_a_difference_is_found_where_it_is() -> None:
    exact, laplace = np.zeros((100, 3)), np.zeros((100, 3))
    exact[:, 1] = 2.0
    found = predictive_distance(Fixed(exact), Fixed(laplace), np.zeros(100), _X, n_chains=1)
    assert found.largest_row == 1
    assert found.largest == pytest.approx(1.0 / (1.0 + np.exp(-2.0)) - 0.5, abs=1e-6)
    assert found.mean == pytest.approx(found.largest / 3.0)
    assert found.largest_error == pytest.approx(0.0, abs=1e-15)


def test_claimed_errors_are_the_errors() -> None:
    """Independent draws, weights of their own: 300 repetitions."""
    rng = np.random.default_rng(1)
    ends, claimed, noise, means = [], [], [], []
    for _ in range(300):
        log_errors = 0.5 * rng.standard_normal(240)
        exact, laplace = rng.standard_normal((2, 240, 3))
        found = predictive_distance(Fixed(exact), Fixed(laplace), log_errors, _X, n_chains=4)
        ends.append(found.mean)
        claimed.append(found.mean_noise)
        noise.append(found.largest_error)
        means.append(found.largest)
    assert np.mean(ends) == pytest.approx(np.mean(claimed), rel=0.15)
    assert np.mean(means) > np.mean(noise)


def test_a_single_draw_has_no_error_to_tell() -> None:
    draws = Fixed(np.ones((1, 3)))
    found = predictive_distance(draws, draws, np.zeros(1), _X, n_chains=1)
    assert np.isnan(found.largest_error)
    assert np.isnan(found.mean_noise)


@pytest.mark.parametrize(("n_total", "n_chains"), [(400, 4), (99, 3), (30, 1), (60, 30), (4, 2)])
def test_no_batch_is_of_two_chains(n_total: int, n_chains: int) -> None:
    batches, length = _batches(n_total, n_chains), n_total // n_chains
    assert len(batches) == n_total
    assert (np.diff(batches) >= 0).all()
    assert set(np.bincount(batches)) <= set(range(1, length + 1))
    chains = np.arange(n_total) // length
    assert all(len(set(chains[batches == b])) == 1 for b in np.unique(batches))
