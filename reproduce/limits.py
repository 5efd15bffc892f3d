"""What a computation cannot do without: the rate of products of matrices on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

__all__ = ["DgemmLimit"]


@dataclass(frozen=True)
class DgemmLimit:
    """Products of so many flops in all by dgemm: (order x length) (length x order), summed up.

    A call does as many whole products as come nearest to ``flops``, one at least; `scale` times its
    time is that of ``flops``.
    """

    order: int
    length: int
    flops: float

    @property
    def scale(self) -> float:
        """Flops wanted over flops of a call."""
        return self.flops / (self._n_products * self._flops_of_one)

    def __call__(self) -> None:
        """Do the products; the same matrices each time, so that they stay in the cache."""
        left, right, total = self._matrices
        for _ in range(self._n_products):
            blas.dgemm(1.0, left, right, beta=1.0, c=total, trans_a=1, overwrite_c=1)

    @cached_property
    def _matrices(self) -> tuple[NDArray[np.float64], ...]:
        rng, shape = np.random.default_rng(0), (self.length, self.order)
        left, right = (np.asfortranarray(rng.standard_normal(shape)) for _ in range(2))
        return left, right, np.zeros((self.order, self.order), order="F")

    @property
    def _flops_of_one(self) -> float:
        return 2.0 * self.order**2 * self.length

    @property
    def _n_products(self) -> int:
        return max(round(self.flops / self._flops_of_one), 1)
