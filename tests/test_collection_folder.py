"""A folder as it is found: what is missing is said, what is bad is named, the rest is used."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from atlas.collection import Collection
from atlas.errors import CollectionError, SettingsError, UsageError
from atlas.records import Document, Skipped


@pytest.fixture(autouse=True)
def state_in_the_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATLAS_STATE", raising=False)


def folder(root: Path, settings: str = "", **files: str) -> Path:
    (root / "documents").mkdir(exist_ok=True)
    if settings:
        (root / "atlas.yaml").write_text(settings)
    for name, text in files.items():
        (root / "documents" / f"{name}.md").write_text(text)
    return root


def read(root: Path, **options: Any) -> tuple[list[str], list[Skipped]]:
    collection = Collection.open(root, **options)
    documents, skipped = collection.read(collection.files())
    return [document.id for document in documents], list(skipped)


# ---- what is not there ----------------------------------------------------------------------


def test_a_folder_that_is_not_there_a_file_and_one_without_documents_are_told_apart(
    tmp_path: Path,
) -> None:
    with pytest.raises(UsageError, match="nowhere: does not exist; give the folder"):
        Collection.open(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="file: is a file; give the folder"):
        Collection.open(tmp_path / "file")
    with pytest.raises(UsageError, match="no folder `documents`; put Markdown files or PDFs into"):
        Collection.open(tmp_path)
    assert not (tmp_path / ".atlas").exists()


def test_documents_that_is_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "documents").touch()
    with pytest.raises(UsageError, match="no folder `documents`"):
        Collection.open(tmp_path)


def test_empty_documents_are_said_to_be_empty(tmp_path: Path) -> None:
    with pytest.raises(CollectionError, match="documents: no documents; put Markdown files"):
        read(folder(tmp_path))


def test_a_folder_that_cannot_be_listed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder(tmp_path)

    def refuse(path: object) -> list[str]:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(UsageError, match=r"documents: cannot be listed \(Permission denied\)"):
        Collection.open(tmp_path)


def test_bad_settings_stop_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"atlas\.yaml:1: unknown setting"):
        Collection.open(folder(tmp_path, "colour: red"))


# ---- files ----------------------------------------------------------------------------------


def test_documents_alone_make_a_collection(tmp_path: Path) -> None:
    assert read(folder(tmp_path, b="text", a="text")) == (["a", "b"], [])


def test_only_document_files_are_read_and_hidden_ones_are_passed_over(tmp_path: Path) -> None:
    documents = folder(tmp_path, a="x", **{".hidden": "x"}) / "documents"
    (documents / "notes.txt").write_text("x")
    (documents / "a.pdf.yaml").write_text("x")
    for name in ("sub", ".git", "folder.md"):
        (documents / name).mkdir()
        (documents / name / "B.MD").write_text("x")
    found = [path.relative_to(documents).as_posix() for path in Collection.open(tmp_path).files()]
    assert found == ["a.md", "folder.md/B.MD", "sub/B.MD"]


def test_a_subfolder_that_cannot_be_listed_is_reported_and_not_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder(tmp_path, a="x") / "documents" / "closed").mkdir()
    scandir, listdir = os.scandir, os.listdir

    def closed(real: Any) -> Any:
        def call(path: Any = ".") -> Any:
            if str(path).endswith("closed"):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return real(path)

        return call

    monkeypatch.setattr(os, "scandir", closed(scandir))
    monkeypatch.setattr(os, "listdir", closed(listdir))
    ids, skipped = read(tmp_path)
    assert ids == ["a"]
    assert skipped == [Skipped(path="documents/closed", reason="cannot be read: Permission denied")]


def test_a_bad_document_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    folder(tmp_path, a="---\nid: [\n---\n", b="text")
    (tmp_path / "documents" / "c.md").symlink_to("nowhere")
    ids, skipped = read(tmp_path)
    assert ids == ["b"]
    assert [item.path for item in skipped] == ["documents/a.md", "documents/c.md"]
    assert skipped[0].reason.startswith("a.md:")
    assert skipped[1].reason == "cannot be read: No such file or directory"


# ---- documents beside each other ------------------------------------------------------------


def test_the_second_document_of_an_id_is_skipped_and_both_are_named(tmp_path: Path) -> None:
    ids, skipped = read(folder(tmp_path, a="---\nid: X-1\n---\nfirst", b="---\nid: x-1\n---\n2nd"))
    assert ids == ["X-1"]
    assert skipped == [
        Skipped(
            path="documents/b.md",
            reason="id x-1 is taken by documents/a.md; give one of them another `id`",
        )
    ]


def test_a_predecessor_that_is_nowhere_is_named_and_the_document_stays(tmp_path: Path) -> None:
    collection = Collection.open(folder(tmp_path, a="---\nsupersedes: [OLD, B]\n---\nx", b="x"))
    documents, skipped = collection.read(collection.files())
    assert [document.id for document in documents] == ["a", "b"]
    assert skipped == ()
    [dangling] = collection.dangling(document.metadata for document in documents)
    assert dangling.path == "documents/a.md"
    assert "supersedes OLD, which is no document here" in dangling.reason


def test_a_successor_may_not_begin_before_its_predecessor(tmp_path: Path) -> None:
    ids, skipped = read(
        folder(
            tmp_path,
            a="---\nsupersedes: [b]\nvalid_from: 2025-01-01\n---\nx",
            b="---\nvalid_from: 2026-01-01\n---\nx",
        )
    )
    assert ids == ["b"]
    assert "supersedes b, which begins later (2026-01-01 after 2025-01-01)" in skipped[0].reason


def test_reader_groups_and_products_must_be_those_of_the_settings(tmp_path: Path) -> None:
    ids, skipped = read(
        folder(
            tmp_path,
            "readers: [sales]\nproducts: [C-3]",
            a="---\nreaders: [sale]\n---\nx",
            b="---\nproducts: [C3]\n---\nx",
            c="---\nreaders: [sales]\nproducts: [C-3]\n---\nx",
        )
    )
    assert ids == ["c"]
    assert [item.reason for item in skipped] == [
        "reader group 'sale' is not in atlas.yaml; it has: sales",
        "product 'C3' is not in atlas.yaml; it has: C-3",
    ]


def test_without_settings_documents_bring_their_own_groups_and_products(tmp_path: Path) -> None:
    assert read(folder(tmp_path, a="---\nreaders: [x]\nproducts: [y]\n---\nz")) == (["a"], [])


# ---- the sample -----------------------------------------------------------------------------


def test_the_sample_holds_the_documents_it_names(tmp_path: Path) -> None:
    folder(tmp_path, "sample: [b]", a="x", b="x")
    assert read(tmp_path, sample=True)[0] == ["b"]
    assert read(tmp_path)[0] == ["a", "b"]


def test_a_sample_that_is_not_named_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no sample; list document ids under `sample`"):
        Collection.open(folder(tmp_path, a="x"), sample=True)


def test_a_sample_of_missing_documents_names_them_and_what_was_skipped(tmp_path: Path) -> None:
    folder(tmp_path, "sample: [a, b, GONE]", a="x", b="---\nid: [\n---\n")
    with pytest.raises(CollectionError) as caught:
        read(tmp_path, sample=True)
    assert "`sample` names GONE, b; no such document" in str(caught.value)
    assert "(1 skipped, first: documents/b.md: b.md:" in str(caught.value)


# ---- the state folder -----------------------------------------------------------------------


def read_only(monkeypatch: pytest.MonkeyPatch, *below: Path) -> None:
    """Refuse to make folders and files below some folders, as a read-only disk does."""
    mkdir, touch = Path.mkdir, Path.touch

    def guarded(real: Any) -> Any:
        def call(path: Path, *args: Any, **options: Any) -> None:
            if any(path.is_relative_to(place) for place in below):
                raise OSError(errno.EROFS, "Read-only file system", str(path))
            real(path, *args, **options)

        return call

    monkeypatch.setattr(Path, "mkdir", guarded(mkdir))
    monkeypatch.setattr(Path, "touch", guarded(touch))


def test_the_state_is_kept_in_the_collection(tmp_path: Path) -> None:
    collection = Collection.open(folder(tmp_path, a="x"))
    assert (collection.state, collection.notes) == (tmp_path / ".atlas", ())
    assert list(collection.state.iterdir()) == []


def test_the_state_is_kept_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATLAS_STATE", str(tmp_path / "else" / "where"))
    collection = Collection.open(folder(tmp_path, a="x"))
    assert (collection.state, collection.notes) == (tmp_path / "else" / "where", ())
    assert not (tmp_path / ".atlas").exists()


def test_the_state_of_a_read_only_collection_is_kept_in_the_cache_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "bikes"
    root.mkdir()
    folder(root, a="x")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    read_only(monkeypatch, root)
    collection = Collection.open(root)
    assert collection.state.parent == tmp_path / "cache" / "atlas"
    assert collection.state.name.startswith("bikes-")
    assert collection.notes == (
        f"{root} cannot be written to (read-only file system); "
        f"the index is kept in {collection.state}",
    )
    assert Collection.open(root).state == collection.state


def test_a_state_folder_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder(tmp_path, a="x")
    (tmp_path / "file").touch()
    monkeypatch.setenv("ATLAS_STATE", str(tmp_path / "file"))
    with pytest.raises(UsageError, match=r"cannot keep an index there \(.*\); set ATLAS_STATE"):
        Collection.open(tmp_path)
    monkeypatch.delenv("ATLAS_STATE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    read_only(monkeypatch, tmp_path)
    with pytest.raises(UsageError, match="set ATLAS_STATE to another folder"):
        Collection.open(tmp_path)


def test_documents_of_a_collection_are_at_hand_in_python(tmp_path: Path) -> None:
    [document] = Collection.open(folder(tmp_path, a="# Title\n\ntext")).documents
    assert isinstance(document, Document)
    assert (document.title, document.text) == ("Title", "text")


def test_links_that_lead_to_themselves_are_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "good.md").write_text("# Good\n\nOil it.\n")
    (folder / "loop.md").symlink_to("loop.md")
    (folder / "there").symlink_to("back")
    (folder / "back").symlink_to("there")
    collection = Collection.open(tmp_path)
    good, skipped = collection.read(collection.files())
    assert [document.id for document in good] == ["good"]
    assert [(item.path, item.reason) for item in skipped] == [
        ("documents/loop.md", "cannot be read: Too many levels of symbolic links")
    ]


def test_a_link_to_a_file_outside_the_documents_is_named_and_not_read(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    root = folder(tmp_path / "c", a="# A\n\nText.")
    secret = tmp_path / "secret.md"
    secret.write_text("# Secret\n\nText.", encoding="utf-8")
    (root / "documents" / "link.md").symlink_to(secret)
    (root / "documents" / "inner.md").symlink_to(root / "documents" / "a.md")
    names, skipped = read(root)
    assert "Secret" not in " ".join(names)
    assert [item.path for item in skipped if "outside" in item.reason] == ["documents/link.md"]
