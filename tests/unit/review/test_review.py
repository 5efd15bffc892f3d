"""A review of labels: its journal, what it asks, the page's server."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from mercer.cli import review as reviews
from mercer.cli.main import main
from mercer.cli.options import TableOptions
from mercer.cli.review import beside, read_labels, write_reviewed
from mercer.cli.terminal import Session
from mercer.errors import DataError, StorageError, UsageError
from mercer.review import reviewer as reviewing
from mercer.review.journal import Journal, open_journal
from mercer.review.reviewer import Labels, Reviewer, StaleError
from mercer.sphere import selection

starlette_client = pytest.importorskip("starlette.testclient")

N = 60
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 2))
TRUE = np.where(X[:, 0] > 0.0, "yes", "no")
FLIPPED = np.zeros(N, dtype=bool)
FLIPPED[np.argsort(-np.abs(X[:, 0]))[:4]] = True  # far from the boundary: they can be seen
GIVEN = np.where(FLIPPED, np.where(TRUE == "yes", "no", "yes"), TRUE)
IDENTITY = {"data": "d", "target": "y", "classes": ["no", "yes"], "n_rows": N}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"n_draws": 60, "n_warmup": 30, "n_chains": 2, "progress": False}
    monkeypatch.setattr(reviewing, "_QUICK", {**own, "lengthscale": 2.0, "nugget": 0.0})
    monkeypatch.setattr(reviewing, "_best_of", lambda model: {})


def labels(n_pool: int = 0) -> Labels:
    recorded = [*map(str, GIVEN[: N - n_pool]), *[None] * n_pool]
    cells = {name: [f"{v:.3f}" for v in X[:, k]] for k, name in enumerate(("a", "b"))}
    cells["c"] = ["left" if v < 0.0 else "right" for v in X[:, 0]]
    return Labels(X, tuple(recorded), ("no", "yes"), tuple(f"row {k}" for k in range(N)), cells)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with open_journal(tmp_path / "j.jsonl", IDENTITY) as kept:
        yield kept


def begun(journal: Journal, n_pool: int = 0, **given: Any) -> Reviewer:
    reviewer = Reviewer(labels(n_pool), journal, **{"refit_every": 0, **given})
    reviewer.begin()
    return reviewer


def decide(reviewer: Reviewer, question: Any, *, truth: Any = TRUE) -> Any:
    """Answer as somebody who knows."""
    label = str(truth[question.row])
    action = "keep" if label == question.recorded else "change"
    action = "label" if question.recorded is None else action
    return reviewer.decide(question.row, action, label, question.position)


@pytest.mark.parametrize("are_many", [False, True])
def test_wrong_labels_are_asked_about_first(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, are_many: bool
) -> None:
    if are_many:  # more rows than a kernel takes have features, and no chains
        monkeypatch.setattr(selection, "LARGEST_EXACT", N - 1)
        monkeypatch.setattr(selection, "FEATURES_OF_MANY", 20)
    reviewer = begun(journal, refit_every=3)
    question = reviewer.question()
    asked = []
    while question is not None and len(asked) < 8:
        asked.append(question.row)
        question = decide(reviewer, question)
        reviewer.wait()
    assert FLIPPED[asked].sum() == 4
    assert reviewer.progress()["change"] == 4
    assert reviewer.progress()["n_learned"] >= 6
    assert reviewer.final_labels() == [
        str(t) if f else str(g) for t, f, g in zip(TRUE, FLIPPED, GIVEN, strict=True)
    ]


@pytest.mark.parametrize("n_pool", [0, 10])
def test_what_is_learned_again_keeps_weights_of_inputs_that_many_labels_gave(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, n_pool: int
) -> None:
    short = {"n_draws": 30, "n_warmup": 20, "n_chains": 1, "nugget": 0.1, "progress": False}
    monkeypatch.setattr(reviewing, "_QUICK", short)
    wide = np.column_stack([X, np.random.default_rng(2).normal(size=(N, 6))])
    reviewer = Reviewer(replace(labels(n_pool), X=wide), journal, refit_every=1)
    reviewer.begin()
    first = reviewer._now()
    assert first.Z[:, 0].std() > 2.0 * first.Z[:, 2:].std(axis=0).max()
    decide(reviewer, reviewer.question())
    reviewer.wait()
    again = reviewer._now()
    assert again.n_decided == 1
    assert np.array_equal(again.Z, first.Z) == (n_pool == 0)
    assert np.corrcoef(again.p_wrong, first.p_wrong)[0, 1] > 0.5


def test_a_question_says_why(journal: Journal) -> None:
    question = begun(journal).question()
    assert question is not None
    assert question.p_wrong is not None
    assert question.p_wrong > 0.5
    assert question.suggested == TRUE[question.row]
    assert abs(sum(question.probabilities.values()) - 1.0) < 1e-9
    assert len(question.neighbours) == 5
    unusual = dict(question.unusual)
    assert "usual is" in unusual["a"]
    side = "left" if X[question.row, 0] < 0.0 else "right"
    assert unusual["c"].startswith(f"{side}: 3 % of {question.recorded}, ")
    json.dumps(reviewing.as_json(question))


def test_every_decision_is_on_disk_before_the_next_question(journal: Journal) -> None:
    reviewer = begun(journal)
    question = reviewer.question()
    for n in range(1, 4):
        question = decide(reviewer, question)
        lines = journal.path.read_text().splitlines()
        assert len(lines) == 1 + n
        assert json.loads(lines[-1])["action"] in ("keep", "change")


def test_a_review_goes_on_from_its_journal(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with open_journal(path, IDENTITY) as kept:
        reviewer = begun(kept)
        question = reviewer.question()
        first = question.row
        question = decide(reviewer, question)
        reviewer.decide(question.row, "unsure", None, question.position)
    with open(path, "ab") as stream:
        stream.write(b'{"row": 3, "na')  # killed while it was writing
    with open_journal(path, IDENTITY) as kept:
        assert list(kept.standing) == [first, question.row]
        reviewer = begun(kept)
        assert reviewer.question().row not in (first, question.row)
        decide(reviewer, reviewer.question())
    assert len(path.read_text().splitlines()) == 4


@pytest.mark.parametrize("action", ["change", "unsure"])
def test_decisions_that_leave_one_class_alone(journal: Journal, action: Any) -> None:
    rows, said = np.arange(20), list[str]()
    recorded = tuple("yes" if k == 3 else "no" for k in rows)
    own = Labels(X[:20], recorded, ("no", "yes"), tuple(f"row {k}" for k in rows), {})
    journal.add(3, "row 3", action, "yes", "no" if action == "change" else None, 0.5)
    journal.add(4, "row 4", "keep", "no", "no", 0.5)
    reviewer = Reviewer(own, journal, refit_every=1, say=said.append)
    reviewer.begin()
    assert "the decisions leave fewer than two classes" in said[1]
    question = reviewer.question()
    assert question is not None
    assert question.row not in (3, 4)
    reviewer.decide(question.row, "change", "yes", question.position)
    reviewer.wait()
    assert "learned again" in said[-1]
    assert reviewer.progress()["n_learned"] == 3


def test_the_same_decisions_say_the_same_after_a_restart(tmp_path: Path) -> None:
    """The line to stop by, and the order of the rows: whoever ended in between."""
    path, seen = tmp_path / "j.jsonl", list[Any]()
    for n_answers in (4, 0):
        with open_journal(path, IDENTITY) as kept:
            reviewer = begun(kept, refit_every=2)
            for _ in range(n_answers):
                decide(reviewer, reviewer.question())
                reviewer.wait()
            seen.append((reviewer.progress(), reviewer.question()))
    (ended, asked), (begins, first) = seen
    assert begins["n_learned"] == ended["n_learned"] == 4
    assert begins["expected_wrong"] == ended["expected_wrong"]
    assert first == asked


def test_undo(journal: Journal) -> None:
    reviewer = begun(journal)
    question = reviewer.question()
    after = decide(reviewer, question)
    again = reviewer.undo(after.position)
    assert again.row == question.row
    assert journal.standing == {}
    with pytest.raises(UsageError, match="no decision"):
        reviewer.undo(again.position)


def test_a_second_page_cannot_decide_unseen(journal: Journal) -> None:
    reviewer = begun(journal)
    question = reviewer.question()
    decide(reviewer, question)
    with pytest.raises(StaleError):
        decide(reviewer, question)
    with pytest.raises(StaleError):
        reviewer.undo(question.position)
    assert journal.n_lines == 1


@pytest.mark.parametrize(
    ("action", "label"),
    [
        ("change", "perhaps"),
        ("change", None),
        ("label", "yes"),
        ("delete", None),
        ("change", "same"),
    ],
)
def test_what_cannot_be_decided(journal: Journal, action: Any, label: str | None) -> None:
    reviewer = begun(journal)
    question = reviewer.question()
    label = question.recorded if label == "same" else label
    with pytest.raises(UsageError):
        reviewer.decide(question.row, action, label, question.position)
    for row in (N, -1, True):  # a truth value in the journal would spoil it
        with pytest.raises(UsageError, match="there is no row"):
            reviewer.decide(row, "keep", None, question.position)
    assert journal.n_lines == 0


def test_rows_of_a_pool_are_asked_about_first(journal: Journal) -> None:
    reviewer = begun(journal, n_pool=5)
    question = reviewer.question()
    assert question.row >= N - 5
    assert question.recorded is None
    assert question.p_wrong is None
    with pytest.raises(UsageError, match="none of label, unsure"):
        reviewer.decide(question.row, "keep", None, question.position)
    for _ in range(5):
        question = decide(reviewer, question)
    assert question.row < N - 5
    assert reviewer.final_labels()[N - 5 :] == [str(each) for each in TRUE[N - 5 :]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"kind": "other"}\n', "no journal of a review"),
        ("x,y\n1,2\n", "no line of a review's journal"),
        ("no lines at all", "no journal of a review"),
        (
            json.dumps({"kind": "mercer review", "format": 1, **IDENTITY, "data": "e"}) + "\n",
            "other rows",
        ),
        (
            json.dumps({"kind": "mercer review", "format": 1, **IDENTITY, "target": "z"}) + "\n",
            "target 'z'",
        ),
        (
            json.dumps({"kind": "mercer review", "format": 1, **IDENTITY}) + '\n{"row": 1}\n',
            "line 2",
        ),
    ],
)
def test_a_journal_of_something_else_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match=words), open_journal(path, IDENTITY):
        pass
    assert path.read_text() == text


@pytest.mark.parametrize(("n_pool", "kernel"), [(0, "rbf"), (5, "rbf + linear")])
def test_a_pool_is_learned_from_by_the_kernel_for_few_labels(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, n_pool: int, kernel: str
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(reviewing, "_best_of", lambda model: {"kernel": seen.append(model.kernel)})
    monkeypatch.setattr(reviewing, "_ENOUGH_LABELS", N - n_pool)
    begun(journal, n_pool=n_pool)
    assert seen == [kernel]


def test_a_row_that_is_no_longer_there(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with open_journal(path, IDENTITY) as kept:
        kept.add(N - 1, "row 59", "keep", "yes", "yes", 0.1)
    text = path.read_text().replace(f'"row": {N - 1}', f'"row": {N}')
    path.write_text(text)
    with pytest.raises(DataError, match="line 2: there is no row 60"), open_journal(path, IDENTITY):
        pass


def test_a_decision_of_a_row_that_is_called_otherwise_now(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with open_journal(path, IDENTITY, labels().names) as kept:
        kept.add(3, "row 3", "keep", "yes", "yes", 0.1)
    with open_journal(path, IDENTITY, labels().names) as kept:
        assert list(kept.standing) == [3]
    swapped = ["row 0", "row 1", "row 3", "row 2", *labels().names[4:]]
    words = "line 2: is a decision about row 3, where row 2 stands now"
    with pytest.raises(DataError, match=words), open_journal(path, IDENTITY, swapped):
        pass


def test_two_reviews_of_one_journal(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with open_journal(path, IDENTITY):
        code = (
            "from pathlib import Path; from mercer.review.journal import open_journal\n"
            f"with open_journal(Path({str(path)!r}), {IDENTITY!r}): pass"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode != 0
    assert "is in use by process" in done.stderr


def test_a_decision_that_cannot_be_written_is_not_taken(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    reviewer = begun(journal)
    question = reviewer.question()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mercer.review.journal.os.fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        decide(reviewer, question)
    monkeypatch.undo()
    assert journal.n_lines == 0
    assert len(journal.path.read_text().splitlines()) == 1
    assert reviewer.question() == question


def test_a_disk_that_takes_half_a_line_has_no_decision(journal: Journal) -> None:
    reviewer = begun(journal)
    question = reviewer.question()
    stream = journal._stream

    class Filling:
        def __getattr__(self, name: str) -> Any:
            return getattr(stream, name)

        def write(self, line: bytes) -> int:
            return stream.write(line[:20])

    journal._stream = Filling()  # type: ignore[assignment]
    with pytest.raises(StorageError, match="No space left"):
        decide(reviewer, question)
    journal._stream = stream
    decide(reviewer, reviewer.question())
    assert len(journal.path.read_bytes().splitlines()) == 2
    assert [json.loads(line) for line in journal.path.read_bytes().splitlines()]


def test_a_fit_that_fails_leaves_what_was_known(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    reviewer = begun(journal, refit_every=1, say=said.append)

    def fail(self: Any, before: Any) -> None:
        raise ValueError("one class only")

    monkeypatch.setattr(Reviewer, "_learn", fail)
    assert decide(reviewer, reviewer.question()) is not None
    reviewer.wait()
    assert "did not learn" in said[-1]
    assert reviewer.question() is not None


# The server.

TOKEN = "right"


@pytest.fixture
def page(journal: Journal) -> Any:
    from mercer.review.server import make_app

    reviewer = begun(journal)
    ended: list[bool] = []
    app = make_app(reviewer, "t.csv", TOKEN, lambda: ended.append(True))
    client = starlette_client.TestClient(app, base_url="http://127.0.0.1:8000")
    client.ended = ended
    return client


def test_the_page_needs_its_token_and_loads_nothing_else(page: Any) -> None:
    assert page.get("/").status_code == 403
    assert page.get("/?token=wrong").status_code == 403
    found = page.get(f"/?token={TOKEN}")
    assert found.status_code == 200
    policy = found.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "__NONCE__" not in found.text
    assert "http" not in found.text.replace("http-equiv", "")
    for path in ("/state", "/decide", "/undo", "/finish"):
        answer = page.get(path) if path == "/state" else page.post(path, json={})
        assert answer.status_code == 403
    assert page.ended == []


def test_another_host_is_refused(page: Any) -> None:
    found = page.get(f"/?token={TOKEN}", headers={"Host": "evil.example"})
    assert found.status_code == 400


def test_a_browser_that_comes_before_the_server_runs(journal: Journal) -> None:
    from mercer.review.server import ReviewServer

    server = ReviewServer(begun(journal), "t.csv")
    address = urlsplit(server.address)
    with socket.create_connection((address.hostname, address.port), timeout=60) as browser:
        asked = f"{address.path}?{address.query} HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n"
        browser.sendall(f"GET {asked}".encode())
        running = threading.Thread(target=server.run)
        running.start()
        assert b"200 OK" in browser.recv(100)
        server.stop()
    running.join()


def test_the_page_is_told_that_its_review_is_over(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an answer that takes a while, as where the machine is busy, when the server ends."""
    from mercer.review.server import ReviewServer

    reviewer = begun(journal)
    server = ReviewServer(reviewer, "t.csv")
    address, _, token = server.address.partition("/?token=")
    progress = reviewer.progress

    def late() -> dict[str, Any]:
        time.sleep(1.5)
        return progress()

    monkeypatch.setattr(reviewer, "progress", late)
    running = threading.Thread(target=server.run)
    running.start()
    request = urllib.request.Request(f"{address}/finish", b"{}", {"X-Mercer-Token": token})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert json.load(answer)["question"] is None
    running.join()
    assert server.is_finished


