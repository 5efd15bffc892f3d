from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from mercer.posterior.evaluation import Evaluation, ModelScore, error_rate_se, standing
from mercer.posterior.scores import Scores, score_classification
from mercer.report.held_out import (
    class_tiles,
    coverage_section,
    gains_sections,
    reliability_section,
    scores_section,
)
from support.fake_estimator import fake_evaluation


def _entry(name, errors, n_rows, *, log_score=0.5, is_baseline=True):
    scores = Scores(n_rows, errors / n_rows, log_score, 0.2, 0.05)
    return ModelScore(name, is_baseline, scores, 1.0, *((0.042, 0.01) if is_baseline else ()))


def _evaluation(errors, baseline_errors, n_rows=200):
    entries = [_entry("GPClassifier", errors, n_rows, is_baseline=False)]
    entries += [_entry(f"baseline {e}", e, n_rows) for e in baseline_errors]
    y = np.zeros(n_rows, dtype=np.int64)
    proba = np.tile([0.8, 0.2], (n_rows, 1))
    return Evaluation("4-fold cross-validation", ("no", "yes"), y, proba, tuple(entries))


def test_the_standard_error_is_binomial_and_never_zero():
    assert error_rate_se(_entry("m", 40, 200)) == pytest.approx(
        math.sqrt(0.2 * 0.8 / 200), rel=0.01
    )
    assert error_rate_se(_entry("m", 0, 50)) > 0


# two standard errors of the gaps are 0.084, that is 17 rows
@pytest.mark.parametrize(
    ("errors", "baselines", "word", "best"),
    [
        (40, (60, 70), "ahead", "baseline 60"),
        (40, (70, 55), "level", "baseline 55"),
        (40, (40,), "level", "baseline 40"),
        (55, (70, 40), "level", "baseline 40"),
        (60, (70, 40), "behind", "baseline 40"),
        (0, (0,), "level", "baseline 0"),
    ],
)
def test_the_verdict_against_the_best_baseline(errors, baselines, word, best):
    evaluation = _evaluation(errors, baselines)
    found, entry = standing(evaluation)
    assert (found, entry.name) == (word, best)
    sentence = scores_section(evaluation).text[1]
    phrase = {"level": "level with", "ahead": "ahead of", "behind": "behind"}[word]
    assert f"the model is {phrase} the best baseline, {best}" in sentence
    assert "with a standard error of 4.2 percentage points (of the difference" in sentence
    assert ("may well be chance" in sentence) == (word == "level")


def test_the_log_score_is_ranked_with_the_standard_error_of_the_difference():
    evaluation = fake_evaluation()
    best = min(evaluation.entries[1:], key=lambda entry: entry.scores.log_score)
    text = scores_section(evaluation).text[2]
    rank = sum(
        e.scores.log_score < evaluation.entries[0].scores.log_score for e in evaluation.entries
    )
    assert f"takes place {rank + 1} of 5" in text
    assert f"standard error of {best.log_score_gap_error:.3f}" in text


def test_the_lowest_of_each_score_is_bold_and_ties_alike():
    section = scores_section(_evaluation(40, (40, 41)))
    (table,) = section.tables
    assert table.columns[1] == "error rate"
    assert [row[1].is_best for row in table.rows] == [True, True, False]
    assert [row[3].is_best for row in table.rows] == [True, True, True]
    assert not any(row[6].is_best for row in table.rows)  # calibration has no winner
    assert [row[2].text for row in table.rows] == ["–", "0.0 ± 4.2", "0.5 ± 4.2"]
    assert table.rows[0][0].text == "GPClassifier (this model)"
    assert [row[1].sort for row in table.rows] == [0.2, 0.2, 0.205]


def test_rows_of_a_rare_class_are_counted_in_a_part_of_their_own():
    """Found, expected and right; the headline is its average precision, and tables say it first."""
    n = 1000
    proba = np.tile([0.99, 0.01], (n, 1))
    proba[:20] = [0.4, 0.6]
    y = np.zeros(n, np.int64)
    y[[*range(12), *range(500, 508)]] = 1
    held = score_classification(y, proba)
    entries = (ModelScore("GPClassifier", False, held, 1.0), ModelScore("svc", True, held, 1.0, 0))
    evaluation = Evaluation("a test", ("no", "yes"), y, proba, entries)
    (section,) = gains_sections(evaluation)
    assert section.title == "Are the rows of “yes” found?"
    (table,) = section.tables
    cells = {row[0].sort: [cell.text for cell in row] for row in table.rows}
    assert cells[20][2:4] == ["12", "12.0 ± 2.2"]
    assert [text.replace("\u00a0", " ") for text in cells[20][4:]] == ["60 %", "60 %"]
    assert section.figures
    tile = class_tiles(evaluation)[0]
    assert tile.label == "Average precision"
    (scores,) = scores_section(evaluation).tables
    assert scores.columns[1] == "average precision"
    assert scores.rows[0][1].text == f"{held.average_precision:.3f}"
    assert gains_sections(replace(evaluation, y_index=np.arange(n) % 2)) == ()
    assert gains_sections(None) == ()


