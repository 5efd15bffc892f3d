"""What the site has beside its pages: examples that are run as it is built, formulas as MathML.

An example is a file of `docs/gallery`: its docstring is the head of a page, `# %%` begins a cell,
the comment that a cell begins with is text, and what the cell prints and draws follows it.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
_NAV = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
#: In the order in which the site names them.
EXAMPLES = sorted((DOCS / "gallery").glob("*.py"), key=lambda path: _NAV.find(path.stem))
CARDS = "<!-- gallery -->"


@dataclass
class Cell:
    """A part of an example: text, code, and what the code printed and drew."""

    text: str
    code: str
    printed: str = ""
    pictures: list[bytes] = field(default_factory=list)


@dataclass
class Example:
    """An example that was run."""

    name: str
    title: str
    lead: str  # the first paragraph
    rest: str
    cells: list[Cell]

    def page(self) -> str:
        """Write the page, in Markdown."""
        parts = [f"# {self.title}", self.lead, self.rest]
        number = 0
        for cell in self.cells:
            parts += [cell.text, f"```python\n{cell.code}\n```"]
            if cell.printed:
                parts.append(f"```text\n{cell.printed.rstrip()}\n```")
            for _ in cell.pictures:
                number += 1
                parts.append(f"![{self.title}]({self.name}-{number}.png)")
        parts.append(
            f"[This page as a notebook]({self.name}.ipynb), with what it printed and drew."
        )
        return "\n\n".join(part for part in parts if part) + "\n"

    def notebook(self) -> str:
        """Write it as a Jupyter notebook, with what its cells printed and drew."""
        from nbformat import v4, writes

        cells = [v4.new_markdown_cell(f"# {self.title}\n\n{self.lead}\n\n{self.rest}".strip())]
        for cell in self.cells:
            seen = [v4.new_output("stream", text=cell.printed)] if cell.printed else []
            for picture in cell.pictures:
                data = {"image/png": base64.b64encode(picture).decode()}
                seen.append(v4.new_output("display_data", data=data))
            cells += [v4.new_markdown_cell(cell.text)] if cell.text else []
            cells.append(v4.new_code_cell(cell.code, outputs=seen))
        for number, cell in enumerate(cells):
            cell["id"] = f"{self.name}-{number}"[-64:]  # the same whenever the site is built
        return str(writes(v4.new_notebook(cells=cells)))

    def pictures(self) -> dict[str, bytes]:
        """Return the drawings, by the names of their files."""
        drawn = [picture for cell in self.cells for picture in cell.pictures]
        return {f"{self.name}-{k}.png": picture for k, picture in enumerate(drawn, 1)}


def read_example(path: Path) -> Example:
    """Cut an example into cells, without running it."""
    source = path.read_text(encoding="utf-8")
    title, _, words = (ast.get_docstring(ast.parse(source)) or "").partition("\n")
    lead, _, rest = words.strip().partition("\n\n")
    cells = []
    for part in re.split(r"^# %%.*\n", source, flags=re.MULTILINE)[1:]:
        lines = part.strip("\n").split("\n")
        n_text = next((k for k, line in enumerate(lines) if not line.startswith("#")), len(lines))
        text = "\n".join(line.lstrip("#").strip() for line in lines[:n_text])
        cells.append(Cell(text, "\n".join(lines[n_text:]).strip("\n")))
    return Example(path.stem, title.strip(), lead, rest, cells)


def run_example(path: Path) -> Example:
    """Run the cells of an example one after the other, and keep what they print and draw."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    example, known = read_example(path), {"__name__": "__main__"}
    for cell in example.cells:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(cell.code, str(path), "exec"), known)
        cell.printed = said.getvalue()
        for number in plt.get_fignums():
            file = io.BytesIO()
            plt.figure(number).savefig(file, dpi=130, facecolor="white")
            cell.pictures.append(file.getvalue())
        plt.close("all")
    return example


def cards(examples: list[Example], folder: str) -> str:
    """Write one card for each example, with its first picture, as Markdown."""
    lines = [
        f"-   [![{each.title}]({folder}{each.name}-1.png)]({folder}{each.name}.md)\n\n"
        f"    **[{each.title}]({folder}{each.name}.md)**\n\n    {' '.join(each.lead.split())}"
        for each in examples
    ]
    return '<div class="grid cards" markdown>\n\n' + "\n\n".join(lines) + "\n\n</div>"


def on_files(files: Any, config: Any) -> Any:
    """Run the examples, and add their pages and pictures."""
    from mkdocs.structure.files import File

    done = [run_example(path) for path in EXAMPLES]
    config.extra["cards"] = {folder: cards(done, folder) for folder in ("gallery/", "")}
    head = (
        "# Gallery\n\nExamples that run within seconds, as they ran when this page was built; "
        "each is a notebook, too.\n\n"
    )
    pages = {"index": head + CARDS} | {each.name: each.page() for each in done}
    for name, text in pages.items():
        files.append(File.generated(config, f"gallery/{name}.md", content=text))
    for each in done:
        beside = {f"{each.name}.ipynb": each.notebook(), **each.pictures()}
        for name, content in beside.items():
            files.append(File.generated(config, f"gallery/{name}", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Put the cards where they belong, and formulas of theory pages as MathML."""
    uri = page.file.src_uri
    if CARDS in markdown:
        folder = "" if uri.startswith("gallery/") else "gallery/"
        markdown = markdown.replace(CARDS, config.extra["cards"][folder])
    return with_formulas(markdown) if uri.startswith("theory/") else markdown


def with_formulas(markdown: str) -> str:
    """Turn $$...$$ and $...$ into MathML, which browsers draw without scripts or fonts."""
    from latex2mathml.converter import convert

    def block(found: re.Match[str]) -> str:
        formula = convert(found[1].strip(), display="block")
        return f'\n\n<div style="overflow-x: auto">{formula}</div>\n\n'

    markdown = re.sub(r"\$\$(.+?)\$\$", block, markdown, flags=re.DOTALL)
    # In a span, so that a formula at the begin of a line does not begin a block.
    return re.sub(r"\$([^$]+?)\$", lambda found: f"<span>{convert(found[1])}</span>", markdown)
