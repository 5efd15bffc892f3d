"""How plots look, and by which names they are found."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET

import matplotlib as mpl
import pytest

import mercer.plot
from mercer.plot.style import bare_figure, dress, mark, new_axes, new_figure, plain, to_svg

# Style.


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("glu", "glu"),
        ("$x_1$", r"\$x_1\$"),
        ("two\nlines\tand\x00more", "two lines and more"),
        ("a" * 20 + "b" * 20, "a" * 13 + "…" + "b" * 12),
        ("", ""),
    ],
)
def test_names_become_safe_to_draw(name, shown):
    assert plain(name) == shown


def test_svg_keeps_text_as_text_and_is_the_same_each_time():
    def draw() -> str:
        fig = bare_figure(3, 2)
        ax = fig.subplots()
        dress(ax)
        (line,) = ax.plot([0, 1 / 3, 1], [0, 2 / 3, 1])
        mark(line, "line")
        ax.set_title(plain("$cost$ <b> & 日本"))
        return to_svg(fig)

    svg = draw()
    assert svg == draw()
    root = ET.fromstring(svg)
    texts = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "$cost$ <b> & 日本" in texts
    assert 'id="mark-line"' in svg
    assert "<dc:date>" not in svg
    assert not any(len(number.partition(".")[2]) > 2 for d in _paths(root) for number in d)


def _paths(root: ET.Element) -> list[list[str]]:
    paths = root.iter("{http://www.w3.org/2000/svg}path")
    return [(path.get("d") or "").split() for path in paths]


def test_drawing_leaves_the_global_settings_alone():
    before = dict(mpl.rcParams)
    fig = bare_figure(2, 2)
    dress(fig.subplots())
    to_svg(fig)
    assert dict(mpl.rcParams) == before


# Init.


def test_importing_loads_no_matplotlib_and_report_no_pyplot():
    code = (
        "import sys, mercer.plot; assert 'matplotlib' not in sys.modules; "
        "import mercer.report; assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_functions_are_found_and_unknown_names_are_not():
    for name in mercer.plot.__all__:
        assert callable(getattr(mercer.plot, name))
    assert dir(mercer.plot) == sorted(mercer.plot.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = mercer.plot.nonsense


def test_without_axes_a_pyplot_figure_is_made(monkeypatch):
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    ax = new_axes(None, 3.0, 2.0)
    assert ax.figure.number in plt.get_fignums()
    assert new_axes(ax, 9.0, 9.0) is ax
    assert new_figure(ax.figure, 9.0, 9.0) is ax.figure
    plt.close(ax.figure)
