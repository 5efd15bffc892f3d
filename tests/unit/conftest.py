"""Where spectral models start is looked for with few frequencies in all tests of this folder."""

from support.quick_start import quick_start, whole_start

__all__ = ["quick_start", "whole_start"]
