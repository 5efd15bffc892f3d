"""The pages: links lead somewhere, commands parse, Python runs, tables are those of the records."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
import warnings
from pathlib import Path

import click
import pytest

from mercer import ConvergenceWarning
from support import verification_page
from support.statistics import few_first

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
IDS = [str(page.relative_to(ROOT)) for page in PAGES]


def test_errata_name_tests_that_are_there() -> None:
    """Each line names a test, or the reproduction whose claims show it."""
    page = (ROOT / "docs" / "errata.md").read_text()
    files = {path.name: path.read_text() for path in (ROOT / "tests").rglob("test_*.py")}
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    rows = [line for line in lines if not line.startswith("| where")]
    assert len(rows) > 20
    for row in rows:
        named = re.findall(r"`(test_\w+\.py)::(\w+)`", row)
        assert named or "](papers/" in row, row
        for file, name in named:
            assert f"def {name}(" in files[file], (file, name)


def commands(text: str) -> list[str]:
    lines = re.findall(r"^ {4}(mercer .*)$", text, re.MULTILINE)
    quoted = re.findall(r"`(mercer [^`]+)`", text)
    return [line.partition("  #")[0].strip() for line in [*lines, *quoted]]


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []


def parse(line: str) -> None:
    """Parse a command line as mercer would, without running it."""
    from mercer.cli.main import cli

    words = shlex.split(line)[1:]
    if words in (["--help"], ["--version"]):
        return
    context = click.Context(cli)
    command = cli.get_command(context, words[0])
    assert command is not None, line
    if "..." not in line and len(words) > 1:
        command.make_context(words[0], words[1:])


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_code_that_needs_more_than_a_plain_install_says_so(page: Path) -> None:
    text = page.read_text()
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        for name in re.findall(r"^(?:import|from) (pandas|polars|pyarrow)", block, re.MULTILINE):
            assert f"pip install {name}" in text


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_extras_are_named_as_the_program_does(page: Path) -> None:
    named = re.findall(r"pip install (\S*\[\w+\]'?)", page.read_text())
    assert [each for each in named if not re.fullmatch(r"'mercer\[\w+\]'", each)] == []


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_commands_parse(page: Path) -> None:
    for line in commands(page.read_text()):
        parse(line)


def test_a_misspelt_option_is_caught() -> None:
    with pytest.raises(click.ClickException):
        parse("mercer fit table.csv --taget y")


_LONG = ("choose-a-kernel", "classify-a-table", "learn-in-one-pass", "learn-the-kernel",
         "missing-inputs", "mix-all-models", "noise-that-varies", "predict-counts",
         "targets-far-off")  # fmt: skip
LONG = ("README.md", *(f"docs/how-to/{name}.md" for name in _LONG))


@pytest.mark.parametrize("page", few_first(IDS, *set(IDS).difference(LONG)))
def test_python_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    for block in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if page != "README.md":  # short chains, which warn, and one page says so
                warnings.simplefilter("ignore", ConvergenceWarning)
            names: dict[str, object] = {}
            exec(compile(block, page, "exec"), names)
            plt.close("all")  # more than twenty warn, in whatever test comes later
        assert "model" in names
        for line, value in re.findall(r"^(.+?)  # ([\[({].*?[\])}])(?:: |$)", block, re.MULTILINE):
            assert eval(line, names) == ast.literal_eval(value), line


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_tables_are_those_of_the_records(page: Path) -> None:
    from reproduce.tables import filled

    assert filled(page.read_text()) == page.read_text()


def test_the_page_of_codes_is_that_of_the_tests() -> None:
    """Made anew by ``python -m support.verification_page`` in the folder tests."""
    page = verification_page.PAGE.read_text()
    assert verification_page.filled(page) == page


def test_every_code_is_on_the_page_of_codes() -> None:
    on_page = set(
        re.findall(r"^\| \*\*([A-Z]+-?\d+)\*\*", verification_page.PAGE.read_text(), re.M)
    )
    assert len(on_page) > 100
    unknown = {}
    for path in [*PAGES, ROOT / "CHANGELOG.md", *(ROOT / "tests").rglob("*.py")]:
        unknown[path] = verification_page.codes_in(path.read_text()) - on_page
    for folder in ("src", "reproduce"):  # where S1 may be a name, but for "trap S1" and KGS-1
        for path in (ROOT / folder).rglob("*.py"):
            unknown[path] = verification_page.long_codes_in(path.read_text()) - on_page
    assert {str(path): sorted(codes) for path, codes in unknown.items() if codes} == {}


def test_what_is_released_agrees_with_the_package() -> None:
    """Requirements and versions of the recipe and the citation are those of the package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text()
    wanted = [f"python {project['requires-python']}", *project["dependencies"]]
    wanted = [re.sub(r"\s*(>=.*)", r" \1", words) for words in wanted]
    wanted = [words.replace("matplotlib ", "matplotlib-base ") for words in wanted]
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    assert [line.strip().removeprefix("- ") for line in run.splitlines()] == wanted
    assert f'version: "{project["version"]}"' in recipe
    assert f"\nversion: {project['version']}\n" in (ROOT / "CITATION.cff").read_text()
    for name in ("LICENSE", "SECURITY.md", "CHANGELOG.md"):
        assert (ROOT / name).is_file()
