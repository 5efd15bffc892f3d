"""One BLAS thread for all tests of this folder."""

from support.one_thread import one_blas_thread

__all__ = ["one_blas_thread"]
