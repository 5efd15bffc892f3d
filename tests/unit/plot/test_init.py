from __future__ import annotations

import subprocess
import sys

import pytest

import mercer.plot
from mercer.plot.style import new_axes, new_figure


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
