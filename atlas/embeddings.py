"""Searched texts -> unit vectors, computed once per text and model and kept on this machine.

The cache is one SQLite file in the state folder, keyed by model fingerprint and sha256 of the
text; a vector is kept with its CRC-32. A killed ingest keeps what it had computed. A damaged or
unwritable cache costs time only.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from atlas.models import Encoder

BATCH = 32
"""Texts between two commits: what a kill can cost."""


class EmbeddingCache:
    """Vectors of texts by one encoder."""

    def __init__(self, state: Path, fingerprint: str, dimension: int) -> None:
        self.path = state / "embeddings.sqlite"
        self.fingerprint = fingerprint
        self.dimension = dimension

    def fill(
        self,
        texts: Sequence[str],
        load: Callable[[], Encoder],
        done: Callable[[int], None] = lambda count: None,
    ) -> tuple[NDArray[np.float32], int]:
        """Unit vectors (len(texts), dimension), and how many of them had to be computed.

        `load` gives the encoder and is called only where something is missing; `done(n)` is
        called as n more texts have their vectors.
        """
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        with self._open() as store:
            missing: dict[str, list[int]] = {}
            for place, text in enumerate(texts):
                vector = self._known(store, text)
                if vector is None:
                    missing.setdefault(text, []).append(place)
                else:
                    vectors[place] = vector
                    done(1)
            if not missing:
                return vectors, 0
            encoder = load()
            todo = list(missing)
            for first in range(0, len(todo), BATCH):
                batch = todo[first : first + BATCH]
                for text, vector in zip(batch, encoder.encode_documents(batch), strict=True):
                    vectors[missing[text]] = vector
                    done(len(missing[text]))
                self._keep(store, batch, [vectors[missing[text][0]] for text in batch])
            return vectors, sum(len(places) for places in missing.values())

    def _known(self, store: sqlite3.Connection, text: str) -> NDArray[np.float32] | None:
        """The vector as it was kept, or None where it is missing or not what was kept."""
        try:
            row = store.execute(
                "SELECT vector FROM vectors WHERE model = ? AND text = ?",
                (self.fingerprint, _digest(text)),
            ).fetchone()
        except sqlite3.Error:
            return None
        if row is None or not isinstance(row[0], bytes) or len(row[0]) != 4 * self.dimension + 4:
            return None
        data, check = row[0][:-4], row[0][-4:]
        return np.frombuffer(data, np.float32) if _crc(data) == check else None

    def _keep(
        self,
        store: sqlite3.Connection,
        texts: Sequence[str],
        vectors: Sequence[NDArray[np.float32]],
    ) -> None:
        rows = []
        for text, vector in zip(texts, vectors, strict=True):
            data = vector.tobytes()
            rows.append((self.fingerprint, _digest(text), data + _crc(data)))
        with contextlib.suppress(sqlite3.Error), store:  # a full disk: the next run computes again
            store.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """The cache file, or a cache in memory where the file cannot be used."""
        try:
            store = self._connect(str(self.path))
        except sqlite3.OperationalError:  # cannot be opened, locked, disk full: not damaged
            store = self._connect(":memory:")
        except sqlite3.DatabaseError:
            for name in (self.path.name, f"{self.path.name}-journal"):
                with contextlib.suppress(OSError):
                    self.path.with_name(name).unlink()
            try:
                store = self._connect(str(self.path))
            except sqlite3.DatabaseError:
                store = self._connect(":memory:")
        with contextlib.closing(store):
            yield store

    @staticmethod
    def _connect(path: str) -> sqlite3.Connection:
        store = sqlite3.connect(path, timeout=30)
        try:
            if store.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise sqlite3.DatabaseError("damaged")
            store.execute(
                "CREATE TABLE IF NOT EXISTS vectors "
                "(model TEXT, text BLOB, vector BLOB, PRIMARY KEY (model, text)) WITHOUT ROWID"
            )
            store.commit()
        except sqlite3.DatabaseError:
            store.close()
            raise
        return store


def _crc(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "little")


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
