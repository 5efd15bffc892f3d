import numpy as np
import pandas as pd
import pytest

from mercer.basis.settings import name_not_finite

_OTHER = pd.DataFrame({"a": [0.0], "b": [np.nan]})
CASES = {
    "first": ([[0.0, 1.0], [np.nan, np.inf]], [0.0, 1.0], "X contains NaN: row 1, column 'x0'"),
    "infinity": ([[0.0, -np.inf]], [0.0], "X contains infinity: row 0, column 'x1'"),
    "target": ([[0.0]], [np.inf], "y contains infinity: row 0"),
    "names": (_OTHER, [1.0], "X contains NaN: row 0, column 'b'"),
    "finite": ([[0.0]], [1.0], None),
    "text": ([["a"]], [1.0], None),
    "ragged": ([[1.0], [1.0, np.nan]], [1.0], None),
    "flat": ([np.nan], [1.0], None),
}  # fmt: skip


@pytest.mark.parametrize(("X", "y", "expected"), CASES.values(), ids=CASES)
def test_words(X, y, expected: str | None) -> None:
    words = name_not_finite(X, y)
    where = " (a position, the first is 0)"
    if words is not None:
        assert where in words
        words = words.replace(where, "")
    assert words == (None if expected is None else f"Input {expected}")
