"""Whatever a file holds: a finite matrix, or one printable line of a typed error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from mercer.data.encoding import fit_encoder
from mercer.data.tables import read_frame
from mercer.errors import MercerError

cells = st.sampled_from(
    [
        "1",
        "-2.5",
        "x",
        "",
        "NA",
        "inf",
        "1e999",
        "true",
        "2024-01-31",
        '"',
        '"a\nb"',
        "\0",
        "\ufeff",
    ]
)
marks = st.sampled_from([",", ",", ",", ";", "\t", "\n", "\n", "\r\n"])
texts = st.lists(st.tuples(cells, marks), max_size=30).map(
    lambda pairs: "a,b\n" + "".join(cell + mark for cell, mark in pairs)
)
contents = st.one_of(
    st.binary(max_size=60), texts.map(str.encode), texts.map(lambda text: text.encode("utf-16"))
)


@seed(8)
@settings(max_examples=150)
@given(content=contents, missing=st.sampled_from(["error", "drop", "impute"]))
def test_d15_any_bytes(tmp_path: Path, content: bytes, missing: str) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    try:
        frame = read_frame(path)
        X = fit_encoder(frame, missing=missing).transform(frame).X  # type: ignore[arg-type]
    except MercerError as error:
        message = str(error)
    else:
        assert np.isfinite(X).all()
        return
    assert message.isprintable()
    assert "data.csv" in message


@pytest.mark.parametrize("missing", ["error", "drop", "impute"])
def test_a_plain_file_passes(tmp_path: Path, missing: str) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b\n1,x\n2,y\n")
    assert fit_encoder(read_frame(path), missing=missing).feature_names == ("a", "b=y")  # type: ignore[arg-type]
