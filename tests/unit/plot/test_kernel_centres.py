from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import UsageError
from mercer.plot import centres
from mercer.plot.style import bare_figure
from support.followed import bumps, followed


def _draw(model, *arguments, **named):
    return centres(model, *arguments, ax=bare_figure(5, 4).subplots(), **named)


def _marked(ax, name):
    return next(a for a in ax.get_children() if a.get_gid() == f"mark-{name}")


def test_along_one_input_the_centres_stand_on_the_sum() -> None:
    model = followed()
    ax, summary = _draw(model, 5), model.summarise(5)
    x, y = _marked(ax, "centres").get_data()
    np.testing.assert_array_equal(x, summary.centres[:, 0])
    np.testing.assert_allclose(y, summary.predict(summary.centres))
    x, y = _marked(ax, "sum").get_data()
    np.testing.assert_allclose(np.ravel(y), summary.predict(np.reshape(x, (-1, 1))))
    assert (np.min(x), np.max(x)) == (model.candidates_.min(), model.candidates_.max())
    x, mean = _marked(ax, "mean").get_data()
    np.testing.assert_allclose(mean, model.predict(x[:, np.newaxis]))
    assert [t.get_text() for t in ax.get_legend().get_texts()][-1] == "5 kernels"


def test_in_two_inputs_circles_are_as_large_as_kernels_are_high() -> None:
    model = followed(d=2, names=("a", "b"))
    ax, summary = _draw(model, 6), model.summarise(6)
    circles = _marked(ax, "centres")
    np.testing.assert_allclose(circles.get_offsets(), summary.centres)
    areas, heights = circles.get_sizes(), np.abs(summary.coef)
    assert areas.argsort().tolist() == heights.argsort().tolist()
    colours = np.unique(circles.get_facecolors(), axis=0)
    assert len(colours) == len(np.unique(np.sign(summary.coef)))
    assert len(_marked(ax, "candidates").get_xdata()) == 120
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "b")


def test_of_several_inputs_two_are_named() -> None:
    model = followed(d=3, names=("a", "b", "c"))
    with pytest.raises(UsageError, match="the model has 3: name two"):
        _draw(model)
    ax = _draw(model, columns=("c", 0))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("c", "a")
    with pytest.raises(UsageError, match="no input 'd'"):
        _draw(model, columns=("a", "d"))
    for wrong in (("a", "a"), ("a",), ("a", "b", "c")):
        with pytest.raises(UsageError, match="columns must be two inputs"):
            _draw(model, columns=wrong)


def test_there_may_be_fewer_rows_than_kernels_wanted() -> None:
    ax = _draw(followed(n=4), 10)
    assert len(_marked(ax, "centres").get_xdata()) <= 4
    assert len(bumps(4)[1]) == 4
