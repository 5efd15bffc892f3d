from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

from mercer.errors import ModelFileError, StorageError
from mercer.posterior.container import read_container, write_container
from mercer.sampling import checkpoint
from mercer.sampling.checkpoint import RunIdentity, digest_arrays, open_run
from support.runs import ENTROPY, identity


def test_digest_depends_on_type_shape_and_bytes() -> None:
    a = np.arange(6.0)
    others = [a.astype(np.float32), a.reshape(2, 3), a + 1.0, a.astype(">f8"), a[:5]]
    digests = {digest_arrays(x) for x in (a, *others)}
    assert len(digests) == 6
    assert digest_arrays(a, a) != digest_arrays(a)
    assert digest_arrays(np.asfortranarray(a.reshape(2, 3))) == digest_arrays(a.reshape(2, 3))


def test_identity_is_data_and_options_in_any_order() -> None:
    one = RunIdentity("d", {"a": 1, "b": None}, "1")
    assert one.digest == RunIdentity("d", {"b": None, "a": 1}, "2").digest
    others = [RunIdentity("e", one.options, "1"), RunIdentity("d", {"a": 1, "b": 0}, "1")]
    assert len({one.digest, *(other.digest for other in others)}) == 3


def test_large_entropy_survives(tmp_path: Path) -> None:
    entropy = 2**64 - 1
    open_run(tmp_path, identity(), entropy)
    assert open_run(tmp_path, identity(), 0).entropy == entropy


def test_save_and_load(tmp_path: Path) -> None:
    file = open_run(tmp_path, identity(), ENTROPY).chain(3)
    assert file.load() is None
    file.save({"n_done": 5}, {"x": np.arange(3)})
    loaded = file.load()
    assert loaded is not None
    assert loaded[0]["n_done"] == 5
    np.testing.assert_array_equal(loaded[1]["x"], np.arange(3))


def test_what_is_saved_can_be_loaded_whatever_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of strangers have a limit, 8 GiB, which those of many large draws may pass."""
    file = open_run(tmp_path, identity(), ENTROPY).chain(0)
    file.save({}, {"x": np.arange(9.0)})
    limited = functools.partial(read_container, max_bytes=100)
    monkeypatch.setattr(checkpoint, "read_container", limited)
    assert file.load() is not None


def test_is_due_after_the_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = open_run(tmp_path, identity(), ENTROPY).chain(0)
    assert not file.is_due
    monkeypatch.setattr(checkpoint, "_INTERVAL", -1.0)
    assert file.is_due


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot make the checkpoint folder"):
        open_run(tmp_path / "file", identity(), ENTROPY)


@pytest.mark.parametrize(
    "change",
    [{"kind": "chain"}, {"data": "other"}, {"entropy": "x"}, {"entropy": None}, {"version": None}],
    ids=str,
)
def test_an_inconsistent_run_file_is_refused(tmp_path: Path, change: dict) -> None:
    run = open_run(tmp_path, identity(), ENTROPY)
    manifest = {
        "kind": "run", "data": identity().data, "options": {}, "version": "1.0", "entropy": "5",
    } | change  # fmt: skip
    write_container(run.path / "run.mercer", manifest, {})
    with pytest.raises(ModelFileError):
        open_run(tmp_path, identity(), ENTROPY)
