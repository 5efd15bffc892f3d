"""P4: a thousand mutated model files either are refused or give finite predictions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer.errors import ModelFileError
from support.mangled import mutate
from support.spectral_fits import tiny, waves


@pytest.mark.slow
@pytest.mark.parametrize("own", [{}, {"kernel_rows": 8, "full_draws": 1}], ids=["all", "some rows"])
def test_a_thousand_mutated_files(own: dict, tmp_path: Path) -> None:
    rng = np.random.default_rng(12)
    X, y = waves(12)
    path = tmp_path / "m.mercer"
    tiny(n_frequencies=3, n_draws=3, n_warmup=1, **own).fit(X, y).save(path)
    data = path.read_bytes()
    n_refused = 0
    for _ in range(1000):
        path.write_bytes(mutate(data, rng))
        try:
            model = mercer.load(path)
        except ModelFileError:
            n_refused += 1
            continue
        mean, std = model.predict(X, return_std=True)
        assert np.isfinite(mean).all()
        assert (std > 0.0).all()
        assert np.isfinite(model.kernel(X)).all()
    assert n_refused > 500
