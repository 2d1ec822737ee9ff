"""Ingest: what changed is done again and nothing else, and no interruption leaves a mixture."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import FakeEncoder
from pdf_samples import drawn, lines

import atlas.ingest as module
from atlas.arrays import save
from atlas.collection import Collection
from atlas.embeddings import EmbeddingCache
from atlas.errors import AtlasError, CollectionError
from atlas.index import Index
from atlas.ingest import IngestReport, index_folder, ingest, open_index, why_stale

A = "# Battery\n\n## Warranty\n\nThree years.\n\n## Care\n\nKeep it dry.\n"
B = "# Charger\n\nUnplug it.\n"


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> FakeEncoder:
    fake = FakeEncoder()
    monkeypatch.setattr(module, "load_encoder", lambda name, state: fake)
    return fake


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoder: FakeEncoder) -> Path:
    monkeypatch.delenv("ATLAS_STATE", raising=False)
    root = tmp_path / "bikes"
    (root / "documents").mkdir(parents=True)
    put(root, "a", A)
    put(root, "b", B)
    return root


def put(root: Path, name: str, text: str) -> None:
    """Write a document; its time moves on, however coarse the clock of the disk is."""
    path = root / "documents" / f"{name}.md"
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(text)
    if before:
        os.utime(path, ns=(before + 1, before + 1))


def run(root: Path, **options: Any) -> IngestReport:
    return ingest(Collection.open(root), **options)


def current(root: Path) -> Index:
    index = open_index(Collection.open(root))
    assert index is not None
    return index


def texts(root: Path) -> list[str]:
    index = current(root)
    return [index.block(number).text for number in range(len(index))]


def stale(root: Path) -> str:
    return why_stale(Collection.open(root), current(root))


def litter(root: Path) -> list[str]:
    """Files of the state folder that are of no use to anyone."""
    collection = Collection.open(root)
    folder = index_folder(collection)
    kept = current(root).folder.name
    found = [p.name for p in folder.iterdir() if p.name not in ("CURRENT", kept)]
    return found + [p.name for p in collection.state.rglob("*.tmp")]


# ---- what is done again ---------------------------------------------------------------------


def test_the_first_run_computes_every_block_and_the_second_none(
    root: Path, encoder: FakeEncoder
) -> None:
    first = run(root)
    assert (first.documents, first.blocks, first.recomputed, first.built) == (2, 3, 3, True)
    encoder.encoded.clear()
    second = run(root)
    assert (second.documents, second.blocks, second.recomputed, second.built) == (2, 3, 0, False)
    assert encoder.encoded == []
    assert stale(root) == ""


def test_a_changed_document_is_the_only_one_read_and_embedded_again(
    root: Path, encoder: FakeEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    import atlas.documents as documents

    run(root)
    encoder.encoded.clear()
    read: list[str] = []
    real = documents.read_document
    monkeypatch.setattr(
        documents, "read_document", lambda path, top: read.append(path.name) or real(path, top)
    )
    put(root, "a", A.replace("Three", "Four"))
    assert stale(root) == "1 of 2 files has another size or time"
    report = run(root)
    assert (report.recomputed, report.built) == (1, True)
    assert read == ["a.md"]
    assert encoder.encoded == ["Battery\nWarranty\nFour years."]
    assert texts(root) == ["Four years.", "Keep it dry.", "Unplug it."]


def test_a_removed_document_is_gone_and_nothing_is_computed(
    root: Path, encoder: FakeEncoder
) -> None:
    run(root)
    (root / "documents" / "a.md").unlink()
    assert stale(root) == "1 of 2 files is gone"
    assert run(root).recomputed == 0
    assert texts(root) == ["Unplug it."]


def test_a_renamed_document_has_its_new_id_and_nothing_is_computed(root: Path) -> None:
    run(root)
    (root / "documents" / "a.md").rename(root / "documents" / "z.md")
    assert run(root).recomputed == 0
    assert current(root).ids == ["b", "z"]


def test_a_change_of_metadata_alone_computes_nothing(root: Path) -> None:
    run(root)
    put(root, "a", f"---\nreaders: [sales]\n---\n{A}")
    assert run(root).recomputed == 0
    assert [profile.readers for profile in current(root).profiles] == [("sales",), ()]


def test_a_touched_document_is_not_embedded_again(root: Path) -> None:
    run(root)
    put(root, "a", A)
    assert stale(root) == "1 of 2 files has another size or time"
    assert run(root).recomputed == 0
    assert stale(root) == ""


def test_copied_files_are_not_called_changed(root: Path, tmp_path: Path) -> None:
    run(root)
    copy = tmp_path / "copy"
    shutil.copytree(root, copy, copy_function=shutil.copy)
    assert stale(copy) == "2 of 2 files have another size or time"
    assert run(copy).recomputed == 0
    put(copy, "a", A)
    put(copy, "c", A)
    put(copy, "d", A)
    (copy / "documents" / "b.md").unlink()
    assert stale(copy) == "1 of 4 files has another size or time, 2 are new, 1 is gone"


def test_a_change_of_the_file_beside_a_pdf_is_seen(root: Path) -> None:
    drawn(root / "documents", lambda canvas: lines(canvas, ["Some words."]), "c.pdf")
    run(root)
    (root / "documents" / "c.pdf.yaml").write_text("products: [C-3]\n")
    assert stale(root) == "1 of 3 files has another size or time"
    assert run(root).recomputed == 0
    assert current(root).document(2).metadata.products == ("C-3",)
    (root / "documents" / "c.pdf.yaml").unlink()
    assert stale(root) == "1 of 3 files has another size or time"


def test_equal_texts_are_embedded_once(root: Path, encoder: FakeEncoder) -> None:
    put(root, "c", B)
    report = run(root)
    assert (report.blocks, report.recomputed) == (4, 4)
    assert len(encoder.encoded) == 3


def test_other_settings_of_what_comes_after_the_index_change_nothing(root: Path) -> None:
    run(root)
    (root / "atlas.yaml").write_text("k: 7\nmin_score: 0.5\n")
    assert stale(root) == ""


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ("block_size: 200", "block_size is 200, the index was made with 1000"),
        ("prefix: none", "prefix is none, the index was made with both"),
        ("vector_index: graph", "vector_index is graph, the index was made with flat"),
        ("encoder: other", "encoder is other, the index was made with bge-small-en-v1.5"),
        ("readers: [sales]", "products or readers changed in atlas.yaml"),
        ("products: [C-3]", "products or readers changed in atlas.yaml"),
    ],
)
def test_a_setting_that_the_index_depends_on_makes_it_stale(
    root: Path, settings: str, reason: str
) -> None:
    run(root)
    (root / "atlas.yaml").write_text(settings)
    assert stale(root) == reason
    assert run(root).built
    assert stale(root) == ""


def contents(root: Path) -> dict[str, bytes]:
    """Every file of the index, but for the manifest's and the sources' times."""
    return {path.name: path.read_bytes() for path in current(root).folder.iterdir()}


@pytest.mark.parametrize("kind", ["flat", "graph"])
def test_the_same_collection_gives_the_same_bytes_whatever_was_known(
    root: Path, encoder: FakeEncoder, kind: str
) -> None:
    (root / "atlas.yaml").write_text(f"vector_index: {kind}\n")
    put(root, "c", "\n\n".join(f"## Part {n}\n\nWords of {n * n}." for n in range(40)))
    run(root)
    expected = contents(root)
    assert ("graph.faiss" in expected) == (kind == "graph")
    stamps = {path: path.stat() for path in (root / "documents").iterdir()}
    put(root, "a", "# Other\n\nwords\n")
    run(root)  # `b` and `c` come from the old index, their vectors from the cache
    put(root, "a", A)
    for path, status in stamps.items():
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    encoder.encoded.clear()
    assert run(root).recomputed == len(encoder.encoded) == 0
    assert contents(root) == expected
    shutil.rmtree(root / ".atlas")
    run(root)
    assert contents(root) == expected


def test_an_index_with_a_graph_finds_what_one_without_finds(root: Path) -> None:
    asked = FakeEncoder().encode_question("battery warranty")
    found = []
    for kind in ("flat", "graph"):
        (root / "atlas.yaml").write_text(f"vector_index: {kind}\n")
        run(root)
        index = current(root)
        numbers, cosines = index.vectors.nearest(asked, np.ones(len(index), bool), 2)
        found.append((numbers.tolist(), cosines.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("version", ["TOKENIZER_VERSION", "READER_VERSION", "SPLIT_VERSION"])
def test_an_index_of_another_version_of_the_program_is_stale(
    root: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    run(root)
    monkeypatch.setattr(module, version, 99)
    assert stale(root) == "it was made by another version of atlas"
    assert run(root).built
    assert stale(root) == ""


def test_a_model_that_changed_under_its_name_is_used(root: Path, encoder: FakeEncoder) -> None:
    run(root)
    encoder.fingerprint = "fake-encoder-2"
    report = run(root)
    assert (report.built, report.recomputed) == (True, 3)
    assert current(root).manifest["encoder"]["fingerprint"] == "fake-encoder-2"


def test_another_sample_makes_the_index_of_the_sample_stale(root: Path) -> None:
    (root / "atlas.yaml").write_text("sample: [a]\n")
    report = ingest(Collection.open(root, sample=True))
    assert (report.documents, report.skipped) == (1, ())
    (root / "atlas.yaml").write_text("sample: [b]\n")
    collection = Collection.open(root, sample=True)
    index = open_index(collection)
    assert index is not None
    assert why_stale(collection, index) == "another sample is named in atlas.yaml"
    assert open_index(Collection.open(root)) is None  # the full one is kept apart


def test_whether_an_index_is_current_is_told_without_reading_a_document(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(root)
    index = current(root)
    collection = Collection.open(root)
    for name in ("file_hash", "read_document", "_bytes"):
        monkeypatch.setattr(f"atlas.documents.{name}", None)
    for name in ("open", "read_bytes", "read_text"):
        monkeypatch.setattr(Path, name, guarded(getattr(Path, name)))
    assert why_stale(collection, index) == ""


def guarded(real: Any) -> Any:
    def call(path: Path, *args: Any, **options: Any) -> Any:
        assert "documents" not in path.parent.name, f"{path} was read"
        return real(path, *args, **options)

    return call


# ---- what is reported -----------------------------------------------------------------------


def test_what_was_skipped_is_reported_on_every_run(root: Path) -> None:
    put(root, "bad", "---\nid: [\n---\n")
    put(root, "c", "---\nsupersedes: [GONE, LOST]\n---\ntext\n")
    first, second = run(root), run(root)
    assert first.documents == second.documents == 3
    assert [item.path for item in second.skipped] == ["documents/bad.md", "documents/c.md"]
    for report in (first, second):
        reasons = " ".join(item.reason for item in report.skipped)
        assert "bad.md:" in reasons
        assert "supersedes GONE" in reasons
        assert "supersedes LOST" in reasons
    put(root, "bad", "---\nid: GOOD\n---\nbetter")
    assert "documents/bad.md" not in [item.path for item in run(root).skipped]


def test_a_collection_of_bad_documents_only_has_an_empty_index(root: Path) -> None:
    put(root, "a", "---\nid: [\n---\n")
    put(root, "b", "---\nid: [\n---\n")
    report = run(root)
    assert (report.documents, report.blocks, len(report.skipped)) == (0, 0, 2)
    assert stale(root) == ""


def test_a_collection_without_documents_keeps_its_old_index(root: Path) -> None:
    run(root)
    for name in ("a", "b"):
        (root / "documents" / f"{name}.md").unlink()
    with pytest.raises(CollectionError, match="no documents"):
        run(root)
    assert len(texts(root)) == 3


def test_warnings_name_their_document(root: Path) -> None:
    (root / "documents" / "c.md").write_bytes("Räder".encode("latin-1"))
    first, unchanged = run(root), run(root)
    [warning] = first.warnings
    assert warning.startswith("documents/c.md: is not UTF-8")
    assert not unchanged.built
    assert unchanged.warnings == first.warnings
    assert current(root).sources[2].warnings == (warning.partition(": ")[2],)


def test_blocks_that_the_encoder_cuts_are_reported(root: Path, encoder: FakeEncoder) -> None:
    encoder.max_tokens = 6
    [warning] = run(root).warnings
    assert "1 of 3 blocks are longer than the 6 tokens" in warning
    assert "first: a-2-p0" in warning
    assert run(root).warnings == (warning,)  # the vectors are known, and the index is current
    put(root, "b", B + "New.\n")
    assert run(root).warnings == (warning,)


def test_progress_adds_up(root: Path) -> None:
    class Seen:
        def __init__(self) -> None:
            self.stages: list[list[Any]] = []

        def stage(self, name: str, total: int) -> None:
            self.stages.append([name, total, 0])

        def step(self, count: int = 1) -> None:
            self.stages[-1][2] += count

    seen = Seen()
    run(root, progress=seen)
    assert seen.stages == [["reading", 2, 2], ["splitting", 2, 2], ["embedding", 3, 3]]


def test_a_file_name_that_is_no_utf8_does_not_stop_the_others(root: Path) -> None:
    (root / "documents" / os.fsdecode(b"f\xfcr.md")).write_text("for")
    assert run(root).documents == 3
    assert stale(root) == ""
    assert run(root).built is False


# ---- damage ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["CURRENT", "manifest.json", "blocks.jsonl", "vectors.faiss"])
def test_a_damaged_index_is_built_again_and_the_damage_is_named(root: Path, name: str) -> None:
    run(root)
    folder = index_folder(Collection.open(root))
    path = folder / name if name == "CURRENT" else current(root).folder / name
    path.write_bytes(b"?")
    report = run(root)
    assert (report.built, report.recomputed) == (True, 0)
    assert name in report.warnings[0]
    assert len(texts(root)) == 3


def corrupt_page(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)


@pytest.mark.parametrize("damage", ["not a database", "empty", "cut", "page", "a folder"])
def test_a_damaged_embedding_cache_costs_time_only(
    root: Path, encoder: FakeEncoder, damage: str
) -> None:
    run(root)
    expected = current(root).vectors.rows[:3].copy()
    path = root / ".atlas" / "embeddings.sqlite"
    if damage == "not a database":
        path.write_bytes(b"hello" * 1000)
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "cut":
        os.truncate(path, path.stat().st_size // 2)
    elif damage == "page":
        corrupt_page(path)
    else:
        path.unlink()
        path.mkdir()
    put(root, "a", A + "\nNew.\n")
    assert run(root).recomputed == 3
    np.testing.assert_array_equal(current(root).vectors.rows[:1], expected[:1])


def test_a_kept_vector_with_one_flipped_bit_is_computed_again(
    tmp_path: Path, encoder: FakeEncoder
) -> None:
    with EmbeddingCache(tmp_path, encoder) as cache:
        good = cache.fill(["a text", "another"]).vectors
    with sqlite3.connect(tmp_path / "embeddings.sqlite") as store:
        [(text, vector)] = store.execute("SELECT text, vector FROM vectors LIMIT 1").fetchall()
        damaged = bytes([vector[0] ^ 1]) + vector[1:]
        store.execute("UPDATE vectors SET vector = ? WHERE text = ?", (damaged, text))
    store.close()
    with EmbeddingCache(tmp_path, encoder) as cache:
        again = cache.fill(["a text", "another"])
    assert again.computed == 1
    np.testing.assert_array_equal(again.vectors, good)


def test_a_cache_that_cannot_be_written_is_done_without(
    tmp_path: Path, encoder: FakeEncoder
) -> None:
    with EmbeddingCache(tmp_path / "missing" / "folder", encoder) as cache:
        filled = cache.fill(["a text"])
    assert filled.computed == 1
    np.testing.assert_array_equal(filled.vectors[0], encoder.encode_question("a text"))


def test_a_full_disk_while_vectors_are_kept_costs_time_only(
    tmp_path: Path, encoder: FakeEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect

    def small(*args: Any, **options: Any) -> sqlite3.Connection:
        store = connect(*args, **options)
        store.execute("PRAGMA max_page_count = 3")
        return store

    monkeypatch.setattr(sqlite3, "connect", small)
    many = [f"text {number}" for number in range(40)]
    with EmbeddingCache(tmp_path, encoder) as cache:
        filled = cache.fill(many)
    assert filled.computed == 40
    np.testing.assert_array_equal(filled.vectors[39], encoder.encode_question("text 39"))


def test_the_row_of_another_text_is_not_taken(tmp_path: Path, encoder: FakeEncoder) -> None:
    texts = ["a lock", "a bell"]
    with EmbeddingCache(tmp_path, encoder) as cache:
        right = cache.fill(texts).vectors
    store = sqlite3.connect(tmp_path / "embeddings.sqlite")
    with store:  # as a damaged file can answer: the key of one with the vector of the other
        rows = store.execute("SELECT vector FROM vectors ORDER BY text").fetchall()
        keys = store.execute("SELECT text FROM vectors ORDER BY text").fetchall()
        for (key,), (vector,) in zip(keys, reversed(rows), strict=True):
            store.execute("UPDATE vectors SET vector = ? WHERE text = ?", (vector, key))
    store.close()
    with EmbeddingCache(tmp_path, encoder) as cache:
        filled = cache.fill(texts)
    assert filled.computed == 2
    np.testing.assert_array_equal(filled.vectors, right)


def test_vectors_of_another_model_are_not_taken(tmp_path: Path, encoder: FakeEncoder) -> None:
    computed = []
    for fingerprint in ("one", "two", "two"):
        encoder.fingerprint = fingerprint
        with EmbeddingCache(tmp_path, encoder) as cache:
            computed.append(cache.fill(["a text"]).computed)
    assert computed == [1, 1, 0]


# ---- interruptions --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target", ["atlas.keyword.save", "atlas.index_writing.write_whole", "os.replace"]
)
def test_a_full_disk_is_one_line_and_the_old_index_stays(
    root: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    run(root)
    put(root, "a", "# Battery\n\nnew\n")

    def full(*args: Any, **options: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(target, full)
        with pytest.raises(
            AtlasError, match=r"could not be written .No space left on device.*free"
        ):
            run(root)
    assert "Three years." in texts(root)
    assert litter(root) == []
    assert run(root).built
    assert texts(root) == ["new", "Unplug it."]


def test_a_lock_that_cannot_be_made_is_one_line(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = Collection.open(root)
    (collection.state / "ingest.lock").mkdir()
    with pytest.raises(AtlasError, match="the index could not be written"):
        ingest(collection)


def test_the_second_of_two_ingests_waits_and_then_has_nothing_to_do(
    root: Path, encoder: FakeEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, waiting = threading.Event(), threading.Event()
    real = encoder.encode_documents

    def slow(*args: Any, **options: Any) -> Any:
        inside.set()
        assert waiting.wait(30)
        return real(*args, **options)

    monkeypatch.setattr(encoder, "encode_documents", slow)
    reports: list[IngestReport] = []
    first = threading.Thread(target=lambda: reports.append(run(root)))
    first.start()
    assert inside.wait(30)
    second = run(root, waiting=waiting.set)
    first.join()
    assert waiting.is_set()
    assert (reports[0].recomputed, second.recomputed, second.built) == (3, 0, False)
    assert litter(root) == []


def test_what_was_parsed_before_a_kill_is_not_parsed_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import atlas.documents as documents

    parsed: list[str] = []
    real = documents.read_document
    monkeypatch.setattr(
        documents, "read_document", lambda path, top: parsed.append(path.name) or real(path, top)
    )
    with monkeypatch.context() as patch:
        patch.setattr(module, "split", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(root)
    left = root / ".atlas" / "parsed.jsonl"
    assert left.read_bytes().count(b"\n") == 2
    put(root, "b", B + "\nNew.\n")
    with left.open("ab") as file:
        file.write(b"00000000 torn")
    parsed.clear()
    assert run(root).documents == 2
    assert parsed == ["b.md"]
    assert "Three years." in texts(root)
    assert not left.exists()


def interrupted(*args: Any, **options: Any) -> Any:
    raise KeyboardInterrupt


def test_an_array_on_a_full_disk_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left on device"):
        save(Path("/dev/full"), np.arange(9))
    save(tmp_path / "a.npy", np.arange(6, dtype=np.int32).reshape(2, 3))
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), [[0, 1, 2], [3, 4, 5]])


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data[5:],
        lambda data: b"\0" * len(data),
        lambda data: data.replace(b"Three", b"Seven"),
        lambda data: b"",
        lambda data: b"\xff\n" + data,
    ],
)
def test_what_is_left_of_a_killed_ingest_is_taken_only_as_it_was_written(
    root: Path, monkeypatch: pytest.MonkeyPatch, damage: Any
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(module, "split", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(root)
    left = root / ".atlas" / "parsed.jsonl"
    left.write_bytes(damage(left.read_bytes()))
    run(root)
    assert texts(root) == ["Three years.", "Keep it dry.", "Unplug it."]


def test_an_ingest_that_has_nothing_to_do_removes_what_killed_ones_left(root: Path) -> None:
    run(root)
    folder = index_folder(Collection.open(root))
    (folder / "g-half").mkdir()
    (folder / "g-half" / "terms.bin").write_bytes(b"x")
    (root / ".atlas" / "parsed.jsonl").write_bytes(b"half")
    assert not run(root).built
    assert litter(root) == []
    assert not (root / ".atlas" / "parsed.jsonl").exists()


def test_damage_that_leaves_no_trace_is_found_by_an_ingest(root: Path) -> None:
    run(root)
    path = current(root).folder / "blocks.jsonl"
    status, data = path.stat(), path.read_bytes()
    path.write_bytes(data.replace(b"Three", b"Seven"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    memory = root / ".atlas" / "indexes" / "verified.json"
    known = json.loads(memory.read_bytes())
    from atlas.models.verified import Verified

    checked = Verified(memory.parent)
    checked._remember(path, known_stamp(path), known[str(path)][-2])  # as a failing disk leaves it
    assert "Seven years." in texts(root)
    report = run(root)
    assert report.built
    assert "blocks.jsonl: does not match its checksum" in report.warnings[0]
    assert "Three years." in texts(root)


def known_stamp(path: Path) -> list[int]:
    from atlas.models.verified import _stamp

    return _stamp(path)


KILLED = """
    import os, signal, sys
    sys.path.insert(0, {tests!r})
    from fakes import FakeEncoder
    import atlas.embeddings, atlas.index_writing, atlas.keyword, atlas.ingest, atlas.parsed
    from atlas.collection import Collection

    def deadly(owner, name, calls):
        real = getattr(owner, name)
        left = [calls]
        def call(*args, **options):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **options)
        setattr(owner, name, call)

    fake = FakeEncoder()
    atlas.embeddings.BATCH = 1
    atlas.embeddings.KEPT_AFTER_SECONDS = 0
    atlas.ingest.load_encoder = lambda name, state: fake
    deadly({owner}, {name!r}, {calls})
    atlas.ingest.ingest(Collection.open({root!r}))
