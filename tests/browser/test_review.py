"""A review by keyboard alone in a real browser, and the page after mercer has ended."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mercer.review.journal import open_journal
from mercer.review.reviewer import Labels, Reviewer

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytest.importorskip("playwright.sync_api")
pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
pytestmark = pytest.mark.browser

N = 40


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Any, Any, Path]]:
    from mercer.review.server import ReviewServer

    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    labels = np.where(X[:, 0] + X[:, 1] > 0.0, "<b>yes</b>", "no")
    cells = {"a": [f"{v:.2f}" for v in X[:, 0]], "<i>b": [f"{v:.2f}" for v in X[:, 1]]}
    names = tuple(f"row {k}" for k in range(N))
    given = Labels(X, tuple(map(str, labels)), ("<b>yes</b>", "no"), names, cells)
    with open_journal(tmp_path / "j.jsonl", {"n_rows": N}) as journal:
        reviewer = Reviewer(given, journal, refit_every=0)
        reviewer.begin()
        server = ReviewServer(reviewer, "t.csv, y")
        thread = threading.Thread(target=server.run, name="the server of the page")
        thread.start()
        yield server, reviewer, journal.path
        server.stop()
        thread.join()


def test_by_keyboard_alone(browser: Browser, served: tuple[Any, Any, Path]) -> None:
    server, reviewer, journal = served
    problems: list[str] = []
    page = browser.new_page()
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "request",
        lambda request: problems.append(request.url) if "127.0.0.1" not in request.url else None,
    )
    page.goto(server.address)
    asked = page.locator("#asked")
    page.wait_for_function("() => document.querySelector('#asked').innerText !== ''")
    for n, key in enumerate(("k", "c", "u", "1"), start=1):
        before = asked.inner_text(timeout=10_000)
        if key == "1":  # of two classes there is no third
            page.keyboard.press(key)
            page.keyboard.press("k")
        else:
            page.keyboard.press(key)
        page.wait_for_function(
            "(old) => document.querySelector('#asked').innerText !== old", arg=before
        )
        assert len(journal.read_text().splitlines()) == 1 + n
    last = asked.inner_text()
    page.keyboard.press("z")
    page.wait_for_function("(old) => document.querySelector('#asked').innerText !== old", arg=last)
    standing = reviewer.journal.standing.values()
    assert [each.action for each in standing] == ["keep", "change", "unsure"]
    assert page.locator("b, i").count() == 0  # labels and names are text, never markup
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "BUTTON"
    page.keyboard.press("q")
    page.wait_for_selector("#over:not([hidden])")
    assert "can be closed" in page.inner_text("#words")
    assert page.locator("button:visible").count() == 0
    assert server.is_finished
    assert problems == []


def test_what_is_heard_late_brings_no_decided_row_back(
    browser: Browser, served: tuple[Any, Any, Path]
) -> None:
    """The page asks how far learning is; a row is decided before it has the answer."""
    server, _, _ = served
    page = browser.new_page()
    page.goto(server.address)
    asked = page.locator("#asked")
    page.wait_for_function("() => document.querySelector('#asked').innerText !== ''")
    held: list[Any] = []
    page.route("**/state", lambda route: held.append((route, route.fetch())))
    page.evaluate("() => { window.polled = poll(); }")
    while not held:
        page.wait_for_timeout(10)
    before = asked.inner_text()
    page.keyboard.press("k")
    page.wait_for_function(
        "(old) => document.querySelector('#asked').innerText !== old", arg=before
    )
    after = asked.inner_text()
    route, answer = held.pop()
    route.fulfill(response=answer)
    page.evaluate("() => window.polled")
    assert asked.inner_text() == after


def test_a_page_whose_server_has_ended_says_so(
    browser: Browser, served: tuple[Any, Any, Path]
) -> None:
    server, _, journal = served
    page = browser.new_page()
    page.goto(server.address)
    page.wait_for_selector("#work:not([hidden])")
    server.stop()
    (thread,) = (each for each in threading.enumerate() if each.name == "the server of the page")
    thread.join()
    page.keyboard.press("k")
    page.wait_for_function("() => document.querySelector('#problem').innerText !== ''")
    assert "in the journal" in page.inner_text("#problem")
    assert len(journal.read_text().splitlines()) == 1
