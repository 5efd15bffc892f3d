from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from mercer.data.frame import InputFacts, Inputs, TableFacts, far_values, strength_alone
from mercer.errors import DataError
from mercer.estimation.cross_validate import Contender, Fold, cross_validate
from mercer.estimation.inspection import (
    Look,
    importance_of,
    permuted_losses,
    plan_look,
    values_of,
)
from mercer.estimation.tasks import REGRESSION
from mercer.posterior.predictive import NormalMixture

RNG = np.random.default_rng(5)
X = RNG.standard_normal((400, 4))
Y = X[:, 0] + 2.0 * X[:, 1] + RNG.standard_normal(400)
INPUTS = Inputs.of_sizes(["a", "b", "rest"], [1, 1, 2])


class Brief:
    """What has no draws is as brief as can be."""

    def _at_a_glance(self):
        return self


class Line(Brief):
    """Predicts a normal around x0 + 2 x1 with standard deviation 1, and learns nothing."""

    def fit(self, X, y):
        return self

    def predictive(self, X):
        return NormalMixture((X[:, 0] + 2.0 * X[:, 1])[:, np.newaxis], np.ones(1))


class Sign(Brief):
    """Probability 0.9 of the class that the sign of x0 says, and 0.8 where x1 is small."""

    def predict_proba(self, X):
        p = np.where(X[:, 1] < -1.0, 0.8, 0.9)
        p = np.where(X[:, 0] > 0, p, 1.0 - p)
        return np.stack([1.0 - p, p], axis=1)


def look(n_rows=400, n_repeats=3):
    return Look(INPUTS, n_rows, 0, entropy=3, n_repeats=n_repeats)


def test_the_loss_of_a_linear_model_is_the_variance_of_the_inputs_share():
    # With x' of another row, E[(y - b x' - ...)^2 - (y - b x - ...)^2] = 2 b^2 var(x): in log score
    # b^2 var(x). Within four standard errors, false alarm 1e-4; the factor 2 forgotten is out.
    found = importance_of(look(), [permuted_losses(Line(), X, Y, look())], is_classes=False)
    want = np.array([1.0, 4.0, 0.0]) * X.var(axis=0)[:3] * [1, 1, 0]
    assert np.all(np.abs(found.log_score - want) <= 4.0 * found.log_score_error)
    assert np.allclose(found.error, 2.0 * found.log_score)
    assert found.log_score[2] == found.log_score_error[2] == 0.0
    assert found.order.tolist() == [1, 0, 2]
    assert (found.n_rows, found.n_repeats) == (400, 3)
    assert np.allclose(found.repeats.mean(axis=0), found.log_score)


def test_errors_are_the_scatter_over_other_rows():
    """As if rows that lend inputs were new ones each time, they were .7 of it."""
    rng = np.random.default_rng(0)
    x = rng.lognormal(0.0, 0.5, (300, 60, 4))
    y = x[..., 0] + 2.0 * x[..., 1] + rng.standard_normal((300, 60))
    own = look(n_rows=60)
    found = [
        importance_of(own, [permuted_losses(Line(), *each, own)], is_classes=False)
        for each in zip(x, y, strict=True)
    ]
    scatter = np.std([each.error[:2] for each in found], axis=0)
    stated = np.sqrt(np.mean([each.error_error[:2] ** 2 for each in found], axis=0))
    assert (np.abs(stated / scatter - 1.0) < 0.15).all()


def test_classes_lose_errors_and_log_score():
    y = (X[:, 0] > 0).astype(np.int64)
    found = importance_of(look(), [permuted_losses(Sign(), X, y, look())], is_classes=True)
    assert abs(found.error[0] - 0.5) < 0.07  # another row has the other sign every second time
    assert found.error[1] == 0.0
    assert abs(found.log_score[1]) < 0.02 < found.log_score[0]


def test_rows_of_a_rare_class_are_measured_and_count_by_its_share():
    """Half of the rows are shared alike; means over all rows stay what they are."""
    y = np.repeat([0, 1], [3940, 60])
    own = replace(look(n_rows=100), is_classes=True)
    chosen, weights = own.share(1, 0, y)
    assert 98 <= len(chosen) == len(set(chosen.tolist())) <= 100
    assert 25 <= y[chosen].sum() <= 27
    assert weights.mean() == pytest.approx(1.0)
    assert np.average(y[chosen], weights=weights) == pytest.approx(y.mean())
    few, few_weights = own.share(1, 0, np.repeat([0, 1], [3996, 4]))
    assert (few >= 3996).sum() == 4
    assert 90 <= len(few) <= 100
    assert np.average(few >= 3996, weights=few_weights) == pytest.approx(0.001)
    for n in (100, 60):  # all of them, and numbers: each row counts once
        assert (own.share(1, 0, y[-n:])[1] == 1.0).all()
    assert (look(n_rows=100).share(1, 0, y)[1] == 1.0).all()


