"""No command writes over what it reads, or twice to one file, by whatever names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mercer.cli.main import main
from mercer.cli.outputs import check_outputs
from mercer.errors import UsageError

FIT = ("fit", "d.csv", "--target", "y")
AUDIT = ("audit", "d.csv", "--target", "y")
CASES = {
    "out over data": (*FIT, "--out", "d.csv"),
    "report over data": (*FIT, "--report", "./d.csv"),
    "report over out": (*FIT, "--out", "new", "--report", "sub/../new"),
    "out over test": (*FIT, "--test", "t.csv", "--out", "t.csv"),
    "report over test": (*FIT, "--test", "t.csv", "--report", "link_to_t.csv"),
    "symbolic link": (*FIT, "--out", "link_to_d.csv"),
    "link not there yet": (*FIT, "--out", "new", "--report", "link_to_new"),
    "hard link": (*FIT, "--out", "hard_d.csv"),
    "absolute": (*FIT, "--out", "{here}/d.csv"),
    "checkpoint's own": (*FIT, "--checkpoint", "state", "--out", "state/run.json"),
    "inside the checkpoint": (*FIT, "--checkpoint", "state", "--report", "state/fit/r.html"),
    "data in the checkpoint": ("fit", "state/fit/c.csv", "--target", "y", "--checkpoint", "state"),
    "part of a folder": ("fit", "parts", "--target", "y", "--out", "parts/a.csv"),
    "link to a part": ("fit", "parts", "--target", "y", "--out", "hard_part"),
    "new part": ("audit", "parts", "--target", "y", "--out", "parts/audit.csv"),
    "audit over data": (*AUDIT, "--out", "d.csv"),
    "audit over its report": (*AUDIT, "--out", "new.csv", "--report", "new.csv"),
    "audit's checkpoint": (*AUDIT, "--checkpoint", "state", "--report", "state/run.json"),
    "predict over model": ("predict", "m.csv", "d.csv", "--out", "m.csv"),
    "predict over data": ("predict", "m.csv", "d.csv", "--out", "d.csv"),
    "query over model": ("query", "m.csv", "d.csv", "--out", "m.csv"),
    "query over pool": ("query", "m.csv", "d.csv", "--out", "link_to_d.csv"),
    "report over model": ("report", "m.csv", "--out", "m.csv"),
    "report over its data": ("report", "m.csv", "d.csv", "--out", "d.csv"),
    "stream over input": ("stream", "d.csv", "--target", "y", "--save", "d.csv"),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for folder in ("sub", "parts", "state", "state/fit"):
        Path(folder).mkdir()
    table = "a,y\n" + "".join(f"{k},{'uv'[k % 2]}\n" for k in range(30))
    for name in ("d.csv", "t.csv", "m.csv", "parts/a.csv", "parts/b.csv", "state/fit/c.csv"):
        Path(name).write_text(table)
    Path("link_to_d.csv").symlink_to("d.csv")
    Path("link_to_t.csv").symlink_to("t.csv")
    Path("link_to_new").symlink_to("sub/../new")
    os.link("d.csv", "hard_d.csv")
    os.link("parts/b.csv", "hard_part")
    return tmp_path


def contents(folder: Path) -> dict[str, str]:
    return {str(path): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("words", CASES.values(), ids=CASES)
def test_it_is_refused_in_one_line_and_nothing_is_touched(
    here: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    before = contents(here)
    code = main([word.replace("{here}", str(here)) for word in words])
    said, err = capsys.readouterr()
    assert code == 2
    assert said == ""
    assert err.count("\n") == 1
    assert "name a" in err
    assert contents(here) == before


@pytest.mark.parametrize(
    ("writes", "reads", "checkpoint"),
    [
        ({"--out": "new.csv", "--report": "new.html"}, {"DATA": "d.csv", "--test": "d.csv"}, None),
        ({"--save": "m.csv"}, {"INPUT": None, "--load": "m.csv"}, None),
        ({"--out": "parts/m.mercer"}, {"DATA": "parts"}, None),
        ({"--out": "wine"}, {"DATA": "iris"}, None),  # names of data sets are no paths
        ({"--out": "state/m.mercer"}, {"DATA": "d.csv"}, "state"),
        ({"--out": "t.csv"}, {"DATA": "d.csv"}, "not/there/yet"),
    ],
)
def test_what_destroys_nothing_is_allowed(here: Path, writes, reads, checkpoint) -> None:
    paths = {option: Path(name) for option, name in writes.items()}
    check_outputs(paths, reads, checkpoint=None if checkpoint is None else Path(checkpoint))


def test_the_load_of_a_stream_is_not_its_input(here: Path) -> None:
    with pytest.raises(UsageError, match=r"--save m.csv and INPUT m.csv are the same file"):
        check_outputs({"--save": Path("m.csv")}, {"INPUT": "m.csv", "--load": "m.csv"})


@pytest.mark.skipif(not os.path.exists("/dev/fd/0"), reason="needs /dev/fd")
@pytest.mark.parametrize(
    ("words", "stdin", "stdout"),
    [
        (("stream", "--target", "y", "--save", "d.csv"), "d.csv", None),
        (("predict", "m.csv", "d.csv"), None, "d.csv"),
        (("predict", "m.csv", "d.csv", "--out", "t.csv"), None, "t.csv"),
    ],
    ids=["saved over standard input", "written over data", "both to one file"],
)
def test_standard_streams_are_files_too(here: Path, words, stdin, stdout) -> None:
    before = contents(here)
    source = subprocess.DEVNULL if stdin is None else open(stdin)  # noqa: SIM115
    sink = subprocess.DEVNULL if stdout is None else open(stdout, "a")  # noqa: SIM115
    done = subprocess.run(
        [sys.executable, "-m", "mercer.cli.main", *words],
        stdin=source,
        stdout=sink,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    for file in (source, sink):
        if file is not subprocess.DEVNULL:
            file.close()
    assert done.returncode == 2, done.stderr
    assert "are the same file" in done.stderr
    assert contents(here) == before
