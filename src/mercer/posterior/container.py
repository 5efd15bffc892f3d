"""The file format of models and checkpoints: a manifest and arrays, summed, never pickled.

**Layout.** 8 bytes `MERCER01`; 32 bytes, the SHA-256 of all that follows; one safetensors block:
8 bytes, the length of its header (little-endian); the header, JSON: for each array its type, shape
and place, and under "__metadata__" the manifest, itself JSON, under the key "manifest"; the arrays'
bytes, little-endian, one after the other without gaps.

**Reading** checks, in this order: kind and size of the file, magic, sum, header (each size against
shape and file length, before any array is made), manifest. A file that passes can still be
hostile: whoever interprets the manifest must take names from closed tables.

**Writing** leaves the old file or the new one, whole (`mercer.posterior.container`).
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
import os
import stat
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from mercer.atomic import replacing
from mercer.errors import MercerError, ModelFileError, StorageError, UsageError


def mercer_version() -> str:
    """Version of the installed package, which every file says."""
    return importlib.metadata.version("mercer")


# JSON that may come from a stranger: finite, shallow, plain, without repeated keys.

MAX_DEPTH = 32  # of lists and objects
MAX_INT = 2**63  # integers are below it in size


def load_json(text: str | bytes, what: str) -> dict[str, Any]:
    """Parse a JSON object, called `what` in messages; the caller has limited its length.

    A ValueError when it is not JSON, not an object, repeats a key, or has a fault (`json_fault`).
    """
    try:
        decoded = text if isinstance(text, str) else text.decode()
        value = json.loads(decoded, object_pairs_hook=_unique_keys)
    except RecursionError:
        raise ValueError(f"the {what} is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"the {what} is not JSON ({type(error).__name__})") from None
    fault = json_fault(value)
    if fault is None and not isinstance(value, dict):
        fault = "not an object"
    if fault is not None:
        raise ValueError(f"the {what} is refused: {fault}")
    return dict(value)


def json_fault(value: Any, depth: int = 1) -> str | None:
    """Say why a value may not stand in a manifest, or None.

    Allowed are None, bool, int below 2^63 in size, finite float, valid Unicode text, and lists,
    tuples and dicts of these, with text for keys, at most 32 deep.
    """
    if not isinstance(value, dict | list | tuple):
        return _scalar_fault(value)
    if depth > MAX_DEPTH:
        return f"nested more than {MAX_DEPTH} deep"
    if isinstance(value, dict):
        for key in value:
            if type(key) is not str:
                return "a key is not text"
            if (fault := _scalar_fault(key)) is not None:
                return fault
    for item in value.values() if isinstance(value, dict) else value:
        if (fault := json_fault(item, depth + 1)) is not None:
            return fault
    return None


def _scalar_fault(item: Any) -> str | None:
    """Say why a single value may not stand in a manifest."""
    if item is None or type(item) is bool:
        return None
    if type(item) is int:
        return None if abs(item) < MAX_INT else "a whole number is too large"
    if type(item) is float:
        return None if math.isfinite(item) else "a number is not finite"
    if type(item) is str:
        return None if _is_unicode(item) else "a text is not valid Unicode"
    return f"it holds a {type(item).__name__}"


def _is_unicode(text: str) -> bool:
    """Whether a text can be encoded (a lone surrogate cannot)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object, refusing a key that comes twice."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key comes twice")
    return result


# Writing a file whole or not at all, from bytes that are at hand.


def write_atomically(path: str | os.PathLike[str], parts: Iterable[bytes]) -> None:
    """Put bytes into a file, or leave the old one as it is (see `mercer.atomic.replacing`)."""
    with replacing(path) as file:
        for part in parts:
            file.write(part)


MAGIC = b"MERCER01"
START = len(MAGIC) + 32  # of the safetensors block; a multiple of 8, so that arrays are aligned
MAX_HEADER = 2**24  # bytes of JSON; bounds what its parsing can allocate

# safetensors' names of the types that an array may have
_TYPES = {
    "BOOL": np.dtype("?"),
    "U8": np.dtype("<u1"),
    "I8": np.dtype("<i1"),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}
_METADATA = "__metadata__"

PathLike = str | os.PathLike[str]


