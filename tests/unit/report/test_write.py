from __future__ import annotations

import pytest

from mercer.errors import StorageError
from mercer.report import write_report


def test_the_file_holds_the_page_as_utf_8(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    write_report(path, "<p>ä – 日本\udc80</p>")
    assert path.read_bytes() == "<p>ä – 日本?</p>".encode()
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_a_storage_error(tmp_path):
    with pytest.raises(StorageError):
        write_report(tmp_path / "none" / "report.html", "<p>")
    with pytest.raises(StorageError):
        write_report(tmp_path, "<p>")
