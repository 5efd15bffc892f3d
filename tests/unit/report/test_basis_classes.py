from __future__ import annotations

import pytest

from mercer.report import build_report, render
from mercer.report.basis import class_sections as sections
from mercer.report.basis import describe_classes as describe
from support.class_fits import make_rows, tiny


@pytest.fixture(scope="module")
def model():
    return tiny().fit(*make_rows(60, 3))


def test_the_text_says_how_classes_are_told_apart_and_what_the_file_holds(model) -> None:
    text = " ".join(describe(model))
    assert "30 particles" in text
    assert "is it ash, else is it birch, and so on" in text
    assert "contains 60 training rows, standardised, with their labels" in text
    assert "one after the other" not in " ".join(describe(tiny().fit(*make_rows(40))))


def test_the_pass_says_its_scores(model) -> None:
    (section,) = sections(model)
    text = " ".join(section.text)
    assert "All 60 rows" in text
    assert "the probability that was given to the class" in text
    assert "--set forgetting=0.99" in text


def test_the_whole_report_speaks_of_particles_not_of_chains(model) -> None:
    report = build_report(model, evaluation=None, provenance=None)
    assert [section.key for section in report.sections][-4:] == [
        "pass", "chains", "diagnostics", "reproduce"
    ]  # fmt: skip
    html = render(report)
    assert "30 particles, see Diagnostics" in html
    assert "n_centres[birch]" in html
    for words in ("chains agree", "Markov chain", "divergent", "1 chain"):
        assert words not in html
