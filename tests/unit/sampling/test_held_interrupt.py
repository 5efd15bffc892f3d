import signal
import threading

import pytest

from mercer.sampling.held_interrupt import HeldInterrupt


def test_it_is_heeded_when_asked() -> None:
    before = signal.getsignal(signal.SIGINT)
    with HeldInterrupt() as interrupt:
        interrupt.check()
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interrupt.check()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_handler_of_somebody_else_stays() -> None:
    seen = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with HeldInterrupt() as interrupt:
            signal.raise_signal(signal.SIGINT)
            interrupt.check()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]


def test_in_another_thread_nothing_is_installed() -> None:
    seen = []

    def look() -> None:
        with HeldInterrupt():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
