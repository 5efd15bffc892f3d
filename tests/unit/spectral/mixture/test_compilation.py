from __future__ import annotations

from mercer.spectral.mixture import compiled
from mercer.spectral.mixture.compilation import compile_loops, compile_now


def test_loops_are_compiled_once() -> None:
    compile_now()
    assert compiled.seat.signatures
    compile_loops(lambda line: (_ for _ in ()).throw(AssertionError(line)))
