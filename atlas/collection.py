"""A folder -> its settings, its files, and its documents checked against each other.

A document that cannot be read, or that contradicts another, is named and left out; the rest goes
on. Which documents a reader may see is not decided here: everything is checked before any scope.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from atlas.errors import CollectionError, DocumentError, UsageError
from atlas.metadata import printable, relative
from atlas.records import Document, Metadata, Skipped
from atlas.settings import Settings, load_settings

SUFFIXES = (".md", ".markdown", ".pdf")


OUTSIDE = "is a link to a file outside `documents`; put the file itself there"


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A document file as a look at the folder shows it, unread."""

    place: str
    """Relative to the collection, as it can be stored and printed."""
    where: str
    stamp: tuple[int, int]
    """Size and time of the last change (ns), of the file and the metadata beside it, added up."""

    @property
    def path(self) -> Path:
        return Path(self.where)  # not made for every file of every look at the folder


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
        state, notes = state_folder(root)
        return cls(root=root, settings=settings, state=state, sample=sample, notes=notes)

    def files(self) -> list[Path]:
        """Every document file below `documents/`, sorted by path; hidden ones are passed over."""
        return [file.path for file in self.found()]

    def found(self) -> list[File]:
        """The same with the stamps of the files as they are now."""
        base = os.fspath(self.root / "documents")
        rows = [(f"documents{where[len(base) :]}", where, stamp) for where, stamp in _walked(base)]
        return [
            File(place=printable(place), where=where, stamp=stamp)
            for place, where, stamp in sorted(rows)
        ]

    @property
    def documents(self) -> tuple[Document, ...]:
        """Every good document, read afresh. For many questions use the index instead."""
        documents, _ = self.read(self.files())
        return documents

    def read(self, files: Iterable[Path]) -> tuple[tuple[Document, ...], tuple[Skipped, ...]]:
        """Read files and check them against each other; see `survey`. Returns the good documents
        in path order and what was left out."""
        held: dict[str, Document] = {}

        def keep(document: Document) -> None:
            held[document.metadata.path] = document

        good, skipped = self.survey(files, keep)
        return tuple(held[metadata.path] for metadata in good), skipped

    def survey(
        self,
        files: Iterable[Path],
        keep: Callable[[Document], None],
        known: Callable[[Path], Document | None] = lambda path: None,
        done: Callable[[], None] = lambda: None,
    ) -> tuple[tuple[Metadata, ...], tuple[Skipped, ...]]:
        """Read files one after the other and check what they say of themselves.

        `keep(document)` gets each in the order of `files`, some of which may turn out to be no good
        beside others; they are not held here. `known(path)` may give a document that was read
        before and has not changed; `done()` is called after every file. Returns the metadata of
        the good documents in path order, and what was left out.
        """
        from atlas.documents import read_document  # parsers are needed here only

        skipped: list[Skipped] = []
        inside = (self.root / "documents").resolve()

        def one(path: Path) -> Document | Skipped:
            if _leads_out(path, inside):
                return Skipped(path=relative(path, self.root), reason=OUTSIDE)
            try:
                return known(path) or read_document(path, self.root)
            except DocumentError as error:
                return Skipped(path=relative(path, self.root), reason=error.reason)
            finally:
                done()

        read: list[Metadata] = []
        for result in _in_turn(one, files):
            if isinstance(result, Skipped):
                skipped.append(result)
            else:
                keep(result)
                read.append(result.metadata)
        if not read and not skipped:
            raise CollectionError(
                f"{self.root / 'documents'}: no documents; put Markdown files or PDFs there"
            )
        good = []
        for metadata, problem in self._checked(read):
            if problem:
                skipped.append(Skipped(path=metadata.path, reason=problem))
            else:
                good.append(metadata)
        if self.sample:
            missing = set(self.settings.sample) - {metadata.id for metadata in good}
            if missing:
                names = ", ".join(sorted(missing))
                problem = f"{self.root / 'atlas.yaml'}: `sample` names {names}; no such document"
                if skipped:
                    first, count = skipped[0], len(skipped)
                    problem += f" ({count} skipped, first: {first.path}: {first.reason})"
                raise CollectionError(problem)
            good = [metadata for metadata in good if metadata.id in self.settings.sample]
        return tuple(good), tuple(sorted(skipped, key=lambda item: item.path))

    def _checked(self, read: list[Metadata]) -> Iterator[tuple[Metadata, str]]:
        """Every document's metadata with what is wrong with it beside the others, or ""."""
        first: dict[str, Metadata] = {}
        for metadata in read:
            first.setdefault(metadata.id.casefold(), metadata)
        for metadata in read:
            yield metadata, self._problem(metadata, first)

    def _problem(self, metadata: Metadata, first: dict[str, Metadata]) -> str:
        settings = self.settings
        owner = first[metadata.id.casefold()]
        if owner is not metadata:
            return f"id {metadata.id} is taken by {owner.path}; give one of them another `id`"
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
            newer_from, older_from = metadata.valid_from, target.valid_from
            if newer_from and older_from and newer_from < older_from:
                return (
                    f"supersedes {older}, which begins later ({older_from} after {newer_from}); "
                    "correct valid_from of one of them"
                )
        return ""

    def dangling(self, documents: Iterable[Metadata]) -> list[Skipped]:
        """Documents whose `supersedes` points at no document of the collection.

        They are still searched: their own dates hold, and the older one may only be unreadable.
        """
        documents = tuple(documents)
        known = {metadata.id.casefold() for metadata in documents}
        return [
            Skipped(
                path=metadata.path,
                reason=f"supersedes {older}, which is no document here; correct or remove it "
                "(the document itself was ingested)",
            )
            for metadata in documents
            for older in metadata.supersedes
            if older.casefold() not in known
        ]


def _walked(folder: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """The document files below a folder with their stamps; plain strings, since there may be very
    many and every question looks whether they changed."""
    try:
        with os.scandir(folder) as listing:
            entries = {entry.name: entry for entry in listing}
    except OSError:
        yield folder, (0, 0)  # reading it will say why
        return
    for name, entry in entries.items():
        if name.startswith("."):
            continue
        if _is_folder(entry):
            if not entry.is_symlink():
                yield from _walked(entry.path)
        elif name.lower().endswith(SUFFIXES):
            size = modified = 0
            for part in (entry, entries.get(f"{name}.yaml")):
                with contextlib.suppress(OSError):
                    if part is not None:
                        status = part.stat()
                        size += status.st_size
                        modified += status.st_mtime_ns
            yield entry.path, (size, modified)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself: reading it will say so
        return False


def _leads_out(path: Path, inside: Path) -> bool:
    try:
        return path.is_symlink() and not path.resolve().is_relative_to(inside)
    except (OSError, RuntimeError):  # a link to itself: reading it will say so
        return False


def _in_turn(
    read: Callable[[Path], Document | Skipped], files: Iterable[Path]
) -> Iterator[Document | Skipped]:
    """What `read` makes of each file, in order; a few are read ahead, and no more are held."""
    workers = os.cpu_count() or 1
    with ThreadPoolExecutor(max_workers=workers) as pool:
        waiting: deque[Future[Document | Skipped]] = deque()
        for path in files:
            waiting.append(pool.submit(read, path))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def state_folder(root: Path) -> tuple[Path, tuple[str, ...]]:
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
        probe = folder / ".probe"
        probe.touch()
        probe.unlink(missing_ok=True)  # another process may try at the same time
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return None