def test_a_review_by_the_page(page: Any) -> None:
    own = {"X-Mercer-Token": TOKEN}
    state = page.get("/state", headers=own).json()
    question = state["question"]
    sent = {"row": question["row"], "position": 0, "action": "unsure", "label": None}
    after = page.post("/decide", json=sent, headers=own).json()
    assert after["progress"]["unsure"] == 1
    assert after["question"]["row"] != question["row"]
    again = page.post("/decide", json=sent, headers=own)
    assert again.status_code == 409
    assert "elsewhere" in again.json()["problem"]
    other = after["question"]["row"]
    for bad in (
        {},
        {"row": "x", "position": 1, "action": "keep"},
        {"row": other, "position": 1, "action": "no"},
    ):
        answer = page.post("/decide", json=bad, headers=own)
        assert answer.status_code == 400
        assert answer.json()["question"]["position"] == 1
    assert page.post("/decide", content=b"{", headers=own).status_code == 400
    back = page.post("/undo", json={"position": 1}, headers=own).json()
    assert back["question"]["row"] == question["row"]
    assert page.post("/finish", json={}, headers=own).status_code == 200
    assert page.ended == [True]


# From file to file.


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_is_written_differs_in_the_decided_labels_only(tmp_path: Path, end: str) -> None:
    data, pool, out = tmp_path / "t.csv", tmp_path / "p.csv", tmp_path / "o.csv"
    rows = [f"P-{k:02d},{X[k, 0]:.3f},0{k},{GIVEN[k]}" for k in range(30)]
    data.write_text(end.join(["id,a,code,y", *rows]) + end, newline="")
    more = [f"Q-{k},{X[k, 0]:.3f},7" for k in range(30, 34)]
    pool.write_text("\n".join(["id,a,code", *more]) + "\n")
    options = TableOptions("y", "classification", ("code",), "id", None, "error")
    found, table = read_labels(str(data), str(pool), options)
    assert found.names[3] == "row 4 ('P-03')"
    assert found.names[30] == "row 1 ('Q-30') of the pool"
    assert list(found.recorded[28:31]) == [GIVEN[28], GIVEN[29], None]
    final = list(found.recorded)
    final[3] = "yes" if final[3] == "no" else "no"
    final[31] = "no"
    assert write_reviewed(out, str(data), str(pool), options, table, final) == 1
    assert (b"\r" in out.read_bytes()) == (end == "\r\n")
    before, after = data.read_text().splitlines(), out.read_text().splitlines()
    assert [k for k, line in enumerate(before) if after[k] != line] == [4]
    assert after[31:] == [f"Q-31,{X[31, 0]:.3f},7,no"]