def test_a_bound_is_rounded_down():
    """ "At least 100 %" would be said of a probability that is less."""
    evaluation = fake_evaluation()
    sure = np.where(evaluation.proba > 0.5, 0.9996, 0.0004)
    words = " ".join(coverage_section(replace(evaluation, proba=sure)).text)
    assert "100 %" not in words.replace("\u00a0", " ")
    assert ("at least 99.9\u00a0%" in words) or "does not tell" in words


def test_the_direction_of_the_log_score_is_said_once():
    section = scores_section(fake_evaluation())
    words = " ".join((*section.text, *(table.caption for table in section.tables))).lower()
    assert words.count("lower is better") == 1
    assert "higher is better" not in words


def test_without_baselines_nothing_is_compared():
    section = scores_section(_evaluation(40, ()))
    assert "No baseline was run" in section.text[1]
    assert len(section.text) == 2


def test_without_held_out_rows_the_sections_say_so():
    for section in (scores_section(None), reliability_section(None), coverage_section(None)):
        assert "no held-out rows" in section.text[0]
        assert not section.figures


def test_reliability_counts_the_bars_on_the_diagonal():
    good = reliability_section(fake_evaluation(n_rows=2000))
    spoilt = reliability_section(fake_evaluation(n_rows=2000, noise=4.0))
    count = {s: int(s.text[1].split()[0]) for s in (good, spoilt)}
    assert count[good] >= 7
    assert count[spoilt] <= 3
    assert "“yes”" in good.text[0]
    assert "groups of rows. Bars" in good.figures[0].caption


def test_points_that_lie_on_others_are_said_to():
    sure = fake_evaluation(n_rows=2000)
    p = np.abs(sure.y_index - 1e-3 * np.random.default_rng(0).random(2000))
    sure = replace(sure, proba=np.column_stack([1 - p, p]))
    caption = reliability_section(sure).figures[0].caption
    assert "10 groups of rows, 7 of which lie on others" in caption  # at 0, at 1, one between


def test_the_error_expected_by_chance_is_that_of_perfect_probabilities():
    evaluation = fake_evaluation(n_rows=1000)
    said = float(reliability_section(evaluation).text[1].split("lie about ")[1].split()[0])
    rng = np.random.default_rng(11)
    p = np.sort(evaluation.proba[:, 1])
    bins = np.array_split(p, 10)
    simulated = [
        np.mean([abs(np.mean(rng.random(len(b)) < b) - b.mean()) for b in bins]) for _ in range(400)
    ]
    assert said == pytest.approx(100 * np.mean(simulated), abs=0.25)


def test_probabilities_of_zero_leave_the_words_finite():
    evaluation = _evaluation(40, (50,))
    proba = np.tile([0.0, 1.0], (200, 1))
    words = " ".join(scores_section(replace(evaluation, proba=proba)).text)
    assert "inf" not in words
    assert "nan" not in words


def test_errors_at_each_coverage_are_counted():
    evaluation = fake_evaluation()
    section = coverage_section(evaluation)
    (table,) = section.tables
    top, wrong = evaluation.proba.max(axis=1), evaluation.proba.argmax(axis=1) != evaluation.y_index
    order = np.argsort(-top)
    for row, n in zip(table.rows, (332, 299, 249, 166), strict=True):
        assert row[1].sort == n
        assert row[3].sort == pytest.approx(wrong[order[:n]].sum())
    assert f"{100 * wrong[order[:166]].mean():.1f}" in section.text[1]
    assert "chance" not in section.text[1]
    assert f"{100 * top[order[165]]:.0f}" in section.text[1]


def test_certainty_that_says_nothing_is_called_chance_or_less():
    p = np.linspace(0.5, 1.0, 200)
    proba = np.column_stack([p, 1 - p])
    evaluation = replace(_evaluation(40, ()), proba=proba)
    for y, words in (
        ((p < np.quantile(p, 0.2)).astype(int), "(those with a probability"),
        (np.repeat([1, 0, 1, 0], [22, 78, 18, 82]), "a gap that may be chance"),
        ((p > np.quantile(p, 0.8)).astype(int), "does not tell where it errs"),
        (np.zeros(200, dtype=int), "no error to avoid"),
    ):
        assert words in coverage_section(replace(evaluation, y_index=y)).text[1]


def test_of_several_classes_the_most_probable_one_is_judged():
    rng = np.random.default_rng(5)
    proba = rng.dirichlet((0.5, 0.5, 0.5), size=600)
    y = np.array([rng.choice(3, p=p) for p in proba])
    evaluation = replace(_evaluation(40, ()), classes=("a", "b", "c"), y_index=y, proba=proba)
    section = reliability_section(evaluation)
    assert "70 % of the most probable class, it should be right" in section.text[0]
    assert int(section.text[1].split()[0]) >= 7
    assert coverage_section(evaluation).figures
