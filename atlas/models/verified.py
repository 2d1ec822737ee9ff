"""Which files on this machine have been checked: path -> sha256, hashing only what is new.

Enters: a path, of a model or of an index. Leaves: its sha256, from memory while the file's stamp
(size, times, inode) is the one that was hashed. Refuses: nothing; a missing file raises
FileNotFoundError for the caller to name. The memory is `verified.json` in a folder of the state
folder; losing it costs one more hash per file (about 40 ms for 34 MB), so a read-only or damaged
memory is not an error: an entry that is not as it was written counts as missing. Loads nothing
heavy.

Writing to a file or putting its old time back changes a stamp, since nobody can set the time of the
last change of a file's entry (ctime). What a failing disk does below the file system does not:
`afresh` hashes whatever the memory says.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import zlib
from pathlib import Path
from typing import Any

from atlas.errors import ModelError
from atlas.whole_files import remove_left
from atlas.whole_files import write_whole as write_whole

FILE_NAME = "verified.json"
_WRITING = threading.Lock()


class Verified:
    """Remembered checksums under `store`, a folder of the state folder.

    `afresh` hashes every file once more, also where its stamp is known.
    """

    def __init__(self, store: Path, *, afresh: bool = False) -> None:
        self.store = store
        self.afresh = afresh
        self._entries = read_json(store / FILE_NAME)
        remove_left(store / FILE_NAME)

    def checksum(self, path: Path) -> str:
        """Sha256 of the file as 64 hex digits. Raises OSError where it cannot be read."""
        stamp = _stamp(path)
        known = self._known(path, stamp)
        if known and not self.afresh:
            return known
        digest = sha256(path)
        if digest != known:
            self._remember(path, stamp, digest)
        return digest

    def check(self, path: Path, expected: str, remedy: str) -> None:
        """Raise ModelError, ending in `remedy`, unless the file is there with that sha256."""
        try:
            found = self.checksum(path)
        except FileNotFoundError:
            raise ModelError(f"model file {path} is missing; {remedy}") from None
        except OSError as error:
            reason = error.strerror or str(error)
            raise ModelError(f"model file {path} cannot be read ({reason}); {remedy}") from None
        if found != expected:
            raise ModelError(
                f"model file {path} is damaged or another version: its sha256 starts with"
                f" {found[:12]}, expected {expected[:12]}; {remedy}"
            )

    def wrote(self, path: Path) -> None:
        """Remember a file that this process has just written, without hashing it."""
        self._remember(path, _stamp(path), "")

    def unchanged(self, path: Path) -> bool:
        """Whether the file is there with the stamp that `wrote` remembered."""
        try:
            return self._known(path, _stamp(path)) is not None
        except OSError:
            return False

    def _known(self, path: Path, stamp: list[int]) -> str | None:
        """The digest that is remembered for the file as it is, or None."""
        match self._entries.get(_key(path)):
            case [*values, str(digest), int(check)] if values == stamp:
                return digest if check == _check(path, stamp, digest) else None
        return None

    def _remember(self, path: Path, stamp: list[int], digest: str) -> None:
        entry = [*stamp, digest, _check(path, stamp, digest)]
        self._entries[_key(path)] = entry
        with _WRITING, contextlib.suppress(OSError):
            # Another process may have written since: keep its entries, and add this one.
            entries = read_json(self.store / FILE_NAME)
            entries = {file: old for file, old in entries.items() if os.path.exists(file)}
            write_json(self.store / FILE_NAME, entries | {_key(path): entry})


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in the file; an empty one where there is none that can be read."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write the object whole or not at all. Raises OSError where the folder is read-only."""
    write_whole(path, (json.dumps(value, indent=1, sort_keys=True) + "\n").encode())


def sha256(path: Path) -> str:
    """The sha256 of a file as 64 hex digits. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check(path: Path, stamp: list[int], digest: str) -> int:
    return zlib.crc32(json.dumps([_key(path), *stamp, digest]).encode())


def _key(path: Path) -> str:
    return os.path.abspath(path)


def _stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
