from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from mercer.sphere.sampler import signed_rows
from reproduce.papers import sphere_margin
from reproduce.papers.sphere_margin import margin
from reproduce.papers.sphere_problems import sphere_rows


@pytest.mark.parametrize("n", [1, 2, 9])
def test_margin_of_orthogonal_rows(n: int) -> None:
    """Whatever their lengths: 1/sqrt(n)."""
    assert margin(np.diag(np.arange(1.0, n + 1.0))) == pytest.approx(1.0 / np.sqrt(n))


def test_margin_is_that_of_a_support_vector_machine() -> None:
    X, labels = sphere_rows(np.random.default_rng(1), 30, 0.0)
    machine = LinearSVC(C=1e6, fit_intercept=False, tol=1e-10, max_iter=1_000_000, random_state=0)
    w = machine.fit(X, labels).coef_[0]
    S = signed_rows(X, labels)
    assert margin(S) == pytest.approx((S @ w).min() / np.linalg.norm(w), rel=1e-4)


@pytest.mark.parametrize("family", sphere_margin._FAMILIES)
def test_members_of_a_family(family: str) -> None:
    members = sphere_margin._FAMILIES[family](np.random.default_rng(2))
    assert len(members) >= 18
    assert all(len(S) == 50 for S in members)
    ranks = {S.shape[1] for S in members}
    assert (len(ranks) == 1) == (family != "kernels of all length scales")
    assert all(margin(S) > 0.0 for S in members[:3])
