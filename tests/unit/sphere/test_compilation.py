"""The first run on a machine, which compiles, gives the bits of all later ones (P1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from mercer.sphere import compilation
from support.first_run import check_first_run

_PROGRAM = """
import hashlib, numpy as np
from mercer import KernelGibbsClassifier
rng = np.random.default_rng(0)
X, y = rng.standard_normal((23, 3)), np.arange(23) % 2
model = KernelGibbsClassifier(
    lengthscale=1.0, nugget=0.1, n_draws=3, n_warmup=2, n_chains=1, random_state=0,
    progress=True,
).fit(X, y)
print(hashlib.sha256(model.predict_proba(X).tobytes()).hexdigest())
"""


def test_p1_compiling_changes_no_bit_and_is_said_once(tmp_path: Path) -> None:
    check_first_run(_PROGRAM, tmp_path)


def test_loops_are_compiled_where_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of several classes and of the great circle are not, where nobody asks for them."""
    asked = []
    monkeypatch.setattr(
        compilation,
        "compile_first",
        lambda tell, *warm_ups: asked.extend(warm_up.__name__ for warm_up in warm_ups),
    )
    for arguments, functions in (
        ((), ["compile_now"]),
        ((3,), ["compile_now", "compile_several"]),
        ((2, "great_circle"), ["compile_now", "compile_circle"]),
    ):
        asked.clear()
        compilation.compile_loops(lambda line: None, *arguments)
        assert asked == functions
        for function in functions:
            getattr(compilation, function)()
