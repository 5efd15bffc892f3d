# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops of Laplace's approximation, two classes and several: arrays in and out.

``U`` is the transpose of LAPACK's Fortran-ordered lower factor: the same memory, read row by row.
Twins in NumPy: ``tests/twins``.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.numerics.compilation import compiled


@compiled(nogil=True)
def _scale_row(row, weights, scale, out):
    for i in range(row.shape[0]):
        out[i] = row[i] * weights[i] * scale


@compiled(nogil=True)
def weighted_identity_plus(K, root_weights, out):
    """Write the upper triangle of B = I + W^.5 K W^.5 into the C-ordered ``out``.

    Row by row through a function of vectors, here and below: so the loop is vectorised.
    """
    for j in range(K.shape[0]):
        _scale_row(K[j, j:], root_weights[j:], root_weights[j], out[j, j:])
        out[j, j] += 1.0


# Below this, dividing by the root of a weight would lose too many digits.
_SMALL_ROOT_WEIGHT = 1e-3
# Steps that change no latent value by more than this are taken unseen: Newton converges here.
_LOCAL = 0.1
# A step of Newton's by conjugate gradients: what is left of the residual, and the most products.
_SHARE, _MOST_OF_ONE = np.float32(0.1), 100
_FAST = {"reassoc", "contract", "nsz"}


@compiled(nogil=True, fastmath=_FAST)
def _subtract_four(x, r0, r1, r2, r3, x0, x1, x2, x3):
    for i in range(x.shape[0]):
        x[i] -= r0[i] * x0 + r1[i] * x1 + r2[i] * x2 + r3[i] * x3


@compiled(nogil=True, fastmath=_FAST)
def _dot_four(x, r0, r1, r2, r3):
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for i in range(x.shape[0]):
        s0 += r0[i] * x[i]
        s1 += r1[i] * x[i]
        s2 += r2[i] * x[i]
        s3 += r3[i] * x[i]
    return s0, s1, s2, s3


@compiled(nogil=True)
def solve_factored(U, x):
    """Overwrite x with B^-1 x, where B = U'U and U is upper triangular with contiguous rows.

    Four rows at a time, so that the inner loops run at the speed of the memory.
    """
    n = x.shape[0]
    n4 = n - n % 4
    for j in range(0, n4, 4):  # U'z = x
        r0, r1, r2, r3 = U[j], U[j + 1], U[j + 2], U[j + 3]
        x0 = x[j] / r0[j]
        x1 = (x[j + 1] - r0[j + 1] * x0) / r1[j + 1]
        x2 = (x[j + 2] - r0[j + 2] * x0 - r1[j + 2] * x1) / r2[j + 2]
        x3 = (x[j + 3] - r0[j + 3] * x0 - r1[j + 3] * x1 - r2[j + 3] * x2) / r3[j + 3]
        x[j], x[j + 1], x[j + 2], x[j + 3] = x0, x1, x2, x3
        _subtract_four(
            x[j + 4 :], r0[j + 4 :], r1[j + 4 :], r2[j + 4 :], r3[j + 4 :], x0, x1, x2, x3
        )
    for j in range(n4, n):
        x[j] /= U[j, j]
        for i in range(j + 1, n):
            x[i] -= U[j, i] * x[j]
    for j in range(n - 1, n4 - 1, -1):  # U x = z
        s = x[j]
        for i in range(j + 1, n):
            s -= U[j, i] * x[i]
        x[j] = s / U[j, j]
    for j in range(n4 - 4, -1, -4):
        r0, r1, r2, r3 = U[j], U[j + 1], U[j + 2], U[j + 3]
        s0, s1, s2, s3 = _dot_four(x[j + 4 :], r0[j + 4 :], r1[j + 4 :], r2[j + 4 :], r3[j + 4 :])
        x3 = (x[j + 3] - s3) / r3[j + 3]
        x2 = (x[j + 2] - s2 - r2[j + 3] * x3) / r2[j + 2]
        x1 = (x[j + 1] - s1 - r1[j + 3] * x3 - r1[j + 2] * x2) / r1[j + 1]
        x0 = (x[j] - s0 - r0[j + 3] * x3 - r0[j + 2] * x2 - r0[j + 1] * x1) / r0[j]
        x[j], x[j + 1], x[j + 2], x[j + 3] = x0, x1, x2, x3


