from __future__ import annotations

import xml.etree.ElementTree as ET

import matplotlib as mpl
import pytest

from mercer.plot.style import bare_figure, dress, mark, plain, to_svg


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
