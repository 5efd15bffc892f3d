"""Compiled loops of BaNK: arrays and scalars in and out. Twins in NumPy: ``tests/twins``.

Matrices of the accept loop are Fortran-ordered and only their lower triangle is read. The columns
of frequency j are 4 j .. 4 j + 3: cosine and sine of the current one, then of the proposed one; the
last row belongs to the targets.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.numerics.compilation import compiled

__all__ = [
    "assemble",
    "decide_few",
    "decide_few_together",
    "gather",
    "select",
    "tridiagonal_evidence",
]


@compiled(nogil=True)
def assemble(gram, among, across, ridge, n_linear, joint, linear):
    """Lay out all products for the accept loop.

    Parameters
    ----------
    gram : ndarray of shape (2 M + p + 1, 2 M + p + 1)
        Of [current features, linear columns, targets].
    among, across : ndarray of shape (2 M, 2 M) and (2 M, 2 M + p + 1)
        Of the proposed features, with each other and with those columns.
    ridge : float
        Precision of the coefficients, added to the diagonal of current and proposed ones.
    n_linear : int
        p.
    joint : ndarray of shape (4 M + 1, 4 M + 1)
        Written: lower triangle.
    linear : ndarray of shape (p, 4 M + 1)
        Written: products of the linear columns with all others.
    """
    m2 = among.shape[0]
    last = joint.shape[0] - 1
    for a in range(m2):
        ja = 4 * (a // 2) + a % 2
        for b in range(a + 1):
            jb = 4 * (b // 2) + b % 2
            joint[ja, jb] = gram[a, b]
            joint[ja + 2, jb + 2] = among[a, b]
        joint[ja, ja] += ridge
        joint[ja + 2, ja + 2] += ridge
        for b in range(m2):
            jb = 4 * (b // 2) + b % 2
            # Proposed a with current b; of the same frequency the proposed one comes later.
            if ja + 2 > jb:
                joint[ja + 2, jb] = across[a, b]
            else:
                joint[jb, ja + 2] = across[a, b]
        joint[last, ja] = gram[m2 + n_linear, a]
        joint[last, ja + 2] = across[a, m2 + n_linear]
        for k in range(n_linear):
            linear[k, ja] = gram[m2 + k, a]
            linear[k, ja + 2] = across[a, m2 + k]
    joint[last, last] = gram[m2 + n_linear, m2 + n_linear]
    for k in range(n_linear):
        linear[k, last] = gram[m2 + n_linear, m2 + k]


@compiled(nogil=True)
def select(gram, among, across, is_accepted):
    """Products of the chosen features with each other and with the columns: the new ``gram``."""
    m2 = among.shape[0]
    new = gram.copy()
    for a in range(m2):
        took_a = is_accepted[a // 2]
        for b in range(m2):
            took_b = is_accepted[b // 2]
            if took_a and took_b:
                new[a, b] = among[a, b]
            elif took_a:
                new[a, b] = across[a, b]
            elif took_b:
                new[a, b] = across[b, a]
        if took_a:
            for k in range(m2, gram.shape[0]):
                new[a, k] = across[a, k]
                new[k, a] = across[a, k]
    return new


@compiled(nogil=True)
def gather(joint, gone, begin, kept, among_gone, across):
    """Take apart what is eliminated and what is kept.

    Parameters
    ----------
    joint : ndarray of shape (4 m + 1, 4 m + 1)
    gone : ndarray of shape (g,), int
        Columns to eliminate, ascending.
    begin : int
        First column that is kept; the number of them comes from the shape of ``kept``, whose last
        row is that of the targets.
    kept, among_gone, across : ndarray
        Written: shapes (k + 1, k + 1), (g, g), both lower triangles, and (k + 1, g).
    """
    k = kept.shape[0] - 1
    g = gone.shape[0]
    last = joint.shape[0] - 1
    is_before = gone[0] < begin
    for b in range(k):
        for a in range(b, k):
            kept[a, b] = joint[begin + a, begin + b]
        kept[k, b] = joint[last, begin + b]
    kept[k, k] = joint[last, last]
    for b in range(g):
        for a in range(b, g):
            among_gone[a, b] = joint[gone[a], gone[b]]
        across[k, b] = joint[last, gone[b]]
    if is_before:
        for e in range(g):
            for a in range(k):
                across[a, e] = joint[begin + a, gone[e]]
    else:
        for a in range(k):
            for e in range(g):
                across[a, e] = joint[gone[e], begin + a]


@compiled(nogil=True, error_model="numpy")
def _eliminate(joint, gone, begin, n_kept):
    """Schur complement of a few kept columns, or a matrix of NaN where that fails."""
    k, g = n_kept, gone.shape[0]
    kept = np.empty((k + 1, k + 1)).T
    L = np.empty((g, g)).T
    T = np.empty((g, k + 1)).T
    gather(joint, gone, begin, kept, L, T)
    for j in range(g):
        for i in range(j):
            x = L[j, i]
            for r in range(j, g):
                L[r, j] -= x * L[r, i]
        pivot = math.sqrt(L[j, j])  # NaN where it is negative: all that follows is NaN
        for r in range(j, g):
            L[r, j] /= pivot
    for j in range(g):
        for i in range(j):
            x = L[j, i]
            for c in range(k + 1):
                T[c, j] -= x * T[c, i]
        x = L[j, j]
        for c in range(k + 1):
            T[c, j] /= x
        for b in range(k + 1):
            x = T[b, j]
            for a in range(b, k + 1):
                kept[a, b] -= x * T[a, j]
    return kept


@compiled(nogil=True, error_model="numpy")
def _log_ratio(S, shape, rate):
    """Log evidence ratio of proposed to current from the last 5 x 5 Schur complement.

    With S_o the 2 x 2 block of one of them and v_o its row of the targets, the evidence is, up to
    a constant, -a_n log(b_0 + (S_yy - v_o' S_o^-1 v_o) / 2) - log|S_o| / 2.
    """
    det_old = S[0, 0] * S[1, 1] - S[1, 0] * S[1, 0]
    det_new = S[2, 2] * S[3, 3] - S[3, 2] * S[3, 2]
    v, w = S[4, 0], S[4, 1]
    old = (v * v * S[1, 1] - 2.0 * v * w * S[1, 0] + w * w * S[0, 0]) / det_old
    v, w = S[4, 2], S[4, 3]
    new = (v * v * S[3, 3] - 2.0 * v * w * S[3, 2] + w * w * S[2, 2]) / det_new
    b_old = rate + 0.5 * (S[4, 4] - old)
    b_new = rate + 0.5 * (S[4, 4] - new)
    is_sound = det_old > 0.0 and b_old > 0.0
    if not is_sound:
        return math.nan
    if not (det_new > 0.0 and b_new > 0.0):
        return -math.inf  # numerically singular: never accepted
    return -shape * math.log(b_new / b_old) - 0.5 * math.log(det_new / det_old)


@compiled(nogil=True, error_model="numpy")
def decide_few(joint, log_uniform, shape, rate, is_accepted, log_ratio):
    """Decide a few frequencies one after the other: halves, as `mercer.spectral.halving`.

    Parameters
    ----------
    joint : ndarray of shape (4 m + 1, 4 m + 1)
        With all other frequencies eliminated.
    log_uniform : ndarray of shape (m,)
    shape, rate : float
        a_n and b_0 of the noise variance.
    is_accepted, log_ratio : ndarray of shape (m,)
        Written; a ratio is NaN where the current matrix is not positive definite.
    """
    m = is_accepted.shape[0]
    if m == 1:
        log_ratio[0] = _log_ratio(joint, shape, rate)
        is_accepted[0] = log_uniform[0] < log_ratio[0]
        return
    h = m // 2
    gone = np.empty(2 * (m - h), np.int64)
    for j in range(h, m):
        gone[2 * (j - h)] = 4 * j
        gone[2 * (j - h) + 1] = 4 * j + 1
    first = _eliminate(joint, gone, 0, 4 * h)
    decide_few(first, log_uniform[:h], shape, rate, is_accepted[:h], log_ratio[:h])
    gone = np.empty(2 * h, np.int64)
    for j in range(h):
        column = 4 * j + 2 if is_accepted[j] else 4 * j
        gone[2 * j] = column
        gone[2 * j + 1] = column + 1
    second = _eliminate(joint, gone, 4 * h, 4 * (m - h))
    decide_few(second, log_uniform[h:], shape, rate, is_accepted[h:], log_ratio[h:])


@compiled(nogil=True, error_model="numpy")
def _log_ratio_of_known_noise(S):
    """As `_log_ratio`, for noise of variance 1: v_o' S_o^-1 v_o / 2 - log|S_o| / 2."""
    det_old = S[0, 0] * S[1, 1] - S[1, 0] * S[1, 0]
    det_new = S[2, 2] * S[3, 3] - S[3, 2] * S[3, 2]
    v, w = S[4, 0], S[4, 1]
    old = (v * v * S[1, 1] - 2.0 * v * w * S[1, 0] + w * w * S[0, 0]) / det_old
    v, w = S[4, 2], S[4, 3]
    new = (v * v * S[3, 3] - 2.0 * v * w * S[3, 2] + w * w * S[2, 2]) / det_new
    if not det_old > 0.0:
        return math.nan
    if not det_new > 0.0:
        return -math.inf
    return 0.5 * (new - old) - 0.5 * math.log(det_new / det_old)


@compiled(nogil=True, error_model="numpy")
def decide_few_together(joints, log_uniform, is_accepted, log_ratio):
    """As `decide_few`, for several regressions with noise of variance 1: their log ratios add.

    Parameters
    ----------
    joints : ndarray of shape (K, 4 m + 1, 4 m + 1)
    log_uniform : ndarray of shape (m,)
    is_accepted, log_ratio : ndarray of shape (m,)
        Written.
    """
    m, K = is_accepted.shape[0], joints.shape[0]
    if m == 1:
        total = 0.0
        for k in range(K):
            total += _log_ratio_of_known_noise(joints[k])
        log_ratio[0] = total
        is_accepted[0] = log_uniform[0] < total
        return
    h = m // 2
    gone = np.empty(2 * (m - h), np.int64)
    for j in range(h, m):
        gone[2 * (j - h)] = 4 * j
        gone[2 * (j - h) + 1] = 4 * j + 1
    first = np.empty((K, 4 * h + 1, 4 * h + 1))
    for k in range(K):
        first[k] = _eliminate(joints[k], gone, 0, 4 * h)
    decide_few_together(first, log_uniform[:h], is_accepted[:h], log_ratio[:h])
    gone = np.empty(2 * h, np.int64)
    for j in range(h):
        column = 4 * j + 2 if is_accepted[j] else 4 * j
        gone[2 * j] = column
        gone[2 * j + 1] = column + 1
    second = np.empty((K, 4 * (m - h) + 1, 4 * (m - h) + 1))
    for k in range(K):
        second[k] = _eliminate(joints[k], gone, 4 * h, 4 * (m - h))
    decide_few_together(second, log_uniform[h:], is_accepted[h:], log_ratio[h:])


@compiled(nogil=True, error_model="numpy")
def tridiagonal_evidence(diagonal, off, b, ridge):
    """Return log|T + ridge I| and b' (T + ridge I)^-1 b of a tridiagonal T by one recursion.

    p_i = d_i + ridge - l_i e_{i-1}, l_i = e_{i-1} / p_{i-1}, z_i = b_i - l_i z_{i-1}.
    """
    p = diagonal[0] + ridge
    z = b[0]
    log_det = math.log(p)
    quadratic = z * z / p
    for i in range(1, diagonal.shape[0]):
        ratio = off[i - 1] / p
        p = diagonal[i] + ridge - ratio * off[i - 1]
        z = b[i] - ratio * z
        log_det += math.log(p)
        quadratic += z * z / p
    return log_det, quadratic