# The climb to the mode: latent values (n,) of two classes or (C, n) of several, C-ordered. Gram
# matrices and factors are then (n, n) and (U, root_weights), or stacks and (inverses, roots, U).
# ``totals`` (n,) are how often rows count, ``y``, shaped as latent values, how often as a class.


@compiled(nogil=True)
def _softmax(f, totals, proba):
    """Write t pi, t the ``totals``, into ``proba``; return the sum of t log sum exp f."""
    n_classes, n = f.shape
    value = 0.0
    for i in range(n):
        largest = f[0, i]
        for c in range(1, n_classes):
            largest = max(largest, f[c, i])
        total = 0.0
        for c in range(n_classes):
            proba[c, i] = math.exp(f[c, i] - largest)
            total += proba[c, i]
        for c in range(n_classes):
            proba[c, i] = totals[i] * proba[c, i] / total
        value += totals[i] * (largest + math.log(total))
    return value


# Several classes: the exponential of a vector, several numbers at a time, and averages by it.

_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_SHIFT = 6755399441055744.0  # 1.5 2^52: what is added to it is rounded, into its lowest bits
_LOWEST = -708.0  # e^-708 is 3e-308, still a normal number
_OF_EXP = tuple(1.0 / math.factorial(k) for k in range(14))


@compiled(nogil=True)
def exponentials(x, work, out):
    """Write e^x to a unit in the last place, for x at most 700; 0 where x is below -708.

    Three vectors that do not overlap. The same bits on every machine.
    """
    _split_exponent(x, work, out)
    _scale(work.view(np.int64), out.view(np.int64))


@compiled(nogil=True)
def _split_exponent(x, shifted, out):
    """Write e^r, and k added to _SHIFT, where x = k ln 2 + r, |r| <= ln(2) / 2."""
    a = _OF_EXP
    for i in range(len(x)):
        value = 0.0 if x[i] < _LOWEST else x[i]
        shifted[i] = value * _LOG2_E + _SHIFT
        k = shifted[i] - _SHIFT
        r = (value - k * _LN2_HIGH) - k * _LN2_LOW
        s = a[10] + r * (a[11] + r * (a[12] + r * a[13]))
        s = a[6] + r * (a[7] + r * (a[8] + r * (a[9] + r * s)))
        s = a[2] + r * (a[3] + r * (a[4] + r * (a[5] + r * s)))
        out[i] = 0.0 if x[i] < _LOWEST else 1.0 + (r + r * r * s)


@compiled(nogil=True)
def _scale(shifted, out):
    """Multiply by 2^k, in bits."""
    for i in range(len(out)):
        out[i] += shifted[i] << 52


@compiled(nogil=True)
def _shift(x, shift, largest):
    for p in range(len(x)):
        x[p] += shift
        largest[p] = x[p] if x[p] > largest[p] else largest[p]


@compiled(nogil=True)
def _add_multiple(a, x, out):
    for p in range(len(x)):
        out[p] += a * x[p]


@compiled(nogil=True, error_model="numpy")
def _invert(x):
    for p in range(len(x)):
        x[p] = 1.0 / (x[p] * len(x))


@compiled(nogil=True, fastmath=_FAST)
def _dot(x, y):
    total = 0.0
    for p in range(len(x)):
        total += x[p] * y[p]
    return total


@compiled(allocates=True, nogil=True)
def average_softmax(mean, roots, normals, out):
    """Write the softmax of mean (m, C) + normals (P, C - 1) @ roots (m, C - 1, C), averaged."""
    n_classes, n_normals = mean.shape[1], len(normals)
    normals = np.ascontiguousarray(normals.T)
    f, e = np.empty((n_classes, n_normals)), np.empty((n_classes, n_normals))
    largest, total, work = np.empty(n_normals), np.empty(n_normals), np.empty(n_normals)
    for i in range(len(mean)):
        np.dot(roots[i].T, normals, f)
        largest[:], total[:] = -np.inf, 0.0
        for c in range(n_classes):
            _shift(f[c], mean[i, c], largest)
        for c in range(n_classes):
            _add_multiple(-1.0, largest, f[c])
            exponentials(f[c], work, e[c])
            _add_multiple(1.0, e[c], total)
        _invert(total)
        for c in range(n_classes):
            out[i, c] = _dot(e[c], total)


