"""No verdict on the chains of these tests."""

from support.quick_verdict import quick_verdict

__all__ = ["quick_verdict"]
