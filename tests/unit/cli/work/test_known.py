"""Rows to score on: which ones, and what is said of the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mercer.cli.tables import known_rows, read_scored
from mercer.data.encoding import fit_encoder
from mercer.data.tables import read_frame
from mercer.errors import DataError
from mercer.estimation.tasks import CLASSIFICATION, REGRESSION


def test_labels_that_were_not_in_training_are_left_out_and_named() -> None:
    known = known_rows(np.array(["b", "c", "a"], dtype=object), CLASSIFICATION, ("a", "b"))
    assert (known.positions.tolist(), known.y.tolist()) == ([0, 2], [1, 0])
    assert known.notes == (
        "1 of 3 rows have a label that was not in training ('c') and are not scored",
    )


def test_blocks_of_known_rows() -> None:
    known = known_rows(np.array(["x", "a", "b", "x", "a"], dtype=object), CLASSIFICATION, "ab")
    assert [part.tolist() for part in known.within(0, 2)] == [[1], [0]]
    assert [part.tolist() for part in known.within(2, 5)] == [[0, 2], [1, 0]]
    assert [part.tolist() for part in known.within(3, 4)] == [[], []]


def test_rows_are_read_with_their_targets(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,y\n1,2.5\n2,3.5\n")
    frame = read_frame(path)
    encoder = fit_encoder(frame.without(["y"]))
    rows = read_scored(frame, "y", encoder, REGRESSION, ())
    assert (rows.X.tolist(), rows.y.tolist(), rows.notes) == ([[1.0], [2.0]], [2.5, 3.5], ())
    path.write_text("a,y\n1,p\n2,q\n")
    with pytest.raises(DataError, match=r"no row has a label that the model knows \('r', 's'\)"):
        read_scored(read_frame(path), "y", encoder, CLASSIFICATION, ("r", "s"))