@compiled(nogil=True)
def _log_joint(a, f, y, totals, proba):
    """Psi = -a'f/2 + log p(y | f): log p(y | f) + log p(f) up to a constant.

    Of several classes ``proba`` becomes t times the softmax of f.
    """
    if f.ndim == 1:
        value = 0.0
        for i in range(f.shape[0]):
            value += f[i] * (y[i] - 0.5 * a[i])
            value -= totals[i] * (max(f[i], 0.0) + math.log1p(math.exp(-abs(f[i]))))
    else:
        value = -_softmax(f, totals, proba)
        for c in range(f.shape[0]):
            for i in range(f.shape[1]):
                value += f[c, i] * (y[c, i] - 0.5 * a[c, i])
    return value


@compiled(allocates=True, nogil=True)
def _multiply(K, b, out):
    """Write K b into ``out``, or each K_c b_c, K of shape (C, n, n) or (1, n, n)."""
    if b.ndim == 1:
        np.dot(K, b, out)
    elif K.shape[0] == 1:
        np.dot(b, K[0], out)
    else:
        for c in range(b.shape[0]):
            np.dot(K[c], b[c], out[c])


@compiled(allocates=True, nogil=True)
def _logistic_step(K, U, root_weights, y, totals, a, f, step, step_f):
    """Write g - W^.5 B^-1 W^.5 K g into ``step``, g = y - t pi - a, and K times it into ``step_f``.

    With w = B^-1 W^.5 K g the latter is w / W^.5, at no cost; where a weight is so small that
    rounding would show, it is a product.
    """
    n = f.shape[0]
    smallest = 1.0
    for i in range(n):
        step[i] = y[i] - totals[i] / (1.0 + math.exp(-f[i])) - a[i]
        smallest = min(smallest, root_weights[i])
    w = np.dot(K, step)
    for i in range(n):
        w[i] *= root_weights[i]
    solve_factored(U, w)
    for i in range(n):
        step[i] -= root_weights[i] * w[i]
    if smallest > _SMALL_ROOT_WEIGHT:
        for i in range(n):
            step_f[i] = w[i] / root_weights[i]
    else:
        np.dot(K, step, step_f)


@compiled(allocates=True, nogil=True)
def _softmax_step(K, inverses, roots, U, Y, totals, a, f, step, step_f):
    """Write g - R K g into ``step``, g = Y - t pi - a, and K times it into ``step_f``.

    With b = K g, x = (M M')^-1 sum E b and w_c = B_c^-1 D_c^.5 (b_c - x) they are g - D^.5 w and
    x + w / D^.5: the second costs nothing but where a weight is so small that rounding shows.
    """
    n_classes, n = f.shape
    b, w, x = np.empty((n_classes, n)), np.empty((n_classes, n)), np.zeros(n)
    _softmax(f, totals, step)
    for c in range(n_classes):
        for i in range(n):
            step[c, i] = Y[c, i] - step[c, i] - a[c, i]
    _multiply(K, step, b)
    for c in range(n_classes):
        np.dot(inverses[c], roots[c] * b[c], w[c])
        for i in range(n):
            x[i] += roots[c, i] * w[c, i]
    solve_factored(U, x)
    for c in range(n_classes):
        common = np.dot(inverses[c], roots[c] * x)
        for i in range(n):
            w[c, i] -= common[i]
            step[c, i] -= roots[c, i] * w[c, i]
        own = K[c if K.shape[0] > 1 else 0]
        for i in range(n):
            if roots[c, i] > _SMALL_ROOT_WEIGHT:
                step_f[c, i] = x[i] + w[c, i] / roots[c, i]
            else:
                step_f[c, i] = np.dot(own[i], step[c])


