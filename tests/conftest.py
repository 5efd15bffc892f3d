"""For all tests: Ctrl-C works in the processes that they start, however pytest was started."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Undo an ignored SIGINT, which a shell gives to what it starts in the background."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
