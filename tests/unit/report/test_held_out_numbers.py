from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from mercer.estimation.cross_validate import Result
from mercer.estimation.tasks import REGRESSION
from mercer.posterior.evaluation import (
    HeldTargets,
    RegressionEvaluation,
    evaluation_from,
    evaluation_parts,
    hold,
    rows_worth,
)
from mercer.posterior.predictive import NormalMixture
from mercer.report.held_out import _is_surprising, number_sections, number_tiles
from support.fake_regression import fake_regression


def test_sections_of_an_evaluation():
    evaluation = fake_regression()
    sections = number_sections(evaluation)
    assert [section.key for section in sections] == ["scores", "predictions", "intervals"]
    assert [len(section.figures) for section in sections] == [0, 2, 2]
    assert all(figure.caption and figure.alt for s in sections for figure in s.figures)
    scores = sections[0]
    assert "400 rows that were not used for fitting (4-fold cross-validation)" in scores.text[0]
    assert "In squared error the model is" in scores.text[1]
    assert "takes place 1 of 3" in scores.text[2]
    (table,) = scores.tables
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert table.rows[0][0].text == "mercer spectral (this model)"
    assert [row[1].is_best for row in table.rows] == [True, False, False]
    gap = evaluation.entries[1].scores.mse - evaluation.entries[0].scores.mse
    assert table.rows[1][3].sort == pytest.approx(gap)
    assert table.rows[0][3].text == "–"


def test_without_held_out_rows_the_sections_say_so():
    sections = number_sections(None)
    assert [section.key for section in sections] == ["scores", "predictions", "intervals"]
    assert all("no held-out rows" in section.text[0] for section in sections)


def test_tiles_ask_for_attention_where_something_is_wrong():
    tiles = number_tiles(fake_regression())
    assert [tile.label for tile in tiles] == [
        "Root mean squared error", "Log score", "Inside 90 % intervals"
    ]  # fmt: skip
    assert not any(tile.needs_attention for tile in tiles)
    assert "ahead of the best baseline" in tiles[0].note
    narrow = number_tiles(fake_regression(spread=0.5, noise=2.0, baselines=(0.0,)))
    assert narrow[0].needs_attention
    assert number_tiles(fake_regression(spread=0.5))[2].needs_attention
    assert number_tiles(fake_regression(spread=2.0))[2].needs_attention
    assert "no baseline" in number_tiles(fake_regression(baselines=()))[0].note


def test_right_laws_are_said_to_be_so_and_narrow_ones_not():
    right, narrow = (
        number_sections(fake_regression(n_rows=2000, spread=spread))[2] for spread in (1.0, 0.6)
    )
    n_in_band = [int(s.text[0].split("too wide. ")[1].split()[0]) for s in (right, narrow)]
    assert n_in_band[0] >= 10
    assert n_in_band[1] == 0


def test_the_distance_expected_by_chance_is_that_of_uniform_numbers():
    from mercer.posterior.scores import pit_distance
    from mercer.report.held_out import _distance_by_chance

    rng = np.random.default_rng(4)
    simulated = np.mean([pit_distance(rng.random(300)) for _ in range(400)])
    assert _distance_by_chance(300) == pytest.approx(simulated, rel=0.05)


def grouped(rng: np.random.Generator, n_groups: int, n_rows: int, spread: float = 1.0):
    """Rows whose law is right but for ``spread``; nine tenths of their variance are the group's."""
    groups = np.repeat(np.arange(n_groups), n_rows)
    shared = rng.standard_normal(n_groups)[groups]
    y = math.sqrt(0.9) * shared + math.sqrt(0.1) * rng.standard_normal(len(groups))
    rows = hold(NormalMixture(np.zeros((len(y), 1)), np.array([spread])), y, 1.0)
    order = rng.permutation(len(y))
    rows = HeldTargets(**{name: column[order] for name, column in vars(rows).items()})
    return rows, groups[order]


@pytest.mark.slow
def test_rows_of_a_group_are_no_independent_witnesses_of_intervals():
    """False alarms of right laws on 40 groups of 10 rows, 1000 tables: .001 by design.

    With 1000 tables more than 8 alarms have a probability below 1e-5 at .001. The mutant, which
    takes rows as independent, raises more than 100. Where intervals are too narrow by half the
    alarm is raised in more than half of the tables.
    """
    rng = np.random.default_rng(11)
    n_alarms = n_mutant = n_found = 0
    for k in range(1000):
        rows, groups = grouped(rng, 40, 10)
        coverage = rows.scores().coverage_90
        n_alarms += _is_surprising(coverage, round(rows_worth(rows.residuals, groups)))
        n_mutant += _is_surprising(coverage, 400)
        if k < 100:
            rows, groups = grouped(rng, 40, 10, spread=0.5)
            coverage = rows.scores().coverage_90
            n_found += _is_surprising(coverage, round(rows_worth(rows.residuals, groups)))
    assert n_alarms <= 8
    assert n_mutant > 100
    assert n_found > 50


def test_the_report_of_groups_says_what_they_are_worth():
    rows, groups = grouped(np.random.default_rng(3), 12, 10)

    def said(groups: np.ndarray | None) -> tuple[str, ...]:
        results = [
            Result(name, name != "m", (rows,), 1.0, REGRESSION, groups=groups) for name in "mb"
        ]
        evaluation = REGRESSION.evaluate("a test", (), results)
        assert evaluation_from(*_split(evaluation)).entries == evaluation.entries
        return (number_tiles(evaluation)[2].note, *number_sections(evaluation)[2].text)

    whole, apart = " ".join(said(groups)), " ".join(said(None))
    worth = rows_worth(rows.residuals, groups)
    assert 12 <= worth < 60
    assert f"of 120 rows in 12 groups, worth about {worth:.0f} independent rows" in whole
    assert "groups" not in apart
    assert rows_worth(rows.residuals, np.arange(120)) == pytest.approx(120)
    assert rows_worth(rows.residuals, np.zeros(120, np.int64)) == 1.0


def _split(evaluation: RegressionEvaluation):
    values, arrays = evaluation_parts(evaluation)
    return json.loads(json.dumps(values)), arrays


def test_large_tables_are_drawn_in_part():
    sections = number_sections(fake_regression(n_rows=3000))
    assert "Shown are 500 of 3\u202f000 rows" in sections[1].text[0]
    assert sum(len(figure.svg) for figure in sections[1].figures) < 400_000


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_a_few_rows_are_no_obstacle(n_rows):
    evaluation = fake_regression(n_rows=n_rows, baselines=(1.0,))
    words = " ".join(text for section in number_sections(evaluation) for text in section.text)
    assert "nan" not in words
    number_tiles(evaluation)


def test_what_is_not_known_is_a_dash():
    evaluation = fake_regression(baselines=())
    scores = replace(evaluation.entries[0].scores, standardized_mse=None, r2=None)
    bare = replace(evaluation, entries=(replace(evaluation.entries[0], scores=scores),))
    (table,) = number_sections(bare)[0].tables
    assert table.rows[0][2].text == "–"
    worse = replace(evaluation.entries[0].scores, r2=-0.2)
    bad = replace(evaluation, entries=(replace(evaluation.entries[0], scores=worse),))
    assert "would predict them better" in number_sections(bad)[1].text[0]
