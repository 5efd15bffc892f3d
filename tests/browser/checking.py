"""What is wrong with a report when a browser opens it without a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

__all__ = ["SECTIONS", "find_problems"]

SECTIONS = (
    "scores", "reliability", "coverage", "errors", "fit",
    "relevance", "chains", "diagnostics", "reproduce",
)  # fmt: skip

# Every drawing must have a size, and each of its axes at least one visible mark that carries data
# (the plots name those "mark-..."): axes, grids and labels alone are an empty plot.
_EMPTY_PLOTS = """
() => {
  const isVisible = (element) => {
    const box = element.getBoundingClientRect();
    const style = getComputedStyle(element);
    const isPainted = style.fill !== "none" || style.stroke !== "none";
    return Math.max(box.width, box.height) > 0 && isPainted && style.visibility === "visible";
  };
  const shapes = ["path", "use", "circle", "rect", "line"];
  const marks = shapes.map((shape) => `[id*="-mark-"] ${shape}`).join(", ");
  const problems = [];
  document.querySelectorAll("figure").forEach((figure, i) => {
    const svg = figure.querySelector("svg");
    const box = svg?.getBoundingClientRect();
    if (!svg || box.width < 50 || box.height < 50) {
      problems.push(`figure ${i + 1} has no drawing of any size`);
      return;
    }
    const axes = [...svg.querySelectorAll("g[id]")].filter((g) => /-axes_\\d+$/.test(g.id));
    if (axes.length === 0) problems.push(`figure ${i + 1} has no axes`);
    for (const g of axes) {
      const count = [...g.querySelectorAll(marks)].filter(isVisible).length;
      if (count === 0) problems.push(`no drawn marks in ${g.id}`);
    }
  });
  return problems;
}
"""


def find_problems(
    browser: Browser, path: Path, *, sections: Sequence[str] = SECTIONS, n_figures: int = 5
) -> list[str]:
    """Open a report with the network blocked and list all that is wrong with it.

    Console errors and warnings, uncaught exceptions, any request but the one for the file itself,
    missing or empty sections, missing figures, plots without marks, ids that occur twice.
    """
    problems: list[str] = []
    url = path.resolve().as_uri()
    context = browser.new_context(offline=True)

    def guard(route: Route) -> None:
        if route.request.url == url:
            route.continue_()
            return
        problems.append(f"request: {route.request.url}")
        route.abort()

    try:
        page = context.new_page()
        page.route("**/*", guard)
        page.on("console", lambda m: _note(problems, m.type, m.text))
        page.on("pageerror", lambda error: problems.append(f"page error: {error}"))
        page.goto(url, wait_until="load")
        for key in sections:
            section = page.locator(f"main > section#{key}")
            if section.count() != 1 or not section.locator("h2, p").all_inner_texts():
                problems.append(f"no section {key!r}")
        found = page.locator("figure svg").count()
        if found < n_figures:
            problems.append(f"{found} figures, expected {n_figures}")
        problems += page.evaluate(_EMPTY_PLOTS)
        ids = page.evaluate("() => [...document.querySelectorAll('[id]')].map((e) => e.id)")
        problems += [f"id {name!r} occurs twice" for name in {i for i in ids if ids.count(i) > 1}]
    finally:
        context.close()
    return problems


def _note(problems: list[str], kind: str, text: str) -> None:
    if kind in ("error", "warning"):
        problems.append(f"console {kind}: {text}")
