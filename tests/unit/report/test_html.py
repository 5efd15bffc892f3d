from __future__ import annotations

import base64
import hashlib
import re

import pytest

from mercer.report import Report, render
from mercer.report.section import Cell, Figure, NamedTable, Section, Tile

_SVG = '<svg viewBox="0 0 10 5"><g id="axes_1"/></svg>'


def _report(word: str = "word", n_rows: int = 2) -> Report:
    rows = tuple((Cell(word, word), Cell("1.5", 1.5, is_best=i == 0)) for i in range(n_rows))
    section = Section(
        key="one",
        title=word,
        text=(word,),
        warnings=(word,),
        points=(word,),
        figures=(Figure(_SVG, word, word), Figure(_SVG, word, word)),
        tables=(NamedTable(word, (word, "b"), rows), NamedTable(word, ("", ""), rows, False)),
        command=word,
    )
    return Report(word, word, (Tile(word, word, word), Tile("a", "b", "c", True)), (section,))


def test_every_word_is_escaped():
    html = render(_report("<script>alert(1)</script>"))
    assert html.count("&lt;script&gt;") >= 14
    assert html.count("<script>") == 1  # the page's own


def test_all_parts_are_there():
    html = render(_report())
    for part in (
        '<section id="one"',
        'href="#one"',
        'class="warning"',
        "<li>word</li>",
        "<code>word</code>",
        "<figcaption>word</figcaption>",
        'id="one-1-axes_1"',
        'id="one-2-axes_1"',
        'class="sortable"',
        'class="facts"',
        'data-sort="1.5" class="number best"',
        'class="tile attention"',
    ):
        assert part in html, part


def test_nothing_points_outside():
    html = render(_report())
    assert "http://" not in html
    assert "https://" not in html
    assert not re.search(r"@import|url\((?!#)|@font-face", html)


def test_the_policy_allows_the_script_of_the_page_and_no_other():
    html = render(_report())
    (script,) = re.findall(r"<script>(.*?)</script>", html, flags=re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy.replace("&#43;", "+")


@pytest.mark.parametrize(("n_rows", "is_folded"), [(15, False), (16, True)])
def test_long_tables_are_folded(n_rows, is_folded):
    assert ("<details" in render(_report(n_rows=n_rows))) == is_folded


def test_an_empty_table_is_rendered():
    assert "<tbody>" in render(_report(n_rows=0))
