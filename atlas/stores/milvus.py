"""The milvus store: both searches on a Milvus server, the scope as a filter before each.

Milvus chooses the candidates, the index scores them: the cosine and BM25 of a candidate are those
of the local store, with the statistics of the scope. What is lost is the choice by words where more
blocks match than are asked for: Milvus ranks them by BM25 with the statistics of its collection,
which hold documents out of scope too. Such a document can then move which of the weakest matches
are candidates, but no score, and it is never found itself.

What a server answers is checked against the index: a block out of scope, a cosine that is not that
of the block, or a score that is no number is an error, and nothing of such an answer is used.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atlas.errors import StoreError
from atlas.index import Index
from atlas.keyword import ScopedBM25
from atlas.stores import Candidates
from atlas.stores.milvus_filling import check_whole, collection_name
from atlas.stores.milvus_rows import encoded
from atlas.stores.milvus_scope import expression
from atlas.stores.milvus_server import Server, address

SEARCH_SECONDS = 20.0
"""Longest wait for one search, repeats after a lost connection included."""
TOLERANCE = 1e-3
"""Most that a server's cosine may differ from that of the index: other orders of summing."""


class MilvusStore:
    """The searches over the collection of one index."""

    keyword_statistics = "scope, candidates by those of the collection"

    def __init__(self, index: Index) -> None:
        """Raises StoreError where no server answers, IndexDamagedError where the collection of
        this index is missing or not whole."""
        self.index = index
        self.collection = collection_name(index)
        self.server = Server(address(index.folder.parent.parent))
        try:
            check_whole(self.server, self.collection, index)
            self.name = f"milvus {self.server.version()}"
        except BaseException:
            self.server.close()
            raise
        self._scopes: weakref.WeakKeyDictionary[ScopedBM25, str] = weakref.WeakKeyDictionary()

    def candidates(
        self,
        terms: Sequence[str],
        vector: NDArray[np.float32],
        statistics: ScopedBM25,
        count: int,
    ) -> Candidates:
        """See `Store`. Raises StoreError."""
        count = min(count, int(np.count_nonzero(statistics.in_scope)))
        if count < 1:
            nothing = np.empty(0, np.float64)
            return Candidates(
                numbers=np.empty(0, np.int64),
                keyword=nothing,
                matched=np.empty(0, bool),
                cosine=nothing,
            )
        near = self._search("vector", vector, statistics, count)
        words = self.by_words(terms, statistics, count)
        numbers = np.array(sorted(near | words), np.int64)
        keyword, matched = statistics.scores_of(terms, numbers)
        return Candidates(
            numbers=numbers,
            keyword=keyword,
            matched=matched,
            cosine=self._cosines(vector, numbers, near),
        )

    def by_words(
        self, terms: Sequence[str], statistics: ScopedBM25, count: int
    ) -> dict[int, float]:
        """Block -> Milvus's BM25, over its collection, of the best `count` in scope.

        The sign tells nothing: Milvus Lite gives these scores a minus, a server does not.
        """
        if not terms:
            return {}
        text = " ".join(encoded(term) for term in terms)
        return self._search("keyword", text, statistics, count)

    def close(self) -> None:
        """End the connection."""
        self.server.close()

    def _cosines(
        self, vector: NDArray[np.float32], numbers: NDArray[np.int64], near: dict[int, float]
    ) -> NDArray[np.float64]:
        """The index's own cosines, which those of the server have to agree with."""
        own = self.index.vectors.cosines(vector, numbers).astype(np.float64)
        for number, cosine in zip(numbers.tolist(), own.tolist(), strict=True):
            if abs(near.get(number, cosine) - cosine) > TOLERANCE:
                raise self._wrong(f"a cosine of {near[number]:.3f} for one of {cosine:.3f}")
        return own

    def _search(
        self, field: str, data: Any, statistics: ScopedBM25, count: int
    ) -> dict[int, float]:
        """Block -> score of the best blocks in scope, as the server gives them, checked."""
        in_scope = statistics.in_scope
        scope = self._scopes.get(statistics)
        if scope is None:
            scope = self._scopes[statistics] = expression(in_scope, self.index)

        def search(client: Any) -> list[tuple[Any, float]]:
            rows = client.search(
                self.collection,
                data=[data],
                anns_field=field,
                filter=scope,
                limit=count,
                timeout=SEARCH_SECONDS,
            )
            return [(hit["number"], float(hit["distance"])) for hit in rows[0]]

        found: dict[int, float] = {}
        for number, score in self.server.ask("searching", search):
            if not isinstance(number, int) or not 0 <= number < len(in_scope):
                raise self._wrong("a block that the index does not have")
            if not in_scope[number]:
                raise self._wrong("a block out of scope")
            if number in found or len(found) == count:
                raise self._wrong("more blocks than were asked for")
            if not np.isfinite(score):
                raise self._wrong("a score that is no number")
            found[number] = score
        return found

    def _wrong(self, what: str) -> StoreError:
        where = self.server.where
        how = f"remove {where.uri}" if where.lite else f"drop its collection {self.collection}"
        return StoreError(
            f"{where.uri}: Milvus answered with {what}, so nothing of the answer is used; {how} "
            "and run `atlas ingest`"
        )


def describe(index: Index) -> str:
    """One line about the store of an index for a person. Raises StoreError, IndexDamagedError."""
    store = MilvusStore(index)
    try:
        where = store.server.where.uri
        return f"{store.name} at {where}: collection {store.collection}, {len(index)} blocks"
    finally:
        store.close()
