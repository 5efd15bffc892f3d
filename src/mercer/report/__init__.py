"""One-file HTML reports of fitted models: readable without a network, on a phone and in print."""

from __future__ import annotations

from mercer.report.build import build_report
from mercer.report.html import render
from mercer.report.section import Report
from mercer.report.write import write_report

__all__ = ["Report", "build_report", "render", "write_report"]