@compiled(nogil=True)
def _newton_step(K, factors, y, totals, a, f, step, step_f):
    """Write Newton's step, for these factors, into ``step``, and K times it into ``step_f``."""
    if f.ndim == 1:
        _logistic_step(K, factors[0], factors[1], y, totals, a, f, step, step_f)
    else:
        _softmax_step(K, factors[0], factors[1], factors[2], y, totals, a, f, step, step_f)


@compiled(nogil=True)
def _eliminate(A, b):
    """Overwrite b with A^-1 b for a small symmetric A, overwritten too; pivots kept positive.

    Where a pivot vanishes to rounding (steps that are all but parallel) its unknown becomes 0.
    """
    m = b.shape[0]
    for k in range(m):
        if A[k, k] <= 0.0:
            A[k, k] = np.inf
        for i in range(k + 1, m):
            ratio = A[i, k] / A[k, k]
            for j in range(k, m):
                A[i, j] -= ratio * A[k, j]
            A[i, i] = max(A[i, i], 0.0)
            b[i] -= ratio * b[k]
    for k in range(m - 1, -1, -1):
        for j in range(k + 1, m):
            b[k] -= A[k, j] * b[j]
        b[k] /= A[k, k]


@compiled(allocates=True, nogil=True)
def _mixing_coef(step, steps, n_kept):
    """Coefficients that minimise |step - sum_k coef_k steps_k| over the last ``n_kept`` rows."""
    gram, coef = np.empty((n_kept, n_kept)), np.empty(n_kept)
    for k in range(n_kept):
        coef[k] = np.dot(steps[k], step)
        for m in range(k + 1):
            gram[k, m] = np.dot(steps[k], steps[m])
            gram[m, k] = gram[k, m]
        gram[k, k] *= 1.0 + 1e-12
    _eliminate(gram, coef)
    return coef


@compiled(nogil=True)
def _advance(x, step, differences, coef, out):
    """Write x + step, less the mixture of the differences of such points, into ``out``."""
    for i in range(x.shape[0]):
        out[i] = x[i] + step[i]
    for k in range(coef.shape[0]):
        for i in range(x.shape[0]):
            out[i] -= coef[k] * differences[k, i]


@compiled(nogil=True)
def _note_differences(x, step, last_point, row):
    """Write the difference of x + step from the last such point, and remember that point."""
    for i in range(x.shape[0]):
        point = x[i] + step[i]
        row[i] = point - last_point[i]
        last_point[i] = point


# Loops over flat views: array expressions of one and of two axes take the compiler seconds.
@compiled(nogil=True)
def _add(x, fraction, step, out):
    for i in range(x.shape[0]):
        out[i] = x[i] + fraction * step[i]


@compiled(nogil=True)
def _move(a, f, new_a, new_f):
    """Overwrite a and f with the new point; return the largest change of f, NaN if one is."""
    largest = 0.0
    for i in range(f.shape[0]):
        change = abs(new_f[i] - f[i])
        if change > largest or change != change:
            largest = change
        a[i], f[i] = new_a[i], new_f[i]
    return largest


@compiled(nogil=True)
def _halve_until_ascent(y, totals, a, f, psi, step, step_f, new_a, new_f, proba):
    """Shorten the plain step until Psi does not fall; the new point goes into new_a and new_f."""
    floor = psi - 1e-12 * (1.0 + abs(psi))
    fraction = 1.0
    new_psi = -np.inf
    while not new_psi >= floor and fraction > 1e-6:
        _add(a.reshape(-1), fraction, step.reshape(-1), new_a.reshape(-1))
        _add(f.reshape(-1), fraction, step_f.reshape(-1), new_f.reshape(-1))
        new_psi = _log_joint(new_a, new_f, y, totals, proba)
        fraction *= 0.5
    return new_psi


@compiled(nogil=True)
def _times_weights(proba, totals, b, out):
    """Write W b into ``out``, W the negative Hessian of the log likelihood of several classes.

    ``proba`` are t times the probabilities.
    """
    for i in range(b.shape[1]):
        mean = proba[0, i] * b[0, i]
        for c in range(1, b.shape[0]):
            mean += proba[c, i] * b[c, i]
        mean /= totals[i]
        for c in range(b.shape[0]):
            out[c, i] = proba[c, i] * (b[c, i] - mean)


