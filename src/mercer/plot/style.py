"""The look that all plots share: colours, axes without clutter, safe text, SVG with text as text.

Nothing here touches Matplotlib's global settings, and Pyplot is imported only where a plot has to
make its own figure for a person at a prompt.
"""

from __future__ import annotations

import io
import re
import unicodedata
import warnings
from typing import Any, Final, Literal

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

# Blue, vermilion, green, purple, sky, amber: Okabe & Ito's colours, told apart by colour-blind
# readers. Amber and sky come last: they are the palest on white.
PALETTE: Final[dict[str, str]] = {
    "ink": "#1d2733",
    "muted": "#566270",
    "grid": "#e2e7ed",
    "band": "#d8dee6",
    "paper": "#fefefe",
    "series-1": "#0072b2",
    "series-2": "#d55e00",
    "series-3": "#009e73",
    "series-4": "#b5588f",
    "series-5": "#56b4e9",
    "series-6": "#e69f00",
}
CHAIN_COLOURS: Final = tuple(PALETTE[f"series-{i}"] for i in range(1, 7))
FONT_SIZE: Final = 10.5
_LONGEST_NAME: Final = 26
Grid = Literal["both", "x", "y"]  # axes on which a grid is drawn


def new_axes(ax: Axes | None, width: float, height: float, *, grid: Grid = "both") -> Axes:
    """Return ``ax``, or the axes of a new Pyplot figure of that size in inches, dressed."""
    ax = new_figure(None, width, height).subplots() if ax is None else ax
    dress(ax, grid=grid)
    return ax


def new_figure(fig: Figure | None, width: float, height: float) -> Figure:
    """Return ``fig``, or a new Pyplot figure of that size in inches."""
    if fig is not None:
        return fig
    import matplotlib.pyplot as plt

    return plt.figure(figsize=(width, height), layout="constrained")


def bare_figure(width: float, height: float) -> Figure:
    """Return a new figure of that size in inches that Pyplot does not know of."""
    return Figure(figsize=(width, height), layout="constrained")


def dress(ax: Axes, *, grid: Grid = "both") -> None:
    """Take the frame away, draw a faint grid on the axes named by ``grid``, set quiet ticks."""
    for side in ("top", "right", "left", "bottom"):
        ax.spines[side].set_visible(False)
    ax.set_facecolor("none")
    ax.set_axisbelow(True)
    ax.grid(visible=False, which="both")
    ax.grid(visible=True, axis=grid, which="major", color=PALETTE["grid"], linewidth=0.8)
    ax.tick_params(
        which="both", length=0, labelsize=FONT_SIZE - 0.5, labelcolor=PALETTE["muted"], pad=5
    )
    for label in (ax.xaxis.label, ax.yaxis.label):
        label.set_color(PALETTE["ink"])
        label.set_fontsize(FONT_SIZE)


def mark(artist: Artist, name: str) -> None:
    """Name the artist that carries data, so that a drawn plot can be told from an empty one."""
    artist.set_gid(f"mark-{name}")


def name_axes(ax: Axes, x: str, y: str) -> None:
    """Say what the axes show."""
    ax.set_xlabel(x, labelpad=8)
    ax.set_ylabel(y, labelpad=8)


def note(
    ax: Axes,
    words: str,
    at: tuple[float, float] = (1.0, 1.0),
    by: tuple[float, float] = (0, 4),
    **how: Any,
) -> None:
    """Write a few words so many points beside a place: above the upper right corner by default.

    Places are shares of the axes, unless ``xycoords`` says otherwise.
    """
    usual = {"color": PALETTE["muted"], "fontsize": FONT_SIZE - 1.5, "ha": "right", "va": "bottom"}
    places = {"xycoords": "axes fraction", "xytext": by, "textcoords": "offset points"}
    ax.annotate(words, at, **{**usual, **places, **how})


def name_shares(axis: Axis, decimals: int = 0) -> None:
    """Write the numbers of an axis, which are shares, in per cent."""
    axis.set_major_formatter(PercentFormatter(1.0, decimals=decimals, symbol=" %"))


def legend_above(
    ax: Axes, n_columns: int, *, handletextpad: float = 0.5, columnspacing: float = 1.2
) -> None:
    """Put the legend above the upper right corner."""
    ax.legend(
        loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=n_columns, frameon=False,
        borderaxespad=0.2, fontsize=FONT_SIZE - 1, labelcolor=PALETTE["ink"],
        handletextpad=handletextpad, columnspacing=columnspacing,
    )  # fmt: skip


def plain(text: str, longest: int = _LONGEST_NAME) -> str:
    """Make a name from a data file safe to draw: one line, not long, no mathematics.

    Control characters (which are not allowed in SVG) and line ends become spaces; a long name
    loses its middle, as names that begin alike often differ at the end; ``longest`` is how many
    characters may stay.
    """
    visible = "".join(" " if unicodedata.category(c).startswith("C") else c for c in text)
    short = " ".join(visible.split())
    if len(short) > longest:
        half = longest // 2
        short = f"{short[:half].rstrip()}…{short[1 - half :].lstrip()}"
    return short.replace("$", r"\$")


def to_svg(fig: Figure) -> str:
    """Return the figure as SVG: text as text, no date, coordinates to a hundredth of a point."""
    buffer = io.StringIO()
    nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
    with (
        mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "mercer"}),
        warnings.catch_warnings(),
    ):
        # The reader's browser draws the text; what Matplotlib's own font lacks does not matter.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        fig.set_dpi(72)
        if (layout := fig.get_layout_engine()) is not None:  # or else all is drawn once more
            layout.execute(fig)
            fig.set_layout_engine(None)
        fig.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    return re.sub(r' d="[^"]*"', _round_path, buffer.getvalue())


def _round_path(path: re.Match[str]) -> str:
    return re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", path[0])
