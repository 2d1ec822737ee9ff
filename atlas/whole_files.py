"""Files and lines that are written whole or not at all, whoever is killed, however full the disk.

Enters: a path and its new content, or a line to add. Leaves: the file with it, or the file as it
was. The content of a file goes into `NAME.<process>.<thread>.tmp` beside it, under a lock, and is
renamed into place. What a killed writer left has no lock and is removed by the next writer of the
same file, or by `remove_left`. A line that a kill or a full disk cut short goes when the next one
is added.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import json
import os
import threading
import zlib
from pathlib import Path
from typing import Any, BinaryIO

CHECKSUM = "checksum"


def write_whole(path: Path, data: bytes, *, flush: bool = False) -> None:
    """Write a file beside its place and rename it in, so that no reader sees a part of it.

    `flush` forces the data to the disk first. Makes the folder. Raises OSError, and then the old
    file is unchanged.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_left(path)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        with _locked(temporary) as file:
            file.write(data)
            file.flush()
            if flush:
                os.fsync(file.fileno())
            os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def remove_left(path: Path) -> None:
    """Remove what killed writers of `path` left beside it. Raises nothing."""
    for left in path.parent.glob(f"{glob.escape(path.name)}.*.tmp"):
        with contextlib.suppress(OSError), left.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()


def _locked(path: Path) -> BinaryIO:
    """A new file that is locked; once more where it was taken for left behind before the lock."""
    while True:
        file = path.open("wb")
        with contextlib.suppress(OSError):  # a file system without locks: nothing is removed there
            fcntl.flock(file, fcntl.LOCK_SH)
        with contextlib.suppress(FileNotFoundError):
            if os.fstat(file.fileno()).st_ino == path.stat().st_ino:
                return file
        file.close()


def add_line(path: Path, line: bytes, mode: int = 0o644) -> None:
    """Add a line of JSON to a file that several processes may add to. Makes the file, and its
    folder. Raises OSError, and then nothing was added.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, mode)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        add_line_to(handle, line)
    finally:
        os.close(handle)


def add_line_to(handle: int, line: bytes) -> None:
    """The same for a file that is open to read and append and that nobody else adds to now."""
    size = os.fstat(handle).st_size
    cut = _unfinished(handle, size)
    data = line + b"\n"
    if cut and is_json(cut):  # only its end lacks
        data = b"\n" + data
    elif cut:
        size -= len(cut)
        os.ftruncate(handle, size)
    if os.write(handle, data) < len(data):
        os.ftruncate(handle, size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _unfinished(handle: int, size: int) -> bytes:
    """What stands after the last end of a line."""
    tail = b""
    while size and b"\n" not in tail:
        begin = max(0, size - (1 << 16))
        tail = os.pread(handle, size - begin, begin) + tail
        size = begin
    return tail.rpartition(b"\n")[2]


def sealed(values: dict[str, Any], indent: int | None = None) -> bytes:
    """JSON in ASCII that ends in a checksum of the rest; one line without `indent`."""
    whole = values | {CHECKSUM: _checksum(values)}
    return json.dumps(whole, allow_nan=False, indent=indent).encode()


def unsealed(text: bytes) -> Any:
    """The value of JSON, without the checksum that it may have.

    Raises ValueError where it is no JSON or not as it was written.
    """
    values = json.loads(text)
    if isinstance(values, dict) and values.pop(CHECKSUM, None) not in (None, _checksum(values)):
        raise ValueError("it does not match its checksum")
    return values


def _checksum(values: dict[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(values).encode()):08x}"


def is_json(line: bytes) -> bool:
    """Whether a line is whole."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
