# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops of BaNK: assignments, the accept loop, joint moves of classes (twins: tests)."""

from __future__ import annotations

import math

import numpy as np

from mercer.numerics.compilation import compiled


@compiled(nogil=True, error_model="numpy")
def seat(first, uniforms, log_densities, log_new, assignment, signs, counts):
    """Draw the component, and the sign, of one frequency after the other, from ``first`` on.

    Component k and sign s have probability proportional to m_k N(s W_j; mu_k, Sigma_k), where
    m_k does not count j; a new component exp(log_new_j) with each sign. ``log_densities`` (S,
    M, C) are those of W, and for S = 2 of -W, under the component in each of C slots; an empty
    slot, with a count of 0, is not looked at, and at least one must be empty. ``log_new`` (M,)
    is the log of concentration times density in a new component. Changed in place: slots
    ``assignment`` (M,), ``signs`` (M,), 1 or -1, and ``counts`` (C,).

    Returns the frequency that opened a new component, in the first empty slot: its densities
    are to be filled in before the loop goes on with the next. M at the end.
    """
    n_signs, n_frequencies, n_slots = log_densities.shape
    for j in range(first, n_frequencies):
        counts[assignment[j]] -= 1
        top = log_new[j]
        for s in range(n_signs):
            for k in range(n_slots):
                if counts[k] > 0 and log_densities[s, j, k] > top:
                    top = log_densities[s, j, k]
        new = math.exp(log_new[j] - top)
        total = n_signs * new
        for s in range(n_signs):
            for k in range(n_slots):
                if counts[k] > 0:
                    total += counts[k] * math.exp(log_densities[s, j, k] - top)
        left = uniforms[j] * total - n_signs * new
        if left < 0.0:
            signs[j] = 1.0 if left < -new or n_signs == 1 else -1.0
            k = 0
            while counts[k] > 0:
                k += 1
            assignment[j], counts[k] = k, 1
            return j
        chosen, sign = -1, 1.0
        for s in range(n_signs):
            for k in range(n_slots):
                if counts[k] > 0 and left >= 0.0:
                    weight = counts[k] * math.exp(log_densities[s, j, k] - top)
                    left -= weight
                    if weight > 0.0:  # the last of these, should rounding leave something over
                        chosen, sign = k, 1.0 - 2.0 * s
        assignment[j], signs[j] = chosen, sign
        counts[chosen] += 1
    return n_frequencies


@compiled(allocates=True, nogil=True, error_model="numpy")
def normal_log_densities(W, means, variances, out):
    """Log densities of frequencies W (n, d) under K diagonal normal laws (K, d), into out (n, K).

    Differences are squared, not expanded: a component may be far narrower than its mean.
    """
    (n, d), K = W.shape, len(means)
    per_std = np.sqrt(variances)
    for k in range(K):
        log_det = 0.0
        for i in range(d):
            log_det += math.log(variances[k, i])
            per_std[k, i] = 1.0 / per_std[k, i]
        constant = -0.5 * (log_det + d * math.log(2.0 * math.pi))
        for j in range(n):
            square = 0.0
            for i in range(d):
                z = (W[j, i] - means[k, i]) * per_std[k, i]
                square += z * z
            out[j, k] = constant - 0.5 * square


@compiled(allocates=True, nogil=True, error_model="numpy")
def log_densities_around(chi_squares, normals, w, W, scale, kappa0, out):
    """Draw a diagonal component whose one member is w (d,): log densities of W (n, d), (n, 1).

    By variables (d,); the base measure is `mercer.spectral.base_measure.DiagonalBase`.
    """
    d = len(w)
    kappa = kappa0 + 1.0
    means, variances = np.empty((1, d)), np.empty((1, d))
    for i in range(d):
        variances[0, i] = (scale[i] + kappa0 / kappa * w[i] ** 2) / chi_squares[i]
        means[0, i] = w[i] / kappa + math.sqrt(variances[0, i] / kappa) * normals[i]
    normal_log_densities(W, means, variances, out)


