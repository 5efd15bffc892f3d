"""Sums of products over rows."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.basis.model import add_rows


@pytest.mark.parametrize("n", [1, 4, 7])
def test_add_rows(n: int) -> None:
    rng = np.random.default_rng(3)
    half, moment = rng.standard_normal((2, 5, 5)), rng.standard_normal((2, 5))
    gram = half @ half.swapaxes(1, 2)
    rows, y = rng.standard_normal((9, 2, 5))[:n], rng.standard_normal(n)
    expected = gram + np.einsum("nla,nlb->lab", rows, rows)
    of_targets = moment + np.einsum("n,nla->la", y, rows)
    add_rows(gram, moment, rows, y)
    np.testing.assert_allclose(gram, expected, rtol=1e-12)
    np.testing.assert_allclose(moment, of_targets, rtol=1e-12)
