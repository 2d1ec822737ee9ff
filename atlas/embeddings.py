"""Searched texts -> unit vectors, computed once per text and model and kept on this machine.

The cache is one SQLite file in the state folder, keyed by model fingerprint and sha256 of the
text. A killed ingest keeps what it had computed. A damaged or unwritable cache costs time only.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
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
                row = store.execute(
                    "SELECT vector FROM vectors WHERE model = ? AND text = ?",
                    (self.fingerprint, _digest(text)),
                ).fetchone()
                if row and len(row[0]) == 4 * self.dimension:
                    vectors[place] = np.frombuffer(row[0], np.float32)
                    done(1)
                else:
                    missing.setdefault(text, []).append(place)
            if not missing:
                return vectors, 0
            encoder = load()
            todo = list(missing)
            for first in range(0, len(todo), BATCH):
                batch = todo[first : first + BATCH]
                for text, vector in zip(batch, encoder.encode_documents(batch), strict=True):
                    vectors[missing[text]] = vector
                    done(len(missing[text]))
                    store.execute(
                        "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
                        (self.fingerprint, _digest(text), vector.astype(np.float32).tobytes()),
                    )
                store.commit()
            return vectors, sum(len(places) for places in missing.values())

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """The cache file, or a cache in memory where the file cannot be used."""
        try:
            store = self._connect(str(self.path))
        except sqlite3.DatabaseError:
            with contextlib.suppress(OSError):
                self.path.unlink()
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
            store.execute("PRAGMA quick_check").fetchone()
            store.execute(
                "CREATE TABLE IF NOT EXISTS vectors "
                "(model TEXT, text BLOB, vector BLOB, PRIMARY KEY (model, text)) WITHOUT ROWID"
            )
            store.commit()
        except sqlite3.DatabaseError:
            store.close()
            raise
        return store


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
