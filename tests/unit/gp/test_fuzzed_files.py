"""P4: a thousand mutated model files either are refused or give the same predictions."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer import GPClassifier
from mercer.errors import ModelFileError


def mutate(data: bytes, rng: np.random.Generator) -> bytes:
    """Flip, cut, repeat or insert bytes; every other time mend the sum, so that parsing is met."""
    changed = bytearray(data)
    kind = rng.integers(4)
    at = int(rng.integers(len(changed)))
    if kind == 0:
        changed[at] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        del changed[at : at + int(rng.integers(1, 50))]
    elif kind == 2:
        changed[at:at] = changed[at : at + int(rng.integers(1, 50))]
    else:
        changed[at : at + 4] = rng.bytes(4)
    if rng.random() < 0.5 and len(changed) > 40:
        changed[8:40] = hashlib.sha256(changed[40:]).digest()
    return bytes(changed)


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
