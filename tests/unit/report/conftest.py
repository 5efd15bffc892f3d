from __future__ import annotations

import pytest


@pytest.fixture
def drawn() -> None:
    """For tests that look at drawings."""


@pytest.fixture(autouse=True)
def plain_figures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are made, but written as an empty drawing, which takes a tenth of the time."""
    if request.path.name != "test_figures.py" and "drawn" not in request.fixturenames:
        empty = '<svg viewBox="0 0 9 9"></svg>'
        monkeypatch.setattr("mercer.report.section.to_svg", lambda fig: empty)
