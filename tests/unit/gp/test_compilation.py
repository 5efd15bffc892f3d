"""The first run on a machine, which compiles, gives the bits of all later ones (P1)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import hashlib, numpy as np
from mercer import GPClassifier
rng = np.random.default_rng(0)
X, y = rng.standard_normal((53, 3)), np.arange(53) % 2
model = GPClassifier(n_draws=3, n_warmup=2, n_chains=1, random_state=0, progress=True).fit(X, y)
print(hashlib.sha256(model.predict_proba(X).tobytes()).hexdigest())
"""


def run(cache: Path) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr


def test_p1_compiling_changes_no_bit_and_is_said_once(tmp_path: Path) -> None:
    first, said = run(tmp_path)
    again, silence = run(tmp_path)
    assert first == again
    assert "compiling the inner loops" in said
    assert "compiling" not in silence
