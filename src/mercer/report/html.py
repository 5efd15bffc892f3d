"""A report as one HTML file that needs no network."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from mercer.plot.style import PALETTE
from mercer.posterior.container import write_atomically
from mercer.report.section import Report

# Matplotlib's SVG made fit for a page: ids of its own, the page's colours, any width.


def inline(svg: str, prefix: str, alt: str) -> Markup:
    """Return an SVG element, drawn by `mercer.plot.style.to_svg`, for a page.

    Colours of the plots' palette become CSS variables (``--plot-ink``), so that the page can change
    them in the dark; ids get ``prefix``, unique in the page, so that no two figures share one;
    size, style sheet and description of the file's maker go away. ``alt`` says what is to be seen.
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


def render(report: Report) -> str:
    """Return the report as an HTML page.

    Everything is inside: styles, drawings (SVG) and a short script for sorting and copying. A
    policy in the page forbids all requests and every script but that one, and all words are
    escaped, so that a column called ``<script>`` does no harm.
    """
    here = files(__package__)
    style, script, template = (
        here.joinpath(name).read_text(encoding="utf-8")
        for name in ("style.css", "script.js", "template.html")
    )
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.from_string(template).render(
        report=report,
        style=Markup(style),
        script=Markup(script),
        script_digest=digest,
        inline=inline,
    )


# Writing a report: the whole file or none.


def write_report(path: str | os.PathLike[str], html: str) -> None:
    """Write a page from `render`; an existing file is replaced as a whole, or stays as it was."""
    # "replace": a lone surrogate from an undecodable file name becomes a question mark.
    write_atomically(path, (html.encode("utf-8", errors="replace"),))
