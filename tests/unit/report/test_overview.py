from __future__ import annotations

from dataclasses import replace

from mercer.report.chains import fit_section, reproduce_section
from support.fake_estimator import fake_estimator, provenance


def _pairs(section):
    return [tuple(cell.text for cell in row) for table in section.tables for row in table.rows]


def test_the_first_section_says_what_was_fitted_on_what():
    pairs = dict(_pairs(fit_section(fake_estimator(), ("words",), provenance())))
    assert pairs["Data"] == "pima_tr.csv"
    assert pairs["Classes"] == "no and yes"
    assert pairs["Inputs"] == "7: npreg, glu, bp, skin, bmi, ped and age"
    assert pairs["Posterior"] == "1\u202f000 draws: 4 chains of 250"
    assert pairs["Fitted"] == "2025-11-20, in 14.2\u00a0s"
    assert pairs["Notes"].startswith("Target “diabetic”")
    assert pairs[""] == "Inputs are standardised by mean and standard deviation."


def test_chains_that_had_no_time_to_settle_are_a_warning():
    cut = "stopped by max_seconds during warm-up: one draw from each chain"
    section = fit_section(fake_estimator(), (), replace(provenance(), notes=("a note", cut)))
    assert section.warnings == (cut,)
    pairs = _pairs(section)
    assert pairs[-1] == ("Notes", "a note")


def test_the_last_section_has_command_seed_settings_and_versions():
    section = reproduce_section(fake_estimator(), provenance())
    assert section.command == provenance().command
    assert "seed 1" in section.text[0]
    pairs = dict(_pairs(section))
    assert pairs["inference"] == "'hmc'"
    assert pairs["numpy"] == "2.4.6"


def test_without_provenance_both_say_that_it_is_not_known():
    estimator = fake_estimator(n_chains=1)
    first = fit_section(estimator, ("words",), None)
    last = reproduce_section(estimator, None)
    assert "does not record" in first.text[-1]
    assert "does not record" in last.text[0]
    assert last.command == ""
    assert dict(_pairs(first))["Posterior"] == "250 draws of 1 chain"
    assert dict(_pairs(last))["n_draws"] == "250"
