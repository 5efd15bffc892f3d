"""The compiled loop over assignments: arrays and scalars in and out. Twin: ``tests/twins``."""

from __future__ import annotations

import math

from mercer.numerics.compilation import compiled

__all__ = ["seat"]


@compiled(nogil=True, error_model="numpy")
def seat(first, uniforms, log_densities, log_new, assignment, signs, counts):
    """Draw the component, and the sign, of one frequency after the other.

    Component k and sign s have probability proportional to m_k N(s W_j; mu_k, Sigma_k), where m_k
    does not count j; a new component exp(log_new_j) with each sign.

    Parameters
    ----------
    first : int
        Frequency to begin with.
    uniforms : ndarray of shape (M,)
        One for each frequency.
    log_densities : ndarray of shape (S, M, C)
        Of W, and for S = 2 of -W, under the component in each of C slots. An empty slot, with a
        count of 0, is not looked at.
    log_new : ndarray of shape (M,)
        Log of concentration times density in a new component.
    assignment : ndarray of shape (M,), int64
        Slots; changed in place, as are
    signs : ndarray of shape (M,)
        1 or -1, and
    counts : ndarray of shape (C,), int64
        Members. At least one slot must be empty.

    Returns
    -------
    int
        The frequency that opened a new component, in the first empty slot: its densities are to
        be filled in before the loop goes on with the next. M at the end.
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