"""


@pytest.mark.parametrize(
    ("owner", "name", "calls"),
    [
        ("fake", "encode_documents", 1),
        ("atlas.parsed.ParsedDocuments", "add", 0),
        ("atlas.index_writing._Lines", "add", 3),
        ("atlas.index_writing", "save", 2),
        ("atlas.keyword", "save", 3),
        ("atlas.index_writing", "to_bytes", 6),
        ("atlas.index_writing", "_flush", 4),
        ("atlas.index_writing", "write_whole", 0),
        ("os", "replace", 0),
        ("atlas.index_writing", "remove_unused", 0),
    ],
)
def test_a_kill_leaves_the_old_index_or_the_new_one_and_the_next_run_works(
    root: Path, encoder: FakeEncoder, owner: str, name: str, calls: int
) -> None:
    run(root)
    old = texts(root)
    put(root, "a", "# Battery\n\n## One\n\nfirst new\n\n## Two\n\nsecond new\n")
    new = ["first new", "second new", "Unplug it."]
    script = KILLED.format(
        tests=str(Path(__file__).parent), owner=owner, name=name, calls=calls, root=str(root)
    )
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert texts(root) == (new if name == "remove_unused" else old)
    encoder.encoded.clear()
    run(root)
    assert texts(root) == new
    assert stale(root) == ""
    # What had been embedded before the kill was kept.
    texts_of_a = ["Battery\nOne\nfirst new", "Battery\nTwo\nsecond new"]
    missing = {"fake": 1, "atlas.parsed.ParsedDocuments": 2, "atlas.index_writing._Lines": 2}
    assert encoder.encoded == texts_of_a[2 - missing.get(owner, 0) :]
    put(root, "b", "# Charger\n\nonce more\n")
    run(root)
    assert litter(root) == []