def write_container(
    path: PathLike, manifest: dict[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write a file, or leave the old one as it is; the same contents give the same bytes.

    The manifest is what `json_fault` allows; arrays are booleans, integers and floats of at most 64
    bits, of any shape and memory order. A `UsageError` for anything else.
    """
    fault = json_fault(manifest)
    if fault is not None:
        raise UsageError(f"the manifest cannot be stored: {fault}")
    stored = {name: _storable(name, values) for name, values in arrays.items()}
    block = safetensors.numpy.save(stored, metadata={"manifest": json.dumps(manifest)})
    if int.from_bytes(block[:8], "little") > MAX_HEADER:
        raise UsageError(f"the manifest takes more than {MAX_HEADER} bytes: move data into arrays")
    write_atomically(path, (MAGIC, hashlib.sha256(block).digest(), block))


def read_container(
    path: PathLike, *, max_bytes: int = 2**33
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a file, which may come from a stranger: its manifest and its arrays.

    Arrays can be written to; they share one buffer of the size of the file. A `ModelFileError` when
    it is larger than `max_bytes`, not a mercer file, damaged, or not consistent.
    """
    shown = repr(os.fspath(path))
    data = _read_bytes(path, shown, max_bytes)
    digest = hashlib.sha256(memoryview(data)[START:]).digest()
    if len(data) < START or digest != data[len(MAGIC) : START]:
        raise ModelFileError(f"{shown}: wrong checksum: the file is damaged or cut short")
    try:
        return _parse(data)
    except ValueError as error:
        raise ModelFileError(f"{shown}: not a valid mercer file: {error}") from None


def is_container(path: PathLike) -> bool:
    """Whether there is a file that starts as those of mercer do."""
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):  # ValueError: a NUL byte in the path
        return False


def _read_bytes(path: PathLike, shown: str, max_bytes: int) -> bytearray:
    """Return the bytes of a regular file of acceptable size that starts with the magic."""
    # Not blocking: opening a FIFO returns at once, and its kind is asked of the open file.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise StorageError(f"cannot read {shown}: it is not a regular file")
            if status.st_size > max_bytes:
                raise ModelFileError(f"{shown}: {status.st_size} bytes, the limit is {max_bytes}")
            with open(descriptor, "rb", buffering=0, closefd=False) as file:
                magic = file.read(len(MAGIC))
                if not magic or not MAGIC.startswith(magic):
                    raise ModelFileError(f"{shown}: not a mercer file")
                return _read_rest(file, magic, status.st_size)
        finally:
            os.close(descriptor)
    except MercerError:
        raise
    except MemoryError:
        raise ModelFileError(f"{shown}: does not fit into memory") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise StorageError(f"cannot read {shown}: {reason}") from error


def _read_rest(file: Any, magic: bytes, size: int) -> bytearray:
    """Return the whole file; shorter if it is being cut meanwhile, which the sum will show."""
    data = bytearray(size)
    data[: len(magic)] = magic
    filled = len(magic)
    while filled < size:
        count = file.readinto(memoryview(data)[filled:])
        if not count:
            return data[:filled]
        filled += count
    return data


def _parse(data: bytearray) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Take a safetensors block apart; a ValueError says what is wrong with it."""
    length = int.from_bytes(data[START : START + 8], "little")
    body = START + 8 + length
    if length > MAX_HEADER or body > len(data):
        raise ValueError("the header is larger than the file or than allowed")
    header = load_json(bytes(data[START + 8 : body]), "header")
    metadata = header.pop(_METADATA, None)
    if not isinstance(metadata, dict) or not isinstance(metadata.get("manifest"), str):
        raise ValueError("there is no manifest")
    manifest = load_json(metadata["manifest"], "manifest")
    places = sorted((_place(entry, len(data) - body), name) for name, entry in header.items())
    end = 0
    for (begin, stop), _ in places:
        if begin != end:
            raise ValueError("arrays overlap or leave gaps")
        end = stop
    if body + end != len(data):
        raise ValueError("there are bytes that belong to no array")
    return manifest, {name: _array(header[name], data, body) for _, name in places}


def _place(entry: Any, available: int) -> tuple[int, int]:
    """Return begin and end of an array, once they fit its type, its shape and the file."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError("an array is not described by dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _TYPES:
        raise ValueError("an array has an unknown type")
    if not _are_counts(shape) or not _are_counts(offsets) or len(offsets) != 2:
        raise ValueError("a shape or an offset is not a whole number, or is negative")
    begin, end = offsets
    if not begin <= end <= available or end - begin != math.prod(shape) * _TYPES[dtype].itemsize:
        raise ValueError("the shape of an array does not fit its size")
    return begin, end


def _are_counts(values: Any) -> bool:
    """Whether this is a list of at most 32 whole numbers, none negative."""
    if not isinstance(values, list) or len(values) > 32:
        return False
    return all(type(value) is int and value >= 0 for value in values)


def _array(entry: dict[str, Any], data: bytearray, body: int) -> NDArray[Any]:
    """Return a view of an array whose place has been checked."""
    dtype, shape, (begin, end) = _TYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
    raw = np.frombuffer(data, dtype=np.uint8, count=end - begin, offset=body + begin)
    if dtype.kind == "b" and np.any(raw > 1):
        raise ValueError("an array of booleans holds something else")
    return raw.view(dtype).reshape(shape)


def _storable(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Return an array as it is stored: in C order, little-endian."""
    array = np.asarray(values)
    dtype = array.dtype.newbyteorder("<")
    if not isinstance(name, str) or name == _METADATA or json_fault(name) is not None:
        raise UsageError(f"an array cannot have the name {name!r}")
    if dtype not in _TYPES.values():
        raise UsageError(f"array {name!r} has type {array.dtype}, which cannot be stored")
    return np.asarray(array, dtype=dtype, order="C")
