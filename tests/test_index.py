"""The index on disk: whole or refused, the old one or the new one, and never read twice."""

from __future__ import annotations

import errno
import gc
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import FakeEncoder

import atlas.index as module
from atlas.blocks import split
from atlas.errors import IndexDamagedError
from atlas.index import Index, Source
from atlas.index_writing import write_index
from atlas.markdown import read_markdown
from atlas.models.verified import Verified
from atlas.records import Document, Metadata
from atlas.words import terms


def document(name: str, text: str, **metadata: Any) -> Document:
    reading = read_markdown(text)
    return Document(
        metadata=Metadata(id=name, title=reading.title, path=f"documents/{name}.md", **metadata),
        text=reading.text,
        sections=reading.sections,
        page_labels=(),
        warnings=("a warning",),
        content_hash=f"hash of {name}",
    )


DOCUMENTS = (
    document("W-2", "# Warranty\n\nThree years.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"),
    document("W-1", "# Old – warranty\n\n## Part\n\nTwo years.\n\n## More\n\nNo.\n"),
)


def write(state: Path, documents: tuple[Document, ...] = DOCUMENTS, **options: Any) -> Path:
    groups = [split(each) for each in documents]
    flat = [block for group in groups for block in group]
    encoder = FakeEncoder()
    sources = [
        Source(path=each.metadata.path, size=1, modified_ns=2, document=number, content_hash="h")
        for number, each in enumerate(documents)
    ]
    return write_index(
        state / "full",
        documents=documents,
        blocks=groups,
        keyword_terms=[[terms(block.searched) for block in group] for group in groups],
        vectors=encoder.encode_documents([block.searched for block in flat]),
        sources=sources,
        about={"encoder": {"name": encoder.name, "fingerprint": encoder.fingerprint}},
        **{"graph": True, **options},
    )


def opened(state: Path) -> Index:
    index = Index.open(state / "full", state)
    assert index is not None
    return index


def texts(index: Index) -> list[str]:
    return [index.block(number).text for number in range(len(index))]


def generations(state: Path) -> list[str]:
    return sorted(path.name for path in (state / "full").iterdir())


@pytest.fixture
def state(tmp_path: Path) -> Path:
    write(tmp_path)
    return tmp_path


def touch_later(path: Path) -> None:
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))


# ---- what goes in comes out -----------------------------------------------------------------


def test_documents_and_blocks_come_back_as_they_were(state: Path) -> None:
    index = opened(state)
    assert tuple(index.documents()) == DOCUMENTS
    blocks = [block for each in DOCUMENTS for block in split(each)]
    assert [index.block(number) for number in range(len(index))] == blocks
    assert index.ids == ["W-2", "W-1"]
    assert index.blocks_of(1) == range(1, 3)
    assert index.sources[1].path == "documents/W-1.md"


def test_vectors_stand_in_the_order_of_the_blocks(state: Path) -> None:
    index = opened(state)
    encoder = FakeEncoder()
    for number in range(len(index)):
        expected = encoder.encode_question(index.block(number).searched)
        np.testing.assert_array_equal(index.vectors.rows[number], expected)


def test_profiles_and_successors_are_kept(tmp_path: Path) -> None:
    newer = document("B", "b", supersedes=("a", "GONE"), valid_from=date(2026, 1, 1))
    write(tmp_path, (document("A", "a", readers=("sales",)), newer, document("C", "c")))
    index = opened(tmp_path)
    assert index.supersedes == [(1, 0)]
    assert [profile.readers for profile in index.profiles] == [("sales",), (), ()]
    assert index.profiles[1].valid_from == date(2026, 1, 1)
    assert index.block_profile.tolist() == [0, 1, 2]


def test_an_index_without_a_block_can_be_opened(tmp_path: Path) -> None:
    write(tmp_path, ())
    index = opened(tmp_path)
    assert (len(index), len(index.vectors.rows), list(index.documents())) == (0, 0, [])


def test_half_a_surrogate_pair_of_a_broken_pdf_is_stored(tmp_path: Path) -> None:
    whole = document("A", "half X pair")
    write(tmp_path, (replace(whole, text=whole.text.replace("X", "\ud800")),))
    assert texts(opened(tmp_path)) == ["half \ud800 pair"]


