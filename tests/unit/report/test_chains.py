from __future__ import annotations

from dataclasses import replace

from mercer.report.chains import chains_section, diagnostics_section
from support.fake_estimator import fake_estimator


def test_the_worst_mixing_quantities_are_shown():
    estimator = fake_estimator(shift=5.0)
    alt = chains_section(estimator).figures[0].alt
    table = estimator.diagnostics_.table
    pairs = sorted(zip(table.column("ess_bulk"), table.column("name"), strict=True))
    assert alt.startswith(f"Trace plots of {', '.join(name for _, name in pairs[:6])};")


def test_a_single_chain_has_no_rank_plot():
    section = chains_section(fake_estimator(n_chains=1, n_draws=500))
    assert len(section.figures) == 1
    assert section.text[0].startswith("One chain of 500 draws.")
    assert "single chain" in section.text[1]


def test_quantities_without_ess_come_first():
    section = chains_section(fake_estimator(n_draws=3))  # too few draws for any ESS
    assert len(section.figures) == 2


def test_diagnostics_of_a_sound_fit():
    estimator = fake_estimator()
    section = diagnostics_section(estimator, "words")
    assert section.text[0].startswith("No problem was found")
    assert section.warnings == ()
    (table,) = section.tables
    assert len(table.rows) == 29
    assert "words" in table.caption
    assert table.columns[-2:] == ("R-hat", "its limit")
    assert all(len(row[-1].text) == len("1.000") for row in table.rows)
    assert any(point.startswith("largest R-hat: 1.0") for point in section.points)


def test_diagnostics_of_a_bad_fit_repeat_the_warnings():
    estimator = fake_estimator(shift=5.0)
    section = diagnostics_section(estimator, "words")
    assert section.warnings == estimator.diagnostics_.warnings
    assert "problems were found" in section.text[0]


def test_one_problem_is_in_the_singular_and_absent_numbers_are_left_out():
    estimator = fake_estimator()
    diagnostics = replace(estimator.diagnostics_, warnings=("w",), acceptance_rate=None, bfmi=())
    section = diagnostics_section(replace(estimator, diagnostics_=diagnostics), "words")
    assert section.text[0].startswith("1 problem was found")
    words = " ".join(section.points)
    assert "accepted" not in words
    assert "BFMI" not in words
