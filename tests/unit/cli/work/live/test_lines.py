from __future__ import annotations

import os

import pytest

from mercer.cli import stream_rows as module
from mercer.cli.stream_rows import MAX_LINE, LineSource
from mercer.errors import StorageError


def read_all(*pieces: bytes) -> list[tuple[int, str, str]]:
    """What a pipe gives whose writer writes in these pieces."""
    reader, writer = os.pipe()
    source = LineSource(reader, "a pipe")
    found = []
    for piece in pieces:
        for begin in range(0, len(piece), 2**15):
            os.write(writer, piece[begin : begin + 2**15])
            assert source.wait(0.0)
            found += source.read()
    os.close(writer)
    while not source.is_over:
        found += source.read()
    os.close(reader)
    return [tuple(line) for line in found]


def test_lines_come_whole_however_they_were_written() -> None:
    expected = [(1, "a,b", ""), (2, "", ""), (3, "ü,2", ""), (4, "end", "")]
    text = "a,b\r\n\nü,2\nend".encode()
    assert read_all(text) == expected
    assert read_all(*(text[k : k + 1] for k in range(len(text)))) == expected
    assert read_all(text + b"\n") == expected


def test_lines_that_are_no_text_are_found_one_by_one() -> None:
    found = read_all(b"a\n\xff\nb\0\nc\n")
    assert [(number, text) for number, text, _ in found] == [(1, "a"), (2, ""), (3, ""), (4, "c")]
    assert ["UTF-8" in found[1][2], "NUL" in found[2][2], found[3][2]] == [True, True, ""]


@pytest.mark.parametrize("ending", [b"\n", b""])
def test_a_line_without_end_takes_no_memory_and_spoils_itself_only(ending: bytes) -> None:
    long = b"x" * (3 * MAX_LINE)
    found = read_all(b"a\n", long, ending, b"b\n" if ending else b"")
    assert [text for _, text, _ in found] == (["a", "", "b"] if ending else ["a", ""])
    assert "longer than" in found[1][2]


def test_a_line_just_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LINE", 10)
    found = read_all(b"0123456789\n01234567890\nb\n")
    assert [bool(problem) for _, _, problem in found] == [False, True, False]


def test_a_wait_ends_when_it_is_woken() -> None:
    reader, writer = os.pipe()
    wake, end = os.pipe()
    source = LineSource(reader, "a pipe", wake)
    assert not source.wait(0.0)
    os.write(end, b"\0")
    assert not source.wait(60.0)
    for descriptor in (reader, writer, wake, end):
        os.close(descriptor)


def test_what_cannot_be_read_is_named(tmp_path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(StorageError, match="somewhere: cannot be read"):
        LineSource(descriptor, "somewhere").read()
    os.close(descriptor)
