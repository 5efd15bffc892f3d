"""A report as one HTML file that needs no network."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from mercer.report.inline_svg import inline
from mercer.report.section import Report

__all__ = ["render"]


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