def test_a_gap_in_a_pool_names_what_this_command_takes(tmp_path: Path) -> None:
    data, pool = tmp_path / "t.csv", tmp_path / "p.csv"
    data.write_text("a,b,y\n" + "".join(f"{k},{k % 3},{GIVEN[k]}\n" for k in range(30)))
    pool.write_text("a,b\n1,\n")
    options = TableOptions("y", "classification", (), None, None, "error")
    with pytest.raises(DataError, match="; fill it in, or use --missing impute"):
        read_labels(str(data), str(pool), options)


@pytest.mark.parametrize(
    ("first", "second"), [("true", "false"), ("01", "02"), ("1.0", "0.0"), ("yes", "no")]
)
def test_labels_are_written_as_the_table_writes_them(
    tmp_path: Path, first: str, second: str
) -> None:
    data, out = tmp_path / "t.csv", tmp_path / "o.csv"
    texts = [first if k % 2 else second for k in range(20)]
    data.write_text("a,y\n" + "".join(f"{k}.5,{text}\n" for k, text in enumerate(texts)))
    options = TableOptions("y", "classification", (), None, None, "error")
    found, table = read_labels(str(data), None, options)
    final = list(found.recorded)
    final[3], final[4] = final[4], final[3]
    assert write_reviewed(out, str(data), None, options, table, final) == 2
    texts[3], texts[4] = texts[4], texts[3]
    assert [line.split(",")[1] for line in out.read_text().splitlines()[1:]] == texts