@compiled(allocates=True, error_model="numpy")
def fill_gaps(X, is_missing, mean, precision, normals):
    """Draw the missing cells of rows X (n, d) given the others, in place, from normals (n, d).

    Those of a row are normal with precision P_gg, around m_g - P_gg^-1 P_gk (x_k - m_k).
    """
    n, d = X.shape
    gaps, L, b = np.empty(d, np.int64), np.empty((d, d)), np.empty(d)
    for i in range(n):
        g = 0
        for j in range(d):
            if is_missing[i, j]:
                gaps[g] = j
                g += 1
        for r in range(g):
            pull = 0.0
            for k in range(d):
                if not is_missing[i, k]:
                    pull -= precision[gaps[r], k] * (X[i, k] - mean[k])
            for c in range(r + 1):
                total = precision[gaps[r], gaps[c]]
                for k in range(c):
                    total -= L[r, k] * L[c, k]
                L[r, c] = total / L[c, c] if c < r else math.sqrt(total)
            for c in range(r):
                pull -= L[r, c] * b[c]
            b[r] = pull / L[r, r]
        for r in range(g - 1, -1, -1):
            total = b[r] + normals[i, gaps[r]]
            for k in range(r + 1, g):
                total -= L[k, r] * b[k]
            b[r] = total / L[r, r]
            X[i, gaps[r]] = mean[gaps[r]] + b[r]


# Compiled loops of BaNK: arrays and scalars in and out. Twins in NumPy: ``tests/twins``.
#
# Matrices of the accept loop are Fortran-ordered and only their lower triangle is read. The
# columns of frequency j are 4 j .. 4 j + 3: cosine and sine of the current one, then of the
# proposed one; the last rows belong to the q outputs.


@compiled(nogil=True)
def assemble(gram, among, across, ridge, n_linear, joint, linear):
    """Lay out all products for the accept loop.

    ``gram`` is that of [current features, linear columns, targets], ``among`` (2 M, 2 M) and
    ``across`` (2 M, 2 M + p + 1) are products of the proposed features, with each other and
    with those columns; the ridge is added to the diagonal of current and proposed ones.
    Written: the lower triangle of ``joint`` (4 M + q, 4 M + q), and ``linear`` (p, 4 M + q),
    products of the linear columns with all others.
    """
    m2, end = among.shape[0], 2 * among.shape[0]
    first = m2 + n_linear
    n_outputs = gram.shape[0] - first
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
        for c in range(n_outputs):
            joint[end + c, ja] = gram[first + c, a]
            joint[end + c, ja + 2] = across[a, first + c]
        for k in range(n_linear):
            linear[k, ja] = gram[m2 + k, a]
            linear[k, ja + 2] = across[a, m2 + k]
    for c in range(n_outputs):
        for b in range(c + 1):
            joint[end + c, end + b] = gram[first + c, first + b]
        for k in range(n_linear):
            linear[k, end + c] = gram[first + c, m2 + k]


