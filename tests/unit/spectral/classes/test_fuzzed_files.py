"""P4: a thousand mutated model files either are refused or give finite predictions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer.errors import ModelFileError
from support.mangled import mutate
from support.spectral_class_fits import tiny, waves


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "own", [{}, {"kernel_rows": 10, "full_draws": 1}], ids=["all", "some rows"]
)
def test_a_thousand_mutated_files(own: dict, n_classes: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(12)
    X, y = waves(14, n_classes=n_classes)
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
        proba = model.predict_proba(X)
        assert (proba > 0.0).all()
        assert (proba < 1.0).all()
        assert np.isfinite(model.kernel(X)).all()
        assert np.isfinite(model.latent(X)).all()
    assert n_refused > 500