def test_withdrawn_decisions_are_learned_from(journal: Journal) -> None:
    reviewer = begun(journal, refit_every=2)
    for _ in range(2):
        after = decide(reviewer, reviewer.question())
        reviewer.undo(after.position)
    assert reviewer._refit is not None
    reviewer._refit.result(60)
    assert reviewer._now().n_lines >= 2
    reviewer.close()


def test_what_was_asked_about_changes_no_rate_of_the_others(journal: Journal) -> None:
    """Rows are chosen by what is recorded, so finding what was expected leaves the rate as it is.

    Of an unsure row nothing is known, and it counts as before.
    """
    reviewer = begun(journal)
    p_wrong = np.full(N, 0.05)
    p_wrong[:10] = np.repeat([1.0, 0.0], [4, 6])
    before = reviewer._rate(p_wrong, {})
    assert before == pytest.approx((1.0 + 4.0 + 50 * 0.05) / (2.0 + N))
    for row in range(10):
        other = {"yes": "no", "no": "yes"}[GIVEN[row]]
        action = "change" if row < 4 else "keep"
        reviewer.decide(row, action, other if row < 4 else None, reviewer.journal.n_lines)
    reviewer.decide(10, "unsure", None, reviewer.journal.n_lines)
    assert reviewer._rate(p_wrong, journal.standing) == pytest.approx(before)
    other = {"yes": "no", "no": "yes"}[GIVEN[11]]
    reviewer.decide(11, "change", other, reviewer.journal.n_lines)
    assert reviewer._rate(p_wrong, journal.standing) == pytest.approx(before + 0.95 / (2.0 + N))


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("pat.2023.csv", "pat.2023.review.jsonl"), ("t.csv.gz", "t.review.jsonl"),
        (".hidden.csv", ".hidden.review.jsonl"), ("rows/*.csv", "_.review.jsonl"),
        ("book.xlsx:June", "book.xlsx_June.review.jsonl"),
        ("breast_cancer", "breast_cancer.review.jsonl"),
    ],
)  # fmt: skip
def test_files_beside_a_table_have_its_own_name(data: str, name: str) -> None:
    assert beside(data, ".review.jsonl").name == name


