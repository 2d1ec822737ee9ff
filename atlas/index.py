"""Documents, blocks and vectors -> a folder on disk, and back, memory-mapped.

The state folder holds `full/` and `sample/`, each with generations `g-…` and a file `CURRENT` that
names the one in use. A new generation is written beside the old one and comes into use when
`CURRENT` is renamed into place, so readers see the old index or the new one and nothing between.
A reader holds a shared lock on its generation, which is kept as long as anybody reads it.

    manifest.json      schema, settings, model, counts, and the sha256 of every other file
    sources.json       every file of the collection as it was: size, time, sha256, why skipped
    documents.jsonl    metadata, text and sections of every document;  document_ends.npy
    blocks.jsonl       every block;                                    block_ends.npy
    profiles.json      the distinct (products, readers, dates), and who supersedes whom
    ids.json           the documents' ids
    block_profile.npy  the profile of every block;   block_document.npy and block_section.npy too
    vectors.faiss      one unit vector per block;    graph.faiss (vectors.py)
    terms.bin, …       the postings (keyword.py)

index_writing.py writes them, and index_json.py knows the rows. Opening checks the schema, every
file's size, and its checksum where the file is new to this machine. Damage is named and never
answered from.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atlas.arrays import mapped
from atlas.errors import IndexDamagedError
from atlas.index_json import block_from_json, document_from_json
from atlas.keyword import Postings
from atlas.models.verified import Verified
from atlas.records import Block, Document
from atlas.vectors import GRAPH, Vectors

SCHEMA = 2
BLOCKS_KEPT = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What decides whether a document is in scope; documents that agree in it share one."""

    products: tuple[str, ...]
    readers: tuple[str, ...]
    valid_from: date | None
    valid_to: date | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file of the collection as it was when the index was made."""

    path: str
    size: int
    modified_ns: int
    document: int | None
    """The document's number in the index, or None where the file was skipped."""
    reason: str = ""
    content_hash: str = ""
    warnings: tuple[str, ...] = ()
    """What a person should know about the document though it was read."""


