"""Matplotlib's SVG made fit for a page: ids of its own, the page's colours, any width."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from mercer.plot.style import PALETTE

__all__ = ["inline"]


def inline(svg: str, prefix: str, alt: str) -> Markup:
    """Return an SVG element for a page.

    Colours of the plots' palette become CSS variables (``--plot-ink``), so that the page can
    change them in the dark; ids get ``prefix``, so that no two figures share one; size, style
    sheet and description of the file's maker go away.

    Parameters
    ----------
    svg : str
        From `mercer.plot.style.to_svg`.
    prefix : str
        Unique in the page.
    alt : str
        What is to be seen, for those who cannot see it.
    """
    svg = svg[svg.index("<svg") :]
    svg = re.sub(
        r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->", "", svg, flags=re.S
    )
    box = re.search(r'viewBox="([^"]*)"', svg)
    assert box is not None  # Matplotlib always writes one
    width = box[1].split()[2]
    head = (
        f'<svg role="img" aria-label="{escape(alt)}" viewBox="{box[1]}" '
        f'style="--natural-width: {width}px">'
    )
    svg = head + svg[svg.index(">") + 1 :]
    return Markup(re.sub(r"<[^>]+>", lambda tag: _fit_tag(tag[0], prefix), svg))


def _fit_tag(tag: str, prefix: str) -> str:
    """Change ids and colours inside one tag; text between tags, already escaped, is left alone."""
    tag = re.sub(r'\bid="', f'id="{prefix}-', tag)
    tag = tag.replace("url(#", f"url(#{prefix}-")
    tag = re.sub(r'(?:xlink:)?href="#', f'href="#{prefix}-', tag)
    for name, colour in PALETTE.items():
        tag = tag.replace(f": {colour}", f": var(--plot-{name}, {colour})")
    return tag