def test_without_an_index_there_is_none(tmp_path: Path) -> None:
    assert Index.open(tmp_path / "full", tmp_path) is None


def test_blocks_are_found_by_their_reference(tmp_path: Path) -> None:
    odd = document("a-1-p0", "# T\n\nzero\n\n## One\n\none\n")
    write(tmp_path, (*DOCUMENTS, odd))
    index = opened(tmp_path)
    refs = [index.block(number).ref for number in range(len(index))]
    assert [index.number_of(ref) for ref in refs] == list(range(len(index)))
    for unknown in ("", "W-2", "W-2-9-p0", "W-2-0-p9", "X-0-p0", "W-2-0-p-1", "w-2-0-p0"):
        assert index.number_of(unknown) is None


def test_what_is_to_be_done_before_use_sees_all_and_can_still_prevent_it(state: Path) -> None:
    seen: list[set[str]] = []

    def look(place: Path) -> None:
        seen.append({path.name for path in place.iterdir()})
        assert texts(opened(state)) == old
        raise RuntimeError("the server is gone")

    before, old = generations(state), texts(opened(state))
    with pytest.raises(RuntimeError, match="the server is gone"):
        write(state, (document("N", "new text"),), before_use=look)
    assert seen == [set(FILES)]
    assert generations(state) == before
    assert texts(opened(state)) == old


# ---- damage ---------------------------------------------------------------------------------

FILES = [
    "manifest.json", "sources.json", "documents.jsonl", "document_ends.npy", "blocks.jsonl",
    "block_ends.npy", "profiles.json", "ids.json", "block_profile.npy", "block_document.npy",
    "block_section.npy", "vectors.faiss", "graph.faiss", "terms.bin", "term_ends.npy",
    "posting_ends.npy", "posting_blocks.npy", "posting_counts.npy", "block_lengths.npy",
]  # fmt: skip


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    touch_later(path)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "deleted": lambda path: path.unlink(),
    "emptied": lambda path: path.write_bytes(b""),
    "halved": lambda path: os.truncate(path, path.stat().st_size // 2),
    "one bit": flip,
    "longer": lambda path: path.write_bytes(path.read_bytes() + b" "),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


def test_every_file_of_an_index_is_known_to_these_tests(state: Path) -> None:
    assert {path.name for path in opened(state).folder.iterdir()} == set(FILES)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named_and_never_answered_from(state: Path, name: str, damage: str) -> None:
    place = opened(state).folder / name  # it was checked once, and is checked again when changed
    DAMAGES[damage](place)
    with pytest.raises(IndexDamagedError) as caught:
        opened(state)
    assert str(caught.value).startswith(f"{place}: ")
    assert str(caught.value).count(str(place)) == 1
    assert str(caught.value).endswith("; `atlas ingest` builds the index again")


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe", b"g-", b"../g-1 x", b"g-../../etc " + b"0" * 64, b"g-1 tooshort", b"hello"],
)
def test_a_damaged_pointer_is_named(state: Path, content: bytes) -> None:
    (state / "full" / "CURRENT").write_bytes(content)
    with pytest.raises(IndexDamagedError, match=r"full/CURRENT: (does not name|cannot be read)"):
        opened(state)


def test_a_pointer_to_a_missing_generation_is_named(state: Path) -> None:
    (state / "full" / "CURRENT").write_text(f"g-gone {'0' * 64}")
    with pytest.raises(IndexDamagedError, match="CURRENT: names g-gone: No such file"):
        opened(state)


def test_an_index_of_another_schema_is_not_read(state: Path) -> None:
    place = opened(state).folder / "manifest.json"
    manifest = json.loads(place.read_bytes()) | {"schema": 99}
    place.write_text(json.dumps(manifest))
    checksum = hashlib.sha256(place.read_bytes()).hexdigest()
    (state / "full" / "CURRENT").write_text(f"{place.parent.name} {checksum}")
    with pytest.raises(IndexDamagedError, match="has schema 99, this program reads 2"):
        opened(state)


# ---- opening --------------------------------------------------------------------------------


