from __future__ import annotations

from mercer.gp.several import compilation, compiled


def test_every_loop_is_compiled_ahead() -> None:
    assert {loop.__name__ for loop in compilation._LOOPS} == set(compiled.__all__)
    told: list[str] = []
    compilation.compile_now()
    compilation.compile_loops(told.append)
    assert told == []
    for loop in compilation._LOOPS:
        assert len(loop.signatures) == 1  # one layout of arrays, compiled once
