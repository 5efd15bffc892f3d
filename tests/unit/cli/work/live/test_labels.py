from __future__ import annotations

import numpy as np
import pytest

from mercer.cli.stream_model import Labels
from support.class_fits import bits, little, make_rows

TEXTS = np.array(["ash", "birch"], dtype=object)


@pytest.mark.parametrize(
    ("classes", "cells", "values"),
    [
        (TEXTS, [" ash", "birch "], ["ash", "birch"]),
        (np.array([False, True]), ["TRUE", "0"], [True, False]),
        (np.array([3, 7]), ["3.0", " 7"], [3, 7]),
        (np.array([-1.0, 1.0]), ["1", "-1"], [1.0, -1.0]),
    ],
)
def test_cells_become_labels_of_the_type_of_the_classes(classes, cells, values) -> None:
    labels = Labels(None, classes)
    seen = [labels.target(cell, has_decimal_comma=False) for cell in cells]
    assert seen == values
    assert [type(each) for each in seen] == [type(each) for each in values]
    with pytest.raises(ValueError, match="'5' is none of the classes"):
        labels.target("5", has_decimal_comma=False)


def test_text_where_classes_are_numbers() -> None:
    with pytest.raises(ValueError, match="'x' is not a number"):
        Labels(None, np.array([3, 7])).target("x", has_decimal_comma=False)
    assert Labels(None, np.array([3, 7])).target("7,0", has_decimal_comma=True) == 7


def test_rows_are_predicted_then_learned() -> None:
    X, y = make_rows(40)
    labels, model = Labels(little(), TEXTS), little()
    labels.learn(X[:20], list(y[:20]))
    labels.model.predict(X[:1])
    said = labels.ahead(X[20:], [None if k == 3 else each for k, each in enumerate(y[20:])])
    known = np.arange(40) != 23
    model.partial_fit(X[:20], y[:20]).predict(X)
    model.partial_fit(X[20:][known[20:]], y[20:][known[20:]])
    assert bits(labels.model) == bits(model)
    assert said[3].score is said[3].is_right is None
    assert said[3].fields["prediction"] in TEXTS
    for k, each in enumerate(said):
        proba = each.fields["proba"]
        assert list(proba) == ["ash", "birch"]
        assert each.fields["prediction"] == max(proba, key=proba.get)
        if k != 3:
            assert each.score == pytest.approx(np.log(proba[y[20 + k]]))
            assert each.is_right == (each.fields["prediction"] == y[20 + k])


def test_names_of_truth_values_are_those_of_json() -> None:
    labels = Labels(little(), np.array([False, True]))
    X, y = make_rows(30)
    labels.learn(X, [bool(each == "ash") for each in y])
    (said,) = labels.ahead(X[:1], [None])
    assert list(said.fields["proba"]) == ["false", "true"]
    assert said.fields["prediction"] in (False, True)
    assert labels.unknown == {"prediction": None, "proba": None}
