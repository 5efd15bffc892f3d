from __future__ import annotations

from mercer.gp import loops
from mercer.gp.laplace import compile_softmax_now


def test_every_loop_is_compiled_ahead() -> None:
    compile_softmax_now()
    for name in ("add_products", "add_weighted", "column_sums", "mirror"):
        assert len(getattr(loops, name).signatures) == 1  # one layout of arrays, compiled once
    of_several = [each for each in loops.chord_steps.signatures if each[4].ndim == 2]
    assert len(of_several) == 1