def test_a_review_of_this_folder_is_named_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert beside(".", ".review.jsonl") == tmp_path.with_name(f"{tmp_path.name}.review.jsonl")


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["review", *words, "--target", "y", "--no-browser"]) in (2, 3)
    return capsys.readouterr().err


def test_what_would_lose_labels_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, other = tmp_path / "t.csv", tmp_path / "other.jsonl"
    data.write_text("a,y\n" + "".join(f"{k},{'abcdefghijklm'[k % 13]}\n" for k in range(5200)))
    assert "standard input" in refused(["-"], capsys)
    (tmp_path / "other.reviewed.csv").write_text("a,y\n")
    assert "name another with --out" in refused([str(data), "--journal", str(other)], capsys)
    (tmp_path / "other.reviewed.csv").unlink()
    assert "5200 rows of 13 classes are more than the 5000 (of up" in refused([str(data)], capsys)
    assert [each.name for each in tmp_path.iterdir()] == ["t.csv"]


def test_a_table_in_another_encoding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "t.csv"
    rows = "".join(f"{k},{'süß' if k % 2 else 'herb'}\n" for k in range(20))
    data.write_bytes(("a,y\n" + rows).encode("latin-1"))
    options = TableOptions("y", "classification", (), None, None, "error", encoding="latin-1")
    found, table = read_labels(str(data), None, options)
    final = list(found.recorded)
    final[1] = "herb"
    out = tmp_path / "o.csv"
    assert write_reviewed(out, str(data), None, options, table, final) == 1
    assert out.read_text(encoding="utf-8").splitlines()[2:5] == ["1,herb", "2,herb", "3,süß"]


