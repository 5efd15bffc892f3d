"""The file format: what comes back, and what must not get in."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import pickle
import tarfile
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mercer.errors import ModelFileError, StorageError, UsageError
from mercer.posterior import container
from mercer.posterior.container import MAGIC, START, read_container, write_container

MANIFEST = {"estimator": "GPClassifier", "n": 3, "scale": 0.5, "names": ["ä", "b"], "more": {}}
ARRAYS = {"weights": np.arange(6.0).reshape(2, 3), "mask": np.array([True, False])}


def sealed(block: bytes) -> bytes:
    """Put magic and a right sum before a block, as an attacker can."""
    return MAGIC + hashlib.sha256(block).digest() + block


def block(header: Any, body: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + body


def described(manifest: str = "{}", **entries: Any) -> dict[str, Any]:
    return {"__metadata__": {"manifest": manifest}, **entries}


def entry(dtype: Any = "F64", shape: Any = (2,), offsets: Any = (0, 16)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.mercer"


@pytest.fixture
def small(path: Path) -> bytes:
    write_container(path, MANIFEST, ARRAYS)
    return path.read_bytes()


def test_comes_back(path: Path) -> None:
    write_container(path, MANIFEST, ARRAYS)
    manifest, arrays = read_container(path)
    assert manifest == MANIFEST
    assert set(arrays) == set(ARRAYS)
    for name, values in ARRAYS.items():
        assert arrays[name].dtype == values.dtype
        np.testing.assert_array_equal(arrays[name], values)
        assert arrays[name].flags.writeable
        assert arrays[name].flags.aligned


@settings(max_examples=60)
@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=8),
        hnp.arrays(
            st.sampled_from([np.dtype(t) for t in "?bhiqBHIQefd"])
            | st.sampled_from([np.dtype(">f8"), np.dtype(">i4")]),
            hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
        ),
        max_size=4,
    )
)
def test_any_arrays_come_back(path: Path, arrays: dict[str, np.ndarray]) -> None:
    write_container(path, {}, arrays)
    _, found = read_container(path)
    assert set(found) == set(arrays)
    for name, values in arrays.items():
        assert found[name].dtype == values.dtype.newbyteorder("<")
        assert found[name].shape == values.shape
        np.testing.assert_array_equal(found[name], values)


@pytest.mark.parametrize("order", ["F", "strided", "reversed"])
def test_memory_order(path: Path, order: str) -> None:
    x = np.arange(24.0).reshape(4, 6)
    view = {"F": np.asfortranarray(x), "strided": x[::2, ::3], "reversed": x[::-1]}[order]
    write_container(path, {}, {"x": view})
    np.testing.assert_array_equal(read_container(path)[1]["x"], view)


def test_same_content_same_bytes(path: Path, small: bytes) -> None:
    write_container(path, dict(MANIFEST), dict(reversed(ARRAYS.items())))
    assert path.read_bytes() == small


def test_the_block_is_safetensors(small: bytes) -> None:
    found = safetensors.numpy.load(small[START:])
    np.testing.assert_array_equal(found["weights"], ARRAYS["weights"])


@pytest.mark.parametrize(
    "values",
    [
        np.array(["text"]),
        np.array([object()]),
        np.array([1j]),
        np.array(["2020"], dtype="M8[D]"),
        np.zeros(2, dtype=[("a", "f8")]),
        np.zeros(2, dtype=np.longdouble),
    ],
)
def test_other_types_are_refused(path: Path, values: np.ndarray) -> None:
    with pytest.raises(UsageError, match="'x' has type"):
        write_container(path, {}, {"x": values})
    assert not path.exists()


@pytest.mark.parametrize("name", ["__metadata__", "\ud800", 3])
def test_other_names_are_refused(path: Path, name: Any) -> None:
    with pytest.raises(UsageError, match="name"):
        write_container(path, {}, {name: np.zeros(1)})


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 2**63, {1: 2}, b"x", np.float64(1.0), {"a": object()}]
)
def test_a_manifest_that_could_not_be_read_is_not_written(path: Path, value: Any) -> None:
    with pytest.raises(UsageError, match="manifest"):
        write_container(path, {"a": value}, {})
    assert not path.exists()


def test_a_manifest_that_is_too_large_is_not_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "MAX_HEADER", 1000)
    with pytest.raises(UsageError, match="move data into arrays"):
        write_container(path, {"a": "x" * 1000}, {})
    assert not path.exists()


# F1: damage


def test_truncated_at_any_offset(path: Path, small: bytes) -> None:
    for size in range(len(small)):
        path.write_bytes(small[:size])
        with pytest.raises(ModelFileError, match="checksum" if size else "not a mercer file"):
            read_container(path)


def test_any_byte_changed(path: Path, small: bytes) -> None:
    for offset in range(len(small)):
        damaged = bytearray(small)
        damaged[offset] ^= 0xFF
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError, match="not a mercer" if offset < 8 else "checksum"):
            read_container(path)


def test_bits_flipped(path: Path, small: bytes) -> None:
    rng = np.random.default_rng(17)
    for place in rng.choice(8 * len(small), size=300, replace=False):
        damaged = bytearray(small)
        damaged[place // 8] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError):
            read_container(path)


def test_bytes_appended(path: Path, small: bytes) -> None:
    path.write_bytes(small + b"\0")
    with pytest.raises(ModelFileError, match="checksum"):
        read_container(path)


def test_mutants_with_a_right_sum_are_refused_or_whole(path: Path, small: bytes) -> None:
    """A right sum over a damaged block: nothing but ModelFileError, or arrays that fit."""
    rng = np.random.default_rng(18)
    for _ in range(300):
        inner = bytearray(small[START:])
        for _ in range(rng.integers(1, 4)):
            inner[rng.integers(len(inner))] = rng.integers(256)
        path.write_bytes(sealed(bytes(inner)))
        try:
            _, arrays = read_container(path)
        except ModelFileError:
            continue
        assert sum(values.nbytes for values in arrays.values()) <= len(inner)


# F3, F4: other kinds of file under the suffix


class Canary:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


def foreign(kind: str, canary: Path) -> bytes:
    pickled = pickle.dumps(Canary(canary))
    buffer = io.BytesIO()
    if kind == "pickle":
        buffer.write(pickled)
    elif kind == "zip":
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr(str(canary), "x")
    elif kind == "tar":
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            archive.addfile(tarfile.TarInfo(str(canary)))
    elif kind == "npy":
        np.save(buffer, np.array([Canary(canary)], dtype=object), allow_pickle=True)
    elif kind == "npz":
        np.savez(buffer, a=np.array([Canary(canary)], dtype=object))
    else:
        buffer.write(safetensors.numpy.save({"a": np.zeros(2)}))
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["pickle", "zip", "tar", "npy", "npz", "safetensors"])
@pytest.mark.parametrize("is_sealed", [False, True])
def test_foreign_files(path: Path, tmp_path: Path, kind: str, is_sealed: bool) -> None:
    canary = tmp_path / "canary"
    content = foreign(kind, canary)
    path.write_bytes(sealed(content) if is_sealed else content)
    with pytest.raises(ModelFileError, match="valid mercer" if is_sealed else "not a mercer file"):
        read_container(path)
    assert not canary.exists()


def test_an_empty_file(path: Path) -> None:
    path.touch()
    with pytest.raises(ModelFileError, match="not a mercer file"):
        read_container(path)


# F5, F7: a right sum over a hostile block

HOSTILE = {
    "no header": b"",
    "short length": b"\1\0",
    "length beyond the file": block(b"{}", length=10**6),
    "length of 2^63": block(b"{}", length=2**63),
    "not JSON": block(b"not json"),
    "list": block([]),
    "no metadata": block({}),
    "metadata of a wrong type": block({"__metadata__": []}),
    "no manifest": block({"__metadata__": {}}),
    "manifest of a wrong type": block({"__metadata__": {"manifest": {}}}),
    "manifest is no JSON": block(described("x")),
    "manifest is a list": block(described("[]")),
    "manifest with NaN": block(described('{"a": NaN}')),
    "manifest with 1e999": block(described('{"a": 1e999}')),
    "manifest with a huge number": block(described('{"a": ' + "9" * 400 + "}")),
    "manifest repeats a key": block(described('{"a": 1, "a": 2}')),
    "manifest is a bomb": block(described('{"a": ' + "[" * 10**5 + "]" * 10**5 + "}")),
    "manifest is wide and deep": block(described('{"a": ' + "[" * 40 + "]" * 40 + "}")),
    "header is a bomb": block(b'{"a":' * 10**5 + b"1" + b"}" * 10**5),
    "header with NaN": block(b'{"__metadata__": {"manifest": "{}"}, "x": NaN}'),
    "array twice": block(b'{"__metadata__": {"manifest": "{}"}, "x": {}, "x": {}}'),
    "1e12 items": block(described(x=entry(shape=[10**12], offsets=[0, 8 * 10**12]))),
    "1e12 items in 16 bytes": block(described(x=entry(shape=[10**12])), bytes(16)),
    "shape does not fit": block(described(x=entry(shape=[3])), bytes(16)),
    "itemsize does not fit": block(described(x=entry(dtype="F32")), bytes(16)),
    "overflowing shape": block(described(x=entry(shape=[2**32, 2**32], offsets=[0, 0]))),
    "empty, but too long": block(described(x=entry(shape=[0, 2**63 - 1, 9], offsets=[0, 0]))),
    "33 axes": block(described(x=entry(shape=[1] * 33, offsets=[0, 8])), bytes(8)),
    "negative shape": block(described(x=entry(shape=[-1, -2])), bytes(16)),
    "fractional shape": block(described(x=entry(shape=[2.0])), bytes(16)),
    "boolean shape": block(described(x=entry(shape=[True], offsets=[0, 8])), bytes(8)),
    "text for a shape": block(described(x=entry(shape="2")), bytes(16)),
    "negative offset": block(described(x=entry(offsets=[-16, 0])), bytes(16)),
    "reversed offsets": block(described(x=entry(offsets=[16, 0])), bytes(16)),
    "three offsets": block(described(x=entry(offsets=[0, 16, 16])), bytes(16)),
    "offsets beyond the file": block(described(x=entry(offsets=[8, 24])), bytes(16)),
    "overlap": block(described(x=entry(), y=entry(offsets=[8, 24])), bytes(24)),
    "gap": block(described(x=entry(offsets=[8, 24])), bytes(24)),
    "bytes left over": block(described(x=entry()), bytes(17)),
    "unknown type": block(described(x=entry(dtype="BF16", shape=[8])), bytes(16)),
    "object type": block(described(x=entry(dtype="O")), bytes(16)),
    "type of a wrong type": block(described(x=entry(dtype=["F64"])), bytes(16)),
    "missing field": block(described(x={"dtype": "F64", "shape": [2]}), bytes(16)),
    "additional field": block(described(x={**entry(), "strides": [8]}), bytes(16)),
    "array is a number": block(described(x=3), bytes(16)),
    "boolean 2": block(described(x=entry(dtype="BOOL", offsets=[0, 2])), b"\1\2"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_blocks(path: Path, name: str) -> None:
    path.write_bytes(sealed(HOSTILE[name]))
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match="not a valid mercer file") as caught:
            read_container(path)
        assert tracemalloc.get_traced_memory()[1] < 100 * path.stat().st_size + 2**20
    finally:
        tracemalloc.stop()
    assert str(caught.value).isprintable()


def test_a_header_that_is_too_large(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_container(path, {"a": "x" * 1000}, {})
    monkeypatch.setattr(container, "MAX_HEADER", 1000)
    with pytest.raises(ModelFileError, match="header"):
        read_container(path)


def test_an_empty_container(path: Path) -> None:
    write_container(path, {}, {})
    assert read_container(path) == ({}, {})


# Files that cannot be read


def test_size_limit_comes_before_reading(path: Path, small: bytes) -> None:
    with pytest.raises(ModelFileError, match=f"the limit is {len(small) - 1}"):
        read_container(path, max_bytes=len(small) - 1)
    read_container(path, max_bytes=len(small))


def test_a_sparse_giant_is_not_read(path: Path) -> None:
    with open(path, "wb") as file:
        file.write(MAGIC)
        file.truncate(2**34)
    with pytest.raises(ModelFileError, match="limit"):
        read_container(path)


@pytest.mark.parametrize("kind", ["missing", "folder", "fifo", "dangling", "device", "nul", "loop"])
def test_what_is_not_a_file(path: Path, kind: str) -> None:
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "dangling":
        path.symlink_to("nowhere")
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "nul":
        path = path.with_name("a\0b")
    with pytest.raises(StorageError, match="cannot read"):
        read_container(path)


def test_no_permission(path: Path, small: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StorageError, match="Permission denied"):
        read_container(path)


def test_no_memory(path: Path, small: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> bytearray:
        raise MemoryError

    monkeypatch.setattr(container, "_read_rest", refuse)
    with pytest.raises(ModelFileError, match="memory"):
        read_container(path)


def test_a_file_that_shrinks_while_it_is_read(small: bytes) -> None:
    file = io.BytesIO(small[8:100])
    assert container._read_rest(file, small[:8], len(small)) == small[:100]


def test_no_descriptor_is_leaked(path: Path, small: bytes) -> None:
    folder = Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("no /proc here")
    before = len(list(folder.iterdir()))
    read_container(path)
    path.write_bytes(b"x")
    with pytest.raises(ModelFileError):
        read_container(path)
    with pytest.raises(StorageError):
        read_container(path.parent)
    assert len(list(folder.iterdir())) == before


def test_messages_escape_control_characters(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[2J.mercer"
    path.write_bytes(b"x")
    with pytest.raises(ModelFileError) as caught:
        read_container(path)
    assert str(caught.value).isprintable()


def test_a_failing_write_keeps_the_old_file(
    path: Path, small: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for name in ("replace", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, refuse)
            with pytest.raises(StorageError, match="No space left"):
                write_container(path, {"new": True}, {})
        assert read_container(path)[0] == MANIFEST
        assert os.listdir(path.parent) == [path.name]
