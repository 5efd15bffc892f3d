"""The first run on a machine, which compiles, gives the bits of all later ones (P1)."""

from __future__ import annotations

from pathlib import Path

from mercer.likelihoods import polya_gamma as polya_gamma_loops
from mercer.spectral import compilation
from mercer.spectral.loops import move_jointly
from support.first_run import check_first_run

_PROGRAM = """
import hashlib, numpy as np
from mercer import BaNKClassifier
rng = np.random.default_rng(0)
X = rng.standard_normal((30, 3))
model = BaNKClassifier(
    n_frequencies=30, n_draws=3, n_warmup=2, n_chains=1, random_state=0, progress=True
).fit(X, X[:, 0] > 0.0)
print(hashlib.sha256(model.predict_proba(X).tobytes()).hexdigest())
"""


def test_p1_compiling_changes_no_bit_and_is_said_once(tmp_path: Path) -> None:
    check_first_run(_PROGRAM, tmp_path)


def test_the_draws_are_compiled() -> None:
    compilation.compile_classes_now()
    assert polya_gamma_loops.fill_polya_gamma.signatures
    assert move_jointly.signatures
