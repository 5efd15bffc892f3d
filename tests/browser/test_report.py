"""The report in a real browser without a network, and the mutants that the check must catch."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from browser.checking import find_problems
from mercer.data.row_names import RowNames
from mercer.plot.style import bare_figure, dress, to_svg
from mercer.posterior.labels import audit_labels, audit_targets
from mercer.report import Report, build_report, render
from mercer.report.audit import audit_section
from mercer.report.section import Section
from support.audited import audited
from support.fake_estimator import fake_estimator, fake_evaluation, provenance
from support.fake_regression import fake_regression
from support.followed import followed
from support.learned import learned

if TYPE_CHECKING:
    from playwright.sync_api import Browser

if os.environ.get("CI") == "true":
    import_module("playwright.sync_api")  # its absence is a failure there
else:
    pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report() -> Report:
    return build_report(fake_estimator(), evaluation=fake_evaluation(), provenance=provenance())


@pytest.fixture(scope="module")
def html(report: Report) -> str:
    return render(report)


@pytest.fixture
def save(tmp_path: Path) -> Callable[[str], Path]:
    def save_as_file(html: str) -> Path:
        path = tmp_path / "a report.html"
        path.write_text(html, encoding="utf-8")
        return path

    return save_as_file


def _without_policy(html: str) -> str:
    return re.sub(r"<meta http-equiv[^>]*>", "", html)


def test_a_report_opens_without_a_problem(browser, html, save):
    assert find_problems(browser, save(html)) == []


def test_contents_are_folded_where_they_stand_above_the_page(browser, html, save):
    page = browser.new_page(viewport={"width": 390, "height": 844})
    try:
        page.goto(save(html).as_uri())
        link = page.locator("nav a").first
        assert not link.is_visible()
        page.locator("nav summary").click()
        assert link.is_visible()
        page.set_viewport_size({"width": 1280, "height": 800})
        assert link.is_visible()
        assert not page.locator("nav summary").is_visible()
    finally:
        page.close()


def test_hostile_names_are_harmless(browser, save):
    names = (
        "<script>throw 1</script>",
        '"><img src=x onerror=alert(1)>',
        "$x_1$",
        "-->",
        "日本",
        "a&b",
        "\x01",
    )
    estimator = fake_estimator(labels=names)
    report = build_report(estimator, evaluation=fake_evaluation(), provenance=provenance())
    assert find_problems(browser, save(render(report))) == []


def test_a_report_without_held_out_rows_opens(browser, save):
    report = build_report(fake_estimator(n_chains=1), evaluation=None, provenance=None)
    keys = [section.key for section in report.sections]
    assert find_problems(browser, save(render(report)), sections=keys, n_figures=2) == []


def test_the_reader_moves_costs_and_threshold(browser, html, save):
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(save(html).as_uri())
    form = page.locator("form.threshold")
    form.locator(".costs").evaluate("e => { e.value = 2; e.dispatchEvent(new Event('input')); }")
    assert form.locator(".ratio").text_content() == "4"
    assert form.locator(".at").text_content() == "20.0 %"
    counts = [int(form.locator(f".n{cell}").text_content()) for cell in ("00", "01", "10", "11")]
    found = fake_evaluation()
    is_called = found.proba[:, 1] >= 0.2
    want = [((found.y_index == c) & (is_called == k)).sum() for c in (0, 1) for k in (False, True)]
    assert counts == want
    cost = (counts[1] + 4 * counts[2]) / len(is_called)
    assert f"at a cost of {cost:.3g} a row" in form.locator(".said").text_content()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()


def test_an_audit_opens(browser, save):
    model = audited()
    audit = audit_labels(model.label_proba_, model.recorded_, model.classes_)
    report = build_report(model, evaluation=None, provenance=provenance(), audit=audit)
    keys = [section.key for section in report.sections]
    assert "boundaries" in keys
    assert find_problems(browser, save(render(report)), sections=keys) == []


@pytest.mark.parametrize("kind", ["labels", "values"])
def test_the_list_of_an_audit_is_seen_on_a_phone(browser, save, kind):
    """From the name of the row to P(wrong), without a swipe."""
    names = replace(RowNames.positions(60), files=("a/june.csv", "b.csv"))
    if kind == "labels":
        classes = np.array(["Iris-setosa", "Iris-versicolor", "very likely benign"])
        audit = audit_labels(
            np.tile([0.04, 0.95, 0.01], (60, 1)), np.repeat(classes, 20), classes, names=names
        )
    else:
        y = np.linspace(-123456.0, 98765.0, 60)
        audit = audit_targets(np.full(60, 0.995), y, y[::-1], np.abs(y), names=names)
    section = Section("audit", "Audit", (), tables=audit_section(audit).tables)
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(save(render(Report("a", "", (), (section,)))).as_uri())
    edge = page.locator("#audit .scroll").bounding_box()
    cells = page.locator("#audit thead th").all()
    last = max(k for k, cell in enumerate(cells) if cell.inner_text() == "P(wrong)")
    box = cells[last].bounding_box()
    assert box["x"] + box["width"] <= edge["x"] + edge["width"]
    page.close()


# A kernel and a pass of three inputs have all that those of fewer have, but for their drawings.
FEWER_INPUTS = [pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]


@pytest.mark.parametrize("d", [*FEWER_INPUTS, 3])
def test_a_learned_kernel_opens(browser, save, d):
    names = ("<b>$x$", "\x01&", "z" * 90)[:d]
    model = learned(d=d, names=names)
    report = build_report(model, evaluation=fake_regression(), provenance=provenance())
    keys = [section.key for section in report.sections]
    assert {"kernel", "spectrum"} < set(keys)
    path = save(render(report))
    assert find_problems(browser, path, sections=keys, n_figures=9) == []
    assert too_wide(browser, path) == []


@pytest.mark.parametrize("d", [*FEWER_INPUTS, 3])
def test_a_pass_over_rows_opens(browser, save, d):
    names = ("<b>$x$", "\x01&", "z" * 90)[:d]
    model = followed(d=d, names=names)
    report = build_report(model, evaluation=fake_regression(), provenance=provenance())
    keys = [section.key for section in report.sections]
    assert {"centres", "pass"} < set(keys)
    path = save(render(report))
    n_figures = 6 + (d < 3)
    assert find_problems(browser, path, sections=keys, n_figures=n_figures) == []
    assert too_wide(browser, path) == []


def too_wide(browser: Browser, path: Path) -> list[int]:
    """Widths of screens beyond which a page reaches, with all its details open."""
    page = browser.new_page()
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('summary').forEach((each) => each.click())")
    found = []
    for width in (360, 400, 768, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        if page.evaluate("document.documentElement.scrollWidth") > width:
            found.append(width)
    page.close()
    return found


def test_the_check_catches_each_emptied_plot(browser, report, save):
    """All of them at once: as many are named as there are."""
    fig = bare_figure(5, 4)
    dress(fig.subplots())
    empty = to_svg(fig)
    sections = [
        replace(each, figures=tuple(replace(figure, svg=empty) for figure in each.figures))
        for each in report.sections
    ]
    problems = find_problems(browser, save(render(replace(report, sections=tuple(sections)))))
    n_figures = sum(len(each.figures) for each in sections)
    assert sum("no drawn marks" in problem for problem in problems) == n_figures > 4


def test_the_check_catches_one_emptied_panel(browser, html, save):
    mutant, n_changed = re.subn(r'id="chains-2-mark-3-', 'id="chains-2-gone-3-', html)
    assert n_changed == 4
    assert find_problems(browser, save(mutant)) == ["no drawn marks in chains-2-axes_4"]


def test_the_check_catches_marks_that_are_not_painted(browser, html, save):
    mutant = html.replace("</style>", '[id*="-mark-"] * { display: none }</style>', 1)
    assert len(find_problems(browser, save(mutant))) > 4


def test_the_check_catches_a_script_error(browser, html, save):
    broken = html.replace('"use strict";', '"use strict"; throw new Error("boom");')
    assert broken != html
    assert any("console error" in p for p in find_problems(browser, save(broken)))
    problems = find_problems(browser, save(_without_policy(broken)))
    assert any("page error: boom" in p for p in problems)


def test_the_check_catches_a_request(browser, html, save):
    elements = (
        '<img src="https://example.org/a.png" alt="">',
        '<link rel="stylesheet" href="other.css">',
        '<script src="https://example.org/a.js"></script>',
    )
    mutant = _without_policy(html).replace("</main>", "".join(elements) + "</main>")
    found = [each for each in find_problems(browser, save(mutant)) if each.startswith("request: ")]
    assert {each.rpartition("/")[2] for each in found} == {"a.png", "other.css", "a.js"}


def test_the_page_forbids_requests(browser, html, save):
    mutant = html.replace("</main>", '<img src="https://example.org/a.png" alt=""></main>')
    problems = find_problems(browser, save(mutant))
    assert problems
    assert all("Content Security Policy" in p for p in problems)


def test_the_check_catches_a_missing_section(browser, report, save):
    """One of them, and then each of them, all at once."""
    keys = [section.key for section in report.sections]
    for kept in (report.sections[1:], ()):
        page = save(render(replace(report, sections=tuple(kept))))
        missing = [f"no section {key!r}" for key in keys if key not in [s.key for s in kept]]
        assert set(missing) == {p for p in find_problems(browser, page, n_figures=0) if "no s" in p}


def test_nothing_is_wider_than_the_screen(browser, html, save):
    assert too_wide(browser, save(html)) == []


@pytest.mark.parametrize("width", [390, 1280])
def test_a_long_name_leaves_room_for_its_numbers(browser, save, width):
    estimator = fake_estimator(labels=("a_name_that_never_ends_" * 4, "b", "c", "d", "e", "f", "g"))
    report = build_report(estimator, evaluation=fake_evaluation(), provenance=provenance())
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(save(render(report)).as_uri())
    names = page.locator(".sortable tbody th", has_text="never_ends").all()
    assert names
    for name in names:
        assert name.bounding_box()["width"] < (270 if width > 400 else 160)
    page.close()


def test_what_is_too_wide_is_seen(browser, html, save):
    wide = html.replace("</main>", '<div style="width: 700px">wide</div></main>', 1)
    assert too_wide(browser, save(wide)) == [360, 400]


def test_a_click_on_a_header_sorts_the_table(browser, html, save):
    page = browser.new_page()
    page.goto(save(html).as_uri())
    header = page.locator("#scores th", has_text="Brier score")
    column = page.locator("#scores thead th").all_inner_texts().index("Brier score") + 1
    cells = page.locator(f"#scores tbody td:nth-child({column})")
    header.locator("button").click()
    assert header.get_attribute("aria-sort") == "ascending"
    up = [float(text) for text in cells.all_inner_texts()]
    assert up == sorted(up)
    header.locator("button").click()
    assert header.get_attribute("aria-sort") == "descending"
    assert [float(text) for text in cells.all_inner_texts()] == up[::-1]
    page.locator("#scores").get_by_role("button", name="model", exact=True).click()
    names = page.locator("#scores tbody th").all_inner_texts()
    assert names == sorted(names, key=str.lower)
    assert header.get_attribute("aria-sort") is None
    page.close()


def test_the_button_copies_the_command(browser, html, save):
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(save(html).as_uri())
    button = page.locator(".command button")
    button.click()
    page.wait_for_function("() => document.querySelector('.command button').textContent !== 'Copy'")
    if button.inner_text() == "Copied":
        assert page.evaluate("navigator.clipboard.readText()") == provenance().command
    else:
        assert page.evaluate("getSelection().toString()") == provenance().command
    context.close()


def test_dark_and_light_text_has_contrast(browser, html, save):
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)
        page.goto(save(html).as_uri())
        page_colour, *colours = page.evaluate(
            """() => [
                getComputedStyle(document.body).backgroundColor,
                ...["body", ".subtitle", "nav a", ".tile .note", "figcaption", "th.number"].map(
                    (s) => getComputedStyle(document.querySelector(s)).color),
                ...[...document.querySelectorAll("figure text")].map(
                    (e) => getComputedStyle(e).fill),
            ]"""
        )
        assert len(colours) > 20
        assert min(_contrast(page_colour, colour) for colour in colours) >= 4.5
        page.close()


def _contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, as WCAG 2 defines it (4.5 is wanted for text)."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
