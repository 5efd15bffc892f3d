from __future__ import annotations

from mercer.spectral import loops as compiled
from mercer.spectral.fitting import compile_mixture_now as compile_now


def test_the_loop_is_compiled_ahead() -> None:
    compile_now()
    assert compiled.seat.signatures
