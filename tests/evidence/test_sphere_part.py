from __future__ import annotations

import numpy as np
import pytest

from reproduce.papers.sphere_part import correlation_claim, rank_correlation, space_of


def test_rank_correlation_leaves_out_what_is_not_known() -> None:
    x, y = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 8.0, np.nan, 9.0])
    assert rank_correlation(x, y) == pytest.approx(1.0)
    assert rank_correlation(x, -y) == pytest.approx(-1.0)


@pytest.mark.parametrize(
    ("values", "sign", "verdict"),
    [
        ((0.8, 0.9), 1, "holds"),
        ((0.8, 0.9), -1, "fails"),
        ((-0.8, -0.9), -1, "holds"),
        ((-0.1, 0.9), 1, "not judged"),
        ((-0.9, 0.1), 1, "fails"),
    ],
)
def test_a_correlation_must_be_clear(values: tuple[float, float], sign: int, verdict: str) -> None:
    assert correlation_claim("words", "yes", np.array(values), sign, "").verdict == verdict


def test_space_has_unit_variances_and_a_constant() -> None:
    X = np.random.default_rng(1).standard_normal((12, 2))
    for kernel, factor in (("rbf", 0.5), ("linear", None)):
        G = space_of(kernel, factor, X, 1.0).covariance.gram(X)
        assert np.mean(np.diagonal(G)) == pytest.approx(2.0)