def test_what_a_rare_class_loses_is_that_of_all_rows():
    """The mutant: its rows count like others, though each of them stands for fewer."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((4000, 4))
    y = (x[:, 0] + 0.3 * rng.standard_normal(4000) > 2.0).astype(np.int64)
    every = importance_of(look(4000), [permuted_losses(Sign(), x, y, look(4000))], is_classes=True)
    found = []
    for seed in range(40):
        own = replace(look(n_rows=200), is_classes=True, entropy=seed)
        one = importance_of(own, [permuted_losses(Sign(), x, y, own)], is_classes=True)
        found.append((one.log_score[0], one.log_score_error[0]))
    each, stated = np.array(found).T
    assert abs(each.mean() - every.log_score[0]) < 4.5 * each.std() / np.sqrt(40)
    assert stated.mean() > 0.8 * each.std()


def test_an_input_never_takes_its_own_value():
    two = np.array([[0.0, 0, 0, 0], [5.0, 0, 0, 0]])
    found = permuted_losses(Line(), two, two[:, 0], look(n_rows=2))
    assert np.all(found.error[:, :, 0] == 25.0)
    with pytest.raises(DataError, match="no other"):
        permuted_losses(Line(), two[:1], two[:1, 0], look())


def test_a_constant_input_loses_exactly_nothing():
    class Blocked(Line):
        """Sums in another order for another number of rows."""

        def predictive(self, X):
            law = super().predictive(X)
            return NormalMixture(law.mean[:, np.newaxis] * (1.0 + 1e-16 * len(X)), np.ones(1))

    constant = np.column_stack([X[:, 0], np.ones(400), X[:, 2:]])
    found = permuted_losses(Blocked(), constant, Y, look())
    assert np.any(found.log_score[..., 0])
    assert not np.any(found.log_score[..., 1])


def test_columns_of_one_input_move_together():
    class Same(Brief):
        def predictive(self, X):
            assert np.array_equal(X[:, 2], X[:, 3])
            return NormalMixture(X[:, :1], np.ones(1))

    twins = np.column_stack([X[:, :3], X[:, 2]])
    permuted_losses(Same(), twins, Y, look())


def test_folds_measure_each_their_share_and_rows_of_groups_count_together():
    folds = [
        Fold(X[:200], Y[:200], X[200:], Y[200:], groups_test=np.repeat(np.arange(4), 50)),
        Fold(X[200:], Y[200:], X[:200], Y[:200], groups_test=np.repeat(np.arange(4, 8), 50)),
    ]
    contenders = [Contender("line", False, make_line), Contender("peer", True, make_line)]
    own = look(n_rows=101)
    line, peer = cross_validate(contenders, folds, n_jobs=1, task=REGRESSION, look=own)
    assert peer.increases == ()
    assert [each.log_score.shape for each in line.increases] == [(3, 51, 3)] * 2
    found = importance_of(own, line.increases, is_classes=False)
    assert found.n_rows == 102
    assert [np.unique(each.units).tolist() for each in line.increases] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
    ]
    alone = [replace(each, groups_test=None) for each in folds]
    (line_alone,) = cross_validate(contenders[:1], alone, n_jobs=1, task=REGRESSION, look=own)
    assert not np.intersect1d(*(each.units for each in line_alone.increases)).size
    other = importance_of(own, line_alone.increases, is_classes=False)
    assert np.array_equal(found.log_score, other.log_score)
    assert not np.array_equal(found.log_score_error, other.log_score_error)
    again, _ = cross_validate(contenders, folds, n_jobs=1, task=REGRESSION, look=own)
    assert np.array_equal(again.increases[1].log_score, line.increases[1].log_score)
    assert cross_validate(contenders, folds, n_jobs=1, task=REGRESSION)[0].increases == ()


def make_line(n_rows, n_smallest):
    return Line()


def test_of_many_inputs_those_that_tell_most_are_measured_and_rows_are_bounded():
    many = RNG.standard_normal((300, 90))
    y = many[:, 70] ** 2
    inputs = Inputs.of_sizes([f"x{j}" for j in range(90)], [1] * 90)
    planned = plan_look(inputs, many, y, n_rows=5000, n_classes=0, entropy=0)
    assert len(planned.inputs) == 40
    assert planned.n_left_out == 50
    assert "x70" in planned.inputs.names
    assert planned.n_rows * planned.n_repeats * 40 <= 10_000
    few = plan_look(INPUTS, X, Y, n_rows=5000, n_classes=0, entropy=0)
    assert (few.n_rows, few.n_left_out) == (400, 0)
    classes = plan_look(INPUTS, X, np.arange(400) % 10, n_rows=5000, n_classes=10, entropy=0)
    assert 60 <= classes.n_rows < 400


class Product(Line):
    """Predicts the product of two inputs, which alone tell nothing."""

    def predict(self, X):
        return X[:, 60] * X[:, 61]


def test_of_many_inputs_those_that_the_model_looks_at_are_measured():
    many = RNG.standard_normal((300, 90))
    y = many[:, 60] * many[:, 61]
    inputs, how = Inputs.of_sizes([f"x{j}" for j in range(90)], [1] * 90), {"n_rows": 300}
    alone = plan_look(inputs, many, y, n_classes=0, entropy=0, **how)
    assert not {"x60", "x61"} <= set(alone.inputs.names)
    seen = plan_look(inputs, many, y, n_classes=0, entropy=0, model=Product(), **how)
    assert len(seen.inputs) == 40
    assert (alone.asks_model, seen.asks_model) == (False, True)
    assert {"x60", "x61"} <= set(seen.inputs.names)
    assert len(set(seen.inputs.names) & set(alone.inputs.names)) >= 38


@pytest.mark.parametrize("is_classes", [False, True])
def test_how_much_an_input_tells_alone(is_classes):
    x, noise = X[:, :1], X[:, 3]
    copy = (x[:, 0] > 0.3).astype(np.int64) if is_classes else x[:, 0] ** 2
    other = (noise > 0).astype(np.int64) if is_classes else noise
    assert strength_alone(x, copy, is_classes=is_classes) > 0.8
    # Chance alone: adjusted, the share is about 0 with a standard deviation below 0.02.
    assert strength_alone(x, other, is_classes=is_classes) < 0.08
    assert strength_alone(np.zeros((400, 1)), other, is_classes=is_classes) == 0.0
    levels = np.eye(3)[RNG.integers(3, size=400)]
    y = levels @ np.arange(3)
    y = y.astype(np.int64) if is_classes else y
    assert strength_alone(levels, y, is_classes=is_classes) == pytest.approx(1.0)
    assert strength_alone(x, np.zeros(400, np.int64), is_classes=is_classes) == 0.0


@pytest.mark.parametrize("n", [12, 40, 200])
def test_many_levels_and_parts_of_dates_do_not_leak_by_chance(n):
    # Levels or parts that are nearly all different give the target by chance alone: of 100 such
    # inputs none is taken for a leak (parts taken as combinations are, about one in ten).
    rng = np.random.default_rng(3)
    y = rng.integers(2, size=n)
    for _ in range(100):
        levels = np.eye(50)[rng.integers(50, size=n)]
        parts = np.column_stack([rng.integers(12, size=n), rng.integers(300, size=n)])
        for x in (levels, parts.astype(float)):
            assert strength_alone(x, y, is_classes=True) < (0.98 if n >= 30 else 1.01)


def test_of_few_rows_no_leak_is_suspected():
    certain = InputFacts("a", "number", 0, 2, "", (1, 1), 1.0)
    assert TableFacts(29, (certain,), "", (), 0).leaks == ()
    assert TableFacts(30, (certain,), "", (), 0).leaks == (certain,)


def test_where_an_input_is_missing_is_no_curve_of_its_own():
    rows = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0]])
    names = ("age", "age (missing)", "smoker=yes", "smoker (missing)")
    (age,) = values_of("age", np.array([0, 1]), rows, names)
    assert age.points.tolist() == [[0.0, 0.0], [1.0, 0.0]]
    (smoker,) = values_of("smoker", np.array([2, 3]), rows, names)
    assert smoker.labels == ("not yes", "yes", "missing")
    assert smoker.points.tolist() == [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]  # filled in, and known so
    assert smoker.columns.tolist() == [2, 3]
    unknown = np.ones((3, 2))
    assert values_of("age", np.array([0, 1]), unknown, names) == ()


def test_the_axis_of_frequencies_says_what_it_is() -> None:
    rows = np.array([[0.25], [0.5], [0.125], [0.125]])
    for part in (rows, rows[:2]):
        (town,) = values_of("town", np.array([0]), part, ["town (frequency)"])
        assert town.name == "town (share of rows)"
        assert town.labels in ((), ("0.25", "0.5"))


NORMAL = np.random.default_rng(3).normal(170.0, 8.0, 200)
LONG, STUDENT = np.random.default_rng(4).standard_normal(2000), stats.t(3)


@pytest.mark.parametrize(
    ("x", "far"),
    [
        (NORMAL, []),
        (np.where(np.arange(200) == 11, 57.0, NORMAL), [11]),
        (np.where(np.arange(200) % 150 == 7, 900.0, -NORMAL), [7, 157]),
        (np.where(np.arange(200) == 11, np.nan, NORMAL), []),
        (np.where(np.arange(200) == 11, 57.0, NORMAL)[:19], []),  # too few to say
        (np.exp(2.0 * LONG), []),  # a long tail
        (STUDENT.ppf(stats.norm.cdf(LONG)), []),
        (np.full(200, 3.0), []),
        (np.arange(200) == 7, []),  # two values
        (np.where(np.arange(200) < 20, 1e3, NORMAL), []),  # too many to be slips
        (np.where(np.arange(200) == 0, 1e308, -NORMAL * 1e305), [0]),
    ],
)
def test_few_values_beyond_a_gap_are_far(x, far):
    np.testing.assert_array_equal(far_values(np.asarray(x, float)), far)


def test_values_of_nothing_are_not_far():
    assert len(far_values(np.empty(0))) == len(far_values(np.full(30, np.nan))) == 0
