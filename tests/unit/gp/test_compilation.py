"""The first run on a machine, which compiles, gives the bits of all later ones (P1)."""

from __future__ import annotations

from pathlib import Path

from support.first_run import check_first_run

_PROGRAM = """
import hashlib, numpy as np
from mercer import GPClassifier
rng = np.random.default_rng(0)
X, y = rng.standard_normal((53, 3)), np.arange(53) % 2
model = GPClassifier(n_draws=3, n_warmup=2, n_chains=1, random_state=0, progress=True).fit(X, y)
print(hashlib.sha256(model.predict_proba(X).tobytes()).hexdigest())
"""


def test_p1_compiling_changes_no_bit_and_is_said_once(tmp_path: Path) -> None:
    check_first_run(_PROGRAM, tmp_path)
