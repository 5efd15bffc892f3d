from __future__ import annotations

import numpy as np
import pytest

from support.class_batches import class_settings


def test_length_scales() -> None:
    Z = np.random.default_rng(0).standard_normal((300, 2))
    learned = class_settings(lengthscale="learn").lengthscales(Z)
    assert learned.shape == (9,)
    assert (np.diff(learned) < 0.0).all()
    (median,) = class_settings(lengthscale="median").lengthscales(Z)
    distances = np.sqrt(((Z[:, np.newaxis] - Z) ** 2).sum(axis=-1))
    assert median == pytest.approx(np.median(distances[np.triu_indices(300, 1)]), rel=0.1)
    given = class_settings(lengthscale=(0.5, 2.0)).lengthscales(Z)
    np.testing.assert_array_equal(given, [2.0, 0.5])


def test_a_filter_for_each_class_but_the_last() -> None:
    sticks = class_settings().sticks(np.ones(1), 2, 4, 0, 7)
    assert len(sticks.filters) == 3
    keys = {each.reservoir.key for each in sticks.filters}
    assert len(keys) == 3
    assert {each.schedule.n_buffered for each in sticks.filters} == {12}
    assert all(each.reservoir.is_forgetting for each in sticks.filters)


def test_of_a_table_all_rows_are_held() -> None:
    (filter_,) = class_settings().sticks(np.ones(1), 2, 2, 100, 7).filters
    assert filter_.schedule.n_buffered == 100
    assert not filter_.reservoir.is_forgetting


def test_memory_grows_with_rows_levels_and_classes() -> None:
    one = class_settings(lengthscale="median").n_bytes(1000, 2, 2)
    assert class_settings(lengthscale="learn").n_bytes(1000, 2, 2) == 9 * one
    assert class_settings(lengthscale="median").n_bytes(2000, 2, 3) == 4 * one
    assert one == 16 * 1000 * (1 + 2 + 7)
