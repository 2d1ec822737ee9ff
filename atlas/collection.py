"""A folder -> its settings, its files, and its documents checked against each other.

A document that cannot be read, or that contradicts another, is named and left out; the rest goes
on. Which documents a reader may see is not decided here: everything is checked before any scope.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from atlas.errors import CollectionError, DocumentError, UsageError
from atlas.metadata import relative
from atlas.records import Document, Skipped
from atlas.settings import Settings, load_settings

SUFFIXES = (".md", ".markdown", ".pdf")


OUTSIDE = "is a link to a file outside `documents`; put the file itself there"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """One folder with documents, and where atlas keeps what it makes of them."""

    root: Path
    settings: Settings
    state: Path
    """The folder for indexes, traces and compiled models."""
    sample: bool
    variant: str = ""
    """Names an index of its own in the state folder, for settings that are only tried."""
    notes: tuple[str, ...] = ()
    """What a person should know, one line each."""

    @classmethod
    def open(cls, root: Path | str = ".", *, sample: bool = False) -> Collection:
        """Read a collection's settings and find its state folder. Touches no document.

        Raises UsageError where there is no such folder or nothing in it to search, SettingsError
        for a bad atlas.yaml.
        """
        root = Path(root)
        if not root.is_dir():
            what = "is a file" if root.exists() else "does not exist"
            raise UsageError(f"{root}: {what}; give the folder of a collection with -C DIR")
        settings = load_settings(root)
        if sample and not settings.sample:
            raise UsageError(f"{root}: no sample; list document ids under `sample` in atlas.yaml")
        folder = root / "documents"
        if not folder.is_dir():
            raise UsageError(
                f"{root}: no folder `documents`; put Markdown files or PDFs into {folder}"
            )
        try:
            os.listdir(folder)
        except OSError as error:
            raise UsageError(f"{folder}: cannot be listed ({error.strerror})") from None
        state, notes = _state_folder(root)
        return cls(root=root, settings=settings, state=state, sample=sample, notes=notes)

    def files(self) -> list[Path]:
        """Every document file below `documents/`, sorted by path; hidden ones are passed over."""
        found: list[Path] = []

        def unlistable(error: OSError) -> None:
            found.append(Path(error.filename))  # reading it will say why

        for folder, names, files in os.walk(self.root / "documents", onerror=unlistable):
            names[:] = [name for name in names if not name.startswith(".")]
            found += [
                Path(folder, name)
                for name in files
                if name.lower().endswith(SUFFIXES) and not name.startswith(".")
            ]
        return sorted(found, key=lambda path: path.relative_to(self.root).as_posix())

    @property
    def documents(self) -> tuple[Document, ...]:
        """Every good document, read afresh. For many questions use the index instead."""
        documents, _ = self.read(self.files())
        return documents

    def read(
        self,
        files: Iterable[Path],
        known: Callable[[Path], Document | None] = lambda path: None,
        done: Callable[[], None] = lambda: None,
    ) -> tuple[tuple[Document, ...], tuple[Skipped, ...]]:
        """Read files and check them against each other.

        `known(path)` may give a document that was read before and has not changed; `done()` is
        called after every file. Returns the good documents in path order and what was left out.
        """
        from atlas.documents import read_document  # parsers are needed here only

        skipped: list[Skipped] = []
        inside = (self.root / "documents").resolve()

        def one(path: Path) -> Document | Skipped:
            if path.is_symlink() and not path.resolve().is_relative_to(inside):
                return Skipped(path=relative(path, self.root), reason=OUTSIDE)
            try:
                return known(path) or read_document(path, self.root)
            except DocumentError as error:
                return Skipped(path=relative(path, self.root), reason=error.reason)
            finally:
                done()

        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            results = list(pool.map(one, files))
        documents = [result for result in results if isinstance(result, Document)]
        skipped += [result for result in results if isinstance(result, Skipped)]
        if not documents and not skipped:
            raise CollectionError(
                f"{self.root / 'documents'}: no documents; put Markdown files or PDFs there"
            )
        good = []
        for document, problem in self._checked(documents):
            if problem:
                skipped.append(Skipped(path=document.metadata.path, reason=problem))
            else:
                good.append(document)
        if self.sample:
            missing = set(self.settings.sample) - {document.id for document in good}
            if missing:
                names = ", ".join(sorted(missing))
                problem = f"{self.root / 'atlas.yaml'}: `sample` names {names}; no such document"
                if skipped:
                    first, count = skipped[0], len(skipped)
                    problem += f" ({count} skipped, first: {first.path}: {first.reason})"
                raise CollectionError(problem)
            good = [document for document in good if document.id in self.settings.sample]
        return tuple(good), tuple(sorted(skipped, key=lambda item: item.path))

    def _checked(self, documents: list[Document]) -> Iterator[tuple[Document, str]]:
        """Every document with what is wrong with it beside the others, or ""."""
        first: dict[str, Document] = {}
        for document in documents:
            first.setdefault(document.id.casefold(), document)
        for document in documents:
            yield document, self._problem(document, first)

    def _problem(self, document: Document, first: dict[str, Document]) -> str:
        metadata, settings = document.metadata, self.settings
        owner = first[document.id.casefold()]
        if owner is not document:
            return (
                f"id {document.id} is taken by {owner.metadata.path}; give one of them another `id`"
            )
        for reader in metadata.readers:
            if settings.readers and reader not in settings.readers:
                known = ", ".join(settings.readers)
                return f"reader group {reader!r} is not in atlas.yaml; it has: {known}"
        for product in metadata.products:
            if settings.products and product not in settings.products:
                known = ", ".join(settings.products)
                return f"product {product!r} is not in atlas.yaml; it has: {known}"
        for older in metadata.supersedes:
            target = first.get(older.casefold())
            if target is None:
                continue  # the older one may be unreadable today: see dangling()
            newer_from, older_from = metadata.valid_from, target.metadata.valid_from
            if newer_from and older_from and newer_from < older_from:
                return (
                    f"supersedes {older}, which begins later ({older_from} after {newer_from}); "
                    "correct valid_from of one of them"
                )
        return ""

    def dangling(self, documents: Iterable[Document]) -> list[Skipped]:
        """Documents whose `supersedes` points at no document of the collection.

        They are still searched: their own dates hold, and the older one may only be unreadable.
        """
        documents = tuple(documents)
        known = {document.id.casefold() for document in documents}
        return [
            Skipped(
                path=document.metadata.path,
                reason=f"supersedes {older}, which is no document here; correct or remove it "
                "(the document itself was ingested)",
            )
            for document in documents
            for older in document.metadata.supersedes
            if older.casefold() not in known
        ]


def _state_folder(root: Path) -> tuple[Path, tuple[str, ...]]:
    """ATLAS_STATE, or `.atlas` in the collection, or the user's cache where that is read-only."""
    named = os.environ.get("ATLAS_STATE")
    if named:
        return _usable(Path(named)), ()
    own = root / ".atlas"
    with_own = _try(own)
    if with_own is None:
        return own, ()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "atlas"
    digest = hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:12]
    folder = _usable(cache / f"{root.resolve().name or 'root'}-{digest}")
    return folder, (f"{root} cannot be written to ({with_own}); the index is kept in {folder}",)


def _usable(folder: Path) -> Path:
    problem = _try(folder)
    if problem:
        raise UsageError(
            f"{folder}: cannot keep an index there ({problem}); set ATLAS_STATE to another folder"
        )
    return folder


def _try(folder: Path) -> str | None:
    """Why a folder cannot be written to, or None. Makes the folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return None
