"""One-file HTML reports of fitted models: readable without a network, on a phone and in print."""

from __future__ import annotations

from mercer.report.build import build_report, render, save_report, write_report
from mercer.report.section import Report

__all__ = ["Report", "build_report", "render", "save_report", "write_report"]
