"""Which files on this machine have been checked: path -> sha256, hashing only what is new.

Enters: a path. Leaves: its sha256, from memory while the file's stamp (size, times, inode) is the
one that was hashed. Refuses: nothing; a missing file raises FileNotFoundError for the caller to
name. The memory is `verified.json` in the state folder's `models`; losing it costs one more hash
per file (about 40 ms for 34 MB), so a read-only or damaged memory is not an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from pathlib import Path
from typing import Any

from atlas.errors import ModelError

FILE_NAME = "verified.json"
_WRITING = threading.Lock()


class Verified:
    """Remembered checksums under `store`, the `models` folder of a state folder."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self._entries = read_json(store / FILE_NAME)

    def checksum(self, path: Path) -> str:
        """Sha256 of the file as 64 hex digits. Raises OSError where it cannot be read."""
        stamp = _stamp(path)
        known = self._entries.get(str(path))
        if isinstance(known, list) and known[:-1] == stamp:
            return str(known[-1])
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self._remember(path, [*stamp, digest])
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
        self._remember(path, [*_stamp(path), ""])

    def unchanged(self, path: Path) -> bool:
        """Whether the file is there with the stamp that `wrote` remembered."""
        known = self._entries.get(str(path))
        try:
            return isinstance(known, list) and known[:-1] == _stamp(path)
        except OSError:
            return False

    def _remember(self, path: Path, entry: list[Any]) -> None:
        self._entries[str(path)] = entry
        with _WRITING, contextlib.suppress(OSError):
            # Another process may have written since: keep its entries, and add this one.
            entries = read_json(self.store / FILE_NAME)
            entries = {file: old for file, old in entries.items() if os.path.exists(file)}
            write_json(self.store / FILE_NAME, entries | {str(path): entry})


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in the file; an empty one where there is none that can be read."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write the object whole or not at all. Raises OSError where the folder is read-only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    os.replace(temporary, path)


def _stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
