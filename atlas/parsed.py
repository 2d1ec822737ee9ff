"""Documents that were read but are in no index yet: kept in a file of the state folder.

An ingest reads every file before it knows which of them are good, and does not hold their texts
until then. What was read goes to this file, one line each with a checksum, and is read back for
splitting; after a kill, the next ingest finds it there. A line that is not as it was written is
passed over.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zlib
from pathlib import Path

from atlas.index_json import document_from_json, document_json, to_bytes
from atlas.records import Document

FILE_NAME = "parsed.jsonl"
_HEAD = 8 + 1 + 64 + 1
"""Bytes before the document: its checksum, its key, a space after each."""


class ParsedDocuments:
    """The file, opened to read and to append. One process at a time has it open."""

    def __init__(self, state: Path) -> None:
        """Raises OSError where the file cannot be opened."""
        self.path = state / FILE_NAME
        self._file = self.path.open("a+b")
        self._places: dict[str, tuple[int, int]] = {}
        end = 0
        self._file.seek(0)
        with self.path.open("rb") as lines:
            for line in lines:
                if line.endswith(b"\n") and _checksum(line[9:-1]) == line[:8]:
                    key = line[9 : _HEAD - 1].decode("ascii", "replace")
                    self._places[key] = (end + _HEAD, len(line) - _HEAD - 1)
                end += len(line)
        if end and line[-1:] != b"\n":  # a kill cut it off
            end += self._file.write(b"\n")
        self._end = end

    def __enter__(self) -> ParsedDocuments:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with contextlib.suppress(OSError):  # a full disk has been told already
            self._file.close()
        if kind is None:
            self.path.unlink(missing_ok=True)

    def get(self, path: str, content_hash: str) -> Document | None:
        """The document of a file with this place in the collection and this content, or None."""
        place = self._places.get(_key(path, content_hash))
        if place is None:
            return None
        data = os.pread(self._file.fileno(), place[1], place[0])
        return document_from_json(json.loads(data))

    def holds(self, path: str, content_hash: str) -> bool:
        """Whether `get` would find a document."""
        return _key(path, content_hash) in self._places

    def add(self, document: Document) -> None:
        """Append a document. Raises OSError where the disk refuses."""
        key = _key(document.metadata.path, document.content_hash)
        data = f"{key} ".encode() + to_bytes(document_json(document))
        line = _checksum(data) + b" " + data + b"\n"
        written = self._file.write(line)
        self._file.flush()
        self._places[key] = (self._end + _HEAD, len(data) - 65)
        self._end += written


def _key(path: str, content_hash: str) -> str:
    return hashlib.sha256(f"{content_hash} {path}".encode()).hexdigest()


def _checksum(data: bytes) -> bytes:
    return f"{zlib.crc32(data):08x}".encode()
