from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel

from mercer.kernels.linear import Constant

THETA = np.array([0.7])
X = np.random.default_rng(1).standard_normal((5, 4))


def test_against_scikit_learn() -> None:
    plain = ConstantKernel(np.exp(0.7))
    np.testing.assert_array_equal(Constant().gram(THETA, X), plain(X))
    np.testing.assert_array_equal(Constant().cross_gram(THETA, X, X[:3]), plain(X, X[:3]))
