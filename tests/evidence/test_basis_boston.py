from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mercer.errors import StorageError
from reproduce.papers import basis_boston
from reproduce.papers.basis_boston import boston_split
from support.table_1 import write_sets


@pytest.fixture
def boston(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    write_sets(monkeypatch, tmp_path, 506, "boston")
    basis_boston._arrays.cache_clear()
    yield
    basis_boston._arrays.cache_clear()


@pytest.mark.usefixtures("boston")
def test_splits_are_of_300_and_206_rows() -> None:
    split = boston_split(0)
    assert split.X.shape == (300, 13)
    assert split.X_test.shape == (206, 13)
    np.testing.assert_allclose(split.X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(split.X.std(axis=0), 1.0)
    assert split.f_test is None
    everything = np.sort(np.concatenate([split.y, split.y_test]))
    other = boston_split(1)
    np.testing.assert_array_equal(everything, np.sort(np.concatenate([other.y, other.y_test])))
    assert not np.array_equal(split.y, other.y)


def test_without_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MERCER_DATA", raising=False)
    basis_boston._arrays.cache_clear()
    with pytest.raises(StorageError, match="MERCER_DATA"):
        boston_split(0)