@compiled(allocates=True, nogil=True, error_model="numpy")
def _conjugate_gradients(K, proba, totals, residual, most, x):
    """Solve (I + W K) x = residual, symmetric in the metric of K; the residual is overwritten.

    Until a tenth is left in that metric, by at most ``most`` products with K, whose number is
    returned. All in single precision.
    """
    K_residual, image = np.dot(residual, K), np.empty_like(residual)
    p, K_p = residual.copy(), K_residual.copy()
    size = first = np.sum(residual * K_residual)
    x[:] = 0.0
    for k in range(1, most):
        if not size > 0.0:
            return k
        _times_weights(proba, totals, K_p, image)
        curved = np.float32(0.0)
        for c in range(p.shape[0]):
            for i in range(p.shape[1]):
                image[c, i] += p[c, i]
                curved += K_p[c, i] * image[c, i]
        for c in range(p.shape[0]):
            for i in range(p.shape[1]):
                x[c, i] += size / curved * p[c, i]
                residual[c, i] -= size / curved * image[c, i]
        np.dot(residual, K, K_residual)
        before, size = size, np.sum(residual * K_residual)
        if not size > _SHARE * _SHARE * first:
            return k
        for c in range(p.shape[0]):
            for i in range(p.shape[1]):
                p[c, i] = residual[c, i] + size / before * p[c, i]
                K_p[c, i] = K_residual[c, i] + size / before * K_p[c, i]
    return most


@compiled(allocates=True, nogil=True)
def climb_without_factors(K, Y, totals, start, a, f, tolerance, most):
    """Write the mode, f = K a with a = Y - t pi(f), of several classes of one Gram matrix (n, n).

    By Newton's steps from ``start`` (C, n), each by conjugate gradients, and halved until Psi does
    not fall. Returns whether the last was below ``tolerance``, after at most ``most`` products with
    K; not where single precision has steps no longer shrink. Then f is near the mode all the same.
    """
    proba, residual = np.empty_like(f), np.empty_like(f)
    new_a, new_f = np.empty_like(f), np.empty_like(f)
    rough, rough_K = np.empty(f.shape, np.float32), K.astype(np.float32)
    rough_totals = totals.astype(np.float32)
    a[:] = 0.0
    f[:] = 0.0
    _softmax(start, totals, proba)
    _times_weights(proba, totals, start, residual)
    residual += Y - proba
    psi, change, before = -1e300, np.inf, np.inf
    while most > 0 and change > tolerance and not _LOCAL > change >= before:
        rough_proba, rough_residual = proba.astype(np.float32), residual.astype(np.float32)
        few = min(most, _MOST_OF_ONE)
        most -= _conjugate_gradients(rough_K, rough_proba, rough_totals, rough_residual, few, rough)
        step = rough.astype(np.float64)
        step_f = np.dot(step, K)
        psi = _halve_until_ascent(Y, totals, a, f, psi, step, step_f, new_a, new_f, proba)
        before = change
        change = _move(a.reshape(-1), f.reshape(-1), new_a.reshape(-1), new_f.reshape(-1))
        _softmax(f, totals, proba)
        for c in range(Y.shape[0]):
            for i in range(Y.shape[1]):
                residual[c, i] = Y[c, i] - proba[c, i] - a[c, i]
    return most > 0 and change <= tolerance


