# mypy: allow-untyped-defs, allow-untyped-calls
"""Products of Fourier features with each other, summed over rows block by block.

**What a sweep over frequencies asks of the data.** With current features Phi (n, 2M), proposed ones
Phi* (n, 2M), columns H that are always there and targets y, all accept or reject decisions need

    [Phi, Phi*, H, y]' [Phi, Phi*, H, y]

and nothing else. What does not hold a proposed column is known from the sweep before, so a block of
rows adds Phi*'Phi* and Phi*'[Phi, H, y]: 12 n M^2 flops. A weight for each row may enter the
product, as a likelihood with a variance for each row needs it; nothing is then known from before.

**Order.** The features of frequency j are columns 2j (cosine) and 2j + 1 (sine), scaled by
1 / sqrt(M). Blocks are added in the order in which they come, terms of `ROWS_PER_TERM` rows are
summed in pairs, pairs in fours and so on: the result depends on n alone, not on where the rows lie
or who added them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from mercer.numerics.compilation import compiled
from mercer.numerics.sums import ROWS_PER_TERM, PairwiseSum

# Compiled loops of feature maps: arrays in and out. Twins in NumPy: ``tests/twins``.

# Phases up to this size keep all their digits in the three-part reduction below.
SAFE_PHASE = 1e5

# pi/2 in three parts: the first two have 33 bits, so that their multiples by a number of quarter
# turns below 2^20 are exact (Cody & Waite).
_QUARTER_1 = 1.57079632673412561417e00
_QUARTER_2 = 6.07710050630396597660e-11
_QUARTER_3 = 2.02226624879595063154e-21
_QUARTERS_PER_RADIAN = 0.63661977236758134308
# Minimax polynomials of sine and cosine on [-pi/4, pi/4], as in the FreeBSD mathematical library.
_S1, _S2, _S3 = -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04
_S4, _S5, _S6 = 2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10
_C1, _C2, _C3 = 4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05
_C4, _C5, _C6 = -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11
# Adding and taking away 1.5 * 2^52 rounds to the nearest whole number.
_ROUND = 6755399441055744.0


@compiled(nogil=True, error_model="numpy", fastmath={"contract"})
def cosines_and_sines(phase, scale, out):
    """Write scale cos and scale sin of phase[j, i] to out[2 j, i] and out[2 j + 1, i].

    Right to 2e-16 (times ``scale``) for phases up to `SAFE_PHASE`.
    """
    for j in range(phase.shape[0]):
        fill_row(phase[j], scale, out[2 * j], out[2 * j + 1])


@compiled(nogil=True, error_model="numpy", fastmath={"contract"})
def fill_row(phase, scale, cosine, sine):
    """Do so for one frequency.

    No branches, and a function of its own: whether rows overlap is then looked at row by row, so
    that the compiler works on as many phases at a time as a register holds. Over all rows those of
    cosines and of sines do, and it would take one at a time.
    """
    twice = 2.0 * scale
    for i in range(len(phase)):
        x = phase[i]
        k = (x * _QUARTERS_PER_RADIAN + _ROUND) - _ROUND
        r = ((x - k * _QUARTER_1) - k * _QUARTER_2) - k * _QUARTER_3
        z = r * r
        s = r + r * z * (_S1 + z * (_S2 + z * (_S3 + z * (_S4 + z * (_S5 + z * _S6)))))
        c = 1.0 - 0.5 * z
        c += z * z * (_C1 + z * (_C2 + z * (_C3 + z * (_C4 + z * (_C5 + z * _C6)))))
        quarter = np.int64(np.int32(k))
        is_odd = (quarter & 1) != 0
        cosine_sign = scale - twice * np.float64(((quarter + 1) >> 1) & 1)
        sine_sign = scale - twice * np.float64((quarter >> 1) & 1)
        cosine[i] = (s if is_odd else c) * cosine_sign
        sine[i] = (c if is_odd else s) * sine_sign


@compiled(nogil=True)
def mirror(lower, out):
    """Write the symmetric matrix whose lower triangle is that of a Fortran-ordered one."""
    for b in range(out.shape[0]):
        for a in range(b, out.shape[0]):
            out[b, a] = out[a, b] = lower[a, b]


Array = NDArray[np.float64]

# Rows whose features stand in memory at a time: what computes them stays in the cache.
_ROWS_AT_ONCE = 1024


def fill_features(frequencies: Array, X: Array, out: Array, phase: Array | None = None) -> None:
    """Write cosines and sines of the phases, scaled by 1 / sqrt(M), one row of ``out`` each.

    ``frequencies`` (M, d) are in radians per unit of the input, X is (n, d) and ``out`` (2 M, n):
    its rows 2 j and 2 j + 1 belong to frequency j. ``phase`` (M, n) is overwritten where given:
    workers of Dask give memory back at once, and asking for it anew takes a quarter of a pass.
    """
    phase = np.matmul(frequencies, X.T, out=phase)
    scale = 1.0 / math.sqrt(len(frequencies))
    if phase.size and phase.max() <= SAFE_PHASE and phase.min() >= -SAFE_PHASE:
        cosines_and_sines(phase, scale, out)
        return
    np.multiply(np.cos(phase), scale, out=out[0::2])
    np.multiply(np.sin(phase), scale, out=out[1::2])


def parts(X: Array, y: Array, size: int | None = None) -> Iterator[tuple[Array, Array]]:
    """Cut a block of rows X (b, d), y (b,) into parts of so many rows."""
    for rows in slices(len(X), size):
        yield X[rows], y[rows]


def slices(n: int, size: int | None = None) -> Iterator[slice]:
    """Cut n rows into parts."""
    size = _ROWS_AT_ONCE if size is None else size
    return (slice(begin, begin + size) for begin in range(0, n, size))


def fill_design(
    has_linear_part: bool, frequencies: Array, X: Array, out: Array, phase: Array | None = None
) -> None:
    """Write [Phi, H] of some rows as rows, shape (2 M + p, b)."""
    m2 = 2 * len(frequencies)
    fill_features(frequencies, X, out[:m2], phase)
    if has_linear_part:
        out[m2] = 1.0
        out[m2 + 1 :] = X.T


class Room:
    """Memory for the design of some rows and for phases, kept from one part of rows to the next."""

    def __init__(self) -> None:
        self._kept = np.empty((0, 0)), np.empty((0, 0))

    def of(self, n_columns: int, n_rows: int) -> tuple[Array, Array]:
        """Two arrays, of shapes (n_columns, n_rows) and (n_columns / 2, n_rows)."""
        if self._kept[0].shape != (n_columns, n_rows):
            self._kept = np.empty((n_columns, n_rows)), np.empty((n_columns // 2, n_rows))
        return self._kept


@dataclass(frozen=True, eq=False)
class Products:
    """Sums over rows of products of new features."""

    among: Array  # (2 M', 2 M'), of the new features with each other; symmetric
    across: Array  # (2 M', m), of the new features with the given columns
    device: Any = None  # that both are on, see `mercer.features.device`

    def here(self) -> Self:
        """The same in NumPy."""
        if self.device is None:
            return self
        among, across = map(self.device.get, (self.among, self.across))
        return replace(self, among=among, across=across, device=None)


def split_products(total: Array, n_new: int) -> Products:
    """Split a sum (2 M', 2 M' + m), of whose first columns the lower triangle counts."""
    return Products(symmetric(total[:, :n_new]), np.ascontiguousarray(total[:, n_new:]))


def symmetric(lower: Array) -> Array:
    """Return the symmetric matrix, C-ordered, of which the lower triangle is given."""
    out = np.empty(lower.shape)
    mirror(np.asfortranarray(lower), out)
    return out


class FeatureProducts:
    """Sums over rows of [new features]' [new features, old features, H, y].

    This is the one object that touches rows: where they come from (memory, a disk) and who adds
    them is the business of the caller. ``new`` (M', d) are the frequencies whose products are
    wanted, ``old`` (M, d) those whose products with the new ones are wanted too; ``n_columns``
    further columns are handed over with each block. Memory: 8 (2 M')(2 M' + 2 M + columns) bytes,
    times the logarithm of the number of terms.
    """

    def __init__(self, new: Array, old: Array | None, n_columns: int) -> None:
        self._new = new
        self._old = np.empty((0, new.shape[1])) if old is None else old
        self._sum = PairwiseSum()
        self._term: Array | None = None
        self._n_in_term = 0
        self._n_new = 2 * len(new)
        self._n_given = 2 * len(self._old) + n_columns
        self._room: Array | None = None

    def add(self, X: Array, columns: Array, weights: Array | None = None) -> None:
        """Add a block of rows X (b, d), with the further columns (n_columns, b) as rows.

        With non-negative weights w (b,), products are sum_i w_i a_i b_i.
        """
        if self._term is None:
            self._term = self._zeros()  # also without a row: whoever sums knows how many terms
        begin = 0
        while begin < len(X):
            n = min(_ROWS_AT_ONCE, len(X) - begin, ROWS_PER_TERM - self._n_in_term)
            rows = slice(begin, begin + n)
            self._add_rows(X[rows], columns[:, rows], None if weights is None else weights[rows])
            begin += n

    def total(self) -> Products:
        """Return the products of all rows that were added."""
        return self.products(self.sum())

    def sum(self) -> Array:
        """Return the sum of the terms: what `PairwiseSum` adds, and `products` turns into them."""
        self.begin_term()
        return np.asarray(self._sum.total())

    def products(self, total: Array) -> Products:
        """Turn a sum of terms into products."""
        return split_products(total, self._n_new)

    def _add_rows(self, X: Array, columns: Array, weights: Array | None) -> None:
        n, n_new = len(X), self._n_new
        if self._room is None or self._room.shape[1] != n:
            self._room = np.empty((n_new + self._n_given, n))
            self._phase = np.empty((max(len(self._new), len(self._old)), n))
        room, phase = self._room, self._phase
        fill_features(self._new, X, room[:n_new], phase[: len(self._new)])
        if len(self._old):
            own = room[n_new : n_new + 2 * len(self._old)]
            fill_features(self._old, X, own, phase[: len(self._old)])
        room[n_new + 2 * len(self._old) :] = columns
        if weights is not None:
            room *= np.sqrt(weights)
        if self._term is None:
            self._term = self._zeros()
        new, given = room[:n_new].T, room[n_new:].T
        # Both write into Fortran-ordered columns of the task's sum, in place.
        blas.dsyrk(1.0, new, beta=1.0, c=self._term[:, :n_new], trans=1, lower=1, overwrite_c=1)
        blas.dgemm(1.0, new, given, beta=1.0, c=self._term[:, n_new:], trans_a=1, overwrite_c=1)
        self._n_in_term += n
        if self._n_in_term == ROWS_PER_TERM:
            self.begin_term()

    def begin_term(self, index: int = 0) -> None:
        """Let the next row begin a term of its own, whichever it is of all."""
        if self._term is not None:
            self._sum.add(self._term)
        self._term, self._n_in_term = None, 0

    def _zeros(self) -> Array:
        return np.zeros((self._n_new, self._n_new + self._n_given), order="F")
