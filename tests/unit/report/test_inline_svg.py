from __future__ import annotations

import re

from mercer.plot.style import PALETTE, bare_figure, dress, plain, to_svg
from mercer.report.build import inline


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
