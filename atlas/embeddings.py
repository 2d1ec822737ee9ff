"""Searched texts -> unit vectors, computed once per text and model and kept on this machine.

The cache is one SQLite file in the state folder, keyed by model fingerprint and sha256 of the
text; a vector is kept with a CRC-32 over all of them. A killed ingest keeps what it had computed.
A damaged or unwritable cache costs time only.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from atlas.models import Encoder

BATCH = 32
"""Texts that are encoded between two looks at the clock."""
KEPT_AFTER_SECONDS = 1.0
"""Age of computed vectors from which they are written to the disk: what a kill can cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """The vectors of some texts."""

    vectors: NDArray[np.float32]
    """Unit vectors, shape (texts, dimension)."""
    tokens: NDArray[np.int32]
    """Tokens of each text before any cut, shape (texts,)."""
    computed: int
    """Texts whose vector was not known."""


class EmbeddingCache:
    """Vectors of texts by one encoder. Use it with `with`."""

    def __init__(self, state: Path, encoder: Encoder) -> None:
        self.path = state / "embeddings.sqlite"
        self.encoder = encoder
        self._store = self._open()
        self._kept_at = time.monotonic()

    def __enter__(self) -> EmbeddingCache:
        return self

    def __exit__(self, *_: object) -> None:
        self._commit()
        self._store.close()

    def fill(self, texts: Sequence[str], done: Callable[[int], None] = lambda n: None) -> Filled:
        """The vectors of texts; `done(n)` is called as n more have theirs."""
        vectors = np.zeros((len(texts), self.encoder.dimension), np.float32)
        tokens = np.zeros(len(texts), np.int32)
        missing: dict[str, list[int]] = {}
        for place, text in enumerate(texts):
            known = self._known(text)
            if known is None:
                missing.setdefault(text, []).append(place)
            else:
                vectors[place], tokens[place] = known
        todo = list(missing)
        done(len(texts) - sum(map(len, missing.values())))
        for first in range(0, len(todo), BATCH):
            batch = todo[first : first + BATCH]
            rows = []
            for text, vector in zip(batch, self.encoder.encode_documents(batch), strict=True):
                count = self.encoder.count_tokens(text)
                vectors[missing[text]], tokens[missing[text]] = vector, count
                data, key = vector.tobytes() + count.to_bytes(4, "little"), _digest(text)
                rows.append((self.encoder.fingerprint, key, data + self._crc(key, data)))
                done(len(missing[text]))
            self._keep(rows)
        return Filled(
            vectors=vectors, tokens=tokens, computed=sum(len(p) for p in missing.values())
        )

    def _known(self, text: str) -> tuple[NDArray[np.float32], int] | None:
        """Vector and tokens as they were kept for this text, or None."""
        key = _digest(text)
        try:
            row = self._store.execute(
                "SELECT vector FROM vectors WHERE model = ? AND text = ?",
                (self.encoder.fingerprint, key),
            ).fetchone()
        except sqlite3.Error:
            return None
        size = 4 * self.encoder.dimension
        if row is None or not isinstance(row[0], bytes) or len(row[0]) != size + 8:
            return None
        data, check = row[0][:-4], row[0][-4:]
        if self._crc(key, data) != check:
            return None
        vector = np.frombuffer(data, np.float32, self.encoder.dimension)
        return vector, int.from_bytes(data[-4:], "little")

    def _crc(self, key: bytes, data: bytes) -> bytes:
        """Over model and text too: a damaged file can give the row of another text."""
        whole = self.encoder.fingerprint.encode() + key + data
        return zlib.crc32(whole).to_bytes(4, "little")

    def _keep(self, rows: Sequence[tuple[str, bytes, bytes]]) -> None:
        try:
            self._store.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
            if time.monotonic() - self._kept_at >= KEPT_AFTER_SECONDS:
                self._commit()
        except sqlite3.Error:  # a full disk: the next run computes again
            with contextlib.suppress(sqlite3.Error):
                self._store.rollback()

    def _commit(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._store.commit()
        self._kept_at = time.monotonic()

    def _open(self) -> sqlite3.Connection:
        """The cache file, or a cache in memory where the file cannot be used."""
        try:
            return self._connect(str(self.path))
        except sqlite3.OperationalError:  # cannot be opened, locked, disk full: not damaged
            return self._connect(":memory:")
        except sqlite3.DatabaseError:
            for name in (self.path.name, f"{self.path.name}-journal"):
                with contextlib.suppress(OSError):
                    self.path.with_name(name).unlink()
            try:
                return self._connect(str(self.path))
            except sqlite3.DatabaseError:
                return self._connect(":memory:")

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


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
