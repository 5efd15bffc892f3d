"""Compiled loops of feature maps: arrays in and out. Twins in NumPy: ``tests/twins``."""

from __future__ import annotations

import numpy as np

from mercer.numerics.compilation import compiled

__all__ = ["SAFE_PHASE", "cosines_and_sines"]

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

    Right to 2e-16 (times ``scale``) for phases up to `SAFE_PHASE`; no branches, so that the
    compiler works on as many phases at a time as a register holds.
    """
    n_frequencies, n_rows = phase.shape
    twice = 2.0 * scale
    for j in range(n_frequencies):
        row, cosine, sine = phase[j], out[2 * j], out[2 * j + 1]
        for i in range(n_rows):
            x = row[i]
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
