"""Documents and blocks, as they come -> a new generation of the index, brought into use whole.

Nothing but counts, terms and names of documents is kept in memory: texts and blocks go to the disk
at once, vectors batch by batch. The same collection gives the same bytes, whatever was known
before; only the generation's name differs. Refused: nothing; an OSError of the disk, or any other
error, removes what was written, and the generation in use stays in use.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atlas.arrays import save
from atlas.index import SCHEMA, Profile, Source, lock_folder
from atlas.index_json import block_from_json, block_json, document_json, to_bytes
from atlas.keyword import PostingsWriter
from atlas.models.verified import sha256, write_whole
from atlas.records import Block, Document
from atlas.vectors import VectorFile, write_graph


class IndexWriter:
    """One generation while it is written. Use it with `with`; only `finish` brings it into use.

    First `add` every document, then write `vectors`, then `finish`.
    """

    def __init__(self, folder: Path) -> None:
        """Raises OSError where the new generation cannot be made below `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.place = folder / f"g-{secrets.token_hex(6)}"
        self.place.mkdir()
        try:
            self._documents = _Lines(self.place, "document")
            self._blocks = _Lines(self.place, "block")
        except BaseException:
            shutil.rmtree(self.place, ignore_errors=True)
            raise
        self._postings = PostingsWriter()
        self._sections = array("i")
        self._counts = array("i")
        """Blocks of each document."""
        self._profiles: dict[Profile, int] = {}
        self._profile_numbers = array("i")
        self._ids: list[str] = []
        self._older: list[tuple[int, str]] = []
        self._dimension = 0

    def __len__(self) -> int:
        return len(self._sections)

    def __enter__(self) -> IndexWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for lines in (self._documents, self._blocks):
            with contextlib.suppress(OSError):  # a full disk has been told already
                lines.file.close()
        if kind is not None:
            shutil.rmtree(self.place, ignore_errors=True)

    def add(
        self, document: Document, blocks: Sequence[Block], keyword_terms: Sequence[Sequence[str]]
    ) -> None:
        """Append a document, its blocks and the terms of each block. Raises OSError."""
        metadata = document.metadata
        profile = Profile(
            products=metadata.products,
            readers=metadata.readers,
            valid_from=metadata.valid_from,
            valid_to=metadata.valid_to,
        )
        self._profile_numbers.append(self._profiles.setdefault(profile, len(self._profiles)))
        self._older += ((len(self._ids), older) for older in metadata.supersedes)
        self._ids.append(document.id)
        self._counts.append(len(blocks))
        self._documents.add(document_json(document))
        for block, words in zip(blocks, keyword_terms, strict=True):
            self._blocks.add(block_json(block))
            self._sections.append(block.section)
            self._postings.add(words)

    def blocks(self) -> Iterator[Block]:
        """Every block that was added, in order, read back from the disk."""
        self._blocks.file.flush()
        with (self.place / "blocks.jsonl").open("rb") as file:
            for line in file:
                yield block_from_json(json.loads(line))

    def vectors(self, dimension: int) -> VectorFile:
        """Where the vectors of all blocks are to be written, in order."""
        self._dimension = dimension
        return VectorFile(self.place, dimension, len(self))

    def graph(self, done: Callable[[int], None] = lambda count: None) -> None:
        """Build the graph over the written vectors; `done(n)` after n more. Raises OSError."""
        write_graph(self.place, done)

    def finish(
        self,
        *,
        sources: Sequence[Source],
        about: dict[str, Any],
        before_use: Callable[[Path], None] = lambda place: None,
    ) -> Path:
        """Complete the generation, bring it into use, and remove those that nobody reads.

        `about` goes into the manifest. `before_use(place)` is called when every file is on the
        disk and before readers see them; what it raises abandons the generation. Returns the
        generation's folder. Raises OSError.
        """
        self._write_rest(sources)
        files = {
            path.name: {"bytes": path.stat().st_size, "sha256": sha256(path)}
            for path in sorted(self.place.iterdir())
        }
        manifest = to_bytes(
            {
                "schema": SCHEMA,
                **about,
                "documents": len(self._ids),
                "blocks": len(self),
                "dimension": self._dimension,
                "files": files,
            }
        )
        (self.place / "manifest.json").write_bytes(manifest)
        for path in self.place.iterdir():
            _flush(path)
        _flush(self.place)
        before_use(self.place)
        pointer = f"{self.place.name} {hashlib.sha256(manifest).hexdigest()}"
        write_whole(self.folder / "CURRENT", pointer.encode(), flush=True)
        _flush(self.folder)
        remove_unused(self.folder, self.place.name)
        return self.place

    def _write_rest(self, sources: Sequence[Source]) -> None:
        counts = np.array(self._counts, np.int32)
        numbers = np.array(self._profile_numbers, np.int32)
        save(self.place / "block_profile.npy", np.repeat(numbers, counts))
        documents = np.arange(len(counts), dtype=np.int32)
        save(self.place / "block_document.npy", np.repeat(documents, counts))
        save(self.place / "block_section.npy", np.array(self._sections, np.int32))
        self._documents.finish()
        self._blocks.finish()
        known = {name.casefold(): number for number, name in enumerate(self._ids)}
        older = ((newer, known.get(name.casefold())) for newer, name in self._older)
        rules = {
            "profiles": [asdict(profile) for profile in self._profiles],
            "supersedes": [pair for pair in older if pair[1] is not None],
        }
        (self.place / "profiles.json").write_bytes(to_bytes(rules))
        (self.place / "ids.json").write_bytes(to_bytes(self._ids))
        rows = [asdict(source) for source in sources]
        (self.place / "sources.json").write_bytes(to_bytes(rows))
        self._postings.write(self.place)


class _Lines:
    """A file of JSON lines that notes where each of them ends."""

    def __init__(self, folder: Path, name: str) -> None:
        self.file = (folder / f"{name}s.jsonl").open("wb")
        self._ends_path = folder / f"{name}_ends.npy"
        self._ends = array("q")
        self._position = 0

    def add(self, value: Any) -> None:
        self._position += self.file.write(to_bytes(value) + b"\n")
        self._ends.append(self._position)

    def finish(self) -> None:
        self.file.close()
        save(self._ends_path, np.array(self._ends, np.int64))


def write_index(
    folder: Path,
    *,
    documents: Iterable[Document],
    blocks: Iterable[Sequence[Block]],
    keyword_terms: Iterable[Sequence[Sequence[str]]],
    vectors: NDArray[np.float32],
    sources: Sequence[Source],
    about: dict[str, Any],
    graph: bool = False,
    before_use: Callable[[Path], None] = lambda place: None,
) -> Path:
    """Write a generation whose parts are all at hand; see `IndexWriter`.

    `blocks[i]` are those of `documents[i]`, `keyword_terms[i]` the terms of each of them; the rows
    of `vectors` (n, d) follow the blocks in one sequence.
    """
    with IndexWriter(folder) as writer:
        for document, own, terms in zip(documents, blocks, keyword_terms, strict=True):
            writer.add(document, own, terms)
        with writer.vectors(vectors.shape[1]) as file:
            file.add(vectors)
        if graph:
            writer.graph()
        return writer.finish(sources=sources, about=about, before_use=before_use)


def remove_unused(folder: Path, current: str) -> None:
    """Remove the generations below `folder` that are not `current` and that nobody reads."""
    for part in folder.glob("CURRENT.*.tmp"):  # a writer was killed while it wrote
        part.unlink(missing_ok=True)
    for other in folder.glob("g-*"):
        if other.name == current:
            continue
        lock = None
        with contextlib.suppress(BlockingIOError):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                lock = lock_folder(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(other, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
