"""A sum of few kernels near the posterior mean."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import DataError, UsageError
from support.basis_streams import make_stream, small

X, Y = make_stream()


@pytest.fixture(scope="module", params=["rbf", "matern32"])
def model(request: pytest.FixtureRequest):
    return small(kernel=request.param, linear_part=request.param != "rbf").fit(X, Y)


def test_more_centres_come_nearer(model) -> None:
    distances = []
    for k in (1, 3, 10, 30):
        summary = model.summarise(k)
        assert len(summary.centres) == len(summary.coef) <= k
        gap = summary.predict(X) - model.predict(X)
        assert summary.distance == pytest.approx(np.sqrt(np.mean(gap**2)), rel=1e-6, abs=1e-9)
        distances.append(summary.distance)
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 0.05 * model.predict(X).std()


def test_it_is_the_sum_that_it_says() -> None:
    """By hand, in the units of the target; inputs as the model standardised them."""
    model = small(lengthscale=1.0).fit(X, 100.0 * Y + 7.0)
    summary = model.summarise(4)
    Z, C = (model.standardizer_.transform(rows) for rows in (X, summary.centres))
    squares = (((Z[:, np.newaxis] - C) * summary.scaling) ** 2).sum(axis=2)
    K = np.exp(-0.5 * squares / summary.lengthscale**2)
    np.testing.assert_allclose(summary.predict(X), summary.mean_coef[0] + K @ summary.coef)


def test_each_centre_is_taken_once_and_is_a_row(model) -> None:
    centres = model.summarise(10).centres
    assert len(np.unique(centres, axis=0)) == len(centres)
    nearest = np.abs(centres[:, np.newaxis] - X).max(axis=2).min(axis=1)
    assert (nearest < 1e-12).all()


def test_equal_rows_are_taken_once() -> None:
    model = small().partial_fit(np.repeat(X[:3], 20, axis=0), np.tile(Y[:20], 3))
    assert len(model.summarise(10).coef) <= 3


def test_table(model) -> None:
    table = model.summarise(3).table()
    assert table.columns == ("coef", "x0", "x1")
    sizes = [abs(row[0]) for row in table.rows]
    assert sizes == sorted(sizes, reverse=True)


def test_what_is_refused(model) -> None:
    with pytest.raises(DataError, match="at most the number of candidates, 60"):
        model.summarise(61)
    with pytest.raises(UsageError, match="n_centres"):
        model.summarise(0)
    for rows in (np.ones(2), np.ones((1, 3)), [[np.nan, 1.0]]):
        with pytest.raises(DataError, match=r"shape \(m, 2\)"):
            model.summarise(1).predict(rows)