@compiled(allocates=True, nogil=True)
def chord_steps(K, factors, y, totals, a, f, tolerance, max_steps, memory):
    """Move (a, f = K a) towards the mode with one set of factors, Anderson acceleration, in place.

    Each step costs one product with K and one solve, of several classes two products with each
    inverse. While steps are large, one that lowers Psi is replaced by the plain one, halved until
    it does not. Stops once the largest error that is left in f is below ``tolerance``, extrapolated
    from the last two changes (after one step, that change), or once the steps hardly shrink.
    Returns that error and the number of steps.
    """
    size, rows = f.size, max(memory, 1)
    steps, points, points_f = np.empty((rows, size)), np.empty((rows, size)), np.empty((rows, size))
    step, step_f, last_step = np.empty_like(f), np.empty_like(f), np.zeros(size)
    last_point, last_point_f = np.zeros(size), np.zeros(size)
    new_a, new_f, proba = np.empty_like(f), np.empty_like(f), np.empty_like(f)
    flat_step, flat_step_f = step.reshape(-1), step_f.reshape(-1)
    psi = _log_joint(a, f, y, totals, proba)
    n_kept, change, error, n_steps = 0, np.inf, np.inf, 0
    for k in range(max_steps):
        _newton_step(K, factors, y, totals, a, f, step, step_f)
        row = (k - 1) % rows
        for i in range(size):
            steps[row, i] = flat_step[i] - last_step[i]
            last_step[i] = flat_step[i]
        _note_differences(a.reshape(-1), flat_step, last_point, points[row])
        _note_differences(f.reshape(-1), flat_step_f, last_point_f, points_f[row])
        n_kept = min(n_kept + 1, memory) if k > 0 else 0
        coef = _mixing_coef(flat_step, steps, n_kept)
        _advance(a.reshape(-1), flat_step, points, coef, new_a.reshape(-1))
        _advance(f.reshape(-1), flat_step_f, points_f, coef, new_f.reshape(-1))
        if change > _LOCAL:
            new_psi = _log_joint(new_a, new_f, y, totals, proba)
            if not new_psi >= psi - 1e-12 * (1.0 + abs(psi)):
                n_kept = 0
                new_psi = _halve_until_ascent(
                    y, totals, a, f, psi, step, step_f, new_a, new_f, proba
                )
            psi = new_psi
        previous, n_steps = change, k + 1
        change = _move(a.reshape(-1), f.reshape(-1), new_a.reshape(-1), new_f.reshape(-1))
        shrinkage = min(change / previous, 0.9)
        error = change if k == 0 else change * shrinkage / (1.0 - shrinkage)
        if error < tolerance or (k >= 4 and change > 0.9 * previous):
            break
    _multiply(K, a, f)
    return error, n_steps


@compiled(nogil=True, fastmath=_FAST)
def _square_of(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * x[i]
    return total


@compiled(allocates=True, nogil=True)
def inverse_diagonal(R):
    """Return the diagonal of (L L')^-1; ``R`` is the transpose of L^-1, its upper triangle."""
    diagonal = np.empty(R.shape[0])
    for j in range(R.shape[0]):
        diagonal[j] = _square_of(R[j, j:])
    return diagonal


@compiled(nogil=True)
def _adjoint_row(row, root_weights, a, q, scales):
    half_a_plus_q, half_a, half_weight = scales
    for i in range(row.shape[0]):
        row[i] = a[i] * half_a_plus_q + q[i] * half_a - root_weights[i] * half_weight * row[i]


@compiled(nogil=True)
def evidence_adjoint(inverse, root_weights, a, q):
    """Overwrite B^-1 by A = (a a' + q a' + a q' - W^.5 B^-1 W^.5)/2, symmetric.

    Only the upper triangle of the C-ordered ``inverse`` is read.
    """
    n = a.shape[0]
    for j in range(n):
        scales = (0.5 * (a[j] + q[j]), 0.5 * a[j], 0.5 * root_weights[j])
        _adjoint_row(inverse[j, j:], root_weights[j:], a[j:], q[j:], scales)
    mirror(inverse)


# For several classes: arrays over classes and rows are (C, n), C-ordered; ``U`` is the transpose of
# LAPACK's Fortran-ordered factor M.


@compiled(nogil=True)
def _add_weighted_row(row, roots, root, total):
    for i in range(row.shape[0]):
        total[i] += row[i] * roots[i] * root


@compiled(nogil=True)
def mirror(A):
    """Copy the upper triangle of A into the lower one, in place."""
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] = A[j, i]


@compiled(nogil=True)
def add_weighted(inverse, roots, total):
    """Add the upper triangle of D^.5 B^-1 D^.5 to that of ``total``."""
    for j in range(inverse.shape[0]):
        _add_weighted_row(inverse[j, j:], roots[j:], roots[j], total[j, j:])


@compiled(nogil=True, fastmath=_FAST)
def _sums_of_row(row, inverse_row, difference, root):
    squares, products = 0.0, 0.0
    for k in range(row.shape[0]):
        u = inverse_row[k] * root - row[k]
        squares += u * u
        products += u * difference[k]
        row[k] *= root
    return squares, products


