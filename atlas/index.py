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
    block_profile.npy  the profile of every block;                     block_document.npy
    vectors.faiss      one unit vector per block
    terms.bin, …       the postings (keyword.py)

Opening checks the schema, every file's size, and its checksum where the file is new to this
machine. Damage is named and never answered from.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atlas.errors import IndexDamagedError
from atlas.keyword import Postings, build_postings
from atlas.metadata import metadata_from_json, metadata_json
from atlas.models.verified import Verified, sha256, write_whole
from atlas.records import Block, Document, Section, Unit

SCHEMA = 1


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


# ---- writing --------------------------------------------------------------------------------


def write_index(
    folder: Path,
    *,
    documents: Sequence[Document],
    blocks: Sequence[Sequence[Block]],
    keyword_terms: Sequence[Sequence[str]],
    vectors: NDArray[np.float32],
    sources: Sequence[Source],
    about: dict[str, Any],
) -> Path:
    """Write a generation into `folder` and bring it into use.

    `blocks[i]` are those of `documents[i]`; `keyword_terms` and the rows of `vectors` (n, d) follow
    them in one sequence. `about` goes into the manifest. Returns the generation's folder. Raises
    OSError, and then the old generation stays in use.
    """
    import faiss

    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"g-{secrets.token_hex(6)}"
    try:
        place.mkdir()
        flat = [block for group in blocks for block in group]
        _write_lines(place, "document", (_document_json(document) for document in documents))
        _write_lines(place, "block", (_block_json(block) for block in flat))
        profiles, numbers = _profiles(documents)
        counts = [len(group) for group in blocks]
        np.save(place / "block_profile.npy", np.repeat(np.array(numbers, np.int32), counts))
        np.save(
            place / "block_document.npy", np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        )
        _dump(
            place / "profiles.json",
            {
                "profiles": [asdict(profile) for profile in profiles],
                "supersedes": _supersedes(documents),
                "ids": [document.id for document in documents],
            },
        )
        _dump(place / "sources.json", [asdict(source) for source in sources])
        build_postings(keyword_terms, place)
        index = faiss.IndexFlatIP(vectors.shape[1])
        index.add(np.ascontiguousarray(vectors, np.float32))
        # FAISS's own writer only prints that the disk is full where it fails on closing the file.
        (place / "vectors.faiss").write_bytes(faiss.serialize_index(index).data)
        files = {
            path.name: {"bytes": path.stat().st_size, "sha256": sha256(path)}
            for path in sorted(place.iterdir())
        }
        manifest = {
            "schema": SCHEMA,
            **about,
            "documents": len(documents),
            "blocks": len(flat),
            "dimension": int(vectors.shape[1]),
            "files": files,
        }
        _dump(place / "manifest.json", manifest)
        for path in place.iterdir():
            _flush(path)
        _flush(place)
        checksum = sha256(place / "manifest.json")
        write_whole(folder / "CURRENT", f"{place.name} {checksum}".encode(), flush=True)
        _flush(folder)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    remove_unused(folder, place.name)
    return place


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
                lock = _lock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(other, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _lock(folder: Path, kind: int) -> int:
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


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _dump(path: Path, value: Any) -> None:
    path.write_bytes(_json(value).encode("utf-8", "surrogatepass"))


def _write_lines(folder: Path, name: str, rows: Iterator[dict[str, Any]]) -> None:
    ends: list[int] = []
    position = 0
    with (folder / f"{name}s.jsonl").open("wb") as file:
        for row in rows:
            # A PDF may hold half a surrogate pair, which json.loads reads back from bytes.
            position += file.write(_json(row).encode("utf-8", "surrogatepass") + b"\n")
            ends.append(position)
    np.save(folder / f"{name}_ends.npy", np.array(ends, np.int64))


def _profiles(documents: Sequence[Document]) -> tuple[list[Profile], list[int]]:
    numbers: dict[Profile, int] = {}
    of_document = []
    for document in documents:
        metadata = document.metadata
        profile = Profile(
            products=metadata.products,
            readers=metadata.readers,
            valid_from=metadata.valid_from,
            valid_to=metadata.valid_to,
        )
        of_document.append(numbers.setdefault(profile, len(numbers)))
    return list(numbers), of_document


def _supersedes(documents: Sequence[Document]) -> list[tuple[int, int]]:
    number = {document.id.casefold(): place for place, document in enumerate(documents)}
    return [
        (place, number[older.casefold()])
        for place, document in enumerate(documents)
        for older in document.metadata.supersedes
        if older.casefold() in number
    ]


def _document_json(document: Document) -> dict[str, Any]:
    return {
        "metadata": metadata_json(document.metadata),
        "text": document.text,
        "sections": [
            [section.number, section.titles, [_unit_json(unit) for unit in section.units]]
            for section in document.sections
        ],
        "page_labels": document.page_labels,
        "warnings": document.warnings,
        "content_hash": document.content_hash,
    }


def _unit_json(unit: Unit) -> list[Any]:
    return [unit.kind, unit.start, unit.end, unit.page, unit.header]


def _unit(row: list[Any]) -> Unit:
    kind, start, end, page, header = row
    return Unit(
        kind=kind, start=start, end=end, page=page, header=tuple(header) if header else None
    )


def _block_json(block: Block) -> dict[str, Any]:
    return {
        "document": block.document,
        "section": block.section,
        "piece": block.piece,
        "title": block.title,
        "titles": block.titles,
        "text": block.text,
        "start": block.start,
        "end": block.end,
        "units": [_unit_json(unit) for unit in block.units],
        "page": block.page,
        "page_label": block.page_label,
        "products": block.products,
    }


# ---- reading --------------------------------------------------------------------------------


class Index:
    """One generation, opened read-only. Blocks are numbered from 0 in document order."""

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder = folder
        self.manifest = manifest
        self.postings = Postings(folder)
        self._blocks: dict[int, Block] = {}
        self._block_ends = self._array("block_ends.npy")
        self.block_profile = self._array("block_profile.npy")
        self.block_document = self._array("block_document.npy")
        rules = json.loads((folder / "profiles.json").read_bytes())
        self.profiles = tuple(_profile(values) for values in rules["profiles"])
        self.supersedes: list[tuple[int, int]] = [(new, old) for new, old in rules["supersedes"]]
        self.ids: list[str] = rules["ids"]
        self._held: weakref.finalize[[int], Index] | None = None

    def __len__(self) -> int:
        return len(self._block_ends)

    @classmethod
    def open(cls, folder: Path, state: Path) -> Index | None:
        """The generation in use below `folder`, or None where none was ever made.

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
                return cls._open(folder / named[1], state, named[2])
            except IndexDamagedError:
                with contextlib.suppress(OSError, UnicodeError):
                    if current.read_text(encoding="ascii") != text:
                        continue
                raise
        raise damaged(current, "changes faster than it can be read")

    @classmethod
    def _open(cls, place: Path, state: Path, checksum: str) -> Index:
        try:
            lock = _lock(place, fcntl.LOCK_SH)
        except OSError as error:
            raise damaged(
                place.parent / "CURRENT", f"names {place.name}: {error.strerror}"
            ) from None
        try:
            index = cls(place, _verified(place, state, checksum))
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
        values = json.loads(self._line("block", self._block_ends, number))
        values["units"] = tuple(_unit(row) for row in values["units"])
        values["titles"] = tuple(values["titles"])
        values["products"] = tuple(values["products"])
        return Block(**values)

    def document(self, number: int) -> Document:
        """Document `number`, with its whole text."""
        values = json.loads(self._line("document", self._array("document_ends.npy"), number))
        return Document(
            metadata=metadata_from_json(values["metadata"]),
            text=values["text"],
            sections=tuple(
                Section(
                    number=section, titles=tuple(titles), units=tuple(_unit(row) for row in units)
                )
                for section, titles, units in values["sections"]
            ),
            page_labels=tuple(values["page_labels"]),
            warnings=tuple(values["warnings"]),
            content_hash=values["content_hash"],
        )

    def blocks_of(self, document: int) -> range:
        """The numbers of a document's blocks."""
        start, end = np.searchsorted(self.block_document, [document, document + 1])
        return range(int(start), int(end))

    def documents(self) -> Iterator[Document]:
        """Every document in order."""
        return (self.document(number) for number in range(len(self.ids)))

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The collection's files as they were."""
        rows = json.loads((self.folder / "sources.json").read_bytes())
        return tuple(Source(**row) for row in rows)

    @cached_property
    def vectors(self) -> Any:
        """The FAISS index, memory-mapped; inner products of unit vectors are cosines."""
        import faiss

        path = self.folder / "vectors.faiss"
        try:
            index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError:
            raise damaged(path, "is no FAISS index") from None
        if index.ntotal != len(self) or index.d != self.manifest["dimension"]:
            raise damaged(path, f"holds {index.ntotal} vectors for {len(self)} blocks")
        return index

    def _array(self, name: str) -> NDArray[np.int64]:
        loaded: NDArray[np.int64] = np.load(self.folder / name, mmap_mode="r", allow_pickle=False)
        return np.asarray(loaded)  # still mapped; a plain array's items cost far less

    def _line(self, name: str, ends: NDArray[np.int64], number: int) -> bytes:
        start = int(ends[number - 1]) if number else 0
        with (self.folder / f"{name}s.jsonl").open("rb") as file:
            file.seek(start)
            return file.read(int(ends[number]) - start)


def damaged(path: Path, problem: str) -> IndexDamagedError:
    """The error for a damaged file; every one names the same way out."""
    return IndexDamagedError(f"{path}: {problem}; `atlas ingest` builds the index again")


def _profile(values: dict[str, Any]) -> Profile:
    def day(key: str) -> date | None:
        return date.fromisoformat(values[key]) if values[key] else None

    return Profile(
        products=tuple(values["products"]),
        readers=tuple(values["readers"]),
        valid_from=day("valid_from"),
        valid_to=day("valid_to"),
    )


def _verified(place: Path, state: Path, checksum: str) -> dict[str, Any]:
    path = place / "manifest.json"
    try:
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != checksum:
            raise damaged(path, "does not match its checksum")
        manifest: dict[str, Any] = json.loads(data)
        files = manifest["files"]
        schema = manifest["schema"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise damaged(path, f"cannot be read ({error})") from None
    if schema != SCHEMA:
        raise damaged(path, f"has schema {schema}, this program reads {SCHEMA}")
    verified = Verified(state / "indexes")
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
