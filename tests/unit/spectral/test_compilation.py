"""The first run on a machine, which compiles, gives the bits of all later ones (P1)."""

from __future__ import annotations

from pathlib import Path

from mercer.features import products as feature_loops
from mercer.spectral import compilation
from mercer.spectral import loops as compiled
from support.first_run import check_first_run

_PROGRAM = """
import hashlib, numpy as np
from mercer import BaNKRegressor
rng = np.random.default_rng(0)
X = rng.standard_normal((30, 3))
model = BaNKRegressor(
    n_frequencies=30, n_draws=3, n_warmup=2, n_chains=1, random_state=0, progress=True
).fit(X, np.sin(X[:, 0]))
print(hashlib.sha256(model.predict(X).tobytes()).hexdigest())
"""


def test_p1_compiling_changes_no_bit_and_is_said_once(tmp_path: Path) -> None:
    check_first_run(_PROGRAM, tmp_path)


def test_every_loop_is_compiled_ahead() -> None:
    compilation.compile_now()
    loops = [getattr(compiled, name) for name in compiled.__all__]
    loops.append(feature_loops.cosines_and_sines)
    assert all(loop.signatures for loop in loops)