def test_the_command_until_the_page_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from mercer.review.server import ReviewServer

    data = tmp_path / "t.csv"
    data.write_text(
        "a,b,y\n" + "".join(f"{a:.3f},{b:.3f},{y}\n" for (a, b), y in zip(X, GIVEN, strict=True))
    )

    def visit(self: Any) -> None:
        address, _, token = self.address.partition("/?token=")

        def ask(path: str, content: Any = None) -> Any:
            headers = {"X-Mercer-Token": token}
            sent = None if content is None else json.dumps(content).encode()
            request = urllib.request.Request(address + path, sent, headers)
            for _ in range(100):
                try:
                    with urllib.request.urlopen(request) as answer:
                        return json.load(answer)
                except ConnectionError:
                    time.sleep(0.05)
                except urllib.error.URLError as error:
                    if not isinstance(error.reason, ConnectionError):
                        raise
                    time.sleep(0.05)
            raise AssertionError("nobody answers")

        def decide() -> None:
            question = ask("/state")["question"]
            change = {"row": question["row"], "position": 0, "action": "change"}
            ask("/decide", {**change, "label": question["suggested"]})
            ask("/finish", {})

        visitor = threading.Thread(target=decide)
        visitor.start()
        run(self)
        visitor.join()

    run = ReviewServer.run
    monkeypatch.setattr(ReviewServer, "run", visit)
    assert main(["review", str(data), "--target", "y", "--no-browser"]) == 0
    said = capsys.readouterr()
    assert "1 labels changed" in said.out + said.err
    before = data.read_text().splitlines()
    after = (tmp_path / "t.reviewed.csv").read_text().splitlines()
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1
    assert len((tmp_path / "t.review.jsonl").read_text().splitlines()) == 2


