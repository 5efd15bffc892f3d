from __future__ import annotations

import base64
import hashlib
import re

import pytest

from mercer.errors import StorageError
from mercer.plot.style import PALETTE, bare_figure, dress, plain, to_svg
from mercer.report import Report, render, write_report
from mercer.report.build import inline
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
    assert ('<details class="table"' in render(_report(n_rows=n_rows))) == is_folded


def test_an_empty_table_is_rendered():
    assert "<tbody>" in render(_report(n_rows=0))


def test_the_file_holds_the_page_as_utf_8(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    write_report(path, "<p>ä – 日本\udc80</p>")
    assert path.read_bytes() == "<p>ä – 日本?</p>".encode()
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_a_storage_error(tmp_path):
    with pytest.raises(StorageError):
        write_report(tmp_path / "none" / "report.html", "<p>")
    with pytest.raises(StorageError):
        write_report(tmp_path, "<p>")


def _svg(title: str) -> str:
    fig = bare_figure(3, 2)
    ax = fig.subplots()
    dress(ax)
    ax.plot([0, 1], [0, 1], "o-", color=PALETTE["series-1"])
    ax.set_title(plain(title))
    return to_svg(fig)


def test_ids_get_the_prefix_and_references_follow():
    svg = inline(_svg("x"), "a-1", "words")
    ids = re.findall(r'\bid="([^"]*)"', svg)
    used = re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', svg)
    assert ids
    assert used
    assert all(name.startswith("a-1-") for name in ids)
    assert {one or other for one, other in used} <= set(ids)
    assert len(ids) == len(set(ids))


def test_colours_become_variables_with_the_old_ones_to_fall_back_on():
    svg = inline(_svg("x"), "a", "words")
    assert "var(--plot-series-1, #0072b2)" in svg
    rest = re.sub(r"var\([^)]*\)", "", svg)
    assert not [colour for colour in PALETTE.values() if colour in rest]


def test_what_only_a_file_needs_goes_away():
    svg = inline(_svg("x"), "a", 'say "<b>"')
    assert svg.startswith(
        '<svg role="img" aria-label="say &#34;&lt;b&gt;&#34;" viewBox="0 0 216 144"'
    )
    for gone in ("<?xml", "DOCTYPE", "metadata", "<style", "http", "<!--"):
        assert gone not in svg


def test_text_is_left_alone():
    svg = inline(_svg('id="q" url(#z) <i>'), "a", "words")
    assert 'id="q" url(#z) &lt;i&gt;' in svg