class Index:
    """One generation, opened read-only. Blocks are numbered from 0 in document order."""

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder = folder
        self.manifest = manifest
        self.postings = Postings(folder)
        self._blocks: dict[int, Block] = {}
        self._handles: dict[str, int] = {}
        self._block_ends = mapped(folder / "block_ends.npy")
        self.block_profile = mapped(folder / "block_profile.npy")
        self.block_document = mapped(folder / "block_document.npy")
        self._block_section = mapped(folder / "block_section.npy")
        rules = json.loads((folder / "profiles.json").read_bytes())
        self.profiles = tuple(_profile(values) for values in rules["profiles"])
        self.supersedes: list[tuple[int, int]] = [(new, old) for new, old in rules["supersedes"]]
        self._held: weakref.finalize[[int], Index] | None = None

    def __len__(self) -> int:
        return len(self._block_ends)

    @classmethod
    def open(cls, folder: Path, state: Path, *, afresh: bool = False) -> Index | None:
        """The generation in use below `folder`, or None where none was ever made.

        `afresh` hashes every file, also those that were checked before and have the same stamp.
        Raises IndexDamagedError naming the file and the way out.
        """
        current = folder / "CURRENT"
        for _ in range(3):  # a writer may swap generations between our reads
            try:
                text = current.read_text(encoding="ascii")
            except FileNotFoundError:
                return None
            except (OSError, UnicodeError) as error:
                raise damaged(current, f"cannot be read ({error})") from None
            named = re.fullmatch(r"(g-\w+) ([0-9a-f]{64})", text)
            if named is None:
                raise damaged(current, "does not name a generation")
            try:
                return cls._open(
                    folder / named[1], Verified(state / "indexes", afresh=afresh), named[2]
                )
            except IndexDamagedError:
                with contextlib.suppress(OSError, UnicodeError):
                    if current.read_text(encoding="ascii") != text:
                        continue
                raise
        raise damaged(current, "changes faster than it can be read")

    @classmethod
    def _open(cls, place: Path, verified: Verified, checksum: str) -> Index:
        try:
            lock = lock_folder(place, fcntl.LOCK_SH)
        except OSError as error:
            raise damaged(
                place.parent / "CURRENT", f"names {place.name}: {error.strerror}"
            ) from None
        try:
            index = cls(place, _verified(place, verified, checksum))
        except BaseException as error:
            os.close(lock)
            if isinstance(error, OSError | ValueError | KeyError | TypeError):
                raise damaged(place, f"cannot be read ({error})") from None
            raise
        index._held = weakref.finalize(index, os.close, lock)
        return index

    def close(self) -> None:
        """Say that nothing more will be read, so that a newer generation may replace this one."""
        if self._held is not None:
            self._held()

    def block(self, number: int) -> Block:
        """Block `number`, 0 to len - 1; the last few thousand are kept."""
        known = self._blocks.get(number)
        if known is None:
            if len(self._blocks) >= BLOCKS_KEPT:
                self._blocks.clear()
            known = self._blocks[number] = self._read_block(number)
        return known

    def _read_block(self, number: int) -> Block:
        return block_from_json(json.loads(self._line("block", self._block_ends, number)))

    def document(self, number: int) -> Document:
        """Document `number`, with its whole text."""
        ends = mapped(self.folder / "document_ends.npy")
        return document_from_json(json.loads(self._line("document", ends, number)))

    def blocks_of(self, document: int) -> range:
        """The numbers of a document's blocks."""
        start, end = np.searchsorted(self.block_document, [document, document + 1])
        return range(int(start), int(end))

    def documents(self) -> Iterator[Document]:
        """Every document in order."""
        return (self.document(number) for number in range(len(self.ids)))

    @cached_property
    def ids(self) -> list[str]:
        """The documents' ids in order."""
        ids: list[str] = json.loads((self.folder / "ids.json").read_bytes())
        return ids

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Document id, case-folded -> the document's number."""
        return {name.casefold(): number for number, name in enumerate(self.ids)}

    def number_of(self, ref: str) -> int | None:
        """The number of the block with a reference such as `WARR-2-p0`, or None without one."""
        match = re.fullmatch(r"(.+)-(\d+)-p(\d+)", ref, re.DOTALL)
        document = self.numbers.get(match[1].casefold()) if match else None
        if match is None or document is None:
            return None
        own = self.blocks_of(document)
        sections = self._block_section[own.start : own.stop]
        number = own.start + int(np.searchsorted(sections, int(match[2]))) + int(match[3])
        return number if number in own and self.block(number).ref == ref else None

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The collection's files as they were."""
        rows = json.loads((self.folder / "sources.json").read_bytes())
        return tuple(Source(**row | {"warnings": tuple(row["warnings"])}) for row in rows)

    @cached_property
    def vectors(self) -> Vectors:
        """The vectors of the blocks, memory-mapped, to be searched."""
        graph = GRAPH in self.manifest["files"]
        try:
            return Vectors(self.folder, len(self), self.manifest["dimension"], graph=graph)
        except ValueError as error:
            raise damaged(self.folder, str(error)) from None

    def _line(self, name: str, ends: NDArray[np.int64], number: int) -> bytes:
        start = int(ends[number - 1]) if number else 0
        return os.pread(self._handle(f"{name}s.jsonl"), int(ends[number]) - start, start)

    def _handle(self, name: str) -> int:
        """A file of the index, opened once and closed when the index is forgotten."""
        if name not in self._handles:
            self._handles[name] = handle = os.open(self.folder / name, os.O_RDONLY)
            weakref.finalize(self, os.close, handle)
        return self._handles[name]


def damaged(path: Path, problem: str) -> IndexDamagedError:
    """The error for a damaged file; every one names the same way out."""
    return IndexDamagedError(f"{path}: {problem}; `atlas ingest` builds the index again")


def lock_folder(folder: Path, kind: int) -> int:
    """A handle that locks a folder until it is closed. Raises BlockingIOError, OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, kind)
    except BlockingIOError:
        os.close(handle)
        raise
    except OSError:
        pass  # a file system without locks: as if nobody else were there
    return handle


def _profile(values: dict[str, Any]) -> Profile:
    def day(key: str) -> date | None:
        return date.fromisoformat(values[key]) if values[key] else None

    return Profile(
        products=tuple(values["products"]),
        readers=tuple(values["readers"]),
        valid_from=day("valid_from"),
        valid_to=day("valid_to"),
    )


def _verified(place: Path, verified: Verified, checksum: str) -> dict[str, Any]:
    path = place / "manifest.json"
    try:
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != checksum:
            raise damaged(path, "does not match its checksum")
        manifest: dict[str, Any] = json.loads(data)
        files = manifest["files"]
        schema = manifest["schema"]
    except OSError as error:
        raise damaged(path, f"cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(path, f"cannot be read ({error})") from None
    if schema != SCHEMA:
        raise damaged(path, f"has schema {schema}, this program reads {SCHEMA}")
    for name, expected in files.items():
        file = place / name
        try:
            size = file.stat().st_size
            if size != expected["bytes"]:
                raise damaged(file, f"has {size} bytes, expected {expected['bytes']}")
            if verified.checksum(file) != expected["sha256"]:
                raise damaged(file, "does not match its checksum")
        except OSError as error:
            raise damaged(file, f"cannot be read ({error.strerror})") from None
    return manifest