def test_another_pool_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same number of rows, and the decisions would be of others."""
    data, pool = tmp_path / "t.csv", tmp_path / "p.csv"
    rows = [f"{a:.3f},u,{y}" for (a, _), y in zip(X[:30], GIVEN[:30], strict=True)]
    data.write_text("\n".join(["a,c,y", *rows]) + "\n")
    words = ["review", str(data), "--target", "y", "--no-browser", "--pool", str(pool)]
    monkeypatch.setattr(reviewing.Reviewer, "begin", lambda self: None)
    monkeypatch.setattr(reviewing.Reviewer, "progress", lambda self: {"n_decided": 0, "unsure": 0})

    def decide(reviewer: Reviewer, *rest: Any) -> None:
        names = reviewer.labels.names
        if not reviewer.journal.n_lines:
            reviewer.journal.add(30, names[30], "label", None, "yes", None)

    monkeypatch.setattr(reviews, "_serve", decide)
    pool.write_text("a,c\n2.0,u\n-2.0,u\n1.0,v\n")
    assert main(words) == 0
    pool.write_text("c,a\nu,2.00\nu,-2.0\nv,1\n")  # written otherwise
    assert main(words) == 0
    before = (tmp_path / "t.reviewed.csv").read_text()
    assert before.splitlines()[-1] == "2.00,u,yes"
    for other in ("-2.0,u\n2.0,u\n1.0,v\n", "2.0,u\n-2.0,u\n1.0,w\n"):
        pool.write_text("a,c\n" + other)
        capsys.readouterr()
        assert main(words) in (2, 3)
        assert "another table (other rows in the pool)" in capsys.readouterr().err
    assert (tmp_path / "t.reviewed.csv").read_text() == before


def test_other_names_of_rows_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "t.csv"
    rows = "".join(f"P{k},{X[k, 0]:.3f},{GIVEN[k]}\n" for k in range(30))
    words = ["review", str(data), "--target", "y", "--no-browser", "--id", "id"]
    told, note = threading.Event(), Session.note

    def is_told(session: Session, label: str, words: str) -> None:
        note(session, label, words)
        if words.startswith("learning, "):
            told.set()

    monkeypatch.setattr(Session, "note", is_told)
    monkeypatch.setattr(reviewing.Reviewer, "begin", lambda self: told.wait(60.0))
    monkeypatch.setattr(reviewing.Reviewer, "progress", lambda self: {"n_decided": 0, "unsure": 0})
    monkeypatch.setattr(reviews, "_serve", lambda *given: None)
    monkeypatch.setattr("mercer.cli.terminal._SILENCE", 0.02)
    data.write_text("id,a,y\n" + rows)
    assert main(words) == 0
    assert "at work   learning, " in capsys.readouterr().err
    data.write_text("id,a,y\n" + rows.replace("P7,", "P99,"))
    assert main(words) in (2, 3)
    assert "another table (other names of rows)" in capsys.readouterr().err


def test_a_page_that_cannot_be_served_is_refused_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["review", "no-such-table.csv", "--target", "y", "--no-browser"]) != 0
    assert "needs its page; pip install 'mercer[review]'" in capsys.readouterr().err


def test_numbers_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "t.csv"
    data.write_text("a,y\n" + "".join(f"{k},{k / 3:.2f}\n" for k in range(20)))
    assert main(["review", str(data), "--target", "y", "--no-browser"]) in (2, 3)
    assert "whole number" in capsys.readouterr().err
