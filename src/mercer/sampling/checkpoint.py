"""States as named arrays, and checkpoints of a run: a folder a run, a file a chain.

Checkpoints of a run: one folder per digest of data and options, one file per chain.

The run file holds the identity of the run and the entropy that was drawn, so that a run with
``random_state=None`` resumes too. Files are written whole or not at all, and hold no code.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.atomic import locked
from mercer.errors import ModelFileError, StorageError
from mercer.posterior.container import read_container, write_container

# States as named arrays and back, directed by a template of the same type: no pickle.


def pack(value: Any, name: str) -> dict[str, NDArray[Any]]:
    """Flatten dataclass, named tuple, mapping, array or number into arrays ``name/field/...``."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        items = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    elif isinstance(value, Mapping):
        items = dict(value)
    elif isinstance(value, tuple) and hasattr(value, "_asdict"):
        items = value._asdict()
    elif isinstance(value, (np.ndarray, np.generic, float, int)):
        return {name: np.asarray(value)}
    else:
        raise TypeError(f"a state cannot hold a {type(value).__name__} (at {name})")
    arrays: dict[str, NDArray[Any]] = {}
    for key, item in items.items():
        arrays.update(pack(item, f"{name}/{key}"))
    return arrays


def unpack(template: Any, arrays: Mapping[str, NDArray[Any]], name: str) -> Any:
    """Rebuild what ``pack`` flattened; types and keys come from ``template``, never the file."""
    if dataclasses.is_dataclass(template) and not isinstance(template, type):
        fields = {
            f.name: unpack(getattr(template, f.name), arrays, f"{name}/{f.name}")
            for f in dataclasses.fields(template)
        }
        return dataclasses.replace(template, **fields)
    if isinstance(template, tuple) and hasattr(template, "_asdict"):
        items = template._asdict().items()
        return type(template)(*(unpack(item, arrays, f"{name}/{key}") for key, item in items))
    if isinstance(template, Mapping):
        return {key: unpack(item, arrays, f"{name}/{key}") for key, item in template.items()}
    if name not in arrays:
        raise ModelFileError(f"inconsistent checkpoint: {name} is missing")
    array = arrays[name]
    if isinstance(template, np.ndarray):
        if array.dtype != template.dtype or array.ndim != template.ndim:
            raise ModelFileError(f"inconsistent checkpoint: {name} is not of the expected kind")
        return array
    if array.ndim != 0:
        raise ModelFileError(f"inconsistent checkpoint: {name} is not a number")
    return type(template)(array.item())


# A chain is saved at most so often, in seconds: a kill loses no more than this.
_INTERVAL = 5.0


def digest_arrays(*arrays: NDArray[Any]) -> str:
    """SHA-256 over types, shapes and bytes of the arrays."""
    sha = hashlib.sha256()
    for array in arrays:
        sha.update(f"{array.dtype.str}{array.shape}".encode())
        sha.update(np.ascontiguousarray(array).tobytes())
    return sha.hexdigest()


@dataclass(frozen=True)
class RunIdentity:
    """What a run is a function of, next to its entropy: all must agree for it to be resumed."""

    data: str  # digest
    options: Mapping[str, Any]  # what JSON can hold
    version: str

    @property
    def digest(self) -> str:
        """Name of the folder: data and options, not the version."""
        text = json.dumps({"data": self.data, "options": self.options}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass
class ChainFile:
    """The checkpoint of one chain."""

    path: Path
    run: str
    _last: float = field(default_factory=time.monotonic)

    def load(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]] | None:
        """Return manifest and arrays, or None where there is no checkpoint yet."""
        if not self.path.exists():
            return None
        with self.remedied():
            manifest, arrays = read_container(self.path, max_bytes=sys.maxsize)  # no stranger's
            if manifest.get("kind") != "chain" or manifest.get("run") != self.run:
                raise ModelFileError(f"{self.path}: not a checkpoint of this run")
        return manifest, arrays

    @contextmanager
    def remedied(self) -> Iterator[None]:
        """Say of a file that cannot be used what to do about it."""
        try:
            yield
        except ModelFileError as error:
            words = str(error)
            if str(self.path) not in words:
                words = f"{self.path}: {words}"
            raise ModelFileError(
                f"{words}; remove this file, and the same run draws this chain again"
            ) from error

    def save(self, manifest: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write the checkpoint, whole or not at all."""
        content = {"kind": "chain", "run": self.run, **manifest}
        write_container(self.path, content, dict(arrays))
        self._last = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether enough time has passed since the last save."""
        return time.monotonic() - self._last > _INTERVAL


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run, with the entropy of its random streams."""

    path: Path
    entropy: int
    is_resumed: bool

    def chain(self, index: int) -> ChainFile:
        """Return the checkpoint of one chain."""
        return self.file(f"chain-{index}")

    def file(self, name: str) -> ChainFile:
        """Return the checkpoint of that name."""
        return ChainFile(self.path / f"{name}.mercer", f"{self.path.name}-{self.entropy}")


def open_run(
    folder: Path, identity: RunIdentity, entropy: int, held: ExitStack | None = None
) -> RunFolder:
    """Find the run with this identity in ``folder``, or begin one with ``entropy``.

    The run is kept from all others until ``held`` is closed. A `ModelFileError` if the run that is
    there was made by another version, or is damaged; a `StorageError` if another process has it in
    hand.
    """
    path = folder / identity.digest
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{path}: cannot make the checkpoint folder: {error}") from error
    if held is not None:
        held.enter_context(locked(path))
    return _open_run(path, identity, entropy)


def _open_run(path: Path, identity: RunIdentity, entropy: int) -> RunFolder:
    """Read the file of a run, or write it."""
    run_file = path / "run.mercer"
    if not run_file.exists():
        manifest = {
            "kind": "run",
            "data": identity.data,
            "options": dict(identity.options),
            "version": identity.version,
            "entropy": str(entropy),
        }
        write_container(run_file, manifest, {})
        return RunFolder(path, entropy, is_resumed=False)
    remedy = f"remove the folder {path} to begin again"
    try:
        manifest, _ = read_container(run_file)
    except ModelFileError as error:
        raise ModelFileError(f"{error}; {remedy}") from error
    if manifest.get("version") != identity.version:
        raise ModelFileError(
            f"{run_file}: begun by mercer {manifest.get('version')}, this is {identity.version}; "
            "finish it with that version or remove the folder"
        )
    if manifest.get("kind") != "run" or manifest.get("data") != identity.data:
        raise ModelFileError(f"{run_file}: inconsistent with the name of its folder; {remedy}")
    try:
        return RunFolder(path, int(str(manifest["entropy"])), is_resumed=True)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{run_file}: inconsistent, no entropy in it; {remedy}") from error
