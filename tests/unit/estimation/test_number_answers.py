"""Rows are answered in blocks, and the blocks do not show."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.estimation.numbers import NumberPredictions
from support.process_fits import tiny
from support.spectral_fits import waves


@pytest.mark.parametrize("n", [1, 2, 3, 9])
def test_blocks_cover_all_rows(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NumberPredictions, "_rows_at_once", 3)
    blocks = NumberPredictions()._blocks(np.empty((n, 2)))
    rows = np.concatenate([np.arange(n)[block] for block in blocks])
    np.testing.assert_array_equal(rows, np.arange(n))


def test_blocks_of_rows_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    model, Z = tiny().fit(*waves()), waves(9, seed=4)[0]
    calls = (
        model.predict,
        lambda rows: model.predict(rows, return_std=True),
        model.predict_interval,
        model.latent,
    )
    expected = [call(Z) for call in calls]
    monkeypatch.setattr(type(model), "_rows_at_once", 4)
    for call, answer in zip(calls, expected, strict=True):
        np.testing.assert_allclose(call(Z), answer, rtol=1e-7)
