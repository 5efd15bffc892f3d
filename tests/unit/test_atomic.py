"""What `tests/unit/posterior/test_atomic.py` does not show of a file that is replaced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mercer.atomic import replacing
from mercer.errors import DataError


def test_what_is_written_may_be_written_over(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"0 rows and the rows")
        file.seek(0)
        file.write(b"9")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"9 rows and the rows"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [ValueError("wrong"), DataError("wrong"), KeyboardInterrupt()])
def test_errors_of_the_block_pass_as_they_are(tmp_path: Path, error: BaseException) -> None:
    def write() -> None:
        with replacing(tmp_path / "file") as file:
            file.write(b"half")
            raise error

    with pytest.raises(type(error)) as caught:
        write()
    assert caught.value is error
    assert os.listdir(tmp_path) == []
