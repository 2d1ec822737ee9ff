"""Which files were checked already: a file with an unchanged stamp is not hashed again.

A stamp is path, size, modification time and inode. The list lives in the state folder of this
machine; losing it costs time, never safety.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path


def sha256(path: Path) -> str:
    """The sha256 of a file, as 64 hex digits. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Stamps:
    """The verified files of one state folder."""

    def __init__(self, state: Path) -> None:
        self._path = state / "verified.json"
        self._known: dict[str, str] = {}
        try:
            loaded = json.loads(self._path.read_text(encoding="utf-8"))
            if isinstance(loaded, dict):
                self._known = {k: v for k, v in loaded.items() if isinstance(v, str)}
        except (OSError, ValueError):
            pass

    def holds(self, path: Path, checksum: str) -> bool:
        """Whether the file's sha256 is `checksum`; computed only for a stamp not seen before.

        Raises OSError where the file cannot be read.
        """
        stat = path.stat()
        key = f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}|{stat.st_ino}"
        if self._known.get(key) == checksum:
            return True
        if sha256(path) != checksum:
            return False
        prefix = f"{path.resolve()}|"
        self._known = {k: v for k, v in self._known.items() if not k.startswith(prefix)}
        self._known[key] = checksum
        self._save()
        return True

    def _save(self) -> None:
        with contextlib.suppress(OSError):
            write_atomically(self._path, json.dumps(self._known, indent=0).encode())


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file beside its place, flush it to the disk and rename it in. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
