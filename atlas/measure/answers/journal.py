"""Finished answers of a run on disk, so that a killed run goes on where it was.

One JSON line per answer, each written at once. A line cut short by a kill is asked again; failed
answers are never written. The file is named by what the run is (questions, settings, models) and
goes away when the run is complete. Only one process may write it at a time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from atlas.errors import AtlasError, UsageError
from atlas.measure.answers.outcome import Outcome, from_json
from atlas.whole_files import add_line_to, sealed, unsealed

FOLDER = "answers"
"""Its place in the state folder."""
Key = tuple[str, str, int, int]
"""Case, arm, k and repeat."""


class Journal:
    """The finished answers of one run."""

    def __init__(self, handle: int, path: Path) -> None:
        self._handle = handle
        self.path = path
        self.done: dict[Key, Outcome] = {item.key: item for item in _read(handle)}
        self.resumed = len(self.done)
        self._adding = threading.Lock()

    def add(self, outcome: Outcome) -> None:
        """Keep a finished answer; many threads may. Raises AtlasError where the disk refuses."""
        self.done[outcome.key] = outcome
        if outcome.error:
            return
        try:
            with self._adding:
                add_line_to(self._handle, sealed(outcome.as_json()))
        except OSError as error:
            raise AtlasError(f"{self.path}: could not be written ({error.strerror})") from None


@contextmanager
def journal(state: Path, digest: str) -> Iterator[Journal]:
    """The journal of a run; it is removed where the block ends without an exception.

    Raises UsageError where another process runs the same, AtlasError where nothing can be written.
    """
    path = state / FOLDER / f"{digest}.jsonl"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError as error:
        raise AtlasError(f"{path}: could not be opened ({error.strerror})") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(f"{path}: the same run is going on in another process") from None
        if not path.exists() or os.stat(path).st_ino != os.fstat(handle).st_ino:
            raise UsageError(f"{path}: the same run has just ended elsewhere; run it again")
        yield Journal(handle, path)
        with contextlib.suppress(OSError):
            path.unlink()
    finally:
        os.close(handle)


def _read(handle: int) -> Iterator[Outcome]:
    with os.fdopen(os.dup(handle), "rb") as file:
        file.seek(0)
        for line in file:
            with contextlib.suppress(ValueError, RecursionError):
                outcome = from_json(unsealed(line))
                if outcome is not None and not outcome.error:
                    yield outcome
