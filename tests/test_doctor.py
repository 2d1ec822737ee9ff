"""`atlas doctor` on installations and collections with one thing wrong."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from fakes import FakeEncoder
from small import CASES, SETTINGS, collection, use_fakes

from atlas.cli import cli
from atlas.collection import Collection
from atlas.doctor import Finding, contents, examine, holdings, weights
from atlas.doctor.finding import fail, guarded, ok, warn
from atlas.errors import UsageError, apart
from atlas.ingest import ingest
from atlas.models import carriers
from atlas.models.verified import Verified, sha256
from atlas.settings import Settings


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-in models, taken for the shipped ones, whose files are looked at in some tests only."""
    use_fakes(monkeypatch)
    encoder = carriers.find("encoder", Settings().encoder)
    assert encoder is not None
    monkeypatch.setattr(FakeEncoder.__init__, "__defaults__", (
        "fake-encoder", encoder.fingerprint, 256, 512,
    ))  # fmt: skip
    monkeypatch.setattr(weights, "models", lambda settings, state: iter(()))
    monkeypatch.delenv("ATLAS_STATE", raising=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A collection with an index of today."""
    place = collection(tmp_path / "c")
    ingest(Collection.open(place))
    return place


def named(findings: Iterator[Finding] | list[Finding], *names: str) -> list[Finding]:
    return [finding for finding in findings if finding.name in names]


def only(root: Path, *names: str) -> Finding:
    """The one finding of those names."""
    [finding] = named(examine(root), *names)
    return finding


def bad(findings: Iterator[Finding]) -> list[tuple[str, str]]:
    return [(finding.level, finding.name) for finding in findings if finding.level != "ok"]


def doctor(root: Path, *options: str) -> Result:
    return CliRunner().invoke(cli, ["doctor", "-C", str(root), *options])


def in_use(root: Path, variant: str = "full") -> Path:
    """The generation that CURRENT names."""
    folder = root / ".atlas" / variant
    return folder / (folder / "CURRENT").read_text().split()[0]


# ---- the command ----------------------------------------------------------------------------


def test_a_collection_in_order_has_no_line_to_act_on(root: Path) -> None:
    result = doctor(root)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert all(line.startswith("ok    ") for line in lines[:-1]), result.stdout
    assert lines[-1] == f"0 fail, 0 warn, {len(lines) - 1} ok"
    assert {line.split(":")[0].removeprefix("ok    ") for line in lines[:-1]} >= {
        "python", "packages", "settings", "documents", "index", "cases", "state", "store", "chat",
    }  # fmt: skip
    assert result.stderr == ""


def test_a_warning_ends_with_0_and_a_fault_with_1(root: Path) -> None:
    (root / "documents" / "new.md").write_text("# New\n\nText.\n")
    assert doctor(root).exit_code == 0
    (root / "cases" / "core.yaml").write_text("- id: 1\n")
    result = doctor(root)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1].startswith("1 fail, 1 warn, ")


def test_json_has_every_finding(root: Path) -> None:
    (root / "cases" / "core.yaml").write_text("- id: 1\n")
    result = doctor(root, "--json")
    values = json.loads(result.stdout)
    assert result.exit_code == values["fail"] == 1
    assert len(values["findings"]) == values["ok"] + values["warn"] + values["fail"]
    [finding] = [item for item in values["findings"] if item["level"] == "fail"]
    assert set(finding) == {"level", "name", "found", "todo"}
    assert finding["name"] == "cases"


def test_many_lines_about_the_same_are_cut_and_counted(root: Path) -> None:
    for number in range(13):
        (root / "documents" / f"bad{number}.md").write_text("---\nid: [\n---\n")
    ingest(Collection.open(root))
    lines = doctor(root).stdout.splitlines()
    assert sum(line.startswith("warn  document: ") for line in lines) == 10
    assert "      3 more lines about document; `--json` prints them all" in lines
    assert len([f for f in examine(root) if f.name == "document"]) == 13


def test_control_characters_of_a_file_name_reach_no_terminal(root: Path) -> None:
    (root / "documents" / "a\x1b[31mb.md").write_text("---\nid: [\n---\n")
    ingest(Collection.open(root))
    result = doctor(root)
    assert "\x1b" not in result.stdout
    assert "[31mb.md skipped" in result.stdout


def test_every_line_to_act_on_says_what_to_do(root: Path) -> None:
    (root / "documents" / "bad.md").write_text("---\nid: [\n---\n")
    (root / "documents" / "notes.docx").touch()
    (root / "cases" / "core.yaml").write_text("- id: 1\n")
    findings = [finding for finding in examine(root) if finding.level != "ok"]
    assert len(findings) == 3
    assert all(finding.todo for finding in findings)


def test_nothing_is_changed_by_looking(root: Path, tmp_path: Path) -> None:
    def stamps(folder: Path) -> dict[str, int]:
        return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}

    list(examine(root))  # opening an index remembers which of its files were checked
    before = stamps(root)
    list(examine(root))
    assert stamps(root) == before
    fresh = collection(tmp_path / "fresh")
    list(examine(fresh))
    assert not (fresh / ".atlas").exists()


def test_neither_torch_nor_its_friends_are_imported(root: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom atlas.doctor import examine\n"
        f"assert len(list(examine(Path({str(root)!r})))) > 8\n"
        "print([m for m in ('torch', 'sentence_transformers', 'transformers', 'openai') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"


# ---- checks that break off ------------------------------------------------------------------


def test_a_check_that_breaks_stops_no_other(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Iterator[Finding]:
        yield ok("documents", "seen")
        raise ValueError("two\nlines")

    monkeypatch.setattr(contents, "documents", broken)
    findings = list(examine(root))
    [first, second] = named(findings, "documents")
    assert (first.level, second.level) == ("ok", "fail")
    assert second.found == "could not be looked at (ValueError: two lines)"
    assert {"index", "cases", "state", "store", "chat"} <= {finding.name for finding in findings}


@pytest.mark.parametrize(("owner", "part"), [(holdings, "index"), (contents, "opened")])
def test_where_the_index_cannot_be_looked_at_the_rest_is(
    root: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, part: str
) -> None:
    monkeypatch.setattr(owner, part, lambda *_: 1 / 0)
    findings = list(examine(root))
    assert "ZeroDivisionError" in " ".join(f.found for f in findings if f.level == "fail")
    assert named(findings, "chat")


def test_the_advice_of_an_error_is_what_follows_its_semicolon() -> None:
    def check() -> Iterator[Finding]:
        raise UsageError("a: is wrong; mend it; or not")

    assert list(guarded("x", check)) == [fail("x", "a: is wrong", "mend it; or not")]


def test_a_semicolon_in_brackets_parts_nothing() -> None:
    message = "3 pages without text (page 1: none; page 2: a picture; run OCR); print it"
    assert apart(message, "") == (message[: -len("; print it")], "print it")
    assert apart("a) b; c", "") == ("a) b", "c")


def test_an_error_without_advice_gets_some() -> None:
    def check() -> Iterator[Finding]:
        raise UsageError("a: is wrong")

    assert list(guarded("x", check)) == [fail("x", "a: is wrong", "correct it and look again")]


def test_an_interruption_ends_the_examination() -> None:
    def check() -> Iterator[Finding]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(guarded("x", check))


# ---- the folder -----------------------------------------------------------------------------


def test_an_empty_folder_is_told_how_to_start_and_left_empty(tmp_path: Path) -> None:
    findings = list(examine(tmp_path))
    assert bad(iter(findings)) == [("fail", "collection")]
    [finding] = named(findings, "collection")
    assert "so it is no collection, and only the installation was looked at" in finding.found
    assert "`atlas init DIR`" in finding.todo
    assert "-C DIR" in finding.todo
    assert list(tmp_path.iterdir()) == []
    assert doctor(tmp_path).exit_code == 1, "a question is refused here too"


def test_documents_in_the_wrong_place_are_seen(tmp_path: Path) -> None:
    (tmp_path / "README.md").touch()
    assert "and only the installation was looked at" in only(tmp_path, "collection").found
    for name in ("a.pdf", "b.PDF", "c.md"):
        (tmp_path / name).touch()
    finding = only(tmp_path, "collection")
    assert finding.level == "fail"
    assert "has no folder `documents`, but 3 files of its own" in finding.found


def test_a_folder_that_is_none_fails(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, what in (("file", "is a file"), ("gone", "does not exist")):
        finding = only(tmp_path / name, "collection")
        assert finding.level == "fail"
        assert what in finding.found


@pytest.mark.parametrize("call", ["listdir", "stat"])
def test_a_folder_that_may_not_be_read_is_named(
    root: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    real = getattr(os, call)

    def closed(path: Any, *rest: Any, **more: Any) -> Any:
        if str(path) == str(root / "documents"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *rest, **more)

    monkeypatch.setattr(os, call, closed)
    findings = list(examine(root))
    monkeypatch.undo()
    assert named(findings, "collection") == [
        fail(
            "collection",
            f"{root}/documents cannot be looked at (Permission denied)",
            "let the user that runs atlas read it",
        )
    ]
    assert named(findings, "chat")


def test_a_folder_without_documents_in_it_fails(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    finding = only(tmp_path, "documents")
    assert finding.level == "fail"
    assert "holds no Markdown file and no PDF" in finding.found


def test_broken_settings_fail_and_the_rest_is_still_looked_at(root: Path) -> None:
    (root / "atlas.yaml").write_text("titel: x\n")
    findings = list(examine(root))
    assert bad(iter(findings)) == [("fail", "settings"), ("warn", "index")]
    assert named(findings, "settings")[0] == fail(
        "settings", f"{root}/atlas.yaml:1: unknown setting 'titel'", "did you mean 'title'?"
    )
    assert "not compared, since the settings cannot be read" in named(findings, "index")[0].found


def test_files_of_other_kinds_and_orphans_are_warned_of(root: Path) -> None:
    folder = root / "documents"
    for name in ("a.docx", "b.DOCX", "c.txt", "d.pdf.yaml", "figure.png", ".hidden.txt"):
        (folder / name).touch()
    warnings = [f.found for f in examine(root) if f.level == "warn" and f.name == "documents"]
    assert warnings == [
        "3 files of other kinds passed over (2 .docx, 1 .txt)",
        f"{folder}/d.pdf.yaml describes a PDF that is not there",
    ]


def test_skipped_documents_are_named_with_the_reason(root: Path) -> None:
    (root / "documents" / "bad.md").write_text("---\nidd: X\n---\n# Bad\n")
    ingest(Collection.open(root))
    finding = only(root, "document")
    assert finding == warn(
        "document",
        "documents/bad.md skipped: bad.md:2: unknown key 'idd'",
        "did you mean 'id'?",
    )


def test_what_was_warned_of_while_reading_is_told_again(root: Path) -> None:
    text = "# Straße\n\nDie Länge beträgt 3 m.\n"
    (root / "documents" / "old.md").write_bytes(text.encode("cp1252"))
    ingest(Collection.open(root))
    finding = only(root, "document")
    assert finding == warn(
        "document",
        "documents/old.md: is not UTF-8 and was read as Windows-1252",
        "save it as UTF-8",
    )


def test_a_sample_or_product_that_nothing_bears_is_warned_of(root: Path) -> None:
    text = SETTINGS.replace("[WARR]", "[WARR, GONE]").replace("products:", "products:\n  X-9:")
    (root / "atlas.yaml").write_text(text)
    ingest(Collection.open(root))
    found = [f.found for f in examine(root) if f.name == "settings" and f.level == "warn"]
    assert found == [
        "`sample` names GONE, which is no document here",
        "`products` names X-9, but no document has it under `products`",
    ]


def test_a_sample_that_is_not_named_fails(tmp_path: Path) -> None:
    root = collection(tmp_path / "c", settings="")
    result = doctor(root, "--sample")
    assert result.exit_code == 1
    assert "fail  sample: " in result.stdout


def test_the_sample_has_an_index_of_its_own(root: Path) -> None:
    assert "none yet" in named(examine(root, sample=True), "index")[0].found
    ingest(Collection.open(root, sample=True))
    findings = list(examine(root, sample=True))
    assert bad(iter(findings)) == []
    assert "1 document," in named(findings, "index")[0].found


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("relevant: [WARR-1]", "relevant: [WARR-9]"),
        ("evidence: [The battery is", "evidence: [The brakes are"),
        ("core: true", "core: maybe"),
        ("id: S2", "id: S1"),
    ],
)
def test_cases_that_cannot_be_fail_with_file_and_line(
    root: Path, change: str, problem: str
) -> None:
    (root / "cases" / "core.yaml").write_text(CASES.replace(change, problem))
    finding = only(root, "cases")
    assert finding.level == "fail"
    assert f"{root}/cases/core.yaml:" in finding.found


def test_labels_of_cases_are_compared_with_an_index_of_today_only(root: Path) -> None:
    assert "labels and quotes match" in only(root, "cases").found
    (root / "documents" / "new.md").write_text("# New\n\nText.\n")
    assert "labels were not compared" in only(root, "cases").found


def test_a_collection_without_cases_is_in_order(tmp_path: Path) -> None:
    root = collection(tmp_path / "c", cases=None)
    assert only(root, "cases").level == "ok"


def test_label_files_are_read(root: Path) -> None:
    (root / "judge_labels").mkdir()
    assert only(root, "labels").level == "ok"
    (root / "judge_labels" / "a.yaml").write_text("- id: J1\n  label: maybe\n")
    finding = only(root, "labels")
    assert finding.level == "fail"
    assert "a.yaml:" in finding.found


# ---- the index ------------------------------------------------------------------------------


def test_an_index_that_is_not_there_yet_is_said(tmp_path: Path) -> None:
    finding = only(collection(tmp_path / "c"), "index")
    assert finding.level == "warn"
    assert finding.found == "none yet"


@pytest.mark.parametrize("change", ["file", "settings", "products"])
def test_an_index_that_is_out_of_date_says_why(root: Path, change: str) -> None:
    if change == "file":
        (root / "documents" / "manual.md").write_text("# Manual\n\nOther.\n")
        why = "1 of 3 files has another size or time"
    elif change == "settings":
        (root / "atlas.yaml").write_text(SETTINGS + "block_size: 400\n")
        why = "block_size is 400, the index was made with 1000"
    else:
        (root / "atlas.yaml").write_text(SETTINGS.replace("T-7: [", "T-8: [also]\n  T-7: ["))
        why = "products or readers changed in atlas.yaml"
    finding = only(root, "index")
    assert finding.level == "warn"
    assert finding.found.startswith(f"out of date: {why} (")


def test_an_index_of_another_model_is_out_of_date(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carriers.Carrier, "fingerprint", "another")
    finding = only(root, "index")
    assert finding.level == "warn"
    assert "the files of bge-small-en-v1.5 are others" in finding.found


@pytest.mark.parametrize("damage", ["gone", "empty", "halved", "flipped"])
def test_every_damaged_file_of_the_index_is_named(root: Path, damage: str) -> None:
    place = in_use(root)
    names = sorted(path.name for path in place.iterdir())
    assert len(names) > 8
    for name in names:
        file = place / name
        data = file.read_bytes()
        if not data:
            continue
        broken = bytearray(data)
        broken[len(data) // 2] ^= 1
        if damage == "gone":
            file.unlink()
        else:
            changed = {"empty": b"", "halved": data[: len(data) // 2], "flipped": bytes(broken)}
            file.write_bytes(changed[damage])
        finding = only(root, "index")
        assert finding.level == "fail", name
        assert str(file) in finding.found, name
        assert "`atlas ingest`" in finding.todo
        file.write_bytes(data)
    assert only(root, "index").level == "ok"


def test_a_bit_that_flipped_under_its_old_stamp_is_found(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {str(path): sha256(path) for path in in_use(root).iterdir()}
    monkeypatch.setattr(Verified, "_known", lambda self, path, stamp: known.get(str(path)))
    file = next(path for path in sorted(in_use(root).iterdir()) if path.name == "blocks.jsonl")
    data = bytearray(file.read_bytes())
    data[10] ^= 1
    file.write_bytes(data)
    finding = only(root, "index")
    assert finding.level == "fail"
    assert finding.found == f"{file}: does not match its checksum"
    assert finding.todo == "`atlas ingest` builds the index again"
    ingest(Collection.open(root))
    assert only(root, "index").level == "ok"


def test_a_damaged_pointer_to_the_index_is_named(root: Path) -> None:
    current = root / ".atlas" / "full" / "CURRENT"
    current.write_text("g-nothing")
    assert str(current) in only(root, "index").found
    assert doctor(root).exit_code == 1


def test_what_killed_ingests_left_is_said(root: Path) -> None:
    left = root / ".atlas" / "full" / "g-0123456789ab"
    left.mkdir()
    (left / "vectors.faiss").write_bytes(b"0" * 2_000_000)
    [current, finding] = named(examine(root), "index")
    assert current.level == "ok"
    assert finding.level == "warn"
    assert finding.found.startswith("1 unused generation of 2.0 MB left in ")
    (left.parent / "CURRENT").unlink()
    [none, finding] = named(examine(root), "index")
    assert none.found == "none yet"
    assert finding.found == "an ingest was cut off before it had finished"


def test_a_generation_that_somebody_reads_is_no_leftover(root: Path) -> None:
    left = root / ".atlas" / "full" / "g-0123456789ab"
    left.mkdir()
    handle = os.open(left, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
        findings = named(examine(root), "index")
    finally:
        os.close(handle)
    assert [finding.level for finding in findings] == ["ok", "ok"]
    assert "1 older generation kept while somebody reads in it" in findings[1].found


def test_an_ingest_at_work_is_said_and_its_files_are_no_leftovers(root: Path) -> None:
    (root / ".atlas" / "full" / "g-0123456789ab").mkdir()
    with (root / ".atlas" / "ingest.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        findings = named(examine(root), "index")
    assert findings[1] == ok("index", "an ingest is running now; look again when it is done")


@pytest.mark.parametrize("index", ["none", "outdated", "damaged"])
@pytest.mark.parametrize("obstacle", ["settings", "documents", "space", "lock"])
def test_an_ingest_that_would_be_refused_is_not_advised(
    root: Path, monkeypatch: pytest.MonkeyPatch, obstacle: str, index: str
) -> None:
    if index == "none":
        shutil.rmtree(root / ".atlas" / "full")
    elif index == "outdated":
        (root / "documents" / "manual.md").write_text("# Manual\n\nOther.\n")
    else:
        (in_use(root) / "blocks.jsonl").unlink()
    way = f"mend what the line `{obstacle}` says first, since every question is refused so"
    if obstacle == "settings":
        (root / "atlas.yaml").write_text("titel: x\n")
    elif obstacle == "documents":
        shutil.rmtree(root / "documents")
        (root / "documents").mkdir()
    elif obstacle == "space":
        usage = shutil.disk_usage(root)._replace(free=0)
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
        way = f"free some space first, since only 0 bytes are free for {root / '.atlas'} and "
    else:
        lock = root / ".atlas" / "ingest.lock"
        real = os.access
        monkeypatch.setattr(os, "access", lambda path, how: path != lock and real(path, how))
        way = f"let the user that runs atlas write to {lock} first"
    [finding] = named(examine(root), "index")
    assert "next question" not in finding.todo
    assert "first question" not in finding.todo
    if index == "outdated" and obstacle == "settings":
        assert finding.todo == "mend the settings first"
        return
    assert finding.todo.startswith(way)
    assert finding.todo.endswith("then `atlas ingest` builds the index again") == (
        index == "damaged"
    )


# ---- state and store ------------------------------------------------------------------------


def test_a_state_folder_that_cannot_be_written_fails(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATLAS_STATE", "/proc/nowhere")
    findings = list(examine(root))
    [finding] = named(findings, "state")
    assert named(findings, "index", "store") == []
    assert named(findings, "documents", "cases", "chat")
    assert finding.level == "fail"
    assert finding.found.startswith("/proc/nowhere: cannot keep an index there (")
    assert "ATLAS_STATE" in finding.todo


def test_a_collection_that_cannot_be_written_keeps_its_state_elsewhere(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = (tmp_path / "cache", ("told",))
    elsewhere[0].mkdir()
    monkeypatch.setattr(contents, "state_folder", lambda root: elsewhere)
    finding = only(root, "state")
    assert f"{tmp_path}/cache, since the collection cannot be written to: " in finding.found


def test_little_space_is_warned_of(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(root)._replace(free=34_500_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    finding = only(root, "state")
    assert finding.level == "warn"
    assert "34 MB free" in finding.found


def test_runs_that_were_cut_off_are_counted_and_those_at_work_are_not(root: Path) -> None:
    folder = root / ".atlas" / "answers"
    folder.mkdir()
    (folder / "a.jsonl").write_text("{}\n{}\n{")
    (folder / "b.jsonl").write_text("{}\n")
    with (folder / "b.jsonl").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        [_, running, finding] = named(examine(root), "state")
    assert running.level == "ok"
    assert finding.level == "warn"
    assert finding.found.startswith("1 run of measure-answers cut off, with 2 answers kept in ")


def test_a_store_that_cannot_be_used_fails(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(name: str, index: object) -> str:
        raise UsageError(f"{name}: no answer from 127.0.0.1:1; start the server")

    monkeypatch.setattr(holdings, "describe_store", gone)
    (root / "atlas.yaml").write_text(SETTINGS + "store: milvus\n")
    finding = only(root, "store")
    assert finding == fail("store", "milvus: no answer from 127.0.0.1:1", "start the server")


def test_a_store_is_looked_for_before_there_is_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = collection(tmp_path / "c", settings=SETTINGS + "store: milvus\n")
    monkeypatch.delenv("ATLAS_MILVUS_URI", raising=False)
    finding = only(root, "store")
    assert finding.level == "warn"
    assert finding.found.endswith(".atlas/milvus.db, and there is no index yet")
    assert not (root / ".atlas").exists()
    monkeypatch.setenv("ATLAS_MILVUS_URI", "somewhere")
    assert only(root, "store") == fail(
        "store",
        "ATLAS_MILVUS_URI is no address",
        "expected http(s)://host:port, https://host:port/database, or a path ending in .db",
    )
