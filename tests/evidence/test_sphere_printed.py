"""What the paper prints and must not be followed in, where no exact test of the step shows it."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import DataError
from mercer.sphere.prediction import entropy_bits
from mercer.sphere.sampler import make_start, signed_rows
from reproduce.papers.sphere_draws import draw_classifiers, model_of
from reproduce.papers.sphere_problems import sphere_rows


def test_an_arbitrary_start_leads_nowhere_at_rate_0() -> None:
    """Trap K3: the paper's step 1; every arc of the first circle has likelihood 0 there."""
    rng = np.random.default_rng(8)
    X, labels = sphere_rows(rng, 200, 0.0)
    S = signed_rows(X, labels)
    t = np.linspace(0.0, 2.0 * np.pi, 2000)[:, np.newaxis]
    arbitrary, direction = rng.standard_normal((2, 3))
    errors = np.count_nonzero((np.cos(t) * arbitrary + np.sin(t) * direction) @ S.T <= 0.0, axis=1)
    assert errors.min() > 0
    assert (S @ make_start(model_of(X, labels, 0.0))(rng) > 0.0).all()


def test_an_empty_version_space_is_an_error() -> None:
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    model = model_of(X, np.array([1, 0, 0]), 0.0)
    with pytest.raises(DataError, match="rows 0 and 2"):
        draw_classifiers(np.random.default_rng(9), model, 1)


def test_information_is_largest_where_the_votes_are_split() -> None:
    """Section 4 prints p+ log2 p+ + p- log2 p-, which is smallest there."""
    p = np.array([[0.5, 0.5], [0.9, 0.1], [1.0, 0.0]])
    assert entropy_bits(p) == pytest.approx([1.0, 0.468996, 0.0], abs=1e-6)
    printed = (p[:2] * np.log2(p[:2])).sum(axis=1)
    assert printed[0] < printed[1] < 0.0
