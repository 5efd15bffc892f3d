from __future__ import annotations

import pytest

import mercer
from mercer.report import build_report, render
from mercer.report.spectral import describe_classes as describe
from mercer.report.spectral import sections
from support.spectral_class_fits import tiny, waves


@pytest.mark.one_in(2)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_report_has_these_sections_and_a_saved_model_the_same(n_classes, tmp_path):
    model = tiny(n_chains=2).fit(*waves(60, n_classes=n_classes))
    model.save(tmp_path / "m.mercer")
    reports = [
        build_report(each, evaluation=None, provenance=None)
        for each in (model, mercer.load(tmp_path / "m.mercer"))
    ]
    assert (
        render(reports[0]).split('id="reproduce"')[0]
        == render(reports[1]).split('id="reproduce"')[0]
    )
    keys = [section.key for section in reports[0].sections]
    assert keys[keys.index("kernel") :] == [
        "kernel", "spectrum", "chains", "diagnostics", "reproduce"
    ]  # fmt: skip
    assert reports[0].title == "Classification with a learned kernel"


def test_the_words_name_the_classes():
    (two, three) = (tiny().fit(*waves(60, n_classes=n)) for n in (2, 3))
    assert "odds of “birch”" in describe(two)[0]
    first, second, _ = three.class_order_
    assert f"is it {first}, else is it {second}, and so on" in describe(three)[0]
    assert "average over them" in describe(two)[0]
    bare = tiny(linear_part=False, kernel_rows=30, full_draws=2).fit(*waves(60))
    assert "straight" not in " ".join(describe(bare))
    assert "average over 2 of them" in describe(bare)[0]
    (kernel, _) = sections(bare)
    assert any("log loss" in words for words in kernel.text)


@pytest.mark.filterwarnings("ignore:.*constant")
def test_inputs_that_never_change_leave_one_section():
    rows, labels = waves(20)
    (section,) = sections(tiny().fit(0.0 * rows, labels))
    assert "no kernel to learn" in section.text[0]