def test_opening_reads_no_text_and_hashes_nothing_it_has_checked(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(state)
    read: list[str] = []
    real = Path.open

    def spy(path: Path, *args: Any, **options: Any) -> Any:
        read.append(path.name)
        return real(path, *args, **options)

    monkeypatch.setattr(Path, "open", spy)
    monkeypatch.setattr("atlas.models.verified.sha256", None)
    index = opened(state)
    assert not {"blocks.jsonl", "documents.jsonl", "terms.bin", "vectors.faiss"} & set(read)
    assert index.block(0).document == "W-2"


def test_the_memory_of_checked_files_holds_in_another_folder_of_work(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = opened(state).folder / "terms.bin"
    monkeypatch.chdir(file.parent)
    monkeypatch.setattr("atlas.models.verified.sha256", None)
    assert Verified(state / "indexes").checksum(Path("terms.bin"))


def test_the_memory_of_checked_files_forgets_those_that_are_gone(state: Path) -> None:
    opened(state)
    write(state)
    opened(state)
    known = json.loads((state / "indexes" / "verified.json").read_text())
    assert {Path(path).parent for path in known} == {opened(state).folder}


def test_losing_the_memory_of_checked_files_costs_time_only(state: Path) -> None:
    opened(state)
    (state / "indexes" / "verified.json").write_text("{")
    assert texts(opened(state))


# ---- one generation after another -----------------------------------------------------------


def test_a_reader_keeps_its_generation_while_a_new_one_comes_into_use(state: Path) -> None:
    old = opened(state)
    write(state, (document("N", "new text"),))
    assert texts(opened(state)) == ["new text"]
    assert len(texts(old)) == 3  # nothing of it had been read before the swap
    assert [each.id for each in old.documents()] == ["W-2", "W-1"]
    assert old.postings.find("year") is not None
    assert len(old.vectors.rows) == 3
    assert len(old.sources) == 2


def test_a_generation_goes_when_its_last_reader_has_gone(state: Path) -> None:
    first, second = opened(state), opened(state)
    write(state)
    assert len(generations(state)) == 3  # the pointer, the old one, the new one
    first.close()
    write(state)
    assert first.folder.name in generations(state)
    del second
    gc.collect()
    kept = write(state)
    assert generations(state) == ["CURRENT", kept.name]


def test_what_a_killed_writer_left_is_removed_by_the_next(state: Path) -> None:
    (state / "full" / "g-half").mkdir()
    (state / "full" / "g-half" / "terms.bin").write_bytes(b"x")
    kept = write(state)
    assert generations(state) == ["CURRENT", kept.name]


def test_a_reader_that_meets_a_swap_tries_again(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = module._verified
    swapped: list[Path] = []

    def swap(place: Path, verified: Verified, checksum: str) -> dict[str, Any]:
        if not swapped:
            swapped.append(write(state, (document("N", "new text"),)))
            raise module.damaged(place, "is gone")
        return real(place, verified, checksum)

    monkeypatch.setattr(module, "_verified", swap)
    assert texts(opened(state)) == ["new text"]


def test_an_index_is_as_readable_for_others_as_the_umask_says(state: Path) -> None:
    before = os.umask(0o022)
    try:
        place = write(state)
    finally:
        os.umask(before)
    assert place.stat().st_mode & 0o777 == 0o755
    assert (state / "full" / "CURRENT").stat().st_mode & 0o777 == 0o644


# ---- a full disk ----------------------------------------------------------------------------


def full_disk(*args: Any, **options: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    "target",
    [
        "atlas.index_writing._Lines",
        "atlas.index_writing._Lines.add",
        "atlas.index_writing._Lines.finish",
        "atlas.keyword.PostingsWriter.write",
        "atlas.vectors.VectorFile.add",
        "atlas.index_writing.write_graph",
        "atlas.index_writing.save",
        "atlas.keyword.save",
        "atlas.index_writing.sha256",
        "atlas.index_writing.write_whole",
        "atlas.index_writing.os.fsync",
        "pathlib.Path.write_bytes",
        "os.replace",
    ],
)
def test_a_full_disk_leaves_the_old_index_in_use_and_no_litter(
    state: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    before = generations(state)
    with monkeypatch.context() as patch:
        patch.setattr(target, full_disk)
        with pytest.raises(OSError, match="No space left"):
            write(state, (document("N", "new text"),))
    assert generations(state) == before
    assert len(texts(opened(state))) == 3
    write(state, (document("N", "new text"),))
    assert texts(opened(state)) == ["new text"]
