from __future__ import annotations

import io

from rich.console import Console

from mercer.cli.stream import LivePanel


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_it_is_drawn_four_times_a_second_at_most() -> None:
    clock, asked = Clock(), []
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    panel = LivePanel(console, is_shown=True, clock=clock)
    assert panel.seconds_left is None

    def facts() -> dict[str, str]:
        asked.append(clock.now)
        return {"rows": f"{len(asked)}", "bad rows": "0"}

    with panel.shown():
        for step in range(100):
            clock.now = step / 100
            panel.tick(facts)
        assert 0.0 < panel.seconds_left < 0.25
    assert asked == [0.0, 0.25, 0.5, 0.75]
    assert "bad rows" in console.file.getvalue()  # type: ignore[attr-defined]
    panel.tick(facts)
    assert len(asked) == 4


def test_where_it_is_not_shown_nothing_is_asked() -> None:
    console = Console(file=io.StringIO(), width=80)
    panel = LivePanel(console, is_shown=False)
    with panel.shown():
        panel.tick(lambda: {"rows": "1"})
    assert console.file.getvalue() == ""  # type: ignore[attr-defined]
