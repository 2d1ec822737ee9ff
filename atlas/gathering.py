"""Files -> documents, from where they are at hand: the last index, a killed ingest, or parsing.

Texts are read twice, first to be checked and then to be split, so that they need not be held in
memory in between. Noted is what the index keeps of every file. Refused: nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from atlas.errors import DocumentError
from atlas.index import Index, Source
from atlas.metadata import relative
from atlas.parsed import ParsedDocuments
from atlas.records import Document, Metadata, Skipped


class Stamped(Protocol):
    """A file of the collection as a look at the folder showed it."""

    @property
    def place(self) -> str: ...

    @property
    def stamp(self) -> tuple[int, int]: ...


class Gathered:
    """The documents of one ingest."""

    def __init__(self, root: Path, old: Index | None, parsed: ParsedDocuments) -> None:
        self.root, self.old, self.parsed = root, old, parsed
        self._before = {source.path: source for source in old.sources} if old else {}
        self._indexed: dict[str, int] = {}
        """Path -> number in the old index, of files that did not change."""
        self._hashes: dict[str, str] = {}
        self._warnings: dict[str, tuple[str, ...]] = {}

    def known(self, path: Path) -> Document | None:
        """The document of a file that was read before with the same content."""
        from atlas.documents import file_hash

        name = relative(path, self.root)
        try:
            content = file_hash(path)
        except DocumentError:
            return None
        source = self._before.get(name)
        same = source is not None and source.content_hash == content
        if self.old is None or source is None or source.document is None or not same:
            return self.parsed.get(name, content)
        self._indexed[name] = source.document
        return self.old.document(source.document)

    def keep(self, document: Document) -> None:
        """Take note of a document that was read, so that it can be read back."""
        name = document.metadata.path
        self._hashes[name], self._warnings[name] = document.content_hash, document.warnings
        if name not in self._indexed and not self.parsed.holds(name, document.content_hash):
            self.parsed.add(document)

    def documents(self, chosen: Sequence[Metadata]) -> Iterator[Document]:
        """The documents that were kept under some metadata, one after the other."""
        for metadata in chosen:
            number = self._indexed.get(metadata.path)
            if self.old is not None and number is not None:
                yield self.old.document(number)
                continue
            document = self.parsed.get(metadata.path, self._hashes[metadata.path])
            assert document is not None  # it was kept
            yield document

    def sources(
        self, files: Sequence[Stamped], good: Sequence[Metadata], skipped: Sequence[Skipped]
    ) -> list[Source]:
        """What the index keeps of every file; `good` are its documents in order."""
        numbers = {metadata.path: place for place, metadata in enumerate(good)}
        reasons: dict[str, str] = {}
        for item in skipped:
            known = reasons.get(item.path)
            reasons[item.path] = f"{known}; {item.reason}" if known else item.reason
        return [
            Source(
                path=file.place,
                size=file.stamp[0],
                modified_ns=file.stamp[1],
                document=numbers.get(file.place),
                reason=reasons.get(file.place, ""),
                content_hash=self._hashes[file.place] if file.place in numbers else "",
                warnings=self._warnings[file.place] if file.place in numbers else (),
            )
            for file in files
        ]