@compiled(nogil=True)
def select_lower(gram, among, across, is_accepted, diagonal, out):
    """Write the lower triangle of `select`, a diagonal added, to a Fortran-ordered ``out``."""
    m2, n = among.shape[0], gram.shape[0]
    for b in range(n):
        took_b = b < m2 and is_accepted[b // 2]
        for a in range(b, n):
            took_a = a < m2 and is_accepted[a // 2]
            if took_b:
                out[a, b] = among[b, a] if took_a else across[b, a]
            else:
                out[a, b] = across[a, b] if took_a else gram[b, a]
        out[b, b] += diagonal[b]


@compiled(allocates=True, nogil=True)
def select(gram, among, across, is_accepted):
    """Products of the chosen features with each other and with the columns: the new ``gram``."""
    new = np.empty(gram.shape)
    select_lower(gram, among, across, is_accepted, np.zeros(len(gram)), new.T)
    for b in range(len(new)):
        for a in range(b + 1, len(new)):
            new[a, b] = new[b, a]
    return new


@compiled(nogil=True, error_model="numpy")
def read_factor(factor, prior_precisions, rates):
    """Return log|Lambda_n| - log|Lambda_0| of the factor of `coefficients`; write b_n of outputs.

    The factor (m + q, m + q) is lower and Fortran-ordered, of m coefficients and q outputs.
    """
    m = prior_precisions.shape[0]
    log_det_ratio = 0.0
    for j in range(m):
        log_det_ratio += 2.0 * math.log(factor[j, j]) - math.log(prior_precisions[j])
    for k in range(rates.shape[0]):
        square = 0.0
        for j in range(m, m + k + 1):
            square += factor[m + k, j] ** 2
        rates[k] = 0.5 * square
    return log_det_ratio


@compiled(nogil=True)
def gather(joint, gone, begin, kept, among_gone, across):
    """Take apart what is eliminated and what is kept.

    Columns ``gone`` (g,), ascending, of ``joint`` (4 m + q, 4 m + q) are eliminated, those of one
    half; ``begin`` is the first of the k columns that are kept, those of the other half. The rows
    of the outputs are kept. Written: ``kept`` (k + q, k + q) and ``among_gone`` (g, g), both lower
    triangles, and ``across`` (k + q, g).
    """
    n, g = kept.shape[0], gone.shape[0]
    is_before = gone[0] < begin
    k = n if is_before else 4 * (gone[0] // 4)  # of a first half; the second ends with the outputs
    shift = joint.shape[0] - n
    for b in range(n):
        at = begin + b if b < k else shift + b
        for a in range(b, n):
            kept[a, b] = joint[begin + a if a < k else shift + a, at]
    for b in range(g):
        for a in range(b, g):
            among_gone[a, b] = joint[gone[a], gone[b]]
        for a in range(k, n):
            across[a, b] = joint[shift + a, gone[b]]
    if is_before:
        for e in range(g):
            for a in range(k):
                across[a, e] = joint[begin + a, gone[e]]
    else:
        for a in range(k):
            for e in range(g):
                across[a, e] = joint[gone[e], begin + a]


@compiled(allocates=True, nogil=True, error_model="numpy")
def _eliminate(joint, gone, begin):
    """Schur complement of a few kept columns, or a matrix of NaN where that fails."""
    g = gone.shape[0]
    n = joint.shape[0] - 2 * g
    kept = np.empty((n, n)).T
    L = np.empty((g, g)).T
    T = np.empty((g, n)).T
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
        for i in range(0, j - 3, 4):
            x0, x1, x2, x3 = L[j, i], L[j, i + 1], L[j, i + 2], L[j, i + 3]
            for c in range(n):
                T[c, j] -= x0 * T[c, i] + x1 * T[c, i + 1] + x2 * T[c, i + 2] + x3 * T[c, i + 3]
        for i in range(4 * (j // 4), j):
            x = L[j, i]
            for c in range(n):
                T[c, j] -= x * T[c, i]
        x = 1.0 / L[j, j]
        for c in range(n):
            T[c, j] *= x
    for b in range(n):
        for j in range(0, g - 3, 4):
            x0, x1, x2, x3 = T[b, j], T[b, j + 1], T[b, j + 2], T[b, j + 3]
            for a in range(b, n):
                kept[a, b] -= x0 * T[a, j] + x1 * T[a, j + 1] + x2 * T[a, j + 2] + x3 * T[a, j + 3]
        for j in range(4 * (g // 4), g):
            x = T[b, j]
            for a in range(b, n):
                kept[a, b] -= x * T[a, j]
    return kept


@compiled(nogil=True, error_model="numpy")
def _log_ratio(S, shape, rate):
    """Log evidence ratio of proposed to current from the last Schur complement, 4 + q rows.

    With S_o the 2 x 2 block of one of them and v_o its row of an output, the evidence of that is,
    up to a constant, -a_n log(b_0 + (S_yy - v_o' S_o^-1 v_o) / 2) - log|S_o| / 2.
    """
    det_old = S[0, 0] * S[1, 1] - S[1, 0] * S[1, 0]
    det_new = S[2, 2] * S[3, 3] - S[3, 2] * S[3, 2]
    total, is_singular = 0.0, False
    for y in range(4, S.shape[0]):
        v, w = S[y, 0], S[y, 1]
        old = (v * v * S[1, 1] - 2.0 * v * w * S[1, 0] + w * w * S[0, 0]) / det_old
        v, w = S[y, 2], S[y, 3]
        new = (v * v * S[3, 3] - 2.0 * v * w * S[3, 2] + w * w * S[2, 2]) / det_new
        b_old = rate + 0.5 * (S[y, y] - old)
        b_new = rate + 0.5 * (S[y, y] - new)
        is_sound = det_old > 0.0 and b_old > 0.0
        if not is_sound:
            return math.nan
        if det_new > 0.0 and b_new > 0.0:
            total += -shape * math.log(b_new / b_old) - 0.5 * math.log(det_new / det_old)
        else:
            is_singular = True  # numerically: never accepted
    return -math.inf if is_singular else total


@compiled(allocates=True, nogil=True, error_model="numpy")
def decide_few(joint, log_uniform, shape, rate, is_accepted, log_ratio):
    """Decide m frequencies one after the other: halves, as `mercer.spectral.sampler`.

    All others are eliminated from ``joint`` (4 m + q, 4 m + q); ``shape`` and ``rate`` are a_n
    and b_0 of the noise variance. Written: what is accepted, and the log ratios, NaN where the
    current matrix is not positive definite.
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
    first = _eliminate(joint, gone, 0)
    decide_few(first, log_uniform[:h], shape, rate, is_accepted[:h], log_ratio[:h])
    gone = np.empty(2 * h, np.int64)
    for j in range(h):
        column = 4 * j + 2 if is_accepted[j] else 4 * j
        gone[2 * j] = column
        gone[2 * j + 1] = column + 1
    second = _eliminate(joint, gone, 4 * h)
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
def _copy(source, out):
    for b in range(len(out)):
        for a in range(len(out)):
            out[a, b] = source[a, b]


@compiled(allocates=True, nogil=True, error_model="numpy")
def decide_few_together(joints, log_uniform, is_accepted, log_ratio):
    """As `decide_few`, for K regressions with noise of variance 1: their log ratios add."""
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
        _copy(_eliminate(joints[k], gone, 0), first[k])
    decide_few_together(first, log_uniform[:h], is_accepted[:h], log_ratio[:h])
    gone = np.empty(2 * h, np.int64)
    for j in range(h):
        column = 4 * j + 2 if is_accepted[j] else 4 * j
        gone[2 * j] = column
        gone[2 * j + 1] = column + 1
    second = np.empty((K, 4 * (m - h) + 1, 4 * (m - h) + 1))
    for k in range(K):
        _copy(_eliminate(joints[k], gone, 4 * h), second[k])
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


# Compiled loops: joint moves, one frequency with its coefficients after the other, and a gradient.
#
# Rows stand in the inner loops; a move changes the functions f in place, so that the next
# frequency meets them as they are. NumPy twins: `tests/twins/test_spectral_classes_compiled.py`.

# Newton's method stops once twice the gain that it expects is this small, in nats: the law is a
# proposal, which the ratio corrects.
_SHORT = 1e-3
_MOST_STEPS = 10


@compiled(nogil=True, error_model="numpy")
def _gap(f, sign, cosine, sine, at_cosine, at_sine):
    """Log likelihood of f + at_cosine * cosine + at_sine * sine."""
    total = 0.0
    for i in range(len(f)):
        if sign[i] != 0.0:
            x = sign[i] * (f[i] + at_cosine * cosine[i] + at_sine * sine[i])
            total += min(x, 0.0) - math.log1p(math.exp(-abs(x)))
    return total


@compiled(nogil=True, error_model="numpy")
def _laplace(f, sign, cosine, sine, ridge):
    """Normal law around the mode of two coefficients, by Newton's method from 0.

    A function of what the other coefficients make of f and of one frequency alone. Returns the
    mode, and the factor L of the negative Hessian: L00, L10, L11.
    """
    a, b = 0.0, 0.0
    l00, l10, l11 = 1.0, 0.0, 1.0
    for _ in range(_MOST_STEPS):
        g0, g1 = -ridge * a, -ridge * b
        h00, h01, h11 = ridge, 0.0, ridge
        for i in range(len(f)):
            if sign[i] != 0.0:
                c, s = cosine[i], sine[i]
                p = 1.0 / (1.0 + math.exp(sign[i] * (f[i] + a * c + b * s)))
                weight = p * (1.0 - p)
                pull = sign[i] * p
                g0 += pull * c
                g1 += pull * s
                h00 += weight * c * c
                h01 += weight * c * s
                h11 += weight * s * s
        l00 = math.sqrt(h00)
        l10 = h01 / l00
        l11 = math.sqrt(h11 - l10 * l10)
        u0 = g0 / l00
        u1 = (g1 - l10 * u0) / l11
        step1 = u1 / l11
        a += (u0 - l10 * step1) / l00
        b += step1
        if u0 * u0 + u1 * u1 < _SHORT:
            break
    return a, b, l00, l10, l11


@compiled(nogil=True, error_model="numpy")
def _log_law(a, b, law):
    """Logarithm of the density of that law at two coefficients, up to log 2 pi."""
    mode_a, mode_b, l00, l10, l11 = law
    u0 = l00 * (a - mode_a) + l10 * (b - mode_b)
    u1 = l11 * (b - mode_b)
    return math.log(l00) + math.log(l11) - 0.5 * (u0 * u0 + u1 * u1)


@compiled(nogil=True, error_model="numpy")
def _log_target(f, sign, cosine, sine, a, b, ridge):
    """Log likelihood of two coefficients and their prior, up to a constant."""
    return _gap(f, sign, cosine, sine, a, b) - 0.5 * ridge * (a * a + b * b)


@compiled(allocates=True, nogil=True, error_model="numpy")
def move_jointly(now, proposed, sign, coef, ridge, normals, log_uniform, f, is_accepted, log_ratio):
    """Propose and decide m frequencies, each with two coefficients of each of K functions.

    Features ``now`` and ``proposed`` (2 m, n) have in rows 2 j and 2 j + 1 the cosine and the
    sine of frequency j. ``sign`` (K, n) is 1 or -1, whether a row belongs to the class that the
    function tells, or 0 if it says nothing; ``normals`` (m, K, 2) are standard normal. Changed
    in place: ``coef`` (K, 2 m) and ``f`` (K, n), the functions at the rows. Written: what is
    accepted, and log ratios.
    """
    K, n = f.shape
    new = np.empty((K, 2))
    for j in range(len(log_uniform)):
        c0, s0, c1, s1 = now[2 * j], now[2 * j + 1], proposed[2 * j], proposed[2 * j + 1]
        total = 0.0
        for k in range(K):
            a, b = coef[k, 2 * j], coef[k, 2 * j + 1]
            for i in range(n):
                f[k, i] -= a * c0[i] + b * s0[i]
            law0 = _laplace(f[k], sign[k], c0, s0, ridge[k])
            law1 = _laplace(f[k], sign[k], c1, s1, ridge[k])
            new[k, 1] = law1[1] + normals[j, k, 1] / law1[4]
            new[k, 0] = (
                law1[0] + (normals[j, k, 0] - law1[3] * normals[j, k, 1] / law1[4]) / law1[2]
            )
            total += _log_target(f[k], sign[k], c1, s1, new[k, 0], new[k, 1], ridge[k])
            total -= _log_target(f[k], sign[k], c0, s0, a, b, ridge[k])
            total += _log_law(a, b, law0) - _log_law(new[k, 0], new[k, 1], law1)
        log_ratio[j] = total
        is_accepted[j] = log_uniform[j] < total
        for k in range(K):
            if is_accepted[j]:
                coef[k, 2 * j], coef[k, 2 * j + 1] = new[k, 0], new[k, 1]
                c, s = c1, s1
            else:
                c, s = c0, s0
            for i in range(n):
                f[k, i] += coef[k, 2 * j] * c[i] + coef[k, 2 * j + 1] * s[i]


@compiled(nogil=True, error_model="numpy")
def slope_of_sticks(f, codes, losses, slope):
    """Derivative of the log probability of classes in functions f (K, n), into slope (K, n).

    ``codes`` (n,) are places of classes. Into the first of ``losses`` (K n,) go minus the log
    probabilities of what functions tell, of rows that they say something of: returns how many.
    """
    n_told = 0
    for k in range(f.shape[0]):
        for i in range(f.shape[1]):
            slope[k, i] = 0.0
            if codes[i] >= k:
                sign = 1.0 if codes[i] == k else -1.0
                margin = sign * f[k, i]
                losses[n_told] = max(-margin, 0.0) + math.log1p(math.exp(-abs(margin)))
                slope[k, i] = sign / (1.0 + math.exp(margin))
                n_told += 1
    return n_told


@compiled(nogil=True, error_model="numpy", fastmath={"contract"})
def pull_of_phases(features, residual, coef, out):
    """Gradient of the log likelihood in the phase of each frequency at each row, into out (M, n).

    ``features`` (2 M, n) are as in `move_jointly`, ``residual`` (K, n) is the gradient in the
    functions, and the first 2 M columns of ``coef`` (K, q) are those of the features.
    """
    n_frequencies, n_rows = out.shape
    for j in range(n_frequencies):
        cosine, sine, row = features[2 * j], features[2 * j + 1], out[j]
        row[:] = 0.0
        for k in range(len(coef)):
            a, b, r = coef[k, 2 * j], coef[k, 2 * j + 1], residual[k]
            for i in range(n_rows):
                row[i] += r[i] * (b * cosine[i] - a * sine[i])
