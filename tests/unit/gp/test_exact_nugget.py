from __future__ import annotations

import numpy as np

from mercer.gp.importance import lower_factor
from mercer.numerics.cholesky import NUGGET, add_nugget


def test_in_proportion_to_the_mean_variance() -> None:
    K = np.diag([1.0, 3.0])
    assert add_nugget(K) == 2.0 * NUGGET
    np.testing.assert_array_equal(K, np.diag([1.0 + 2.0 * NUGGET, 3.0 + 2.0 * NUGGET]))


def test_a_gram_matrix_of_rank_one_has_a_factor() -> None:
    x = np.random.default_rng(0).standard_normal(500)
    for scale in (1e-8, 1.0, 1e8):
        K = scale * np.outer(x, x)
        add_nugget(K)
        before = K.copy()
        L = lower_factor(K)
        np.testing.assert_array_equal(K, before)
        np.testing.assert_array_equal(L, np.tril(L))
        np.testing.assert_allclose(L @ L.T, K, rtol=0, atol=1e-12 * K.diagonal().max())
