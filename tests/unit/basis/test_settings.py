import numpy as np
import pytest

from mercer.basis.filter import PrintedFilter
from mercer.errors import UsageError
from support.basis_batches import little

Z = np.random.default_rng(1).standard_normal((30, 2))
Y = Z[:, 0]


def test_length_scales() -> None:
    learned = little(lengthscale="learn").grid(Z, Y, 0).lengthscales
    assert len(learned) == 6  # of nine: see test_levels
    median = little(lengthscale="median").grid(Z, Y, 0).lengthscales
    distances = np.linalg.norm(Z[:, np.newaxis] - Z, axis=2)[np.triu_indices(30, 1)]
    np.testing.assert_allclose(median, [np.median(distances)])
    falling = little(lengthscale=(0.5, 2.0, 1.0)).grid(Z, Y, 0).lengthscales
    np.testing.assert_array_equal(falling, [2.0, 1.0, 0.5])


@pytest.mark.parametrize("lengthscale", ["learn", "median"])
@pytest.mark.parametrize("n", [1, 5])
def test_of_equal_rows_there_is_no_distance(lengthscale: str, n: int) -> None:
    grid = little(lengthscale=lengthscale).grid(np.zeros((n, 2)), np.zeros(n), 0)
    assert (grid.lengthscales > 0.0).all()


def test_a_filter_for_each_rate_of_forgetting() -> None:
    settings = little(forgetting=(1.0, 0.9), max_candidates=700)
    filters = settings.ensemble(settings.grid(Z, Y, 0), 3).filters
    assert [each.retention for each in filters] == [1.0, 0.9]
    assert [each.reservoir.is_forgetting for each in filters] == [False, True]
    assert filters[0].reservoir.key == filters[1].reservoir.key
    assert filters[0].schedule.n_buffered == 700
    assert little().ensemble(settings.grid(Z, Y, 0), 3).filters[0].schedule.n_buffered == 512
    other = settings.ensemble(settings.grid(Z, Y, 0), 4).filters[0]
    assert other.reservoir.key != filters[0].reservoir.key


def test_variances() -> None:
    grid = little().grid(Z, Y, 0)
    assert not little().ensemble(grid, 3).filters[0].prior.is_sampled
    assert little(variances="sampled").ensemble(grid, 3).filters[0].prior.is_sampled


def test_weights_as_printed() -> None:
    settings = little(variances="sampled", weighting="printed")
    assert isinstance(settings.ensemble(settings.grid(Z, Y, 0), 3).filters[0], PrintedFilter)
    for own in ({}, {"variances": "sampled", "forgetting": (0.9,)}):
        with pytest.raises(UsageError, match="weighting='printed' needs"):
            little(weighting="printed", **own)


def test_memory() -> None:
    """Of the order of what the arrays take: 13 levels of 512 candidates, twice."""
    learned = little(lengthscale="learn", max_candidates=512)
    assert 8 * 13 * 512**2 * 2 < learned.n_bytes(10**6, 2) < 2 * 8 * 13 * 512**2 * 2
    assert learned.n_bytes(100, 2) < 1.2 * 10**6
    assert little(forgetting=(1.0, 0.9)).n_bytes(50, 2) == 2 * little().n_bytes(50, 2)
    for lengthscale in ("learn", "median", (1.0,)):
        assert little(lengthscale=lengthscale).n_bytes(50, 2) > 0
