"""P4: a thousand mutated model files either are refused or give the same predictions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer import GPClassifier
from mercer.errors import ModelFileError
from support.mangled import mutate


@pytest.mark.slow
def test_a_thousand_mutated_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    X, y = rng.standard_normal((10, 2)), np.arange(10) % 2
    settings = {"n_draws": 3, "n_warmup": 1, "n_chains": 1, "progress": False}
    path = tmp_path / "m.mercer"
    GPClassifier(**settings, random_state=0).fit(X, y).save(path)
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
        assert np.isfinite(proba).all()
        assert ((proba > 0.0) & (proba < 1.0)).all()
    assert n_refused > 500
