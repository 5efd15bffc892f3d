from __future__ import annotations

from mercer.gp import compilation
from mercer.gp import loops as compiled


def test_every_loop_is_compiled_ahead() -> None:
    compilation.compile_softmax_now()
    for name in compiled.__all__:
        assert len(getattr(compiled, name).signatures) == 1  # one layout of arrays, compiled once
