from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mercer.report.gp import describe, sections
from support.fake_estimator import INPUTS, fake_estimator


def test_the_table_has_medians_in_falling_order_and_shares_that_add_up():
    estimator = fake_estimator()
    ((table,),) = (s.tables for s in sections(estimator))
    medians = np.median(estimator.relevance_, axis=0)
    assert [row[0].text for row in table.rows] == [INPUTS[i] for i in np.argsort(-medians)]
    assert [row[1].sort for row in table.rows] == pytest.approx(sorted(medians, reverse=True))
    assert table.rows[0][4].sort == pytest.approx(medians.max() ** -0.5)
    assert sum(row[5].sort for row in table.rows) == pytest.approx(100)


def test_the_text_names_the_input_that_most_often_comes_first():
    estimator = fake_estimator()
    (section,) = sections(estimator)
    share = np.mean(estimator.relevance_.argmax(axis=1) == INPUTS.index("glu"))
    assert section.text[0].startswith(f"glu has the largest weight in {100 * share:.0f}")


def test_the_prior_is_explained_only_where_it_is_drawn():
    (with_prior,) = sections(fake_estimator())
    (without,) = sections(fake_estimator(prior=None))
    assert "prior" in " ".join(with_prior.text)
    assert "prior" not in " ".join(without.text)


def test_without_standardisation_weights_are_not_said_to_compare():
    estimator = fake_estimator()
    for how, phrase, unit in (
        ("auto", "so weights can be compared", "standard deviations"),
        (False, "weights depend on units", "units of the input"),
    ):
        (section,) = sections(replace(estimator, standardize=how))
        assert phrase in section.text[0]
        assert unit in section.tables[0].caption


def test_the_description_says_that_the_file_holds_training_rows():
    assert "contains all" in describe(fake_estimator())[1]
