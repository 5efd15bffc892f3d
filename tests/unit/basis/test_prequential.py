"""Each row predicted, then learned."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import UsageError
from mercer.posterior.diagnostics import effective_sample_size
from support.basis_streams import STREAMS, bits, make_stream, small
from support.statistics import pairs_first

X, Y = make_stream(40)


@pytest.mark.parametrize(("own", "n_before"), pairs_first(STREAMS, {str(n): n for n in (0, 4, 20)}))
def test_it_learns_as_partial_fit_does(own: dict, n_before: int) -> None:
    told, learned = small(**own), small(**own)
    if n_before:
        told.partial_fit(X[:n_before], Y[:n_before])
        learned.partial_fit(X[:n_before], Y[:n_before])
    rows = told.prequential(X[n_before:], Y[n_before:])
    learned.partial_fit(X[n_before:], Y[n_before:])
    assert bits(told) == bits(learned)
    assert rows.lower is None
    assert rows.upper is None
    np.testing.assert_array_equal(rows.log_density, told.log_predictive_[-len(rows.mean) :])


def test_a_row_is_predicted_before_it_is_learned() -> None:
    told, asked = small().partial_fit(X[:20], Y[:20]), small().partial_fit(X[:20], Y[:20])
    rows, n_compared = told.prequential(X[20:], Y[20:], level=0.8), 0
    for t in range(20, 40):
        ess = effective_sample_size(asked.posterior_.log_weights[0])
        if ess < 6.0:  # of twelve: resampled before the row, after which there is less to average
            asked.partial_fit(X[t : t + 1], Y[t : t + 1])
            continue
        n_compared += 1
        mean, std = asked.predict(X[t : t + 1], return_std=True)
        lower, upper = asked.predict_interval(X[t : t + 1], 0.8)
        seen = [rows.mean[t - 20], rows.std[t - 20], rows.lower[t - 20], rows.upper[t - 20]]
        np.testing.assert_allclose(seen, np.ravel([mean, std, lower, upper]), atol=1e-7)
        density = asked.predictive(X[t : t + 1]).log_density(Y[t : t + 1])[0]
        assert rows.log_density[t - 20] == pytest.approx(density, abs=1e-9)
        assert rows.n_centres[t - 20] == pytest.approx(asked.n_centres_)
        asked.partial_fit(X[t : t + 1], Y[t : t + 1])
    assert n_compared > 10


@pytest.mark.filterwarnings("ignore:the target:mercer.errors.MercerWarning")
@pytest.mark.parametrize("variances", ["integrated", "sampled"])
def test_what_is_predicted_owes_nothing_to_the_target(variances: str) -> None:
    said = []
    for target in (0.5, 1e5, 1e7, 1e16):
        model = small(robust=False, variances=variances).partial_fit(X, Y)
        model.predict(X)
        rows = model.prequential(X[:1], [target])
        said.append([rows.mean[0], rows.std[0]])
    np.testing.assert_allclose(said, np.tile(said[0], (4, 1)), rtol=1e-8)


def test_rows_without_a_target_are_predicted_and_not_learned() -> None:
    y = Y.copy()
    is_unknown = np.isin(np.arange(40), [0, 3, 21, 22, 39])
    y[is_unknown] = np.nan
    told = small().partial_fit(X, Y)
    before = bits(told)
    rows = told.prequential(X, np.full(40, np.nan), level=0.5)
    assert bits(told) == before
    np.testing.assert_array_equal(rows.mean, told.predict(X))
    assert np.isnan(rows.log_density).all()
    rows = small().prequential(X, y, level=0.5)
    np.testing.assert_array_equal(np.isnan(rows.log_density), is_unknown)
    assert (rows.std[3:] > 0.0).all()  # inf while two rows or fewer are learned
    for values in (rows.mean, rows.lower, rows.upper, rows.n_centres):
        assert values.shape == (40,)
        assert np.isfinite(values).all()


def test_rows_without_targets_leave_no_trace() -> None:
    told, learned = small(), small()
    learned.partial_fit(X[:20], Y[:20]).partial_fit(X[30:], Y[30:])
    told.prequential(X, np.where((np.arange(40) >= 20) & (np.arange(40) < 30), np.nan, Y))
    assert bits(told) == bits(learned)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("own", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("n_before", [0, 4])
def test_scales_are_those_of_the_first_known_rows(own: dict, n_before: int) -> None:
    """Also where the first row of a call lacks its target, and others among the first."""
    is_known = ~np.isin(np.arange(40), [n_before, 7])
    told, learned = small(**own), small(**own)
    if n_before:
        told.partial_fit(X[:n_before], Y[:n_before])
    rows = told.prequential(X[n_before:], np.where(is_known, Y, np.nan)[n_before:])
    learned.partial_fit(X[is_known], Y[is_known])
    assert bits(told) == bits(learned)
    np.testing.assert_array_equal(np.isnan(rows.log_density), ~is_known[n_before:])


def test_the_first_of_all_rows_may_lack_its_target() -> None:
    told, learned = small(), small().partial_fit(X, Y)
    rows = told.prequential(X[:1], [np.nan])
    assert np.isfinite(rows.mean[0])
    assert rows.std[0] == np.inf
    assert bits(told.partial_fit(X, Y)) == bits(learned)  # nothing was fixed by a row unknown


def test_what_is_refused() -> None:
    model = small()
    with pytest.raises(UsageError, match="level"):
        model.prequential(X, Y, level=1.0)
    with pytest.raises(ValueError, match=r"shape \(m,\)"):
        model.prequential(X, Y[:, np.newaxis])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.prequential(X, Y[:3])
    with pytest.raises(ValueError, match="0 sample"):
        model.prequential(X[:0], Y[:0])
