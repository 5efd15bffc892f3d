"""One BLAS thread for all tests of this folder, a quick start, and no verdict on their chains."""

from support.one_thread import one_blas_thread
from support.quick_start import quick_start
from support.quick_verdict import quick_verdict

__all__ = ["one_blas_thread", "quick_start", "quick_verdict"]
