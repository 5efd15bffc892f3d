from __future__ import annotations

from mercer.spectral.mixture import compiled
from mercer.spectral.mixture.compilation import compile_now


def test_the_loop_is_compiled_ahead() -> None:
    compile_now()
    assert compiled.seat.signatures
