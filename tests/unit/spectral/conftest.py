"""No verdict on the chains of these tests, and no drawings in reports."""

from support.plain_reports import plain_figures
from support.quick_verdict import quick_verdict

__all__ = ["plain_figures", "quick_verdict"]