@compiled(nogil=True)
def column_sums(N, inverse_M, difference, roots, squares, products):
    """Sums over the columns of U = M^-1 D^.5 - N, and N scaled to V = N D^.5, of one class.

    All three matrices are given by their transposes, C-ordered; ``difference`` is M^-1 - M'. Row i
    of U meets itself in ``squares`` and ``difference`` in ``products``, both of shape (n,).
    """
    for i in range(N.shape[0]):
        squares[i], products[i] = _sums_of_row(N[i], inverse_M[i], difference[i], roots[i])


@compiled(nogil=True)
def _add_row(row, a, q, half_a_plus_q, half_a):
    for i in range(row.shape[0]):
        row[i] += a[i] * half_a_plus_q + q[i] * half_a


@compiled(nogil=True)
def add_products(A, a, q):
    """Add (a a' + q a' + a q')/2 to the upper triangle of A, a and q of shape (n,)."""
    for j in range(a.shape[0]):
        _add_row(A[j, j:], a[j:], q[j:], 0.5 * (a[j] + q[j]), 0.5 * a[j])


# Contaminated noise: the laws of rows left out, and the kinds of errors drawn from them.


@compiled(allocates=True, nogil=True)
def _row_left_out(A, a, y, i, own, added, log_shares, n_right, log_joint):
    """Mean and variance of the function at row i by the others, P(wrong); fills ``log_joint``."""
    mean = y[i] - a[i] / A[i, i]
    base = 1.0 / A[i, i] - own
    for k in range(len(added)):
        variance = base + added[k]
        error = y[i] - mean
        log_joint[k] = log_shares[k] - 0.5 * (np.log(variance) + error * error / variance)
    _normalise(log_joint)
    return mean, base, log_joint[n_right:].sum()


@compiled(allocates=True, nogil=True)
def _normalise(logs):
    """Turn logarithms into shares of a sum of 1; returns the logarithm of their sum."""
    highest, total = logs.max(), 0.0
    for k in range(len(logs)):
        logs[k] = np.exp(logs[k] - highest)
        total += logs[k]
    for k in range(len(logs)):
        logs[k] /= total
    return highest + np.log(total)


@compiled(nogil=True)
def _place(shares, uniform):
    """Draw a place by shares of a sum of 1."""
    below, k = shares[0], 0
    while uniform > below and k < len(shares) - 1:
        k += 1
        below += shares[k]
    return k


@compiled(allocates=True, nogil=True)
def kinds_of_errors(errors, variances, log_shares, uniforms, codes):
    """Draw the kind of every error (n,) given the variance of each kind; ``codes`` are filled.

    Returns the log density of the errors with their kinds summed out, but for n/2 log 2 pi.
    """
    logs, total = np.empty(len(variances)), 0.0
    first = log_shares - 0.5 * np.log(variances)
    for i in range(len(errors)):
        square = 0.5 * errors[i] * errors[i]
        for k in range(len(variances)):
            logs[k] = first[k] - square / variances[k]
        total += _normalise(logs)
        codes[i] = _place(logs, uniforms[i])
    return total


@compiled(allocates=True, nogil=True)
def draw_kinds(A, a, y, codes, added, log_shares, n_right, uniforms, wrong, means, bases):
    """Draw every code given all others; A, a and codes are changed, the last three filled.

    ``bases`` are variances of targets that are right, 1 / A_ii - h.
    """
    n = len(y)
    joint = np.empty(len(added))
    for i in range(n):
        own = added[codes[i]]
        means[i], bases[i], wrong[i] = _row_left_out(
            A, a, y, i, own, added, log_shares, n_right, joint
        )
        k = _place(joint, uniforms[i])
        d = added[k] - own
        if d != 0.0:
            codes[i] = k
            scale = d / (1.0 + d * A[i, i])
            column = A[i].copy()
            factor = scale * a[i]
            for j in range(n):
                a[j] -= factor * column[j]
                row_factor = scale * column[j]
                row = A[j]
                for m in range(n):
                    row[m] -= row_factor * column[m]
